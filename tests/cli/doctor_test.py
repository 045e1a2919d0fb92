#!/usr/bin/env python3
"""stint doctor: what it looks at, what it says, how it ends."""
import sqlite3

import support
from support import CliCase


class Doctor(CliCase):
    def examine(self, *words, code=0, **options):
        answer = self.run_stint("doctor", "-o", "json", *words, code=code, **options)
        body = answer.json()
        return answer, body, {one["check"]: one for one in body["checks"]}

    def test_a_store_in_order_is_well(self):
        self.submit("echo", "1")
        self.work()
        answer, body, checks = self.examine()
        self.assertTrue(body["ok"])
        self.assertEqual({one["part"] for one in body["checks"]},
                         {"config", "store", "workers", "work"})
        self.assertEqual({one["verdict"] for one in body["checks"]}, {"ok"}, str(answer))
        own = self.run_stint("store", "check", "-o", "json").json()["findings"]
        for finding in own:
            self.assertIn(finding["what"], checks, "the checks of stint store check are among them")
        text = self.run_stint("doctor")
        self.assertRegex(text.out, r"(?m)^ok +store +it can be opened")
        self.assertIn("all is well", text.err)

    def test_what_needs_somebody_is_said_with_the_cure_and_is_no_failure(self):
        self.submit("nobody.handles", "1")
        self.run_stint("queue", "pause", "default")
        (self.home / "stint.toml").write_text('[task.gone]\ncommand = ["no-such-program"]\n')
        answer, body, checks = self.examine()
        self.assertTrue(body["ok"], "nothing is broken")
        looks = {check for check, one in checks.items() if one["verdict"] == "look"}
        self.assertEqual(looks, {
            "a worker is running", "what waits has a worker for its type",
            "no queue is paused with tasks in it", "the program of task.gone is there"}, str(answer))
        text = self.run_stint("doctor")
        self.assertIn("-> stint worker start", text.out)
        self.assertIn("-> stint queue resume NAME", text.out)
        self.assertIn("nothing is broken", text.err)

    def test_without_a_store_the_rest_is_told_all_the_same(self):
        nowhere = f"sqlite:{self.home}/none.db"
        _, body, checks = self.examine("--store", nowhere, code=4)
        self.assertFalse(body["ok"])
        self.assertEqual(checks["it can be read"]["verdict"], "ok")
        self.assertEqual(checks["it can be opened and asked"]["verdict"], "broken")
        self.assertIn("stint store migrate", checks["it can be opened and asked"]["detail"])
        self.assertFalse((self.home / "none.db").exists(), "looking makes no store")
        self.run_stint("doctor", "--store", "postgres://nobody@127.0.0.1:1/none", code=5)

    def test_a_broken_store_fails_as_store_check_does(self):
        if support.POSTGRES:
            self.skipTest("breaks a file")
        self.submit("echo", "1")
        with sqlite3.connect(self.home / "t.db") as database:
            database.execute("UPDATE stint_tally SET n = n + 1")
        database.close()
        self.run_stint("store", "check", code=1)
        answer, body, _ = self.examine(code=1)
        self.assertFalse(body["ok"])
        broken = [one for one in body["checks"] if one["verdict"] == "broken"]
        self.assertTrue(broken, str(answer))
        for one in broken:
            self.assertIn("keep a copy", one["cure"])
        text = self.run_stint("doctor", code=1)
        self.assertRegex(text.out, r"(?m)^BROKEN +store ")
        self.assertIn("BROKEN:", text.err)


support.main()
