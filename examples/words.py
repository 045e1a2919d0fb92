#!/usr/bin/env python3
"""A task in any language: its input is JSON on standard input, its result on standard output."""
import json
import pathlib
import sys

file = json.load(sys.stdin)["file"]
words = pathlib.Path(file).read_text(encoding="utf-8").split()
print(json.dumps({"file": file, "words": len(words)}))
