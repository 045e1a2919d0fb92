#!/usr/bin/env python3
"""The documents do what they say: runs marked commands, compares marked code with its file.

In README.md and docs/**/*.md:

    <!-- run -->                       the sh block after it is run, line by line, and must succeed
    <!-- file: examples/hello.cpp -->  the cpp block after it must equal that file; with a #name behind
                                       the path, the lines between // [name] and // [name]

Commands of one page run in one fresh directory that links the clone's files; `stint` is found in the
first --bin directory that has it. A line that ends in a backslash continues. A leading "$ " is cut.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

MARKED = re.compile(r"<!--\s*(run|file:\s*(\S+))\s*-->\s*\n+```(\w+)\n(.*?)^```", re.S | re.M)
SECONDS_PER_COMMAND = 240


def blocks(text):
    """Yields (line, kind, file or None, language, body) for each marked block."""
    for found in MARKED.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        kind = "run" if found.group(1) == "run" else "file"
        yield line, kind, found.group(2), found.group(3), found.group(4)


def markers_without_block(text):
    """A marker that no code block follows would pass silently."""
    marked = len(list(MARKED.finditer(text)))
    return len(re.findall(r"<!--\s*(?:run|file:\s*\S+)\s*-->", text)) - marked


def commands(body):
    """The lines of a shell block, continuation lines joined, prompts and comments cut."""
    joined = re.sub(r"\\\n\s*", " ", body)
    lines = (re.sub(r"^\$ ", "", line.strip()) for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def region(text, name):
    """The whole text, or what stands between two `// [name]` lines, indentation removed."""
    if not name:
        return text
    parts = re.split(rf"^[ \t]*// \[{re.escape(name)}\][ \t]*\n", text, flags=re.M)
    if len(parts) != 3:
        raise ValueError(f"needs two lines // [{name}], has {len(parts) - 1}")
    lines = parts[1].splitlines()
    indent = min((len(l) - len(l.lstrip()) for l in lines if l.strip()), default=0)
    return "\n".join(l[indent:] for l in lines)


def compare(root, file, body):
    """What differs between a quoted block and its file, or None."""
    path, _, name = file.partition("#")
    try:
        wanted = region((root / path).read_text(encoding="utf-8"), name)
    except (OSError, ValueError) as error:
        return f"{file}: {error}"
    tidy = lambda text: [line.rstrip() for line in text.strip().splitlines()]
    if tidy(wanted) != tidy(body):
        return f"differs from {file}"
    return None


def run(command, directory, environment):
    """Runs one line with its own process group, so that nothing it started stays behind."""
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=directory, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    try:
        output, _ = process.communicate(timeout=SECONDS_PER_COMMAND)
        status = process.returncode
    except subprocess.TimeoutExpired:
        output, status = f"no end after {SECONDS_PER_COMMAND} s", 124
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return status, output


def check_page(root, page, environment):
    """Returns (problems, number of commands run, number of blocks compared)."""
    text = page.read_text(encoding="utf-8")
    problems, ran, compared = [], 0, 0
    name = page.relative_to(root)
    if markers_without_block(text):
        problems.append(f"{name}: a marker without a code block right behind it")
    with tempfile.TemporaryDirectory(prefix="stint-readme.") as scratch:
        for entry in root.iterdir():
            # The clone's files are there to be used; what commands write stays out of the clone.
            if entry.name not in (".git", ".stint"):
                (pathlib.Path(scratch) / entry.name).symlink_to(entry)
        for line, kind, file, language, body in blocks(text):
            if kind == "file":
                compared += 1
                difference = compare(root, file, body)
                if difference:
                    problems.append(f"{name}:{line}: {difference}")
                continue
            if language not in ("sh", "bash", "console"):
                problems.append(f"{name}:{line}: only sh blocks can be run, not {language}")
                continue
            for command in commands(body):
                ran += 1
                status, output = run(command, scratch, environment)
                print(f"$ {command}\n{output}", end="")
                if status:
                    problems.append(f"{name}:{line}: exit {status}: {command}")
                    break
    return problems, ran, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--bin", type=pathlib.Path, action="append", default=[])
    options = parser.parse_args()
    root = options.root.resolve()
    pages = [page for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if page.exists()]
    marked = [page for page in pages if re.search("<!--\\s*(run|file:)", page.read_text(encoding="utf-8"))]
    if not marked:
        print("no page has marked blocks yet")
        return 77
    binaries = [directory for directory in options.bin if (directory / "stint").exists()][:1]
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([*map(str, binaries), environment["PATH"]])
    environment.pop("STINT_STORE", None)
    problems, ran, compared = [], 0, 0
    for page in marked:
        wrong, commands_run, blocks_compared = check_page(root, page, environment)
        problems += wrong
        ran += commands_run
        compared += blocks_compared
    print("\n".join(problems))
    print(f"{ran} commands run, {compared} blocks compared, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
