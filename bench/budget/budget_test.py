#!/usr/bin/env python3
"""Counts the instructions that one task costs, and compares them with what is written in budget.json.

budget_test.py --bin DIR            fails when a store's figure is more than SLACK above its budget
budget_test.py --bin DIR --write    writes what was counted

Seconds say little on a machine that others use; instructions are the same each time. Two runs of
different length are counted and the difference is taken, so that starting and stopping cost nothing.
Counted with callgrind, in user space, of a release build; exit code 77 (skipped) without either.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUDGET = HERE / "budget.json"
SLACK = 0.15  # compilers and libraries differ a little
FEW, MANY = 200, 1200


def instructions(program, store, tasks):
    ran = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, store, str(tasks)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    counted = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode != 0 or not counted:
        raise SystemExit(f"task_budget {store} {tasks} failed under callgrind:\n{ran.stderr[-2000:]}")
    return int(counted.group(1))


def per_task(program, store):
    return (instructions(program, store, MANY) - instructions(program, store, FEW)) // (MANY - FEW)


def judge(store, counted, allowed):
    """What is wrong with the figure, or None."""
    if counted > allowed * (1 + SLACK):
        return (
            f"{store}: {counted} instructions per task, {counted / allowed:.2f} times the budget of {allowed}. "
            f"Find what was added (valgrind --tool=callgrind), or, if it is worth that, raise {BUDGET.name}"
        )
    if counted < allowed * (1 - 2 * SLACK):
        return f"{store}: {counted} instructions per task, far below the budget of {allowed}: lower it (--write)"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    program = args.bin / "task_budget"
    if not program.exists() or not shutil.which("valgrind"):
        print("skipped: needs valgrind and a release build with the target task_budget")
        return 77
    budget = json.loads(BUDGET.read_text())
    problems = []
    for store, allowed in budget.items():
        counted = per_task(program, store)
        print(f"{store}: {counted} instructions per task (budget {allowed})")
        if args.write:
            budget[store] = counted
        elif problem := judge(store, counted, allowed):
            problems.append(problem)
    if args.write:
        BUDGET.write_text(json.dumps(budget, indent=4) + "\n")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
