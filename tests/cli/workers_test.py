#!/usr/bin/env python3
"""Workers: built-in types, commands of stint.toml, draining, several processes on one store."""
import json
import pathlib
import shutil
import signal
import socket
import threading

import support
from support import CliCase


EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


class Builtins(CliCase):
    def test_echo_and_until_idle(self):
        ids = [self.submit("echo", json.dumps({"n": n})) for n in range(20)]
        later = self.submit("echo", "--delay", "1h")
        answer = self.work()
        self.assertIn("stops when nothing is left", answer.err)
        for n, task_id in enumerate(ids):
            task = self.task(task_id)
            self.assertEqual((task["state"], task["output"]), ("complete", {"n": n}))
        self.assertEqual(self.task(later)["state"], "open", "what is not due does not hold it up")

    def test_fail_is_retried(self):
        task_id = self.submit("demo.fail", '{"times": 1}')
        self.work()
        if self.task(task_id)["state"] == "error":  # not due when it looked
            self.await_true(lambda: self.work() and self.task(task_id)["state"] == "complete", "done")
        task = self.task(task_id)
        self.assertEqual((task["state"], task["output"], task["attempt"]),
                         ("complete", {"attempts": 2}, 2))

    def test_crash_costs_only_itself(self):
        crash = self.submit("demo.crash", '{"times": 1, "how": "kill"}')
        others = [self.submit("demo.sleep", '{"ms": 20}') for _ in range(5)]
        worker = self.start_stint("worker", "start", "--poll-max", "50ms")
        self.await_true(lambda: self.task(crash)["state"] in ("complete", "dead"), "it ends")
        self.assertEqual(self.task(crash)["state"], "complete")
        for task_id in others:
            self.run_stint("task", "wait", task_id, "--timeout", "20s")
        attempts = self.run_stint("task", "attempts", crash, "-o", "json").json()["attempts"]
        self.assertEqual(attempts[0]["exit_signal"], 9, attempts)
        self.assertIsNone(worker.poll(), "the worker lives")

    def test_only_its_queues(self):
        mine, other = self.submit("echo", "--queue", "a"), self.submit("echo", "--queue", "b")
        self.work("--queues", "a")
        self.assertEqual(self.task(mine)["state"], "complete")
        self.assertEqual(self.task(other)["state"], "open")

    def test_bad_settings(self):
        self.assertIn("slots", self.work("--slots", "100000", code=2).err)
        self.assertIn("brisk", self.work("--lease", "soon", code=2).err)


class Offers(CliCase):
    def test_a_command_probe_decides_whether_a_task_that_needs_the_resource_runs(self):
        ready = self.home / "gpu-is-ready"
        (self.home / "stint.toml").write_text(
            f'[probe.gpu]\nkind = "command"\ntarget = ["test", "-e", "{ready}"]\nevery = "20ms"\n')
        waits = self.submit("echo", "1", "--need", "gpu")
        free = self.submit("echo", "2")
        worker = self.start_stint("worker", "start", "--poll-max", "50ms")
        self.await_true(lambda: self.task(free)["state"] == "complete", "what needs nothing runs")
        self.assertEqual(self.task(waits)["state"], "open")
        ready.touch()
        self.await_true(lambda: self.task(waits)["state"] == "complete", "the probe has succeeded")
        self.assertIsNone(worker.poll())

    def test_what_a_worker_takes_none_of_is_left(self):
        held = [self.submit("echo", "1", "--queue", "slow"), self.submit("echo", "2", "--need", "host:a")]
        free = self.submit("echo", "3", "--need", "host:b")
        answer = self.work("--at-once-of-queue", "slow=0", "--at-once-of-resource", "host:*=0,host:b=1")
        self.assertEqual(self.task(free)["state"], "complete")
        self.assertEqual([self.task(one)["state"] for one in held], ["open", "open"])
        self.assertRegex(answer.err, r'left 1: no_room\..*resource "host:a"')
        self.work()
        self.assertEqual([self.task(one)["state"] for one in held], ["complete", "complete"])


