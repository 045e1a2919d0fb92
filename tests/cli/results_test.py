#!/usr/bin/env python3
"""Items and deletions on the command line."""
import support
from support import CliCase


class Results(CliCase):
    def test_a_task_without_items_has_none(self):
        task = self.submit("echo")
        answer = self.run_stint("task", "items", task, "-o", "json")
        self.assertEqual(answer.json()["items"], [])
        self.assertIn("0 items", self.run_stint("task", "items", task).err)
        self.run_stint("task", "items", "999", code=4)

    def items(self, *words):
        answer = self.run_stint("task", "items", *words, "-o", "json")
        return [item["key"] for item in answer.json()["items"]]

    def test_items_are_shown_by_key_in_pages_and_errors_alone(self):
        some = self.submit("demo.items", '{"good": 3, "bad": 2}')
        bad = self.submit("demo.items", '{"good": 0, "bad": 1}')
        self.work()
        task = self.task(some)
        self.assertEqual((task["state"], task["warning"]), ("complete", True))
        self.assertEqual(self.task(bad)["state"], "dead")
        keys = ["bad/0001", "bad/0002", "good/0001", "good/0002", "good/0003"]
        self.assertEqual(self.items(some), keys)
        self.assertEqual(self.items(some, "--errors"), keys[:2])
        self.assertEqual(self.items(some, "--errors", "--after", "bad/0001"), keys[1:2])
        self.assertEqual(self.items(some, "--after", "bad/0002", "--limit", "2"), keys[2:4])
        self.assertEqual(self.items(some, "--limit", "1000"), keys)
        page = self.run_stint("task", "items", some, "--limit", "2")
        self.assertIn("refused as asked", page.out)
        self.assertIn("5 items, 2 in error", page.err)
        item = self.run_stint("task", "items", some, "-o", "json").json()["items"][2]
        self.assertEqual((item["action"], item["before"], item["after"]),
                         ("update", {"seen": False}, {"seen": True}))
        for limit in ("0", "-5", "1001"):
            err = self.run_stint("task", "items", some, "--limit", limit, code=2).err
            self.assertIn(f"--limit is {limit}; it must be between 1 and 1000", err)

    def deletions(self, *words):
        return self.run_stint("deletion", "list", *words, "-o", "json").json()["deletions"]

    def test_a_mark_is_listed_and_can_be_taken_away(self):
        self.run_stint("deletion", "mark", "user", "ann", "echo", '{"id": 1}', "--grace", "30d",
                       "--first", "echo")
        mark = self.deletions("user")[0]
        self.assertEqual((mark["kind"], mark["key"], mark["state"]), ("user", "ann", "marked"))
        self.assertEqual([step["name"] for step in mark["steps"]], ["follow-ups", "delete"])
        self.assertIn("ann", self.run_stint("deletion", "list").out)
        self.assertEqual(self.deletions("group"), [])
        self.run_stint("deletion", "unmark", "user", "ann")
        self.run_stint("deletion", "unmark", "user", "ann", code=4)
        self.assertEqual(self.deletions(), [])

    def test_a_worker_deletes_what_is_due(self):
        self.run_stint("deletion", "pace", "user", "--cap", "5", "--every", "1s")
        self.run_stint("deletion", "mark", "user", "ann", "echo", "--grace", "0s")
        worker = self.start_stint("worker", "start", "--poll-max", "100ms")
        self.await_true(lambda: self.deletions()[0]["task"] is not None, "the deletion begins")
        task = self.deletions()[0]["task"]
        self.await_true(lambda: self.task(task)["state"] == "complete", "and ends")
        worker.terminate()
        self.assertEqual(worker.wait(timeout=30), 0)

    def test_mistakes_name_the_field_and_the_cure(self):
        def wrong(*words):
            return self.run_stint("deletion", *words, code=2).err
        self.assertIn("cap is 0", wrong("pace", "user", "--cap", "0"))
        self.assertIn("--grace", wrong("mark", "user", "ann", "echo", "--grace", "soon"))
        self.assertIn("--after needs KIND", wrong("list", "--after", "x"))


support.main()
