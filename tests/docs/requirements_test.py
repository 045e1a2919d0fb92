#!/usr/bin/env python3
"""docs/requirements.md must name every requirement once, and only proofs that exist.

Each row is `| S1.7 | our words | proof |`. A proof is one or more of, separated by commas:
`Suite.Case` (a GoogleTest case in the sources; `Suite.*` for all of a suite), the name of a ctest
entry, or the word later. Backquotes around a name are optional.
"""
import argparse
import pathlib
import re
import subprocess
import sys

LAST = {"S0": 44, "S1": 37, "S2": 90, "S3": 31, "S4": 45}
ROW = re.compile(r"^\|\s*(S[0-4]\.\d+)\s*\|(.*)\|([^|]*)\|\s*$")
CASE = re.compile(
    r"^\s*(?:TYPED_TEST_P|TYPED_TEST|TEST_F|TEST_P|TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\s*\(\s*(\w+)\s*,\s*(\w+)",
    re.M,
)


def gtest_cases(root):
    cases = set()
    for top in ("src", "tests", "examples", "include"):
        for path in (root / top).rglob("*.cpp"):
            cases.update(".".join(found) for found in CASE.findall(path.read_text(encoding="utf-8")))
        for path in (root / top).rglob("*.h"):
            cases.update(".".join(found) for found in CASE.findall(path.read_text(encoding="utf-8")))
    return cases


def ctest_names(build):
    """What `ctest -N` lists in a build tree; none without one."""
    if build is None:
        return None
    answer = subprocess.run(["ctest", "-N", "--test-dir", build], capture_output=True, text=True, check=False)
    return set(re.findall(r"^\s*Test\s+#\d+:\s+(\S+)", answer.stdout, re.M)) or None


def is_known(name, cases, entries):
    if name == "later" or name in cases:
        return True
    suite, dot, case = name.partition(".")
    if dot:
        return case == "*" and any(known.startswith(suite + ".") for known in cases)
    return entries is None or name in entries


def check(text, cases, entries):
    """All that is wrong with the table, one sentence each."""
    problems, seen = [], {}
    for number, line in enumerate(text.splitlines(), 1):
        row = ROW.match(line)
        if not row:
            continue
        item, words, proof = (part.strip() for part in row.groups())
        if item in seen:
            problems.append(f"line {number}: {item} is already in line {seen[item]}")
        seen[item] = number
        if not words:
            problems.append(f"line {number}: {item} says nothing")
        names = [name.strip().strip("`") for name in re.split(r"[,;]|<br>", proof) if name.strip()]
        if not names:
            problems.append(f"line {number}: {item} names no proof (write later if there is none yet)")
        for name in names:
            if not is_known(name, cases, entries):
                problems.append(f"line {number}: {item} names {name}, which is no test")
    for part, last in LAST.items():
        gaps = [f"{part}.{n}" for n in range(1, last + 1) if f"{part}.{n}" not in seen]
        if gaps:
            problems.append("missing: " + ", ".join(gaps))
        surplus = [item for item in seen if item.startswith(part) and int(item.split(".")[1]) not in range(1, last + 1)]
        if surplus:
            problems.append("no such requirement: " + ", ".join(surplus))
    return problems


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", help="build tree whose ctest entries count as proofs")
    options = parser.parse_args()
    table = root / "docs/requirements.md"
    if not table.exists():
        print("docs/requirements.md is not written yet")
        return 77
    text = table.read_text(encoding="utf-8")
    problems = check(text, gtest_cases(root), ctest_names(options.build))
    print("\n".join(problems))
    rows = [row.group(3) for row in map(ROW.match, text.splitlines()) if row]
    later = sum("later" in proof for proof in rows)
    print(f"{len(rows)} requirements, {len(rows) - later} proved, {later} later, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