class Commands(CliCase):
    def declare(self, text):
        (self.home / "stint.toml").write_text(text)

    def test_json_output_is_the_result(self):
        self.declare('[task.sum]\ncommand = ["python3", "-c", '
                     '"import json,sys; print(json.dumps(sum(json.load(sys.stdin))))"]\n')
        task_id = self.submit("sum", "[1, 2, 3]")
        self.work()
        self.assertEqual(self.task(task_id)["output"], 6)

    def test_other_output_is_a_string_and_words_are_not_a_shell(self):
        self.declare('[task.say]\ncommand = ["printf", "%s", "$HOME; `id` *"]\n')
        task_id = self.submit("say")
        self.work()
        self.assertEqual(self.task(task_id)["output"], "$HOME; `id` *")

    def test_exit_code_and_last_words_are_recorded(self):
        self.declare('[task.bad]\ncommand = ["sh", "-c", "echo oh no >&2; exit 3"]\n'
                     'max_attempts = 1\n')
        task_id = self.submit("bad")
        self.work()
        task = self.task(task_id)
        self.assertEqual(task["state"], "dead")
        self.assertIn("exit code 3: oh no", task["error"]["message"])
        attempt = self.run_stint("task", "attempts", task_id, "-o", "json").json()["attempts"][0]
        self.assertEqual(attempt["exit_code"], 3)
        self.assertIn("oh no", attempt["stderr_tail"])

    def test_timeout_ends_it(self):
        self.declare('[task.long]\ncommand = ["sleep", "60"]\ntimeout = "300ms"\nmax_attempts = 1\n')
        task_id = self.submit("long")
        self.work()
        task = self.task(task_id)
        self.assertEqual(task["state"], "dead")
        attempt = self.run_stint("task", "attempts", task_id, "-o", "json").json()["attempts"][0]
        self.assertEqual(attempt["end"], "timed_out")

    def test_a_command_that_ends_politely_when_stopped_is_not_complete(self):
        script = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
        self.declare(f'[task.polite]\ncommand = ["sh", "-c", "{script}"]\ntimeout = "300ms"\n'
                     'max_attempts = 1\n[task.lasting]\n'
                     f'command = ["sh", "-c", "{script}"]\n')
        late = self.submit("polite")
        self.work()
        task = self.task(late)
        self.assertEqual((task["state"], task["error"]["class"]), ("dead", "timeout"))
        self.start_stint("worker", "start", "--lease", "1s")
        gone = self.submit("lasting")
        self.await_true(lambda: self.task(gone)["state"] == "in_progress", "it runs")
        self.run_stint("task", "cancel", gone)
        self.run_stint("task", "wait", gone, "--timeout", "20s", code=8)

    def test_the_example_of_the_help_page_works(self):
        page = self.run_stint("help", "config").out
        example = [line.strip() for line in page.splitlines() if line.startswith("  ")]
        example = [line for line in example if line and not line[0].isdigit()]
        self.assertTrue(example[0].startswith("store ="), example)
        self.declare("\n".join(example[1:]))
        shutil.copy(EXAMPLES / "words.py", self.home)
        (self.home / "a.txt").write_text("three little words")
        task_id = self.submit("words", '{"file": "a.txt"}', "--queue", "mail")
        self.work()
        self.assertEqual(self.task(task_id)["output"], {"file": "a.txt", "words": 3})

    def test_missing_program(self):
        self.declare('[task.none]\ncommand = ["no-such-program-here"]\nmax_attempts = 1\n')
        task_id = self.submit("none")
        self.work()
        self.assertIn("cannot start no-such-program-here", self.task(task_id)["error"]["message"])

    def test_defaults_of_the_type(self):
        self.declare('[task.a.b]\ncommand = ["true"]\nqueue = "side"\npriority = 7\n')
        self.work()
        task = self.task(self.submit("a.b"))
        self.assertEqual((task["queue"], task["priority"]), ("side", 7))

    def test_name_taken(self):
        self.declare('[task.echo]\ncommand = ["true"]\n')
        self.assertIn("echo", self.work(code=2).err)


