#!/usr/bin/env python3
"""The benchmarks run, measure what they say, and leave nothing behind. No figure is judged."""
import signal

import support
from support import CliCase


class Bench(CliCase):
    def left_behind(self):
        return [path.name for path in self.home.iterdir() if "bench" in path.name]

    def test_drain(self):
        body = self.run_stint("bench", "drain", "--tasks", "500", "--slots", "8", "--processes", "2",
                              "-o", "json").json()
        self.assertEqual((body["bench"], body["tasks"], body["complete"]), ("drain", 500, 500))
        self.assertGreater(body["tasks_per_s"], 0)
        self.assertEqual(body["prefetch"], 8, "as many as the slots")
        self.assertGreater(body["canary_commits_per_s"], 0)
        self.assertTrue(body["durability"])
        self.assertEqual(self.left_behind(), [])

    def test_submit(self):
        body = self.run_stint("bench", "submit", "--tasks", "200", "--clients", "4", "-o", "json").json()
        self.assertEqual((body["stored"], body["clients"], body["batch"]), (200, 4, 1))
        self.assertLessEqual(body["submit_p50_ms"], body["submit_p99_ms"])
        self.assertLessEqual(body["submit_p99_ms"], body["submit_max_ms"])

    def test_latency(self):
        body = self.run_stint("bench", "latency", "--tasks", "20", "-o", "json").json()
        self.assertGreater(body["start_p50_ms"], 0)
        self.assertLessEqual(body["start_p50_ms"], body["start_max_ms"])
        table = self.run_stint("bench", "latency", "--tasks", "5").out
        self.assertIn("start_p50_ms", table)

    def test_in_place_refuses_a_store_in_use(self):
        self.submit("echo")
        answer = self.run_stint("bench", "submit", "--tasks", "10", "--in-place", code=6)
        self.assertIn("--force", answer.err)
        body = self.run_stint("bench", "submit", "--tasks", "10", "--in-place", "--force",
                              "-o", "json").json()
        self.assertEqual(body["stored"], 10)

    def test_interrupt_cleans_up(self):
        bench = self.start_stint("bench", "drain", "--tasks", "1000000", "--batch", "100")
        self.await_true(lambda: support.catches(bench.pid, signal.SIGINT), "it catches signals")
        if not support.POSTGRES:
            self.await_true(self.left_behind, "it has made its store")
        bench.send_signal(signal.SIGINT)
        self.assertEqual(bench.wait(timeout=30), 130)
        self.assertEqual(self.left_behind(), [])


support.main()
