#!/usr/bin/env python3
"""Submitting, looking, changing: on a store without a worker, or with one that has finished."""
import json

import support
from support import CliCase


class Submit(CliCase):
    def test_a_large_tree_shows_the_first(self):
        parent = self.submit("demo.fanout", '{"children": 2100, "queue": "later", "ms": 1}')
        self.start_stint("worker", "start", "--queues", "default", "--poll-max", "50ms")
        self.await_true(lambda: self.task(parent)["state"] == "blocked", "its subtasks are made")
        tree = self.run_stint("task", "tree", parent, "-o", "ids")
        ids = [int(line) for line in tree.lines()]
        self.assertEqual(ids[0], int(parent))
        self.assertEqual(len(ids), 2000)
        self.assertEqual(ids[1:], sorted(ids[1:]))
        every = self.run_stint("task", "list", f"parent:{parent}", "--limit", "2100", "-o", "ids").lines()
        self.assertEqual(ids[1:], sorted(int(one) for one in every)[:1999], "they begin with the first one")
        self.assertIn("only the first 2000 are shown", tree.err)

    def test_prints_the_id_and_stores_the_request(self):
        task_id = self.submit("echo", '{"hi": 1}', "--queue", "q", "--priority", "200", "--tag", "a",
                              "--tag", "b", "--max-attempts", "3", "--timeout", "30s")
        task = self.task(task_id)
        self.assertEqual(task["input"], {"hi": 1})
        self.assertEqual((task["queue"], task["priority"], task["state"]), ("q", 200, "open"))
        self.assertEqual((task["max_attempts"], task["timeout"]), (3, "30s"))
        self.assertEqual(sorted(task["tags"]), ["a", "b"])
        self.assertEqual(task["id"], task_id, "ids are strings in JSON")
        self.assertIsNone(task["output"])

    def test_input_from_file_and_standard_input(self):
        (self.home / "in.json").write_text('{"from": "file"}')
        self.assertEqual(self.task(self.submit("echo", "@in.json"))["input"], {"from": "file"})
        self.assertEqual(self.task(self.submit("echo", "-", stdin="[1, 2]"))["input"], [1, 2])
        self.assertIsNone(self.task(self.submit("echo"))["input"])

    def test_delay_and_instants(self):
        task = self.task(self.submit("echo", "--delay", "1h", "--start-by", "now+2h"))
        self.assertGreater(task["due_at"], task["created_at"])
        self.assertGreater(task["start_by"], task["due_at"])
        task = self.task(self.submit("echo", "--at", "2040-01-02T03:04:05Z"))
        self.assertTrue(task["due_at"].startswith("2040-01-02T03:04:05"), task["due_at"])

    def test_same_key_is_the_same_task(self):
        first = self.submit("echo", "1", "--key", "k")
        self.assertEqual(self.submit("echo", "1", "--key", "k"), first)
        answer = self.run_stint("submit", "echo", "2", "--key", "k", code=6)
        self.assertEqual(answer.out, "")

    def test_unique_key_policies(self):
        first = self.submit("echo", "1", "--unique", "u")
        self.assertEqual(self.submit("echo", "2", "--unique", "u"), first)
        self.run_stint("submit", "echo", "3", "--unique", "u", "--on-duplicate", "error", code=6)
        self.assertEqual(
            self.submit("echo", "4", "--unique", "u", "--on-duplicate", "replace"), first)
        self.assertEqual(self.task(first)["input"], 4)

    def test_after_others(self):
        first = self.submit("echo", "1")
        second = self.submit("echo", "2", "--after", first)
        self.assertEqual((self.task(second)["state"], self.task(second)["waiting_for"]),
                         ("blocked", 1))
        third = self.submit("echo", "3", "--after", second, "--even-if-failed")
        self.run_stint("task", "cancel", first)
        self.assertEqual(self.task(second)["state"], "cancelled")
        self.assertIn(first, self.task(second)["reason"])
        self.assertEqual(self.task(third)["state"], "open")
        answer = self.run_stint("submit", "echo", "--after", "999999", code=2)
        self.assertIn("999999", answer.err)
        self.run_stint("submit", "echo", "--after", "x", code=2)
        self.run_stint("submit", "echo", "--after-any", code=2)

    def test_on_failure_of_what_is_waited_for(self):
        policies = ("wait", "fail-fast", "cancel-rest")
        # Of each pair one fails; the other one is not to be due before the test is over.
        fails, rests, waits = [], [], []
        for policy in policies:
            fails.append(self.submit("echo", "1"))
            rests.append(self.submit("echo", "2", "--delay", "1h"))
            waits.append(self.submit("echo", "3", "--after", fails[-1], "--after", rests[-1],
                                     "--on-failure", policy))
        for task in fails:
            self.run_stint("task", "cancel", task)
        self.assertEqual([self.task(task)["state"] for task in waits],
                         ["blocked", "cancelled", "cancelled"])
        self.assertEqual([self.task(task)["state"] for task in rests],
                         ["open", "open", "cancelled"])
        # What is to run all the same runs at once, too.
        other = self.submit("echo", "4")
        runs = self.submit("echo", "5", "--after", other, "--after", rests[0], "--on-failure",
                           "fail-fast", "--even-if-failed")
        self.run_stint("task", "cancel", other)
        self.work()
        self.assertEqual(self.task(runs)["state"], "complete")
        line = json.dumps({"type": "echo", "after": [rests[0]], "on_failure": "cancel-rest"})
        self.run_stint("submit", "--jsonl", "-", stdin=line)

    def test_on_failure_is_checked(self):
        first = self.submit("echo", "1", "--delay", "1h")
        answer = self.run_stint("submit", "echo", "--after", first, "--on-failure", "panic", code=2)
        self.assertIn('on failure: "panic" is not one of wait, fail-fast, cancel-rest', answer.err)
        self.assertIn("need --after ID",
                      self.run_stint("submit", "echo", "--on-failure", "wait", code=2).err)
        both = self.run_stint("submit", "echo", "--after", first, "--after-any", "--on-failure",
                              "fail-fast", code=2)
        self.assertIn("together with any", both.err)

    def test_unknown_type_is_accepted_with_a_hint(self):
        answer = self.run_stint("submit", "ehco", "1")
        self.assertIn('no worker knows the type "ehco" yet', answer.err)
        self.work()  # publishes its types
        answer = self.run_stint("submit", "ehco", "1")
        self.assertIn("nearest known: echo", answer.err)
        self.assertEqual(self.run_stint("submit", "ehco", "1", "--quiet").err, "")
        self.assertEqual(self.run_stint("submit", "echo", "1").err, "", "known: no talk")

    def test_lines(self):
        lines = [json.dumps({"type": "echo", "input": n, "tags": ["bulk"]}) for n in range(1200)]
        answer = self.run_stint("submit", "--jsonl", "-", stdin="\n".join(lines) + "\n\n")
        ids = answer.lines()
        self.assertEqual(len(set(ids)), 1200)
        self.assertIn("submitted 1200, refused 0", answer.err)
        self.assertEqual(self.task(ids[7])["input"], 7)
        listed = self.run_stint("task", "list", "tag:bulk", "--limit", "5000", "-o", "ids").lines()
        self.assertEqual(sorted(listed), sorted(ids))

    def test_wrong_lines_are_named_and_the_others_stored(self):
        answer = self.run_stint("submit", "echo", "--jsonl", "-", code=2,
                                stdin='{"input": 1}\n{"inptu": 2}\nnonsense\n{"input": 3}\n')
        self.assertEqual(len(answer.lines()), 2)
        self.assertIn('line 2: unknown member "inptu"; did you mean "input"?', answer.err)
        self.assertIn("line 3: the line is not JSON", answer.err)

    def test_output_formats(self):
        body = self.run_stint("submit", "echo", "-o", "json").json()
        self.assertEqual(body["result"], "created")
        self.assertEqual(self.run_stint("submit", "echo", "-o", "none").out, "")


