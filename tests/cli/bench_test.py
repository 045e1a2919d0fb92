#!/usr/bin/env python3
"""The benchmarks run, measure what they say, and leave nothing behind. No figure is judged."""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import unittest

import support
from support import CliCase

FACTS = [
    "version", "store", "store_version", "durability", "durability_settings", "commits", "fsyncs", "wal_bytes",
    "statements", "worker_rss_mib", "client_rss_mib", "client_cpu_s", "worker_cpu_s", "server_cpu_s",
    "canary_commits_per_s", "canary_after_commits_per_s",
]
PERCENTILES = ["p50_ms", "p95_ms", "p99_ms", "max_ms"]


def psql(sql, url=None):
    program = shutil.which("psql") or os.path.join(os.environ.get("STINT_TEST_PGBIN", ""), "psql")
    answer = subprocess.run([program, "-qXAt", url or support.POSTGRES, "-c", sql], check=True,
                            capture_output=True, text=True)
    return answer.stdout.split()


class BenchCase(CliCase):
    def setUp(self):
        super().setUp()
        self.tmp = self.home / "tmp"
        self.tmp.mkdir()
        if support.POSTGRES:
            # A database of its own: another test's benchmark is no leftover of ours.
            self.database = f"stint_bench_{os.getpid()}_{self.id().split('.')[-1]}"[:63].lower()
            psql(f'DROP DATABASE IF EXISTS "{self.database}"')
            psql(f'CREATE DATABASE "{self.database}"')
            self.addCleanup(psql, f'DROP DATABASE IF EXISTS "{self.database}" WITH (FORCE)')
            base, _, rest = support.POSTGRES.partition("?")
            self.store = base.rpartition("/")[0] + "/" + self.database + ("?" + rest if rest else "")

    def env(self, extra=None):
        return super().env({"TMPDIR": str(self.tmp), **(extra or {})})

    def bench(self, *words, **options):
        return self.run_stint("bench", *words, "-o", "json", "--no-progress", **options).json()

    def left_behind(self):
        """What is there of benchmarks: files, schemas, directories."""
        left = [path.name for path in self.home.iterdir() if "bench" in path.name]
        left += [path.name for path in self.tmp.iterdir()]
        left += [str(path) for path in self.home.rglob(".local/state/stint/*")]
        if support.POSTGRES:
            left += self.schemas()
        return left

    def schemas(self):
        return psql("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'stint%'", self.store)

    def check_facts(self, body, tasks=True):
        for name in FACTS:
            self.assertIn(name, body)
        self.assertGreater(body["canary_commits_per_s"], 0)
        self.assertGreater(body["canary_after_commits_per_s"], 0)
        self.assertGreater(body["client_rss_mib"], 1)
        self.assertGreater(body["statements"], 0)
        if support.POSTGRES:
            self.assertIn(body["durability_settings"]["fsync"], ("on", "off"))
            self.assertGreater(body["server_cpu_s"], 0, "the test's server runs on this machine")
        else:
            self.assertEqual(body["durability_settings"], {"journal_mode": "wal", "synchronous": "full"})
            self.assertIsNone(body["server_cpu_s"])
            self.assertTrue(body["server_cpu_why"])
        if not tasks:
            return
        self.assertGreater(body["commits"], 0)
        self.assertGreater(body["wal_bytes"], 0)
        self.assertGreater(body["client_cpu_s"], 0)
        for name in ("commits", "wal_bytes", "statements"):
            self.assertGreater(body[name + "_per_task"], 0)
        self.assertEqual(self.left_behind(), [])

    def check_percentiles(self, body):
        values = [body[name] for name in PERCENTILES]
        self.assertEqual(values, sorted(values))
        self.assertGreater(values[0], 0)


