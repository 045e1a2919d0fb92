#!/usr/bin/env python3
"""The two scripts a stranger begins with, and what they do where packages are missing."""
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).parents[2]
WARM_SECONDS = 15


def call(*words, env=None):
    return subprocess.run(
        words, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=600, check=False,
    )


class WithoutPackages(unittest.TestCase):
    """A machine on which nothing is installed, by its own account."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        fake = pathlib.Path(directory.name) / "dpkg-query"
        fake.write_text("#!/bin/sh\nexit 0\n")
        fake.chmod(0o755)
        # The logs of the run that runs this are not this one's.
        self.env = {
            "PATH": f"{directory.name}:{os.environ['PATH']}",
            "STINT_TEST_LOGS": f"{directory.name}/logs",
        }

    def install_line(self, answer):
        self.assertEqual(answer.returncode, 3, answer.stdout + answer.stderr)
        found = re.search(r"^    apt-get install --no-install-recommends (.+)$", answer.stderr, re.M)
        self.assertTrue(found, answer.stderr)
        return found.group(1).split()

    def test_run_prints_the_exact_line_and_stops(self):
        packages = self.install_line(call("./run", "--once", "--no-install", env=self.env))
        listed = call("tools/packages", "list", "build", "run").stdout.split()
        self.assertEqual(sorted(packages), sorted(set(listed)))

    def test_test_does_too_and_still_ends_with_its_line(self):
        answer = call("./test", "--no-install", "--only", "nothing", env=self.env)
        packages = self.install_line(answer)
        self.assertTrue(set(call("tools/packages", "list", "test").stdout.split()) <= set(packages))
        self.assertEqual(answer.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped")


class Words(unittest.TestCase):
    def test_unknown_options_are_refused_by_name(self):
        for script in ("./run", "./test"):
            answer = call(script, "--fats")  # before anything else is done
            self.assertEqual(answer.returncode, 2)
            self.assertIn("unknown option --fats", answer.stderr)

    def test_help_lists_the_options(self):
        self.assertIn("--once", call("./run", "--help").stdout)
        self.assertIn("--only PATTERN", call("./test", "--help").stdout)


def release_is_built():
    """Brings it up to date, which is quick after ./test has built it."""
    if not (ROOT / "build/release/stint").exists():
        return False
    try:
        words = ("cmake", "--build", "build/release", "--target", "stint")
        subprocess.run(words, cwd=ROOT, capture_output=True, timeout=300, check=True)
    except subprocess.SubprocessError:
        return False
    return True


class ReleaseBuild(unittest.TestCase):
    """What ./test makes of a build that fails or warns."""

    def outcome(self, build):
        with tempfile.TemporaryDirectory() as logs:
            function = re.search(r"^build_release\(\) \{.*?^\}", (ROOT / "test").read_text(), re.M | re.S)
            script = f"""set -euo pipefail
                logs={logs}
                ninja() {{ :; }}
                build() {{ {build}; }}
                {function.group(0)}
                if build_release >/dev/null; then echo ok; else echo failed; fi"""
            return call("bash", "-c", script).stdout.strip()

    def test_only_a_build_without_warnings_is_ok(self):
        self.assertEqual(self.outcome("echo built"), "ok")
        self.assertEqual(self.outcome("echo 'a.cpp:3: warning: unused' >&2"), "failed")
        self.assertEqual(self.outcome("echo 'a.cpp:3: error: what' >&2; return 1"), "failed")


class WarmRun(unittest.TestCase):
    def test_the_demo_runs_and_says_what_to_try(self):
        if not release_is_built():
            self.skipTest("the release build is not there or not up to date; ./test makes it first")
        begun = time.monotonic()
        answer = call("./run", "--once", "--no-install")
        took = time.monotonic() - begun
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        self.assertRegex(answer.stdout, r"lost +0\b|lost 0")
        self.assertIn("Try next:", answer.stdout)
        print(f"./run --once, warm: {took:.1f} s")
        self.assertLess(took, 3 * WARM_SECONDS, "a shared machine may be slow, but not that slow")


if __name__ == "__main__":
    unittest.main()