class ListAndGet(CliCase):
    def setUp(self):
        super().setUp()
        self.first = self.submit("demo.sleep", '{"user": {"id": 42}}', "--queue", "a", "--tag", "x")
        self.second = self.submit("echo", '{"user": {"id": 7}}', "--queue", "b", "--delay", "1h")

    def ids(self, *words):
        return self.run_stint("task", "list", *words, "-o", "ids").lines()

    def test_newest_first_and_table(self):
        self.assertEqual(self.ids(), [self.second, self.first])
        answer = self.run_stint("task", "list")
        head, *rows = answer.lines()
        self.assertEqual(head.split(), ["ID", "STATE", "TYPE", "QUEUE", "PRIO", "ATTEMPT", "AGE",
                                        "DETAIL"])
        self.assertEqual(rows[0].split()[:5], [self.second, "open", "echo", "b", "128"])
        self.assertIn("due in 59m", rows[0])
        self.assertNotIn("\x1b", answer.out, "no colour when it is no terminal")

    def test_json_shape(self):
        body = self.run_stint("task", "list", "-o", "json").json()
        self.assertEqual(list(body), ["tasks", "next"])
        self.assertIsNone(body["next"])
        self.assertEqual(body["tasks"][1]["input"], {"user": {"id": 42}})
        expected = ["id", "type", "state", "queue", "priority", "tenant", "parent", "input",
                    "output", "error", "reason", "warning", "attempt", "max_attempts",
                    "generation", "stage", "waiting_for", "claims", "crashes_alone", "suspect",
                    "cancel_requested", "type_known", "tags", "needs", "labels", "order_key",
                    "unique_key", "idempotency_key", "timeout", "progress",
                    "session", "node", "created_at", "due_at", "start_by", "claimed_at",
                    "finished_at", "expires_at", "updated_at"]
        self.assertEqual(list(body["tasks"][0]), expected)
        lines = self.run_stint("task", "list", "-o", "jsonl").lines()
        self.assertEqual([json.loads(line)["id"] for line in lines], [self.second, self.first])

    def test_filters(self):
        self.assertEqual(self.ids("queue:a"), [self.first])
        self.assertEqual(self.ids("type:demo.*", "state:open"), [self.first])
        self.assertEqual(self.ids("tag:x"), [self.first])
        self.assertEqual(self.ids("input.user.id:42"), [self.first])
        self.assertEqual(self.ids("input.user.id<42"), [self.second])
        self.assertEqual(self.ids("state:dead,complete"), [])
        self.assertEqual(self.ids("age>1h"), [])
        self.assertEqual(len(self.ids("age<1h")), 2)
        self.assertEqual(self.ids("tenant:9"), [])
        answer = self.run_stint("task", "list", "queue:a", "stat:open", code=2)
        self.assertIn('filter term 2 ("stat:open"', answer.err)
        self.assertIn('did you mean "state"', answer.err)

    def test_pages(self):
        third = self.submit("echo")
        body = self.run_stint("task", "list", "--limit", "2", "-o", "json").json()
        self.assertEqual([task["id"] for task in body["tasks"]], [third, self.second])
        self.assertIsNotNone(body["next"])
        self.assertEqual(self.ids("--before", body["next"]), [self.first])
        answer = self.run_stint("task", "list", "--limit", "2")
        self.assertIn(f"--before {body['next']}", answer.err)

    def test_nothing_found_is_said_on_standard_error(self):
        answer = self.run_stint("task", "list", "queue:none")
        self.assertEqual(answer.out, "")
        self.assertIn("no tasks match queue:none", answer.err)
        self.assertEqual(self.run_stint("task", "list", "queue:none", "-q").err, "")

    def test_counts(self):
        body = self.run_stint("task", "list", "--count", "-o", "json").json()
        self.assertEqual(sum(entry["tasks"] for entry in body["counts"]), 2)
        self.run_stint("task", "list", "--count", "tag:x", code=2)

    def test_get(self):
        answer = self.run_stint("task", "get", self.first)
        for part in ("type", "demo.sleep", "state", "open", "queue", "input", '{"user": {"id": 42}}'):
            self.assertIn(part, answer.out)
        answer = self.run_stint("task", "get", self.first, "999999999", code=4)
        self.assertIn("there is no task 999999999", answer.err)
        self.assertIn("demo.sleep", answer.out, "what is there is shown all the same")

    def test_colour_when_asked(self):
        self.assertIn("\x1b[", self.run_stint("task", "list", "--color", "always").out)
        self.assertIn("\x1b[", self.run_stint("task", "list", env={"FORCE_COLOR": "1"}).out)
        self.assertNotIn("\x1b[", self.run_stint("task", "list", env={
            "FORCE_COLOR": "1", "NO_COLOR": "1"}).out)


