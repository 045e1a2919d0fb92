#!/usr/bin/env python3
"""Help, exit codes, mistakes, configuration, formats: what needs no worker."""
import os
import pathlib

import support
from support import CliCase

GOLDEN = pathlib.Path(__file__).parent / "golden"
COMMANDS = [
    "", "demo crash", "submit", "task", "task list", "task get", "task wait", "task cancel",
    "task retry", "task discard", "task edit", "task explain", "task tree", "task attempts", "task audit", "task items",
    "queue",
    "queue list", "queue pause", "queue resume", "queue cap", "queue keep", "queue order", "schedule",
    "schedule list", "schedule get", "schedule next", "schedule runs", "schedule put",
    "schedule pause", "schedule resume", "schedule run", "schedule remove", "schedule backfill",
    "schedule apply", "schedule visits", "schedule visit", "schedule unvisit", "schedule calendars",
    "deletion", "deletion list", "deletion mark", "deletion unmark", "deletion pace",
    "event", "event publish", "event list", "event show", "event match", "workflow", "workflow put",
    "workflow list", "workflow get", "workflow remove", "workflow joins", "flow", "flow list",
    "flow show", "flow signal", "flow cancel", "flow fork", "demo workflow", "worker", "worker start",
    "worker list", "store", "store migrate", "store check", "store info", "doctor", "bench",
    "resource", "resource list", "resource show", "resource set", "resource remove", "resource open",
    "resource close", "task why", "queue why", "demo", "demo fanout", "demo throttle", "demo schedule",
    "bench drain", "bench submit", "bench latency", "bench openloop", "bench backlog", "bench pinned",
    "bench resources", "bench idle", "bench fanout", "config show", "version", "help",
]
TOPICS = ["exit-codes", "environment", "filters", "config", "match", "workflow-file"]


