"""What the tests of the command line share: the binary, an empty directory, a store, a runner."""
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import xml.sax.saxutils

BINARY = ""
POSTGRES = ""  # empty: SQLite
TIMEOUT = 60


class Answer:
    """How one call of the binary ended."""

    def __init__(self, words, process):
        self.words, self.code = words, process.returncode
        self.out, self.err = process.stdout, process.stderr

    def json(self):
        return json.loads(self.out)

    def lines(self):
        return self.out.splitlines()

    def __str__(self):
        return f"stint {' '.join(self.words)}\nexit code {self.code}\n--- out\n{self.out}--- err\n{self.err}"


def environment(extra=None):
    """Ours without what would change the binary's ways."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("STINT_", "XDG_", "PG"))}
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        env.pop(name, None)
    env.update(extra or {})
    return env


class CliCase(unittest.TestCase):
    """Each test has an empty directory and a store of its own."""

    def setUp(self):
        # In memory where possible: that a commit survives a power loss is not what is tested here.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="stint-cli-", dir=place))
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.store = f"sqlite:{self.home}/t.db"
        if POSTGRES:
            schema = f"stint_test_cli_{secrets.token_hex(6)}"
            mark = "&" if "?" in POSTGRES else "?"
            self.store = f"{POSTGRES}{mark}stint_schema={schema}"
            self.addCleanup(drop_schema, schema)

    def env(self, extra=None):
        return environment({"HOME": str(self.home), "STINT_STORE": self.store, **(extra or {})})

    def run_stint(self, *words, stdin="", env=None, code=0):
        """Runs the binary; checks the exit code unless it is None."""
        words = [str(word) for word in words]
        process = subprocess.run(
            [BINARY, *words], input=stdin, capture_output=True, text=True, timeout=TIMEOUT,
            cwd=self.home, env=self.env(env), check=False,
        )
        answer = Answer(words, process)
        if code is not None:
            self.assertEqual(answer.code, code, str(answer))
        return answer

    def start_stint(self, *words, env=None):
        """Starts the binary; it is killed at the end of the test if it still runs."""
        process = subprocess.Popen(
            [BINARY, *[str(word) for word in words]], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.home,
            env=self.env(env),
        )
        self.addCleanup(end_process, process)
        return process

    def submit(self, *words, **options):
        """Submits and returns the id."""
        answer = self.run_stint("submit", *words, **options)
        self.assertRegex(answer.out, r"^[0-9]+\n$", str(answer))
        return answer.out.strip()

    def work(self, *words, code=0):
        """Runs a worker until nothing is left to do."""
        return self.run_stint("worker", "start", "--until-idle", "--poll-max", "50ms", *words, code=code)

    def task(self, task_id):
        return self.run_stint("task", "get", task_id, "-o", "json").json()

    def await_true(self, condition, what, seconds=30):
        """Polls until the condition holds."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            value = condition()
            if value:
                return value
            time.sleep(0.05)
        self.fail(f"never: {what}")


def catches(pid, number):
    """The process has blocked the signal, so that it can end in order."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            masks = [line.split()[1] for line in file if line.startswith("SigBlk:")]
    except OSError:
        return False
    return bool(masks) and bool(int(masks[0], 16) >> (number - 1) & 1)


def end_process(process):
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        stream.close()


def drop_schema(schema):
    psql = shutil.which("psql") or os.path.join(os.environ.get("STINT_TEST_PGBIN", ""), "psql")
    if os.path.exists(psql):
        subprocess.run(
            [psql, "-qX", POSTGRES, "-c", f"DROP SCHEMA IF EXISTS {schema} CASCADE"],
            check=False, capture_output=True,
        )


class Report(unittest.TextTestResult):
    """Collects the cases in the form that tools/count_tests.py reads."""

    def __init__(self, *args):
        super().__init__(*args)
        self.cases = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.cases.append((test, "", None))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.cases.append((test, "failure", self._exc_info_to_string(err, test)))

    def addError(self, test, err):
        super().addError(test, err)
        self.cases.append((test, "failure", self._exc_info_to_string(err, test)))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.cases.append((test, "skipped", reason))

    def write(self, path):
        quote = xml.sax.saxutils.quoteattr
        rows = []
        for test, kind, text in self.cases:
            name = test.id().split(".")[-1]
            body = f"<{kind} message={quote(text)}/>" if kind else ""
            rows.append(f'<testcase name={quote(name)} status="run">{body}</testcase>')
        suite = pathlib.Path(sys.argv[0]).stem
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'<?xml version="1.0"?><testsuites><testsuite name="{suite}">{"".join(rows)}'
            "</testsuite></testsuites>",
            encoding="utf-8",
        )


def main():
    """script.py BINARY [--postgres] [unittest words]"""
    global BINARY, POSTGRES  # pylint: disable=global-statement
    words = sys.argv[1:]
    BINARY = os.path.abspath(words.pop(0))
    if words and words[0] == "--postgres":
        words.pop(0)
        POSTGRES = os.environ.get("STINT_TEST_POSTGRES", "")
        if not POSTGRES:
            print("STINT_TEST_POSTGRES is not set")
            sys.exit(77)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    runner = unittest.TextTestRunner(resultclass=Report, verbosity=2)
    program = unittest.main(module="__main__", argv=[sys.argv[0], *words], testRunner=runner, exit=False)
    report = os.environ.get("STINT_TEST_REPORT")
    if report:
        program.result.write(pathlib.Path(report))
    sys.exit(0 if program.result.wasSuccessful() else 1)
