#!/usr/bin/env python3
"""Schedules on the command line: made, seen, changed, applied from a file, fired by a worker."""
import json

import support
from support import CliCase


class Schedules(CliCase):
    def put(self, *words, **options):
        return self.run_stint("schedule", "put", *words, "-o", "json", **options).json()

    def get(self, name):
        return self.run_stint("schedule", "get", name, "-o", "json").json()

    def runs(self, name):
        return self.run_stint("schedule", "runs", name, "-o", "json").json()["runs"]

    def test_what_was_put_is_listed_and_shown(self):
        made = self.put("nightly", "echo", '{"a": 1}', "--cron", "30 2 * * *", "--zone",
                        "Europe/Berlin", "--fold", "both", "--overlap", "skip", "--jitter", "30s",
                        "--queue", "night", "--tag", "x", "--misfire", "all", "--misfire-limit", "3")
        self.assertEqual(made["definition"], {
            "name": "nightly", "cron": "30 2 * * *", "zone": "Europe/Berlin", "fold": "both",
            "misfire": "all", "misfire_limit": 3, "overlap": "skip", "jitter": "30s",
            "task": {"type": "echo", "input": {"a": 1}, "queue": "night", "tags": ["x"]}})
        self.assertEqual((made["revision"], made["paused"]), (1, False))
        self.assertIsNotNone(made["next_at"])
        self.assertEqual(self.get("nightly")["definition"], made["definition"])
        table = self.run_stint("schedule", "list").out
        self.assertIn("nightly", table)
        self.assertIn("cron 30 2 * * * Europe/Berlin", table)
        self.assertEqual(self.run_stint("schedule", "list", "-o", "ids").lines(), ["nightly"])

    def test_a_change_is_the_next_revision_and_may_expect_the_last(self):
        self.put("n", "echo", "--every", "10m")
        self.assertEqual(self.put("n", "echo", "--every", "20m", "--expect", "1")["revision"], 2)
        answer = self.run_stint("schedule", "put", "n", "echo", "--every", "5m", "--expect", "1",
                                code=6)
        self.assertIn("revision 2", answer.err)
        self.run_stint("schedule", "put", "n", "echo", "--every", "5m", "--expect", "0", code=6)

    def test_mistakes_name_the_field_and_the_cure(self):
        def wrong(*words):
            return self.run_stint("schedule", "put", *words, code=2).err
        self.assertIn("give one of cron", wrong("n", "echo"))
        self.assertIn("cron", wrong("n", "echo", "--cron", "0 0 30 2 *"))
        self.assertIn("both given", wrong("n", "echo", "--cron", "@daily", "--every", "1h"))
        self.assertIn("Europe/Berln", wrong("n", "echo", "--cron", "@daily", "--zone", "Europe/Berln"))
        self.assertNotIn("cron: cron", wrong("n", "echo", "--cron", "61 * * * *"))
        self.assertIn("use skip", wrong("n", "echo", "--visits", "1h", "--overlap", "queue_one"))
        self.assertIn("which is over", wrong("n", "echo", "--at", "now-1h"))
        self.assertIn("INPUT", wrong("n", "echo", "{", "--every", "1h"))
        self.assertIn("queue_one", wrong("n", "echo", "--every", "1h", "--overlap", "never"))
        self.assertIn("no schedules", self.run_stint("schedule", "list").err)

    def test_steps_are_executed_one_after_the_other(self):
        steps = [{"name": "first", "tasks": [{"type": "echo", "input": 1}, {"type": "echo"}]},
                 {"name": "then", "tasks": [{"type": "echo", "input": 2}], "on_failure": "continue"}]
        file = self.home / "steps.json"
        file.write_text(json.dumps(steps))
        made = self.put("n", "--steps", f"@{file}", "--every", "1h")
        self.assertEqual([step["name"] for step in made["definition"]["steps"]], ["first", "then"])
        self.assertIn("2 steps", self.run_stint("schedule", "list").out)
        execution = self.run_stint("schedule", "run", "n", "-o", "ids").lines()[0]
        self.assertEqual(self.runs("n")[0]["state"], "open")
        self.work()
        run = self.runs("n")[0]
        self.assertEqual((run["task"], run["state"], run["step"]), (execution, "complete", None))
        tree = self.run_stint("task", "tree", execution).out
        self.assertEqual(tree.count("echo"), 3)
        self.assertIn("complete", self.run_stint("schedule", "runs", "n").out)
        # From a file, with the steps among what differs.
        document = {"schedules": [{"name": "n", "every": "1h", "steps": steps[:1]}]}
        apply = self.home / "apply.json"
        apply.write_text(json.dumps(document))
        changed = self.run_stint("schedule", "apply", str(apply), "-o", "json").json()["steps"][0]
        self.assertEqual([one["member"] for one in changed["differences"]], ["steps"])

        def wrong(*words):
            return self.run_stint("schedule", "put", "n", "--every", "1h", *words, code=2).err
        self.assertIn("TYPE is missing", wrong())
        self.assertIn("steps[0].tasks", wrong("--steps", '[{"name": "x"}]'))
        self.assertIn('step "x" has no tasks', wrong("--steps", '[{"name": "x", "tasks": []}]'))
        self.assertIn("--steps is given together with TYPE", self.run_stint(
            "schedule", "put", "n", "echo", "--every", "1h", "--steps", "[]", code=2).err)

    def test_what_is_not_there_is_said_so(self):
        self.put("n", "echo", "--every", "10m")
        for words in (["get"], ["next"], ["runs"], ["run"], ["pause"], ["resume"], ["remove"]):
            answer = self.run_stint("schedule", *words, "nobody", code=4)
            self.assertIn('"nobody"', answer.err)

    def test_next_marks_the_days_of_clock_changes(self):
        self.put("n", "echo", "--cron", "30 2 * * *", "--zone", "Europe/Berlin")
        instants = self.run_stint("schedule", "next", "n", "--count", "400", "-o", "json").json()
        instants = instants["instants"]
        self.assertEqual(len(instants), 400)
        odd = [one for one in instants if one["oddity"]]
        self.assertIn(len(odd), (2, 3))
        self.assertTrue(any("forward" in one["oddity"] for one in odd))
        self.assertIn("02:30:00", self.run_stint("schedule", "next", "n").out)
        self.put("gap", "echo", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--gap", "skip")
        table = self.run_stint("schedule", "next", "gap", "--count", "400").out
        self.assertIn("the clocks skip 02:30 on this day: no run", table)
        self.run_stint("schedule", "next", "n", "--count", "0", code=2)

    def test_run_now_pause_resume_remove(self):
        self.put("n", "echo", "7", "--every", "10m")
        paused = self.run_stint("schedule", "pause", "n", "-o", "json").json()
        self.assertTrue(paused["paused"])
        task = self.run_stint("schedule", "run", "n").out.strip()
        self.assertEqual(self.task(task)["input"], 7)
        self.assertEqual(self.task(task)["tags"], ["schedule:n"])
        runs = self.runs("n")
        self.assertEqual([(run["task"], run["cause"]) for run in runs], [(task, "manual")])
        self.assertEqual(self.run_stint("schedule", "runs", "n", "-o", "ids").lines(), [task])
        self.assertFalse(self.run_stint("schedule", "resume", "n", "-o", "json").json()["paused"])
        self.assertIn("its tasks stay", self.run_stint("schedule", "remove", "n").err)
        self.assertEqual(self.task(task)["state"], "open")

    def test_backfill_counts_first_and_fills_in_once(self):
        self.put("n", "echo", "--every", "1h", "--anchor", "2026-01-01T00:30:00Z")
        def backfill(*words, **options):
            return self.run_stint("schedule", "backfill", "n", *words, "-o", "json", **options).json()
        count = backfill("--from", "now-1d", "--dry-run")
        self.assertEqual((len(count["missing"]), count["created"]), (24, 0))
        self.assertEqual(backfill("--from", "now-1d", "--to", "now-12h")["created"], 12)
        rest = backfill("--from", "now-1d")
        self.assertIn((rest["decided"], rest["created"]), ((12, 12), (11, 13)))
        self.assertEqual(len(self.run_stint("task", "list", "-o", "ids").lines()),
                         12 + rest["created"])
        self.run_stint("schedule", "backfill", "n", "--from", "now+1d", code=2)
        self.run_stint("schedule", "backfill", "n", code=2)

    def test_apply_prints_what_differs_and_makes_it_so(self):
        document = {
            "calendars": {"holidays": ["2026-12-25"]},
            "schedules": [
                {"name": "a", "every": "1h", "except": ["holidays"], "task": {"type": "echo"}},
                {"name": "b", "cron": "@daily", "task": {"type": "echo"}},
            ],
        }
        file = self.home / "schedules.json"
        def apply(*words, code=0):
            file.write_text(json.dumps(document), encoding="utf-8")
            return self.run_stint("schedule", "apply", "schedules.json", *words, code=code)
        answer = apply("--dry-run")
        self.assertEqual(answer.lines(), ["+ calendar holidays", "+ schedule a", "+ schedule b"])
        self.assertIn("3 of 3 would change", answer.err)
        self.assertEqual(self.run_stint("schedule", "list", "-o", "ids").out, "")
        apply()
        self.assertIn("0 of 3 changed", apply().err)
        document["schedules"][0]["every"] = "2h"
        del document["schedules"][1]
        self.assertEqual(apply("--prune").lines(), [
            "  calendar holidays", "~ schedule a", '    every: "1h" → "2h"', "- schedule b"])
        self.assertEqual(self.get("a")["revision"], 2)
        self.assertEqual(self.run_stint("schedule", "list", "-o", "ids").lines(), ["a"])
        steps = self.run_stint("schedule", "apply", "-", "-o", "json",
                               stdin=json.dumps(document)).json()["steps"]
        self.assertEqual({step["action"] for step in steps}, {"keep"})
        document["schedules"][0]["evry"] = "1h"
        self.assertIn('did you mean "every"', apply(code=2).err)
        self.assertIn("holidays", self.run_stint("schedule", "calendars").out)
        self.run_stint("schedule", "apply", "nowhere.json", code=2)

    def test_an_interval_may_count_from_the_start(self):
        made = self.put("n", "echo", "--after-start", "10m", "--first", "2030-01-01T00:00:00Z")
        self.assertEqual(made["definition"]["after_start"], "10m")
        self.assertIn("10m after the start", self.run_stint("schedule", "list").out)

    def test_visits_of_many_entities(self):
        self.put("channels", "echo", "{}", "--visits", "1h", "--entity-field", "channel")
        self.run_stint("schedule", "visit", "channels", "-",
                       stdin="".join(f"c{n}\n" for n in range(1500)))
        self.run_stint("schedule", "visit", "channels", "c7", "--every", "10m")
        visits = self.run_stint("schedule", "visits", "channels", "--after", "c69", "--limit", "2",
                                "-o", "json").json()["visits"]
        self.assertEqual([visit["entity"] for visit in visits], ["c690", "c691"])
        seven = self.run_stint("schedule", "visits", "channels", "--after", "c6999", "--limit", "1",
                               "-o", "json").json()["visits"][0]
        self.assertEqual((seven["entity"], seven["every"]), ("c7", "10m"))
        self.assertIn("1 of 2", self.run_stint("schedule", "unvisit", "channels", "c7", "x").err)
        self.run_stint("schedule", "unvisit", "channels", "c7", code=4)
        self.put("n", "echo", "--every", "1h")
        self.assertIn("not one of visits", self.run_stint("schedule", "visit", "n", "x", code=2).err)

    def test_a_worker_fires_what_is_due(self):
        self.put("often", "echo", "--every", "1s")
        self.put("once", "echo", "5", "--at", "now+1s")
        worker = self.start_stint("worker", "start", "--poll-max", "100ms")
        self.await_true(lambda: len(self.runs("often")) >= 2, "two runs")
        self.await_true(lambda: self.get("once")["next_at"] is None, "the single run")
        task = self.get("once")["last_task"]
        self.await_true(lambda: self.task(task)["state"] == "complete", "the run is over")
        self.assertEqual(len(self.runs("once")), 1)
        worker.terminate()
        self.assertEqual(worker.wait(timeout=30), 0)


support.main()