class Help(CliCase):
    def compare(self, name, text):
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("STINT_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        self.assertEqual(text, path.read_text(encoding="utf-8"), f"{path.name}; a changed help is "
                         "checked in with STINT_UPDATE_GOLDEN=1")

    def test_every_command_has_its_golden_help(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                answer = self.run_stint(*command.split(), "--help")
                self.compare("help-" + (command.replace(" ", "-") or "stint"), answer.out)
                self.assertEqual(answer.err, "")

    def test_every_topic_has_its_golden_page(self):
        for topic in TOPICS:
            with self.subTest(topic=topic):
                self.compare("topic-" + topic, self.run_stint("help", topic).out)

    def test_lines_fit_a_terminal(self):
        for path in GOLDEN.glob("*.txt"):
            for line in path.read_text(encoding="utf-8").splitlines():
                self.assertLessEqual(len(line), 100, f"{path.name}: {line}")

    def test_help_of_a_command_is_the_same_both_ways(self):
        self.assertEqual(self.run_stint("help", "task", "list").out,
                         self.run_stint("task", "list", "--help").out)

    def test_unknown_topic_names_the_nearest(self):
        answer = self.run_stint("help", "exit-code", code=2)
        self.assertIn("nearest: exit-codes", answer.err)
        self.assertEqual(answer.out, "")

    def test_no_words_print_help(self):
        self.assertIn("Commands:", self.run_stint().out)

    def test_group_alone_is_wrong_use(self):
        answer = self.run_stint("task", code=2)
        self.assertEqual(answer.out, "")
        self.assertIn("Usage: stint task COMMAND", answer.err)


class Mistakes(CliCase):
    def expect(self, words, *parts, code=2, **options):
        answer = self.run_stint(*words, code=code, **options)
        self.assertEqual(answer.out, "", "a mistake leaves no data")
        for part in parts:
            self.assertIn(part, answer.err, str(answer))

    def test_unknown_command_names_the_nearest(self):
        self.expect(["tsak"], 'no command "stint tsak"', "nearest: stint task")
        self.expect(["task", "lits"], "nearest: stint task list")
        self.expect(["--store", "sqlite:x.db", "quue", "list"], "nearest: stint queue")
        self.expect(["bananas"], 'no command "stint bananas"', "see: stint --help")

    def test_names_of_commands_are_ordinary_words_elsewhere(self):
        self.run_stint("submit", "task", "--queue", "worker")
        self.run_stint("submit", "store", "{}", "--tag", "migrate")
        self.run_stint("queue", "pause", "worker")
        self.assertIn("type", self.run_stint("help", "submit", "-q").out)

    def test_words_after_help_are_never_carried_out(self):
        task = self.submit("echo")
        self.run_stint("help", "task", "cancel", task, code=2)
        self.assertEqual(self.task(task)["state"], "open")
        fresh = f"sqlite:{self.home}/fresh.db"
        self.expect(["submit", "store", "migrate", "--store", fresh], "JSON")
        self.expect(["version", "store", "migrate", "--store", fresh], "store")
        self.expect(["help", "task", "cnacel"], "nearest: task cancel")
        self.expect(["help", "filters", "please"], "nearest: filters")
        self.assertFalse((self.home / "fresh.db").exists())

    def test_flags_of_the_program_may_stand_anywhere(self):
        for words in (["-o", "json", "version"], ["version", "-o", "json"], ["version", "-ojson"],
                      ["--output=json", "version"], ["version", "--output=json"]):
            with self.subTest(words=words):
                self.assertIn("compiler", self.run_stint(*words).json())

    def test_unknown_flag(self):
        self.expect(["task", "list", "--lmit", "3"], "--lmit", "see: stint task list --help")

    def test_missing_words(self):
        self.expect(["task", "get"], "ID")
        self.expect(["submit"], "type is missing")

    def test_bad_store(self):
        self.expect(["task", "list", "--store", "mysql://x"], "mysql://x", "sqlite:PATH")
        self.expect(["task", "list", "--store", "sqlite:none.db"], "no store at none.db",
                    "stint store migrate", code=4)
        self.assertFalse((self.home / "none.db").exists(), "looking makes no store")

    def test_unreachable_server(self):
        self.expect(["task", "list", "--store", "postgres://nobody:hush@127.0.0.1:1/x"], code=5)
        answer = self.run_stint("task", "list", "--store", "postgres://nobody:hush@127.0.0.1:1/x",
                                code=5)
        self.assertNotIn("hush", answer.err, "no password in messages")

    def test_bad_ids(self):
        self.expect(["task", "get", "x17"], '"x17" is not a task id', "whole numbers")
        self.expect(["task", "cancel", "-"], '"abc" is not a task id', stdin="abc\n")

    def test_bad_choices(self):
        self.expect(["version", "-o", "yaml"], "yaml", "table|json|jsonl|ids|none")
        self.expect(["version"], "STINT_LOG_LEVEL", "debug|info|warn|error",
                    env={"STINT_LOG_LEVEL": "loud"})

    def test_bad_submit(self):
        self.expect(["submit", "echo", "{"], "JSON")
        self.expect(["submit", "echo", "--delay", "5"], "delay", "90s, 5m, 2h, 3d")
        self.expect(["submit", "echo", "--at", "tomorrow"], "RFC 3339", "now+10m")
        self.expect(["submit", "echo", "--priority", "999"], "999", "255")
        self.expect(["submit", "bad name!"], "bad name!")
        self.expect(["submit", "echo", "@none.json"], "none.json")
        self.expect(["submit", "echo", "--on-duplicate", "maybe", "--unique", "u"],
                    "return, replace, error")
        self.expect(["submit", "echo", "--delay", "5m", "--at", "now+5m"], "delay")

    def test_input_that_cannot_be_read(self):
        (self.home / "place").mkdir()
        self.expect(["submit", "echo", "@place"], '"place" is a directory')
        self.expect(["submit", "--jsonl", "place"], '"place" is a directory')

    def test_input_over_the_limit_is_wrong_use(self):
        (self.home / "big.json").write_text('"' + "x" * (2 << 20) + '"')
        self.expect(["submit", "echo", "@big.json"], "1048576")

    def test_a_refused_submit_makes_no_store(self):
        env = {"STINT_STORE": ""}
        self.expect(["submit", "echo", "{"], "JSON", env=env)
        self.expect(["submit", "echo", "--delay", "soon"], "delay", env=env)
        self.run_stint("submit", "--jsonl", "-", stdin="nonsense\n", env=env, code=2)
        self.assertFalse((self.home / ".stint").exists())

    def test_memory_would_lose_the_work(self):
        for words in (["submit", "echo"], ["task", "list"], ["worker", "start", "--until-idle"]):
            with self.subTest(words=words):
                self.expect([*words, "-s", "memory:"], "memory:", "sqlite:PATH")

    def test_a_file_that_is_no_store_is_left_alone(self):
        (self.home / "notes.db").write_text("dear diary, today\n")
        for words in (["task", "list"], ["submit", "echo"], ["store", "migrate"], ["worker", "start"]):
            with self.subTest(words=words):
                self.expect([*words, "-s", "sqlite:notes.db"], "notes.db is not a SQLite database",
                            'it begins with "dear diary, toda"')
        self.expect(["task", "list", "-s", f"sqlite:{self.home}"], "is a directory")
        self.assertEqual([path.name for path in self.home.iterdir()], ["notes.db"])

    def test_bad_numbers_of_bench_and_demo(self):
        self.expect(["demo", "crash", "--tasks", "1"], "--tasks is 1", "between 10 and")
        self.expect(["demo", "crash", "--store", "memory:"], "memory:")
        self.expect(["bench", "drain", "--slots", "0"], "--slots is 0")
        self.expect(["bench", "drain", "--batch", "5000"], "--batch is 5000", "4096")
        self.expect(["worker", "start", "--prefetch", "5000"], "prefetch is 5000", "between 0")
        self.expect(["worker", "start", "--prefetch", "-1"], "--prefetch", "starts at 0")


class Configuration(CliCase):
    def settings(self, *words, **options):
        body = self.run_stint("config", "show", "-o", "json", *words, **options).json()
        return {entry["key"]: (entry["value"], entry["origin"]) for entry in body["settings"]}

    def test_precedence(self):
        no_store = {"STINT_STORE": ""}
        self.assertEqual(self.settings(env=no_store)["store"], ("sqlite:.stint/stint.db", "default"))
        user = self.home / ".config/stint"
        user.mkdir(parents=True)
        (user / "config.toml").write_text('store = "sqlite:user.db"\n[worker]\nslots = 3\n')
        self.assertEqual(self.settings(env=no_store)["store"][0], "sqlite:user.db")
        (self.home / "stint.toml").write_text('store = "sqlite:project.db"\n')
        self.assertEqual(self.settings(env=no_store)["store"], ("sqlite:project.db", "stint.toml"))
        self.assertEqual(self.settings(env=no_store)["worker.slots"][0], "3")
        env = {"STINT_STORE": "sqlite:env.db"}
        self.assertEqual(self.settings(env=env)["store"], ("sqlite:env.db", "STINT_STORE"))
        self.assertEqual(self.settings("--store", "sqlite:flag.db", env=env)["store"],
                         ("sqlite:flag.db", "--store"))

    def test_show_hides_passwords(self):
        answer = self.run_stint("config", "show", "--origin",
                                env={"STINT_STORE": "postgres://a:hush@db/x"})
        self.assertIn("postgres://a:***@db/x", answer.out)
        self.assertNotIn("hush", answer.out)
        self.assertIn("STINT_STORE", answer.out)

    def test_mistake_names_file_and_line(self):
        (self.home / "stint.toml").write_text('\n\n[worker]\nslot = 3\n')
        answer = self.run_stint("config", "show", code=2)
        self.assertIn('stint.toml:4: unknown setting "worker.slot"', answer.err)
        self.assertIn('did you mean "worker.slots"?', answer.err)

    def test_shell_string_is_refused(self):
        (self.home / "stint.toml").write_text('[task.x]\ncommand = "rm -rf /"\n')
        self.assertIn("no shell is involved", self.run_stint("version", code=2).err)

    def test_limits_and_probes_are_shown(self):
        (self.home / "stint.toml").write_text(
            '[worker.at_once_of_queue]\nslow = 2\n[worker.at_once_of_resource]\n"host:*" = 3\n'
            '[probe.ldap]\nkind = "tcp"\ntarget = "ldap.example.org:389"\nevery = "10s"\n')
        settings = self.settings()
        self.assertEqual(settings["worker.at_once_of_queue"], ("slow=2", "stint.toml"))
        self.assertEqual(settings["worker.at_once_of_resource"], ("host:*=3", "stint.toml"))
        answer = self.run_stint("config", "show", "--origin")
        self.assertRegex(answer.out, r"probe\.ldap +tcp ldap\.example\.org:389, every 10s, decides ldap "
                                     r"+stint\.toml:5")
        probe = self.run_stint("config", "show", "-o", "json").json()["probes"][0]
        self.assertEqual((probe["name"], probe["resource"], probe["kind"], probe["every"]),
                         ("ldap", "ldap", "tcp", "10s"))
        answer = self.run_stint("worker", "start", "--at-once-of-queue", "slow", code=2)
        self.assertIn('--at-once-of-queue: "slow" is not NAME=NUMBER', answer.err)

    def test_named_file_must_exist(self):
        self.assertIn("none.toml", self.run_stint("version", "--config", "none.toml", code=2).err)


class Formats(CliCase):
    def test_version(self):
        self.assertRegex(self.run_stint("version").out, r"^stint [0-9]+\.[0-9]+\.[0-9]+\n$")
        self.assertIn("compiler", self.run_stint("version", "--json").json())
        self.assertIn("compiler", self.run_stint("version", "-o", "json").json())

    def test_reader_that_has_seen_enough(self):
        process = self.start_stint("help", "filters")
        process.stdout.close()
        self.assertIn(process.wait(timeout=30), (0, 141))
        self.assertEqual(process.stderr.read(), "")

    def test_full_disk_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = support.subprocess.run(
                [support.BINARY, "help", "filters"], stdout=full, stderr=support.subprocess.PIPE,
                text=True, check=False, env=self.env())
        self.assertEqual(process.returncode, 1, process.stderr)
        self.assertIn("standard output", process.stderr)


support.main()
