#!/usr/bin/env python3
"""Kills, freezes and restarts real processes while real work is done, then checks every promise.

chaos.py postgres --binary stint_chaos [--seconds S] [--pace N] [--seed N]
    Three or more workers on a private PostgreSQL. Every second or so one of: kill -9 of a worker
    (a new one is started) or of a submitter, SIGSTOP for longer than the lease and SIGCONT, an
    immediate restart of the server.

chaos.py sqlite --binary stint_chaos [--seconds S] [--pace N] [--seed N]
    Workers on one SQLite file and the submitter are killed one after the other, whoever owns the
    file included, or frozen; `PRAGMA integrity_check` after every kill.

The work is of all kinds (chaos.h): plain tasks, tasks that need a scarce resource, parents with
rounds of subtasks, flows, events with triggers and a join, a schedule and one with steps. It is
asked for at a steady pace over the whole time, so that every strike hits some; a run in which too
few attempts had to be recovered proves nothing and fails. Then there is peace: schedules are
paused, and all that is there must come to its end within a bound, before anything is judged.

For a long run: STINT_CHAOS_SECONDS=300, which goes before --seconds.
"""
import argparse
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEASE = 2.0  # of ChaosOptions in chaos.cpp


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
        self.environment = dict(os.environ)
        if args.bug:
            self.environment["STINT_CHAOS_BUG"] = args.bug

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
            [self.args.binary, "worker", self.store, journal, host, state], stderr=errors, env=self.environment
        )
        process.journal = journal
        self.workers.append(process)

    def start_submitter(self, prefix, asks, per_second, longest_ms):
        return subprocess.Popen(
            [self.args.binary, "submit", self.store, self.journals / f"submit-{prefix}", str(asks), prefix]
            + [str(per_second), str(longest_ms)],
            env=self.environment,
        )

    def kill_submitter(self, submitters, prefix):
        """One that is killed goes on where its journal ends."""
        process, arguments = submitters[prefix]
        if process.poll() is not None:
            return None
        process.kill()
        process.wait()
        self.count["kills"] += 1
        self.count["submitter_kills"] += 1
        submitters[prefix] = (self.start_submitter(prefix, *arguments), arguments)
        return process.pid

    def start_submitters(self, prefixes, *arguments):
        return {prefix: (self.start_submitter(prefix, *arguments), arguments) for prefix in prefixes}

    def finish(self, submitters):
        """A machine that is too slow for the pace has asked for less. The last strike hits all who submit: what they
        had accepted without hearing of it must be asked for again although it is enough."""
        for prefix in list(submitters):
            self.kill_submitter(submitters, prefix)
        for prefix, (process, _) in submitters.items():
            (self.journals / f"submit-{prefix}.enough").touch()
            deadline = time.monotonic() + 120
            # Whoever is frozen stays so for its time, and not for ever: it may own the SQLite file.
            while process.poll() is None and time.monotonic() < deadline:
                self.resume_due()
                time.sleep(0.1)
            if process.poll() is None:
                raise SystemExit(f"submitter {prefix} does not come to its end; see {self.folder}")
            if process.returncode != 0:
                raise SystemExit("a submitter failed")

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

    def ask(self, role):
        """What the program says, in words; nothing while the store cannot be reached."""
        answer = subprocess.run([self.args.binary, role, self.store], capture_output=True, text=True, check=False)
        return answer.stdout.split() if answer.returncode == 0 else None

    def wait_for(self, what, done):
        """As long as work becomes less it goes on, whatever the machine is able to do."""
        limit, most = self.args.patience, time.monotonic() + 10 * self.args.patience
        deadline = time.monotonic() + limit
        last, least = None, None
        while time.monotonic() < min(deadline, most):
            last = self.ask("count") or last
            if last and done(last):
                return
            left = int(last[1]) + int(last[2]) if last else None
            if left is not None and (least is None or left < least):
                least, deadline = left, time.monotonic() + limit
            self.replace_dead()
            time.sleep(0.3)
        print(f"{what}, and for {limit} s of peace nothing has changed that: {last} (L1)")

    def come_to_rest(self):
        """All work that is there comes to its end; what does not is found by the check."""
        self.resume_due(everyone=True)
        self.wait_for("no execution of steps is complete", lambda words: int(words[3]) > 0)
        while self.ask("calm") is None:
            time.sleep(0.3)
        begun = time.monotonic()
        self.wait_for("there is work left", lambda words: words[0] == "quiet")
        print(f"at rest after {time.monotonic() - begun:.1f} s", flush=True)

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
        if answer.returncode not in (0, 1):
            return answer.returncode
        recovered = int(answer.stdout.split(" recovered ")[1].split()[0])
        if recovered < self.count["kills"] // 4:
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
        pace = max(1, (args.pace or 30) // 2)
        submitters = run.start_submitters("ab", pace * args.seconds, pace, 120)
        end = time.monotonic() + args.seconds
        restart_every, next_restart = 12.0, time.monotonic() + 6.0
        while time.monotonic() < end:
            time.sleep(run.random.uniform(0.3, 1.7))
            run.resume_due()
            if time.monotonic() >= next_restart:
                next_restart += restart_every
                subprocess.run([server, "crash", data], check=True)
                subprocess.run([server, "restart", data], check=True, capture_output=True)
                run.count["restarts"] += 1
            elif run.random.random() < 0.3:
                run.pause_one()
            elif run.random.random() < 0.2:
                run.kill_submitter(submitters, run.random.choice("ab"))
            else:
                run.kill_one()
        run.finish(submitters)
        run.come_to_rest()
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


def check_file(path, kills):
    """Read-only, as an outside tool would: the file must be whole at every moment."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)
    verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    if verdict != "ok":
        raise SystemExit(f"after kill {kills}: integrity_check says {verdict}")


def run_sqlite(args, folder):
    run = Run(args, folder)
    path = folder / "chaos.db"
    run.store = f"sqlite:{path}"
    try:
        run.start_worker()
        pace = args.pace or 20
        submitters = run.start_submitters("a", pace * args.seconds, pace, 60)
        run.start_worker()
        journal = run.journals / "submit-a"
        while not journal.exists() or journal.stat().st_size == 0:  # the file is made by then
            if submitters["a"][0].poll() is not None:
                raise SystemExit("the submitter ended before its first task was accepted")
            time.sleep(0.05)
        end = time.monotonic() + args.seconds
        while time.monotonic() < end:
            time.sleep(run.random.uniform(0.05, 0.5))
            run.resume_due()
            owner = owner_of(path)
            choice = run.random.random()
            if choice < 0.15:
                killed = run.kill_submitter(submitters, "a")
                run.count["owner_kills"] += killed is not None and killed == owner
            elif choice < 0.22:
                run.pause_one()
            else:
                run.count["owner_kills"] += run.kill_one() == owner
            check_file(path, run.count["kills"])
        run.finish(submitters)
        run.come_to_rest()
        run.stop_workers()
        for what, least in (("kills", args.seconds), ("owner_kills", args.seconds // 8), ("submitter_kills", 2)):
            if run.count[what] < least:
                raise SystemExit(f"{run.count[what]} {what} in this run: too few to prove anything")
        return run.check()
    finally:
        run.clean_up()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["postgres", "sqlite"])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seconds", type=int, default=35, help="how long processes are struck")
    parser.add_argument("--pace", type=int, help="what is asked for per second; most asks become several tasks")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--patience", type=int, default=60, help="seconds of peace in which work must become less")
    parser.add_argument("--bug", help="a planted bug of workers and submitters: the run must fail")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the run")
    args = parser.parse_args()
    args.seconds = int(os.environ.get("STINT_CHAOS_SECONDS", args.seconds))
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