class Kinds(BenchCase):
    def test_drain(self):
        body = self.bench("drain", "--tasks", "500", "--slots", "8", "--processes", "2")
        self.assertEqual((body["bench"], body["tasks"], body["complete"]), ("drain", 500, 500))
        self.assertGreater(body["tasks_per_s"], 0)
        self.assertEqual(body["prefetch"], "default")
        self.assertGreater(body["worker_rss_mib"], 1)
        # Each settle is a commit of some tasks; half a hundred more are of the workers themselves.
        self.assertLess(body["commits_per_task"], 2.5)
        self.check_facts(body)

    def test_drain_tells_what_workers_and_submits_took(self):
        body = self.bench("drain", "--tasks", "500")
        self.assertGreater(body["submit_tasks_per_s"], 0)
        self.assertGreater(body["worker_cpu_s"], 0)
        self.assertLess(body["worker_cpu_s"], body["client_cpu_s"], "which includes stint bench itself")

    def test_drain_of_the_first_of_many(self):
        body = self.bench("drain", "--tasks", "5000", "--first", "300", "--slots", "4", "--batch", "4")
        self.assertEqual((body["tasks"], body["first"]), (5000, 300))
        self.assertGreaterEqual(body["complete"], 300)
        self.assertLess(body["complete"], 5000, "it does not wait for the rest")
        self.assertAlmostEqual(body["tasks_per_s"], body["complete"] / body["seconds"])
        self.check_facts(body)

    def test_drain_claims_as_many_as_told(self):
        body = self.bench("drain", "--tasks", "100", "--slots", "8", "--batch", "20")
        self.assertEqual(body["prefetch"], 12, "those beyond the slots")

    def test_submit(self):
        body = self.bench("submit", "--tasks", "200", "--clients", "4")
        self.assertEqual((body["stored"], body["clients"], body["batch"]), (200, 4, 1))
        self.assertGreater(body["tasks_per_s"], 0)
        self.check_percentiles(body)
        self.check_facts(body)

    def test_a_batch_is_few_commits(self):
        body = self.bench("submit", "--tasks", "2000", "--clients", "1", "--batch", "500")
        self.assertLess(body["commits_per_task"], 0.1)
        self.assertLess(body["statements_per_task"], 0.1 if support.POSTGRES else 20)

    def test_single_submits_by_one_are_a_commit_each(self):
        body = self.bench("submit", "--tasks", "100", "--clients", "1")
        self.assertGreaterEqual(body["commits_per_task"], 1)
        if not support.POSTGRES:
            self.assertGreaterEqual(body["fsyncs_per_task"], 1)

    def test_latency(self):
        body = self.bench("latency", "--tasks", "20")
        self.check_percentiles(body)
        self.check_facts(body)
        table = self.run_stint("bench", "latency", "--tasks", "5").out
        self.assertIn("p50_ms", table)
        self.assertIn("durability_settings", table)

    def test_openloop(self):
        body = self.bench("openloop", "--rate", "40", "--seconds", "2", "--clients", "4")
        self.assertEqual((body["tasks"], body["rate"], body["not_submitted"]), (80, 40, 0))
        self.assertGreaterEqual(body["seconds"], 1.9)
        self.check_percentiles(body)
        self.assertIn(body["kept_up"], (True, False))
        self.assertGreaterEqual(body["backlog_end"], 0)
        self.check_facts(body)

    def test_openloop_that_cannot_keep_up_says_so(self):
        body = self.bench("openloop", "--rate", "200000", "--seconds", "1", "--clients", "1", "--slots", "1")
        self.assertFalse(body["kept_up"])
        self.assertGreater(body["late_max_ms"], 1000)
        self.assertGreater(body["not_submitted"], 0, "it is bounded in time")

    def test_backlog(self):
        body = self.bench("backlog", "--tasks", "3000", "--future", "500")
        self.assertEqual((body["first"], body["small_backlog"], body["large_backlog"]), (666, 1000, 3000))
        self.assertAlmostEqual(body["ratio"], body["large_tasks_per_s"] / body["small_tasks_per_s"])
        self.assertGreater(body["future_ratio"], 0)
        self.assertEqual([arm["arm"] for arm in body["arms"]], ["small", "large", "without_future", "beside_future"])
        self.assertEqual([len(arm["rounds"]) for arm in body["arms"]], [2, 1, 4, 2])
        self.check_facts(body)

    def test_pinned(self):
        for how in ["snapshot", "xid", "dump"] if support.POSTGRES else ["reader"]:
            with self.subTest(pin=how):
                body = self.bench("pinned", "--seconds", "2", "--pin", how)
                self.assertEqual(body["pin"], how)
                self.assertEqual([w["pinned"] for w in body["windows"]], [False] * 3 + [True] * 10)
                self.assertAlmostEqual(body["ratio"], body["last_tasks_per_s"] / body["first_tasks_per_s"])
                self.assertGreater(body["unpinned_tasks_per_s"], 0)
                self.check_facts(body)

    def test_pinned_is_pinned(self):
        bench = self.start_stint("bench", "pinned", "--seconds", "20")
        if support.POSTGRES:
            held = ("SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND backend_xmin IS NOT NULL "
                    f"AND clock_timestamp() - xact_start > '2 s' AND datname = '{self.database}'")
            self.await_true(lambda: psql(held), "an old snapshot is held")
        else:
            # The log cannot begin anew, so it grows beyond where it is copied back: 2000 pages.
            self.await_true(lambda: any(path.stat().st_size > 3 * 2000 * 4096 for path in
                                        self.home.glob("*.bench-*-wal")), "the log grows")
        bench.send_signal(signal.SIGINT)
        self.assertEqual(bench.wait(timeout=60), 130)
        self.assertEqual(self.left_behind(), [])

    def test_pinned_refuses_what_the_store_does_not_know(self):
        answer = self.run_stint("bench", "pinned", "--pin", "nail", code=2)
        self.assertIn('"nail"', answer.err)
        self.assertIn("dump" if support.POSTGRES else "reader", answer.err)
        self.assertEqual(self.left_behind(), [])

    def test_resources(self):
        body = self.bench("resources", "--tasks", "200", "--capacity", "4")
        self.assertEqual((body["complete"], body["capacity"]), (800, 4))
        self.assertAlmostEqual(body["ratio"], body["with_tasks_per_s"] / body["without_tasks_per_s"])
        self.assertEqual([len(arm["rounds"]) for arm in body["arms"]], [2, 2])
        self.check_facts(body)

    def test_idle(self):
        body = self.bench("idle", "--seconds", "7")  # it looks every five or six
        self.assertGreater(body["statements_per_minute"], 0)
        self.assertLess(body["cpu_share"], 1)
        self.assertGreater(body["worker_rss_mib"], 1)
        self.check_facts(body, tasks=False)

    def test_fanout(self):
        body = self.bench("fanout", "--tasks", "50")
        self.assertEqual(body["complete"], 3 * (50 + 50 + 1))
        self.assertAlmostEqual(body["ratio"], body["independent_s"] / body["fanout_s"])
        self.check_facts(body)
        self.assertIn("independent", self.run_stint("bench", "fanout", "--tasks", "5").out)