class Lives(CliCase):
    def workers(self, *words):
        return self.run_stint("worker", "list", "-o", "json", *words).json()["workers"]

    def test_list_and_drain(self):
        self.run_stint("store", "migrate")
        answer = self.run_stint("worker", "list")
        self.assertIn("no worker is running", answer.err)
        worker = self.start_stint("worker", "start", "--slots", "3", "--name", "mars")
        self.await_true(self.workers, "the worker is listed")
        listed = self.workers()[0]
        self.assertEqual((listed["host"], listed["pid"], listed["slots"], listed["state"]),
                         ("mars", worker.pid, 3, "live"))
        self.assertIn("demo.sleep", listed["types"])
        task_id = self.submit("demo.sleep", '{"ms": 700}')
        self.await_true(lambda: self.task(task_id)["state"] == "in_progress", "it runs")
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(worker.wait(timeout=30), 0)
        self.assertEqual(self.task(task_id)["state"], "complete", "a drain lets tasks finish")
        self.assertEqual(self.workers(), [])
        over = self.workers("--all")[0]
        self.assertEqual((over["state"], over["doing"], over["running"]), ("closed", None, 0))
        self.assertNotIn("draining", self.run_stint("worker", "list", "--all").out)
        nodes = self.run_stint("worker", "list", "--nodes", "-o", "json").json()["nodes"]
        self.assertEqual([(n["name"], n["workers"]) for n in nodes], [("mars", 0)])

    def test_the_default_label_is_the_host_name(self):
        self.run_stint("store", "migrate")
        worker = self.start_stint("worker", "start")
        listed = self.await_true(self.workers, "the worker is listed")
        self.assertEqual((listed[0]["host"], listed[0]["pid"]), (socket.gethostname(), worker.pid))
        nodes = self.run_stint("worker", "list", "--nodes", "-o", "json").json()["nodes"]
        self.assertEqual([(n["name"], n["workers"]) for n in nodes], [(socket.gethostname(), 1)])
        self.assertIn(socket.gethostname(), self.run_stint("worker", "list", "--nodes").out)

    def test_progress_is_shown(self):
        self.submit("demo.sleep", '{"ms": 60000}')
        self.start_stint("worker", "start", "--lease", "500ms")
        task_id = self.run_stint("task", "list", "-o", "ids").lines()[0]
        shown = self.await_true(
            lambda: [line for line in self.run_stint("task", "get", task_id).lines()
                     if line.startswith("progress")], "progress reaches the store")
        self.assertRegex(shown[0], r"^progress +sleep [0-9]+/60000$")

    def test_second_signal_stops_at_once_and_the_task_is_run_again(self):
        worker = self.start_stint("worker", "start")
        task_id = self.submit("demo.sleep", '{"ms": 60000}')
        self.await_true(lambda: self.task(task_id)["state"] == "in_progress", "it runs")
        worker.send_signal(signal.SIGINT)
        self.await_true(lambda: any(w["state"] == "draining" for w in self.workers("--all")),
                        "it drains")
        worker.send_signal(signal.SIGINT)
        self.assertEqual(worker.wait(timeout=30), 0)
        task = self.task(task_id)
        self.assertEqual((task["state"], task["attempt"]), ("open", 0), "handed back, not counted")

    def test_cancel_of_a_running_task(self):
        self.start_stint("worker", "start", "--lease", "1s")
        task_id = self.submit("demo.sleep", '{"ms": 60000}')
        self.await_true(lambda: self.task(task_id)["state"] == "in_progress", "it runs")
        body = self.run_stint("task", "cancel", task_id, "-o", "json").json()
        self.assertEqual(body["tasks"][0]["result"], "requested")
        self.run_stint("task", "wait", task_id, "--timeout", "20s", code=8)

    def test_submit_and_wait(self):
        self.start_stint("worker", "start", "--poll-max", "50ms")
        answer = self.run_stint("submit", "echo", '{"a": 1}', "--wait", "-o", "json")
        self.assertEqual(answer.json()["tasks"][0]["output"], {"a": 1})
        self.run_stint("submit", "demo.fail", '{"retryable": false}', "--wait", code=7)
        self.run_stint("submit", "demo.sleep", '{"ms": 60000}', "--wait-for", "200ms", code=9)

    def test_killed_worker_is_replaced(self):
        worker = self.start_stint("worker", "start", "--lease", "1s", "--sweep-every", "200ms")
        task_id = self.submit("demo.sleep", '{"ms": 1500}')
        self.await_true(lambda: self.task(task_id)["state"] == "in_progress", "it runs")
        worker.kill()
        worker.wait()
        self.start_stint("worker", "start", "--lease", "1s", "--sweep-every", "200ms",
                         "--poll-max", "50ms")
        self.run_stint("task", "wait", task_id, "--timeout", "30s")
        attempts = self.run_stint("task", "attempts", task_id, "-o", "json").json()["attempts"]
        self.assertEqual([a["end"] for a in attempts], ["crashed", "complete"])


