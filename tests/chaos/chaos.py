#!/usr/bin/env python3
"""Kills, freezes and restarts real processes while real work is done, then checks every promise.

chaos.py postgres --binary stint_chaos --tasks N --seconds S --seed N
    Three or more workers on a private PostgreSQL. Every 1 to 3 seconds one of: kill -9 of a worker
    (a new one is started), SIGSTOP for longer than the lease and SIGCONT, an immediate restart of
    the server. Ends when all tasks are terminal, then merges the journals with the database.

chaos.py sqlite --binary stint_chaos --kills N --tasks N --seed N
    Workers on one SQLite file and the submitter are killed one after the other, whoever owns the
    file included; `PRAGMA integrity_check` after every kill.

Tasks are submitted at a steady pace over the whole time, so that every strike hits work; a run in
which too few attempts had to be recovered proves nothing and fails.
"""
import argparse
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEASE = 2.0  # of ChaosOptions in stint_chaos.cpp


class Run:
    def __init__(self, args, folder):
        self.args = args
        self.folder = folder
        self.journals = folder / "journals"
        self.journals.mkdir()
        self.random = random.Random(args.seed)
        self.workers = []
        self.paused = []
        self.count = dict(kills=0, owner_kills=0, submitter_kills=0, pauses=0, restarts=0, workers=0)
        self.store = None

    def start_worker(self):
        name = f"w{self.count['workers']}"
        self.count["workers"] += 1
        # Two host names in all: a restarted process has the name of a dead one.
        host = f"host{self.count['workers'] % 2}"
        state = self.folder / host
        state.mkdir(exist_ok=True)
        errors = open(self.folder / f"{name}.stderr", "wb")
        journal = self.journals / name
        journal.touch()
        process = subprocess.Popen(
            [self.args.binary, "worker", self.store, journal, host, state], stderr=errors
        )
        process.journal = journal
        self.workers.append(process)

    def start_submitter(self, tasks, prefix, per_second, longest_ms):
        return subprocess.Popen(
            [self.args.binary, "submit", self.store, self.journals / f"submit-{prefix}", str(tasks), prefix]
            + [str(per_second), str(longest_ms)]
        )

    def kill_one(self):
        victim = self.random.randrange(len(self.workers))
        process = self.workers.pop(victim)
        process.kill()
        process.wait()
        self.count["kills"] += 1
        self.start_worker()
        return process.pid

    def pause_one(self):
        running = [w for w in self.workers if w not in [p for p, _ in self.paused]]
        if len(running) < 2:
            return
        process = self.random.choice(running)
        process.send_signal(signal.SIGSTOP)
        self.paused.append((process, time.monotonic() + LEASE * self.random.uniform(1.3, 2.5)))
        self.count["pauses"] += 1

    def resume_due(self, everyone=False):
        still = []
        for process, until in self.paused:
            if everyone or time.monotonic() >= until or process.poll() is not None:
                if process.poll() is None:
                    process.send_signal(signal.SIGCONT)
            else:
                still.append((process, until))
        self.paused = still

    def replace_dead(self):
        for process in list(self.workers):
            if process.poll() is not None:
                raise SystemExit(f"a worker ended by itself with {process.returncode}; see its stderr file")

    def terminal(self):
        answer = subprocess.run(
            [self.args.binary, "count", self.store], capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            return 0, -1  # the server is restarting
        done, everything = answer.stdout.split()
        return int(done), int(everything)

    def wait_for_all(self, tasks, limit):
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            done, everything = self.terminal()
            if everything == tasks and done == tasks:
                return
            self.replace_dead()
            time.sleep(0.3)
        raise SystemExit(f"after {limit} s of peace {done} of {everything} tasks are terminal (L1)")

    def wait_until_up(self, process):
        """Until it waits for signals: before that, one ends it as it ends any program."""
        deadline = time.monotonic() + 60
        while "up" not in process.journal.read_text().split("\n"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"a worker did not come up; see {self.folder}")
            time.sleep(0.05)

    def stop_workers(self):
        for process in self.workers:
            process.send_signal(signal.SIGCONT)
            self.wait_until_up(process)
            process.terminate()
        for process in self.workers:
            if process.wait(timeout=60) != 0:
                raise SystemExit(f"a worker stopped with exit code {process.returncode}")
        self.workers = []

    def check(self):
        answer = subprocess.run(
            [self.args.binary, "check", self.store, self.journals], capture_output=True, text=True, check=False
        )
        print(answer.stdout + answer.stderr, end="")
        print("survived: " + ", ".join(f"{value} {name}" for name, value in self.count.items()))
        recovered = int(answer.stdout.split(" recovered ")[1].split()[0])
        if recovered < self.count["kills"] // 2:
            print(f"only {recovered} attempts were recovered: the kills struck idle workers")
            return 1
        return answer.returncode

    def clean_up(self):
        for process in self.workers:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


def run_postgres(args, folder):
    server = ROOT / "tools/private-postgres"
    data = folder / "pg"
    run = Run(args, folder)
    run.store = subprocess.run(
        [server, "start", data], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    try:
        for _ in range(3):
            run.start_worker()
        pace = max(1, args.tasks // 2 // args.seconds)
        submitters = [run.start_submitter(args.tasks // 2, name, pace, 120) for name in "ab"]
        end = time.monotonic() + args.seconds
        restart_every, next_restart = 12.0, time.monotonic() + 6.0
        while time.monotonic() < end or any(s.poll() is None for s in submitters):
            time.sleep(run.random.uniform(1.0, 3.0))
            run.resume_due()
            if time.monotonic() >= next_restart:
                next_restart += restart_every
                subprocess.run([server, "crash", data], check=True)
                subprocess.run([server, "restart", data], check=True, capture_output=True)
                run.count["restarts"] += 1
            elif run.random.random() < 0.35:
                run.pause_one()
            else:
                run.kill_one()
            if time.monotonic() > end + 120:
                raise SystemExit("the submitters did not finish")
        if any(s.wait() != 0 for s in submitters):
            raise SystemExit("a submitter failed")
        run.resume_due(everyone=True)
        run.wait_for_all(args.tasks // 2 * 2, limit=90)
        run.stop_workers()
        for what, least in (("kills", 6), ("pauses", 2), ("restarts", 2)):
            if run.count[what] < least:
                raise SystemExit(f"{run.count[what]} {what} in this run: too few to prove anything")
        return run.check()
    finally:
        run.clean_up()
        subprocess.run([server, "stop", data], check=False)


def owner_of(path):
    """The process that holds the lock beside the file, or None between two owners."""
    try:
        inode = pathlib.Path(f"{path}.lock").stat().st_ino
    except FileNotFoundError:
        return None
    for line in pathlib.Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
            return int(fields[4])
    return None


def run_sqlite(args, folder):
    run = Run(args, folder)
    path = folder / "chaos.db"
    run.store = f"sqlite:{path}"
    try:
        run.start_worker()
        pace = max(1, args.tasks // (args.kills // 3))
        submitter = run.start_submitter(args.tasks, "a", pace, 60)
        run.start_worker()
        journal = run.journals / "submit-a"
        while not journal.exists() or journal.stat().st_size == 0:  # the file is made by then
            if submitter.poll() is not None:
                raise SystemExit("the submitter ended before its first task was accepted")
            time.sleep(0.05)
        while run.count["kills"] < args.kills:
            time.sleep(run.random.uniform(0.05, 0.5))
            owner = owner_of(path)
            if submitter.poll() is None and run.random.random() < 0.2:
                run.count["owner_kills"] += submitter.pid == owner
                submitter.kill()
                submitter.wait()
                run.count["kills"] += 1
                run.count["submitter_kills"] += 1
                submitter = run.start_submitter(args.tasks, "a", pace, 60)
            else:
                run.count["owner_kills"] += run.kill_one() == owner
            # Read-only, as an outside tool would: the file must be whole at every moment.
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)
            verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
            connection.close()
            if verdict != "ok":
                raise SystemExit(f"after kill {run.count['kills']}: integrity_check says {verdict}")
        if submitter.wait(timeout=300) != 0:
            raise SystemExit("the submitter failed")
        if run.count["owner_kills"] < args.kills // 10:
            raise SystemExit(f"the file's owner was hit {run.count['owner_kills']} times: too few to prove anything")
        run.wait_for_all(args.tasks, limit=90)
        run.stop_workers()
        return run.check()
    finally:
        run.clean_up()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["postgres", "sqlite"])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    args = parser.parse_args()
    args.binary = str(pathlib.Path(args.binary).resolve())
    print(f"seed {args.seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stint-chaos-"))
    folder.chmod(0o755)
    code = 1
    try:
        code = run_postgres(args, folder) if args.kind == "postgres" else run_sqlite(args, folder)
    finally:
        if code == 0 and not args.keep:
            subprocess.run(["rm", "-rf", folder], check=False)
        else:
            print(f"kept: {folder}", file=sys.stderr)
    return code


sys.exit(main())