class Faults(BenchCase):
    def test_in_place_refuses_a_store_in_use(self):
        task = self.submit("echo")
        for kind in ("submit", "drain", "latency", "openloop", "idle"):
            with self.subTest(kind=kind):
                answer = self.run_stint("bench", kind, "--in-place", code=6)
                self.assertIn("--force", answer.err)
        body = self.bench("submit", "--tasks", "10", "--in-place", "--force")
        self.assertEqual(body["stored"], 10)
        self.assertEqual(self.task(task)["state"], "open", "what was there is as it was")
        self.assertEqual(self.run_stint("task", "list", "state:open", "-o", "ids").lines(), [task])

    def test_beside_a_store_in_use_it_is_not_touched(self):
        task = self.submit("echo")
        before = self.run_stint("queue", "list", "-o", "json").json()
        self.bench("drain", "--tasks", "100")
        self.assertEqual(self.run_stint("queue", "list", "-o", "json").json(), before)
        self.assertEqual(self.run_stint("task", "list", "-o", "ids").lines(), [task])
        if support.POSTGRES:
            self.assertEqual(self.schemas(), ["stint"])

    def interrupt(self, number, code):
        bench = self.start_stint("bench", "drain", "--tasks", "1000000", "--batch", "100")
        self.await_true(lambda: support.catches(bench.pid, number), "it catches signals")
        self.await_true(self.schemas if support.POSTGRES else lambda: list(self.home.glob("*.bench-*")),
                        "it has made its store")
        bench.send_signal(number)
        self.assertEqual(bench.wait(timeout=60), code)
        self.assertEqual(self.left_behind(), [])
        self.assertIn("interrupted", bench.stderr.read())

    def test_interrupt_cleans_up(self):
        self.interrupt(signal.SIGINT, 130)

    def test_terminate_cleans_up(self):
        self.interrupt(signal.SIGTERM, 143)

    def test_interrupt_while_workers_run(self):
        bench = self.start_stint("bench", "openloop", "--rate", "50", "--seconds", "600")
        self.await_true(lambda: workers_of(bench.pid), "workers run")
        bench.send_signal(signal.SIGINT)
        self.assertEqual(bench.wait(timeout=60), 130)
        self.assertEqual(self.left_behind(), [])

    def test_the_next_one_removes_what_a_killed_one_left(self):
        other = self.start_stint("bench", "openloop", "--rate", "10", "--seconds", "600")
        killed = self.start_stint("bench", "openloop", "--rate", "10", "--seconds", "600")
        for bench in (other, killed):
            self.await_true(lambda: workers_of(bench.pid), "workers run")
        killed.kill()
        killed.wait()
        answer = self.run_stint("bench", "submit", "--tasks", "10")
        names = [line.split()[1].rstrip(",") for line in answer.err.splitlines() if line.startswith("removed ")]
        self.assertEqual(len(names), 1, str(answer))
        self.assertIn(f"{killed.pid}", names[0])
        self.assertIsNone(other.poll(), "one that lives is left alone")
        other.send_signal(signal.SIGINT)
        self.assertEqual(other.wait(timeout=60), 130, other.stderr.read())
        if support.POSTGRES:
            self.assertEqual(self.schemas(), [])
        else:
            self.assertEqual([path.name for path in self.home.iterdir() if "bench" in path.name], [])

    def test_it_gives_up_in_time(self):
        answer = self.run_stint("bench", "drain", "--tasks", "50000000", "--seconds", "2", code=9)
        self.assertIn("--seconds", answer.err)
        self.assertEqual(self.left_behind(), [])

    def test_a_worker_that_dies_is_told(self):
        bench = self.start_stint("bench", "openloop", "--rate", "10", "--seconds", "600")
        worker = self.await_true(lambda: workers_of(bench.pid), "workers run")[0]
        os.kill(worker, signal.SIGKILL)
        self.assertEqual(bench.wait(timeout=60), 1)
        self.assertIn("a worker process ended", bench.stderr.read())
        self.assertEqual(self.left_behind(), [])

    def test_full_standard_output(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = subprocess.run(
                [support.BINARY, "bench", "submit", "--tasks", "10"], stdout=full, stderr=subprocess.PIPE,
                text=True, check=False, env=self.env(), cwd=self.home)
        self.assertEqual(process.returncode, 1, process.stderr)
        self.assertEqual(self.left_behind(), [])

    def test_bad_numbers(self):
        for words, part in (
            (["openloop", "--rate", "-1"], "--rate"), (["drain", "--tasks", "5", "--first", "6"], "--first is 6"),
            (["drain", "--tasks", "5", "--first", "4", "--in-place"], "--first leaves tasks behind"),
            (["idle", "--seconds", "100000"], "--seconds is 100000"),
            (["fanout", "--tasks", "20000"], "at most 10000"), (["resources", "--capacity", "0"], "--capacity is 0"),
        ):
            with self.subTest(words=words):
                self.assertIn(part, self.run_stint("bench", *words, code=2).err)


@unittest.skipIf("--postgres" in os.sys.argv, "of SQLite")
class SqliteFaults(BenchCase):
    def test_a_directory_that_may_not_be_written(self):
        answer = self.run_stint("bench", "submit", "-s", "sqlite:/proc/none.db", code=5)
        self.assertIn("cannot make a file for the benchmark", answer.err)

    def test_it_leaves_no_directory_that_it_made(self):
        self.run_stint("bench", "submit", "--tasks", "10", env={"STINT_STORE": ""})
        self.assertFalse((self.home / ".stint").exists())

    def test_a_full_disk(self):
        """Too large a file fails like a full disk, for a process that ignores the signal."""
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        (self.home / "t.db").write_bytes(b"")
        process = subprocess.run(
            [support.BINARY, "bench", "drain", "--tasks", "100000", "--no-progress"], capture_output=True, text=True,
            timeout=support.TIMEOUT, cwd=self.home, env=self.env(), check=False, preexec_fn=small_files)
        self.assertIn(process.returncode, (1, 5, 11), process.stderr)
        self.assertIn("disk", process.stderr)
        self.assertEqual(process.stdout, "")
        self.assertEqual(self.left_behind(), [])
        self.assertEqual((self.home / "t.db").read_bytes(), b"")

    def test_a_disk_that_is_full(self):
        place = self.home / "small"
        place.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], check=False,
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False)
        (place / "mine.txt").write_text("mine")
        answer = self.run_stint("bench", "drain", "--tasks", "100000", "-s", f"sqlite:{place}/t.db", code=None)
        self.assertIn(answer.code, (1, 5, 11), str(answer))
        self.assertIn("full", answer.err)
        self.assertEqual([path.name for path in place.iterdir()], ["mine.txt"])


