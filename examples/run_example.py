#!/usr/bin/env python3
"""Runs an example in an empty directory and compares what it prints.

run_example.py BINARY EXPECTED [--stop-after TEXT]: with --stop-after the program is sent SIGTERM
once it has printed that line, and must then end with exit code 0.
"""
import argparse
import pathlib
import signal
import subprocess
import sys
import tempfile


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("expected")
    parser.add_argument("--stop-after")
    args = parser.parse_args()
    wanted = pathlib.Path(args.expected).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [pathlib.Path(args.binary).resolve()], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        printed = []
        for line in process.stdout:
            printed.append(line)
            if args.stop_after and args.stop_after in line:
                process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
    got = "".join(line.rstrip() + "\n" for line in printed)
    if code != 0 or got != wanted:
        print(f"exit code {code}\n--- wanted\n{wanted}--- got\n{got}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