class StoreAway(CliCase):
    """A worker waits for a server that is not there; it does not wait for what waiting cannot cure."""

    def test_it_waits_and_a_signal_ends_the_wait(self):
        worker = self.start_stint("worker", "start", "-s", "postgres://nobody:hush@127.0.0.1:1/x")
        line = worker.stderr.readline()
        self.assertIn("the store cannot be reached; waiting for it", line)
        self.assertNotIn("hush", line)
        self.assertIsNone(worker.poll())
        worker.terminate()
        self.assertEqual(worker.wait(timeout=30), 0)
        self.assertEqual(worker.stderr.read(), "", "one line is enough for a minute")

    def test_it_works_once_the_server_is_there(self):
        if not support.POSTGRES:
            self.skipTest("about a server")
        task_id = self.submit("echo", '"at last"')
        with socket.create_server(("127.0.0.1", 0)) as door:
            port = door.getsockname()[1]
        address = support.urllib.parse.urlsplit(self.store)
        store = self.store.replace(f":{address.port}/", f":{port}/")
        worker = self.start_stint("worker", "start", "-s", store)
        self.assertIn("waiting for it", worker.stderr.readline())
        self.addCleanup(forward(port, address.port).close)
        self.run_stint("task", "wait", task_id, "--timeout", "40s")

    def test_a_wrong_password_or_database_is_said_with_its_cure(self):
        if not support.POSTGRES:
            self.skipTest("about a server")
        address = support.urllib.parse.urlsplit(self.store)
        wrong = self.store.replace(f":{address.password}@", ":wrong@")
        elsewhere = self.store.replace(f"{address.path}?", "/no_such_database?")
        for words in (["worker", "start"], ["task", "list"]):
            self.assertIn("~/.pgpass", self.run_stint(*words, "-s", wrong, code=5).err)
            self.assertIn("createdb", self.run_stint(*words, "-s", elsewhere, code=5).err)

    def test_no_password_needs_to_be_written_down_for_it(self):
        if not support.POSTGRES:
            self.skipTest("about a server")
        address = support.urllib.parse.urlsplit(self.store)
        self.store = self.store.replace(f":{address.password}@", "@")
        self.assertNotIn(address.password, self.store)
        self.assertIn("~/.pgpass", self.run_stint("task", "list", code=5).err)
        # libpq's own ways: a file, or what started the process gives a token that lasts minutes.
        passwords = self.home / "passwords"
        passwords.write_text(f"*:*:*:{address.username}:{address.password}\n")
        passwords.chmod(0o600)
        for env in ({"PGPASSFILE": str(passwords)}, {"PGPASSWORD": address.password}):
            task_id = self.submit("echo", env=env)
            self.run_stint("worker", "start", "--until-idle", env=env)
            done = self.run_stint("task", "get", task_id, "-o", "json", env=env).json()
            self.assertEqual(done["state"], "complete")


def forward(port, to):
    """A door at `port` that leads to the server at `to`, until it is closed."""
    door = socket.create_server(("127.0.0.1", port))

    def pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve():
        try:
            while True:
                visitor, _ = door.accept()
                server = socket.create_connection(("127.0.0.1", to))
                for ends in ((visitor, server), (server, visitor)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()
        except OSError:
            pass

    threading.Thread(target=serve, daemon=True).start()
    return door


support.main()
