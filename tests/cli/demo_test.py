#!/usr/bin/env python3
"""The demonstrations: their counts, their exit codes, their manners."""
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

    def test_fanout_resumes_its_parent_once(self):
        answer = self.run_stint("demo", "fanout", "--children", "120", "-o", "json").json()
        self.assertEqual(
            (answer["children"], answer["completed"], answer["lost"], answer["outcomes_doubled"]),
            (120, 120, 0, 0))
        self.assertEqual(answer["parent_resumed"], 1)
        self.assertTrue(answer["sum_right"])
        self.assertGreaterEqual(answer["kills"], 1)
        self.assertGreater(answer["recovered"], 0, "the kill hit a child")
        self.assertTrue(answer["ok"])

    def test_throttle_holds_its_limit(self):
        answer = self.run_stint("demo", "throttle", "--tasks", "60", "--capacity", "2")
        self.assertRegex(answer.out, r"^tasks 60   completed 60   recovered [1-9]\d*   lost 0   units 2   "
                                     r"holders at most 2\n$")
        self.assertIn("!! killing a worker (SIGKILL) whose tasks hold the resource; one is ", answer.err)
        self.assertEqual(self.run_stint("resource", "list", "-o", "ids").out, "", "it cleans up")

    def test_throttle_is_content_with_as_many_holders_as_there_are_tasks(self):
        answer = self.run_stint("demo", "throttle", "--tasks", "10", "--capacity", "20",
                                "--workers", "2", "-o", "json").json()
        self.assertEqual((answer["most_holders"], answer["ok"]), (10, True))
        self.assertGreaterEqual(answer["kills"], 1)
        self.assertGreater(answer["recovered"], 0)

    def test_schedule_fires_each_instant_once(self):
        answer = self.run_stint("demo", "schedule", "--runs", "4", "-o", "json").json()
        self.assertGreaterEqual(answer["instants"], 4)
        self.assertEqual((answer["missing"], answer["doubled"], answer["lost"]), (0, 0, 0))
        self.assertEqual(answer["tasks"], answer["completed"])
        self.assertTrue(answer["ok"])

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
