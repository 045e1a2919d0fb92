#!/usr/bin/env python3
"""The crash demo: its counts, its exit code, its manners."""
import os
import re
import signal

import support
from support import CliCase

LINE = (r"^accepted (\d+)   completed (\d+)   recovered (\d+)   lost (\d+)   "
        r"outcomes doubled (\d+)\n$")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


class Demo(CliCase):
    def test_counts_and_exit_code(self):
        answer = self.run_stint("demo", "crash", "--tasks", "120", "--seed", "7")
        match = re.match(LINE, answer.out)
        self.assertTrue(match, str(answer))
        accepted, completed, recovered, lost, doubled = map(int, match.groups())
        self.assertEqual((accepted, completed, lost, doubled), (120, 120, 0, 0))
        self.assertGreater(recovered, 0)
        self.assertIn("demo: 120 tasks of 50–200 ms, 1 worker process", answer.err)
        self.assertIn("!! killing the worker (SIGKILL) in the middle of its tasks", answer.err)
        self.assertNotIn("\x1b", answer.err, "no bar when it is no terminal")
        # The store agrees, asked by another process.
        body = self.run_stint("task", "list", "--count", "-o", "json").json()
        self.assertEqual([(e["state"], e["tasks"]) for e in body["counts"]], [("complete", 120)])
        self.assertTrue(self.run_stint("store", "check", "-o", "json").json()["ok"])
        # And it can be repeated on the same store, with more workers.
        again = self.run_stint("demo", "crash", "--tasks", "60", "--workers", "2", "-o", "json").json()
        self.assertEqual((again["completed"], again["lost"], again["outcomes_doubled"]), (60, 0, 0))
        self.assertEqual(again["kills"], 2)
        self.assertTrue(again["ok"])

    def test_interrupt_leaves_no_process_and_no_loss(self):
        demo = self.start_stint("demo", "crash", "--tasks", "300")
        workers = self.await_true(lambda: children_of(demo.pid), "its worker runs")
        self.await_true(lambda: self.run_stint("worker", "list", "-o", "ids", code=None).out,
                        "the worker has a session")
        demo.send_signal(signal.SIGINT)
        self.assertEqual(demo.wait(timeout=30), 130)
        for pid in workers:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), "its worker is gone")
        self.assertEqual(demo.stdout.read(), "", "no counts when it was not finished")

    def test_killed_demo_takes_its_workers_along(self):
        demo = self.start_stint("demo", "crash", "--tasks", "300")
        workers = self.await_true(lambda: children_of(demo.pid), "its worker runs")
        demo.kill()
        demo.wait()
        self.await_true(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers),
                        "its workers are gone")


support.main()
