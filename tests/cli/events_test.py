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
