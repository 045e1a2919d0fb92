#!/usr/bin/env python3
"""Adds up one ctest run: GoogleTest cases one by one, every other ctest entry as one.

    count_tests.py BUILD_DIR LOG_DIR NAME

Reads BUILD_DIR/junit.xml (ctest --output-junit) and BUILD_DIR/test-results/*.xml, names what failed
and what was skipped with the reason, keeps the output of failed entries in LOG_DIR/NAME.<entry>.log,
appends what tells why they failed to LOG_DIR/failures and "passed failed skipped" to LOG_DIR/tally.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def gtest_cases(path):
    """Yields (name, "passed" | "failed" | "skipped", reason) for each case of a GoogleTest report."""
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = f'{suite.get("name")}.{case.get("name")}'
            skipped = case.find("skipped")
            if case.find("failure") is not None:
                yield name, "failed", ""
            elif skipped is not None or case.get("result") == "skipped":
                lines = ((skipped.get("message") if skipped is not None else "") or "").splitlines()
                # GoogleTest puts "file:line" first; the reason follows.
                yield name, "skipped", " ".join(lines[1:] or lines) or "no reason given"
            elif case.get("status") == "notrun":
                yield name, "skipped", "disabled"
            else:
                yield name, "passed", ""


def entry_outcome(case):
    """The outcome of a ctest entry as ctest saw it, with a reason."""
    skipped = case.find("skipped")
    status = case.get("status")
    if status == "run":
        return "passed", ""
    if skipped is not None or status in ("notrun", "disabled"):
        message = (skipped.get("message") if skipped is not None else "") or status
        if "SKIP_RETURN_CODE" in message:
            lines = (case.findtext("system-out") or "").strip().splitlines()
            return "skipped", lines[-1] if lines else "no reason given"
        if "Unable to find executable" in message or "Required Files" in message:
            return "failed", message
        return "skipped", message
    failure = case.find("failure")
    return "failed", (failure.get("message") if failure is not None else "") or ""


def cases_of_entry(case, results):
    """All outcomes that one ctest entry stands for."""
    name = case.get("name")
    outcome, reason = entry_outcome(case)
    report = results / f"{name}.xml"
    if not report.exists():
        return [(name, outcome, reason)]
    try:
        cases = [(f"{name}: {who}", how, why) for who, how, why in gtest_cases(report)]
    except ElementTree.ParseError:
        cases = []
    if outcome == "failed" and not any(how == "failed" for _, how, _ in cases):
        # Crashed, leaked, timed out: the report cannot know.
        cases.append((f"{name} (outside its cases)", "failed", reason))
    return cases or [(name, outcome, reason)]


CASE_BEGINS = re.compile(r"^\[ RUN      \] ")
CASE_PASSED = re.compile(r"^\[       OK \] |^\[  SKIPPED \] ")
TOLD_LINES = 60


def telling_part(output):
    """The lines of a failed entry that say why: whatever was not printed by a case that passed."""
    kept, case = [], []
    for line in output.splitlines():
        if CASE_BEGINS.match(line):
            kept += case
            case = [line]
        elif CASE_PASSED.match(line):
            # A case can pass while a sanitizer reports on what it did.
            kept += case if any("Sanitizer" in told for told in case) else []
            case = []
        elif case:
            case.append(line)
        elif line.strip() and not line.startswith("[---"):
            kept.append(line)
    kept += case
    if len(kept) <= TOLD_LINES:
        return kept
    half = TOLD_LINES // 2
    return kept[:half] + [f"... {len(kept) - 2 * half} lines ..."] + kept[-half:]


def keep_failure(logs, run, case):
    """Keeps the whole output of a failed entry, and for the end of the run the part that matters."""
    log = logs / f'{run}.{case.get("name")}.log'
    output = case.findtext("system-out") or ""
    log.write_text(output, encoding="utf-8")
    print(f"    its output: {log}")
    with open(logs / "failures", "a", encoding="utf-8") as failures:
        print(f'---- {run}: {case.get("name")}', *telling_part(output), sep="\n", file=failures)


def main():
    build, logs, run = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    logs.mkdir(parents=True, exist_ok=True)
    for case in ElementTree.parse(build / "junit.xml").getroot().iter("testcase"):
        outcomes = cases_of_entry(case, build / "test-results")
        for name, outcome, reason in outcomes:
            totals[outcome] += 1
            if outcome != "passed":
                print(f"  {outcome}: {name}" + (f"  ({reason})" if reason else ""))
        if any(outcome == "failed" for _, outcome, _ in outcomes):
            keep_failure(logs, run, case)
    with open(logs / "tally", "a", encoding="utf-8") as tally:
        print(totals["passed"], totals["failed"], totals["skipped"], file=tally)


if __name__ == "__main__":
    main()