@unittest.skipUnless("--postgres" in os.sys.argv, "of PostgreSQL")
class PostgresFaults(BenchCase):
    def role(self, right=None):
        """The address as a new role, which may do no more than that."""
        name = f"stint_bench_role_{os.getpid()}"
        psql(f"CREATE ROLE {name} LOGIN PASSWORD 'secret'")
        self.addCleanup(psql, f"DROP ROLE {name}")
        if right:
            psql(f'GRANT {right} ON DATABASE "{self.database}" TO {name}')
            self.addCleanup(psql, f'REVOKE {right} ON DATABASE "{self.database}" FROM {name}')
        return f"postgres://{name}:secret@{self.store.rpartition('@')[2]}"

    def test_a_role_that_may_not_make_a_schema(self):
        url = self.role()
        answer = self.run_stint("bench", "drain", "-s", url, code=6)
        self.assertIn("may not make a schema", answer.err)
        self.assertIn("GRANT CREATE ON DATABASE", answer.err)
        self.assertNotIn("secret", answer.err)
        self.assertEqual(self.left_behind(), [])

    def test_a_role_with_just_that_right_is_enough(self):
        body = self.bench("drain", "--tasks", "50", "-s", self.role("CREATE"))
        self.assertEqual(body["complete"], 50)
        self.check_facts(body)

    def test_unreachable(self):
        answer = self.run_stint("bench", "drain", "-s", "postgres://nobody:hush@127.0.0.1:1/x", code=5)
        self.assertNotIn("hush", answer.err)

    def test_a_wrong_password(self):
        url = self.role().replace(":secret@", ":hush@")
        answer = self.run_stint("bench", "drain", "-s", url, code=5)
        self.assertIn("authentication failed", answer.err)
        self.assertIn("check user and password", answer.err)
        self.assertNotIn("hush", answer.err)

    def test_what_is_not_known_to_be_dead_is_named_and_stays(self):
        psql("CREATE SCHEMA stint_bench_old", self.store)
        answer = self.run_stint("bench", "submit", "--tasks", "10")
        self.assertIn("stint_bench_old", answer.err)
        self.assertEqual(self.schemas(), ["stint_bench_old"])

    def test_it_keeps_no_old_rows_itself(self):
        bench = self.start_stint("bench", "openloop", "--rate", "10", "--seconds", "600")
        self.await_true(lambda: workers_of(bench.pid), "workers run")
        idle = f"FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = '{self.database}'"
        old = "AND clock_timestamp() - xact_start > '1 s'"
        self.await_true(lambda: psql(f"SELECT 1 {idle} {old}"), "it marks its schema as in use")
        self.assertEqual(psql(f"SELECT query {idle} {old} AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"),
                         [])

    def test_a_server_that_goes_away(self):
        bench = self.start_stint("bench", "openloop", "--rate", "10", "--seconds", "600")
        self.await_true(lambda: workers_of(bench.pid), "workers run")
        self.await_true(self.schemas, "it has made its schema")
        psql(f'ALTER DATABASE "{self.database}" ALLOW_CONNECTIONS false')
        psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.database}'")
        self.assertIn(bench.wait(timeout=120), (1, 5))
        words = bench.stderr.read()
        self.assertIn("is left in the database", words)
        psql(f'ALTER DATABASE "{self.database}" ALLOW_CONNECTIONS true')
        self.assertIn("removed stint_bench_", self.run_stint("bench", "submit", "--tasks", "10").err)
        self.assertEqual(self.schemas(), [])


def workers_of(pid):
    """Its children, once they run the program."""
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in text.split()]


support.main()
