#!/usr/bin/env python3
"""Shows that count_tests.py counts what ctest and GoogleTest report, and believes the worse of the two."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("count_tests.py")
GTEST = """<testsuites><testsuite name="Claim">
<testcase name="Takes" status="run" result="completed"/>
<testcase name="Fails" status="run" result="completed"><failure message="no"/></testcase>
<testcase name="Skips" status="run" result="skipped"><skipped message="a.cpp:1&#10;no server"/></testcase>
<testcase name="Off" status="notrun" result="suppressed"/>
</testsuite></testsuites>"""
GOOD = '<testsuites><testsuite name="A"><testcase name="B" status="run" result="completed"/></testsuite></testsuites>'


def entry(name, status="run", inside=""):
    return f'<testcase name="{name}" status="{status}">{inside}<system-out>words</system-out></testcase>'


FAILED = '<failure message="SEGFAULT"/>'


class CountTests(unittest.TestCase):
    def count(self, entries, reports=None):
        """Returns what was printed, the tally as three numbers, and the names of the kept logs."""
        with tempfile.TemporaryDirectory() as directory:
            build, logs = pathlib.Path(directory) / "build", pathlib.Path(directory) / "logs"
            (build / "test-results").mkdir(parents=True)
            (build / "junit.xml").write_text(f"<testsuite>{''.join(entries)}</testsuite>")
            for name, text in (reports or {}).items():
                (build / "test-results" / f"{name}.xml").write_text(text)
            done = subprocess.run(
                [sys.executable, SCRIPT, build, logs, "dev"], capture_output=True, text=True, check=True
            )
            tally = tuple(map(int, (logs / "tally").read_text().split()))
            return done.stdout, tally, sorted(path.name for path in logs.glob("*.log"))

    def test_entries_without_report_count_as_one_each(self):
        skip = '<skipped message="SKIP_RETURN_CODE=77"/>'
        out, tally, _ = self.count([entry("a"), entry("b", "fail", FAILED), entry("c", "notrun", skip)])
        self.assertEqual(tally, (1, 1, 1))
        self.assertIn("skipped: c  (words)", out)

    def test_cases_of_a_report_are_counted_and_reasons_named(self):
        out, tally, logs = self.count([entry("claim_test", "fail", FAILED)], {"claim_test": GTEST})
        self.assertEqual(tally, (1, 1, 2))
        self.assertIn("Claim.Skips  (no server)", out)
        self.assertEqual(logs, ["dev.claim_test.log"])

    def test_crash_after_the_last_case_is_a_failure(self):
        _, tally, _ = self.count([entry("t", "fail", FAILED)], {"t": GOOD})
        self.assertEqual(tally, (1, 1, 0))

    def test_half_written_report_of_a_failed_entry_is_a_failure(self):
        _, tally, _ = self.count([entry("t", "fail", FAILED)], {"t": GOOD[:40]})
        self.assertEqual(tally, (0, 1, 0))

    def test_what_tells_why_is_kept_without_the_cases_that_passed(self):
        sys.path.insert(0, str(SCRIPT.parent))
        from count_tests import telling_part

        output = """[ RUN      ] A.Good
chatter
[       OK ] A.Good (1 ms)
[ RUN      ] A.Raced
WARNING: ThreadSanitizer: data race
[       OK ] A.Raced (1 ms)
[ RUN      ] A.Bad
a.cpp:7: Failure
[  FAILED  ] A.Bad (1 ms)
 1 FAILED TEST"""
        told = telling_part(output)
        self.assertNotIn("chatter", told)
        self.assertIn("WARNING: ThreadSanitizer: data race", told)
        self.assertIn("a.cpp:7: Failure", told)
        self.assertEqual(told[-1], " 1 FAILED TEST")
        self.assertLess(len(telling_part("\n".join(map(str, range(1000))))), 100)

    def test_missing_executable_is_a_failure(self):
        missing = '<skipped message="Unable to find executable"/>'
        _, tally, _ = self.count([entry("t", "notrun", missing)])
        self.assertEqual(tally, (0, 1, 0))


if __name__ == "__main__":
    unittest.main()