class Change(CliCase):
    def test_cancel(self):
        task_id = self.submit("echo")
        answer = self.run_stint("task", "cancel", task_id, "--reason", "wrong month", "-o", "json")
        self.assertEqual(answer.json()["tasks"],
                         [{"id": task_id, "result": "cancelled", "state": "cancelled",
                           "descendants": 0}])
        self.assertIn("wrong month", self.run_stint("task", "audit", task_id).out)
        answer = self.run_stint("task", "cancel", task_id, code=6)
        self.assertIn("already cancelled", answer.err)
        self.run_stint("task", "cancel", "999999999", code=4)

    def test_ids_from_standard_input(self):
        ids = [self.submit("echo", "--queue", "many") for _ in range(3)]
        listed = self.run_stint("task", "list", "queue:many", "-o", "ids").out
        done = self.run_stint("task", "cancel", "-", "-o", "ids", stdin=listed).lines()
        self.assertEqual(sorted(done), sorted(ids))

    def test_retry_of_a_dead_task(self):
        task_id = self.submit("demo.fail", '{"retryable": false}')
        self.work()
        self.assertEqual(self.task(task_id)["state"], "dead")
        answer = self.run_stint("task", "retry", task_id, "-o", "json").json()
        self.assertEqual(answer["tasks"][0]["result"], "requeued")
        self.assertEqual(self.task(task_id)["generation"], 2)
        self.run_stint("task", "retry", "999999999", code=4)

    def test_retry_refuses_what_is_complete_or_waits(self):
        done, waiting = self.submit("echo"), self.submit("echo", "--delay", "1h")
        self.work()
        for task_id, state in ((done, "complete"), (waiting, "open")):
            answer = self.run_stint("task", "retry", task_id, code=6)
            self.assertIn(f"it is {state}; only dead, cancelled and error tasks", answer.err)

    def test_retry_of_a_cancelled_task(self):
        task_id = self.submit("echo")
        self.run_stint("task", "cancel", task_id)
        self.run_stint("task", "retry", task_id)
        self.work()
        self.assertEqual(self.task(task_id)["state"], "complete")

    def test_explain(self):
        task_id = self.submit("echo", "--queue", "q", "--delay", "1h")
        self.run_stint("queue", "pause", "q")
        answer = self.run_stint("task", "explain", task_id)
        self.assertIn("not_due", answer.out)
        self.assertIn("queue_paused", answer.out)
        self.assertIn("no worker is running", answer.err)
        free = self.submit("echo")
        self.assertEqual(self.run_stint("task", "explain", free, "-o", "ids").lines(), ["eligible"])
        worker = self.start_stint("worker", "start", "--queues", "other")
        reasons = lambda: self.run_stint("task", "explain", free, "-o", "json").json()["reasons"]
        self.await_true(lambda: reasons()[0]["worker"] != "-", "the worker is there")
        self.assertEqual([(r["condition"], r["worker"].split(":")[1]) for r in reasons()],
                         [("queue_not_served", str(worker.pid))])
        self.run_stint("task", "explain", "999999999", code=4)

    def test_discard(self):
        task_id = self.submit("demo.fail", '{"times": 9}')
        self.run_stint("task", "discard", task_id, code=6)
        worker = self.start_stint("worker", "start", "--poll-max", "50ms")
        self.await_true(lambda: self.task(task_id)["state"] == "error", "it fails once")
        self.run_stint("queue", "pause", "default")
        answer = self.run_stint("task", "discard", task_id, code=None)
        if answer.code == 6:  # it was tried again in the meantime
            self.await_true(lambda: self.task(task_id)["state"] == "error", "it fails again")
            answer = self.run_stint("task", "discard", task_id)
        self.assertEqual(self.task(task_id)["state"], "dead")
        worker.terminate()
        self.assertEqual(worker.wait(timeout=30), 0)

    def test_edit(self):
        task_id = self.submit("echo", "1")
        self.run_stint("task", "edit", task_id, "--priority", "200", "--queue", "fast", "--input",
                       "[2]", "--tag", "t", "--max-attempts", "2")
        task = self.task(task_id)
        self.assertEqual((task["priority"], task["queue"], task["input"], task["tags"]),
                         (200, "fast", [2], ["t"]))
        self.assertEqual(task["max_attempts"], 2)
        self.run_stint("task", "edit", task_id, code=2)
        self.run_stint("task", "edit", task_id, "--input", "{", code=2)
        self.run_stint("task", "edit", "999999999", "--priority", "1", code=4)
        self.run_stint("task", "cancel", task_id)
        self.run_stint("task", "edit", task_id, "--priority", "1", code=6)

    def test_wait(self):
        good = self.submit("echo", '{"a": 1}')
        answer = self.run_stint("task", "wait", good, "--timeout", "0", code=9)
        self.assertIn("not finished", answer.err)
        dead = self.submit("demo.fail", '{"retryable": false, "message": "no luck"}')
        gone = self.submit("echo", "--delay", "1h")
        self.run_stint("task", "cancel", gone)
        self.work()
        body = self.run_stint("task", "wait", good, "-o", "json").json()
        self.assertEqual(body["tasks"][0]["output"], {"a": 1})
        self.assertIn("no luck", self.run_stint("task", "wait", dead, good, code=7).out)
        self.run_stint("task", "wait", gone, code=8)
        self.run_stint("task", "wait", gone, dead, code=7)
        self.run_stint("task", "wait", "999999999", code=4)
        waiting = self.submit("echo", "--delay", "1h")
        self.run_stint("task", "wait", waiting, dead, "--timeout", "100ms", code=9)

    def test_attempts_and_audit(self):
        task_id = self.submit("demo.fail", '{"retryable": false, "message": "no luck"}')
        answer = self.run_stint("task", "attempts", task_id)
        self.assertIn("has not been tried yet", answer.err)
        self.work()
        attempts = self.run_stint("task", "attempts", task_id, "-o", "json").json()["attempts"]
        self.assertEqual([a["end"] for a in attempts], ["failed"])
        self.assertEqual(attempts[0]["error"]["message"], "no luck")
        entries = self.run_stint("task", "audit", task_id, "-o", "json").json()["entries"]
        self.assertEqual([(e["from"], e["to"]) for e in entries],
                         [(None, "open"), ("open", "in_progress"), ("in_progress", "dead")])
        self.assertTrue(entries[0]["actor"].startswith("operator:"), entries[0])
        self.run_stint("task", "audit", "999999999", code=4)


