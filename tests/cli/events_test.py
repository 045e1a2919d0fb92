#!/usr/bin/env python3
"""Events and workflows: publish, list, show, explain, match; put, list, get, remove, joins."""
import json

import support
from support import CliCase

WORKFLOW = {
    "name": "media",
    "triggers": [
        {"name": "big", "on": "file.ingested", "match": "size > 100",
         "submit": {"type": "echo", "input": {"path": "${path}"}, "priority": 150}},
        {"name": "audio", "on": "file.ingested", "match": "mimeType startsWith 'audio/'",
         "submit": {"type": "echo", "input": {"say": "play ${path}"}}},
    ],
}


class Events(CliCase):
    def put(self, definition, code=0):
        (self.home / "w.json").write_text(json.dumps(definition), encoding="utf-8")
        return self.run_stint("workflow", "put", "w.json", code=code)

    def publish(self, *words, **options):
        answer = self.run_stint("event", "publish", *words, **options)
        self.assertRegex(answer.out, r"^[0-9]+\n$", str(answer))
        return answer.out.strip()

    def show(self, event):
        return self.run_stint("event", "show", event, "-o", "json").json()

    def test_an_event_fires_what_it_matches_once(self):
        self.put(WORKFLOW)
        words = ["file.ingested", '{"path": "a", "size": 500, "mimeType": "audio/mpeg"}',
                 "--source", "scanner", "--id", "1"]
        event = self.publish(*words)
        again = self.run_stint("event", "publish", *words)
        self.assertEqual(again.out.strip(), event)
        self.assertIn("published before", again.err)
        self.work()
        shown = self.show(event)
        self.assertEqual(shown["state"], "done")
        fired = {one["trigger"]: one for one in shown["fired"]}
        self.assertEqual(sorted(fired), ["audio", "big"])
        self.assertEqual({one["what"] for one in fired.values()}, {"submitted"})
        task = self.task(fired["big"]["task"])
        self.assertEqual(task["input"], {"path": "a"})
        self.assertEqual(task["priority"], 150)
        self.assertEqual(task["state"], "complete")
        self.assertEqual(self.task(fired["audio"]["task"])["input"], {"say": "play a"})
        text = self.run_stint("event", "show", event).out
        self.assertIn("media/big submitted task " + fired["big"]["task"], text)

    def test_the_same_id_with_other_data_is_a_conflict(self):
        event = self.publish("a", "1", "--source", "s", "--id", "1")
        answer = self.run_stint("event", "publish", "a", "2", "--source", "s", "--id", "1", code=6)
        self.assertIn(f"stands for event {event}", answer.err)
        self.assertEqual(answer.out, "")

    def test_what_is_wrong_is_named(self):
        self.assertIn("type is", self.run_stint("event", "publish", "no good", code=2).err)
        self.assertIn("data is not JSON", self.run_stint("event", "publish", "a", "{", code=2).err)
        self.assertIn("the engine's own", self.run_stint("event", "publish", "stint.x", code=2).err)
        self.assertIn("--time", self.run_stint("event", "publish", "a", "--time", "soon", code=2).err)
        self.assertIn("is not the number", self.run_stint("event", "show", "x", code=2).err)
        self.publish("a")
        self.assertIn("no event 99", self.run_stint("event", "show", "99", code=4).err)
        self.assertIn("the states are", self.run_stint("event", "list", "--state", "x", code=2).err)

    def declare(self, **commands):
        """Commands as tasks, each tried once."""
        (self.home / "stint.toml").write_text("".join(
            f"[task.{name}]\ncommand = {json.dumps(words)}\nretry = {{ max_attempts = 1 }}\n"
            for name, words in commands.items()), encoding="utf-8")

    def ends_refused(self):
        """A circle that began outside goes as deep as it may, and its last event is refused."""
        self.put({"name": "circle", "triggers": [
            {"name": "again", "on": "ping", "submit": {"type": "again"}}]})
        self.publish("ping", "{}")
        self.work()
        events = self.run_stint("event", "list", "-o", "json").json()["events"]
        self.assertEqual([event["depth"] for event in events], list(range(17, -1, -1)))
        self.assertEqual([event["state"] for event in events], ["refused"] + ["done"] * 17)
        self.assertIn("fires it again", events[0]["reason"])
        return events

    def test_a_circle_of_a_command_that_publishes_ends_refused(self):
        self.declare(again=[support.BINARY, "event", "publish", "ping", "{}"])
        events = self.ends_refused()
        last = self.task(self.show(events[1]["event"])["fired"][0]["task"])
        self.assertEqual(last["state"], "dead")
        self.assertIn("17 events deep", last["error"]["message"])

    def test_a_circle_through_a_command_that_submits_ends_refused(self):
        self.declare(again=[support.BINARY, "submit", "further"],
                     further=[support.BINARY, "event", "publish", "ping", "{}"])
        events = self.ends_refused()
        fired = self.show(events[1]["event"])["fired"]
        self.assertEqual([one["what"] for one in fired], ["submitted", "followed"])
        self.assertEqual(self.task(fired[1]["task"])["type"], "further")
        text = self.run_stint("event", "show", events[1]["event"]).out
        self.assertIn("followed task " + fired[1]["task"], text)

    def test_a_command_knows_its_attempt(self):
        self.declare(env=["python3", "-c", "import json, os; print(json.dumps({name: value "
                          "for name, value in os.environ.items() if name.startswith('STINT_TASK_')}))"])
        task = self.submit("env", "--key", "once", env={"STINT_TASK_ID": "77"})
        self.work()
        told = self.task(task)["output"]
        self.assertRegex(told.pop("STINT_TASK_STORE"), "^[0-9a-f]{32}$")
        self.assertNotEqual(told.pop("STINT_TASK_KEY"), "")
        self.assertEqual(told, {"STINT_TASK_ID": task, "STINT_TASK_TYPE": "env", "STINT_TASK_ATTEMPT": "1"})

    def test_by_names_the_task_and_a_task_of_another_store_is_none(self):
        self.put(WORKFLOW)
        event = self.publish("file.ingested", '{"size": 500}')
        self.work()
        task = self.show(event)["fired"][0]["task"]
        depth = lambda number: self.show(number)["depth"]
        self.assertEqual(depth(self.publish("a")), 0)
        self.assertEqual(depth(self.publish("a", "--by", task)), 1)
        self.assertEqual(depth(self.publish("a", env={"STINT_TASK_ID": task})), 1)
        self.assertEqual(depth(self.publish("a", "--by", self.submit("echo"),
                                            env={"STINT_TASK_ID": task})), 0)
        elsewhere = {"STINT_TASK_ID": task, "STINT_TASK_STORE": "0" * 32}
        self.assertEqual(depth(self.publish("a", env=elsewhere)), 0)
        submitted = self.submit("echo", "--by", task)
        self.assertEqual(depth(self.publish("a", "--by", submitted)), 1)
        self.assertIn("--by", self.run_stint("event", "publish", "a", "--by", "x", code=2).err)

    def test_lists_filter(self):
        self.put(WORKFLOW)
        one = self.publish("file.ingested", '{"size": 500}')
        other = self.publish("file.deleted", "-", stdin='{"path": "b"}')
        self.work()
        everything = self.run_stint("event", "list", "-o", "json").json()["events"]
        self.assertEqual([event["event"] for event in everything], [other, one])
        self.assertEqual(everything[0]["data"], {"path": "b"})
        unwanted = self.run_stint("event", "list", "--state", "unwanted", "-o", "ids")
        self.assertEqual(unwanted.lines(), [other])
        ingested = self.run_stint("event", "list", "--type", "file.ingested", "-o", "ids")
        self.assertEqual(ingested.lines(), [one])
        self.assertIn("unwanted", self.run_stint("event", "list").out)

    def test_an_expression_is_tried(self):
        event = '{"mimeType": "image/png", "size": 5, "owner": {"name": "ann"}}'
        for expression, code in [
            ("size > 1 AND mimeType startsWith 'image/'", 0),
            ("owner.name == \"ann\" && size in [5, 6]", 0),
            ("size > 5", 1),
            ("missing = null", 0),
        ]:
            with self.subTest(expression=expression):
                answer = self.run_stint("event", "match", expression, "--event", event, code=code)
                self.assertIn("matches", answer.out)
        answer = self.run_stint("event", "match", "a == 1", "--event", '{"a": 1}', "-o", "json")
        self.assertEqual(answer.json(), {"matches": True, "expression": "a = 1"})

    def test_a_wrong_expression_points_at_the_column(self):
        answer = self.run_stint("event", "match", "size >> 1", code=2)
        self.assertIn("column 7", answer.err)
        self.assertIn("  size >> 1\n        ^", answer.err)
        self.assertEqual(answer.out, "")

    def test_workflows_are_put_seen_and_removed(self):
        self.assertIn("version", self.put(WORKFLOW).out)
        again = self.run_stint("workflow", "put", "w.json", "-o", "json").json()
        self.assertEqual(again["version"], 1)
        changed = json.loads(json.dumps(WORKFLOW))
        changed["triggers"].pop()
        self.put(changed)
        listed = self.run_stint("workflow", "list", "-o", "json").json()["workflows"]
        self.assertEqual([(one["name"], one["version"]) for one in listed], [("media", 2)])
        self.assertEqual(listed[0]["definition"], changed)
        printed = self.run_stint("workflow", "get", "media").out
        self.assertEqual(json.loads(printed), changed)
        answer = self.run_stint("workflow", "get", "medai", code=4)
        self.assertIn("the workflows are: media", answer.err)
        self.run_stint("workflow", "remove", "media")
        self.run_stint("workflow", "remove", "media", code=4)

    def test_a_wrong_definition_is_refused_with_its_place(self):
        wrong = json.loads(json.dumps(WORKFLOW))
        wrong["triggers"][1]["match"] = "size >"
        answer = self.put(wrong, code=2)
        self.assertIn("w.json: triggers[1].match column 7", answer.err)
        wrong["triggers"][1] = {"name": "x", "on": "e", "submitt": {"type": "t"}}
        self.assertIn("do you mean submit?", self.put(wrong, code=2).err)

    def test_a_join_creates_one_task_for_its_members(self):
        self.put({
            "name": "pairs",
            "joins": [{"name": "both", "types": ["echo", "demo.sleep"], "key": "input.file",
                       "submit": {"type": "echo", "input": {"file": "${key}x",
                                                            "from": "${tasks}"}}}],
        })
        first = self.submit("echo", '{"file": "a"}')
        self.work()
        joins = self.run_stint("workflow", "joins", "pairs", "-o", "json").json()["joins"]
        self.assertEqual([(one["key"], one["state"]) for one in joins], [("a", "open")])
        self.assertEqual(joins[0]["complete"], [{"type": "echo", "task": first}])
        second = self.submit("demo.sleep", '{"file": "a", "ms": 1}')
        self.work()
        done = [one for one in self.run_stint("workflow", "joins", "-o", "json").json()["joins"]
                if one["key"] == "a"]
        self.assertEqual([(one["state"], one["generation"]) for one in done], [("fired", 1)])
        task = self.task(done[0]["task"])
        self.assertEqual(task["input"], {"file": "ax", "from": {"echo": first, "demo.sleep": second}})
        self.assertEqual(task["state"], "complete")

    def test_explain_names_what_nobody_serves(self):
        definition = json.loads(json.dumps(WORKFLOW))
        definition["triggers"][0]["submit"]["type"] = "nobody.does"
        definition["joins"] = [{"name": "both", "types": ["echo", "nobody.too"], "key": "input.file",
                                "submit": {"type": "echo"}}]
        self.put(definition)
        self.assertIn("nothing is held up", self.run_stint("event", "explain").err)
        event = self.publish("file.ingested", '{"size": 500}')
        told = self.run_stint("event", "explain", event, "-o", "json").json()["obstacles"]
        self.assertIn("no worker is running", told[0]["why"])
        self.assertEqual([(one["trigger"], one["type"]) for one in told[1:]],
                         [("big", "nobody.does")])
        self.submit("echo", '{"file": "a"}')
        self.work()
        told = self.run_stint("event", "explain", "-o", "json").json()["obstacles"]
        self.assertIn(("both", "a", "nobody.too"),
                      [(one["trigger"], one["key"], one["type"]) for one in told])
        self.assertIn("which is missing", self.run_stint("event", "explain").out)
        self.run_stint("event", "explain", "999", code=4)

    def test_rounds_are_listed_in_pages(self):
        self.put({"name": "pairs",
                  "joins": [{"name": "both", "types": ["echo", "demo.sleep"], "key": "input.file",
                             "submit": {"type": "echo"}}]})
        for name in "abc":
            self.submit("echo", json.dumps({"file": name}))
            self.work()
        words = ["workflow", "joins", "pairs", "--limit", "2", "-o", "json"]
        first = self.run_stint(*words).json()["joins"]
        self.assertEqual([one["key"] for one in first], ["c", "b"])
        rest = self.run_stint(*words, "--before", first[-1]["no"], "--state", "open").json()["joins"]
        self.assertEqual([one["key"] for one in rest], ["a"])
        self.assertIn("the states are", self.run_stint("workflow", "joins", "--state", "x", code=2).err)


if __name__ == "__main__":
    support.main()
