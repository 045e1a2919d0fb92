#!/usr/bin/env python3
"""Flows: list, show, signal, cancel, fork. The flows are those of the example `checkout`."""
import json
import pathlib
import subprocess

import support
from support import CliCase


class Flows(CliCase):
    def checkout(self):
        """Runs the example on the test's store; the ids of its flows, the oldest first."""
        program = pathlib.Path(support.BINARY).resolve().parent / "example_checkout"
        done = subprocess.run([program, self.store], capture_output=True, text=True, timeout=60,
                              cwd=self.home, env=self.env(), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("chair: shipped X17", done.stdout)
        return sorted(self.run_stint("flow", "list", "-o", "ids").lines(), key=int)

    def show(self, flow):
        return self.run_stint("flow", "show", flow, "-o", "json").json()

    def test_instances_are_listed_and_shown_with_their_steps(self):
        chair, yacht, lamp = self.checkout()
        listed = self.run_stint("flow", "list", "--type", "shop.checkout", "-o", "json").json()["flows"]
        self.assertEqual([one["task"] for one in listed], [lamp, yacht, chair])
        self.assertEqual({one["state"] for one in listed}, {"complete"})
        self.assertEqual(len(self.run_stint("flow", "list", "--state", "dead", "-o", "ids").lines()), 0)
        shown = self.show(chair)
        self.assertEqual([(s["name"], s["kind"], s["state"]) for s in shown["history"]],
                         [("reserve", "call", "done"), ("charge", "call", "done"),
                          ("shipped", "signal", "done"), ("thank", "run", "done")])
        self.assertEqual(shown["signals"][0]["step"], 3)
        self.assertEqual(self.show(lamp)["history"][2]["state"], "timed_out")
        text = self.run_stint("flow", "show", yacht).out
        self.assertIn("charge call shop.charge", text)
        self.assertIn("the card says no", text)

    def test_a_history_is_exported(self):
        chair = self.checkout()[0]
        history = json.loads(self.run_stint("flow", "show", chair, "--history").out)
        self.assertEqual(history["type"], "shop.checkout")
        self.assertEqual(len(history["steps"]), 4)

    def test_a_fork_begins_at_a_step(self):
        chair = self.checkout()[0]
        forked = self.run_stint("flow", "fork", chair, "shipped")
        new = forked.out.strip()
        self.assertIn("2 recorded steps", forked.err)
        self.assertEqual([s["name"] for s in self.show(new)["history"]], ["reserve", "charge"])
        self.assertEqual(self.task(new)["input"], self.task(chair)["input"])
        self.assertIn("no step", self.run_stint("flow", "fork", chair, "nosuch", code=4).err)

    def test_why_says_what_a_flow_waits_for(self):
        task = self.submit("demo.order", "{}")
        self.start_stint("worker", "start", "--poll-max", "50ms")
        self.await_true(lambda: "signal" in (self.show(task).get("waits_for") or "")
                        if self.run_stint("flow", "show", task, code=None).code == 0 else False,
                        "it waits for its parcel")
        why = self.run_stint("task", "why", task, "-o", "json").json()
        reason = why["reasons"][0]
        self.assertEqual(reason["condition"], "awaits_signal")
        self.assertIn('signal "shipped"', reason["meaning"])
        self.assertRegex(reason["detail"], r"^until \d{4}-")
        self.assertEqual(reason["cure"], f"stint flow signal {task} shipped")
        self.assertNotIn("task edit", self.run_stint("task", "why", task).out)
        self.run_stint("flow", "signal", task, "shipped", '"X"')
        self.await_true(lambda: self.task(task)["state"] == "complete", "it has gone on")

    def test_signals_are_kept_and_told_once(self):
        task = self.submit("shop.checkout", "{}")
        words = ["flow", "signal", task, "shipped", '{"parcel": "X"}', "--id", "d1"]
        self.assertEqual(self.run_stint(*words).out, "accepted\n")
        self.assertEqual(self.run_stint(*words).out, "existing\n")
        other = self.run_stint("flow", "signal", task, "shipped", "1", "--id", "d1", code=6)
        self.assertIn("another payload", other.err)
        self.assertEqual(self.show(task)["waiting_signals"], 1)
        self.assertIn("no task 99999", self.run_stint("flow", "signal", "99999", "x", code=4).err)
        self.assertIn("is not JSON", self.run_stint("flow", "signal", task, "x", "{", code=2).err)

    def test_cancel(self):
        task = self.submit("shop.checkout", "{}")
        self.run_stint("flow", "signal", task, "shipped")
        answer = self.run_stint("flow", "cancel", task, "--reason", "withdrawn", "-o", "json").json()
        self.assertEqual((answer["result"], answer["descendants"]), ("cancelled", 0))
        self.assertIn("already cancelled", self.run_stint("flow", "cancel", task, code=6).err)
        self.assertIn("takes no more signals", self.run_stint("flow", "signal", task, "x", code=6).err)

    def test_the_demo_says_whether_its_promise_held(self):
        answer = self.run_stint("demo", "workflow", "--orders", "8", "-o", "json").json()
        self.assertTrue(answer["ok"], answer)
        self.assertEqual((answer["complete"], answer["missing"], answer["doubled"]), (8, 0, 0))
        self.assertEqual(answer["steps"], 7 * 8)
        self.assertTrue(answer["killed"], answer)
        self.assertGreater(answer["resumed"], 0, "the kill hit an order in the middle")

    def test_what_is_wrong_is_named(self):
        self.assertIn("is not the id", self.run_stint("flow", "show", "x", code=2).err)
        task = self.submit("echo", "{}")
        self.assertIn("no flow", self.run_stint("flow", "show", task, code=4).err)
        self.assertIn("no state", self.run_stint("flow", "list", "--state", "x", code=2).err)
        self.assertIn("--limit", self.run_stint("flow", "list", "--limit", "0", code=2).err)
        self.assertIn("no flows", self.run_stint("flow", "list").err)


if __name__ == "__main__":
    support.main()