class Queues(CliCase):
    def test_list_pause_resume(self):
        self.submit("echo", "--queue", "q")
        queues = self.run_stint("queue", "list", "-o", "json").json()["queues"]
        mine = [queue for queue in queues if queue["name"] == "q"]
        self.assertEqual((mine[0]["waiting"], mine[0]["paused"]), (1, False))
        self.run_stint("queue", "pause", "q", "typo", code=4)
        self.assertNotIn("paused", self.run_stint("queue", "list").out)
        paused = self.run_stint("queue", "pause", "q", "-o", "json").json()
        self.assertTrue(paused["changed_by"].startswith("operator:"), paused)
        line = next(x for x in self.run_stint("queue", "list").out.splitlines() if x.startswith("q "))
        self.assertRegex(line, r"paused .*operator:")
        self.run_stint("queue", "resume", "q")
        self.assertNotIn("paused", self.run_stint("queue", "list").out)
        answer = self.run_stint("queue", "pause", "qq", code=4)
        self.assertIn('no queue "qq"', answer.err)

    def test_cap_refuses_clearly(self):
        self.submit("echo", "--queue", "q")
        self.run_stint("queue", "cap", "q", "1")
        answer = self.run_stint("submit", "echo", "--queue", "q", code=1)
        self.assertIn("q", answer.err)
        self.run_stint("queue", "cap", "q", "none")
        self.submit("echo", "--queue", "q")
        self.run_stint("queue", "cap", "q", "few", code=2)

    def test_how_long_is_kept_is_set_by_how_it_ended(self):
        def kept():
            queues = self.run_stint("queue", "list", "-o", "json").json()["queues"]
            queue = next(queue for queue in queues if queue["name"] == "q")
            return queue["keep_complete"], queue["keep_dead"], queue["keep_cancelled"]

        self.submit("echo", "--queue", "q")
        default = kept()
        answer = self.run_stint("queue", "keep", "q", "--complete", "7d", "--dead", "365d")
        self.assertRegex(answer.out, r"keep complete +7d")
        changed = kept()
        self.assertNotEqual(changed[:2], default[:2])
        self.assertEqual(changed[2], default[2], "what is not named stays")
        self.run_stint("queue", "keep", "q", "--complete", "default", "--dead", "default")
        self.assertEqual(kept(), default)
        self.assertIn("--dead", self.run_stint("queue", "keep", "q", "--dead", "soon", code=2).err)
        self.assertIn("--complete", self.run_stint("queue", "keep", "q", code=2).err)
        answer = self.run_stint("queue", "keep", "q", "--dead", "90000d", code=2)
        self.assertIn("keep_dead", answer.err)


class Stores(CliCase):
    def test_migrate_check_info(self):
        answer = self.run_stint("store", "migrate", "--dry-run")
        self.assertIn("CREATE TABLE", answer.out.upper())
        self.assertIn("--dry-run", answer.err)
        self.assertIn("migrated", self.run_stint("store", "migrate").err)
        self.assertIn("already up to date", self.run_stint("store", "migrate").err)
        self.assertEqual(self.run_stint("store", "migrate", "--dry-run").out, "")
        body = self.run_stint("store", "check", "-o", "json").json()
        self.assertTrue(body["ok"])
        info = self.run_stint("store", "info", "-o", "json").json()
        self.assertIn(info["kind"], ("sqlite", "postgres"))
        self.assertGreaterEqual(info["schema"], 1)

    def test_default_store_keeps_out_of_version_control(self):
        if support.POSTGRES:
            self.skipTest("about the default SQLite file")
        self.run_stint("submit", "echo", env={"STINT_STORE": ""})
        self.assertTrue((self.home / ".stint/stint.db").exists())
        self.assertIn("*", (self.home / ".stint/.gitignore").read_text())


support.main()
