#!/usr/bin/env python3
"""Installs this build into a fresh prefix and builds and runs an outside project against it."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **options):
    """Runs a command; ends the test with its output when it fails."""
    done = subprocess.run(
        list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options
    )
    if done.returncode:
        sys.exit(f"$ {' '.join(map(str, command))}\n{done.stdout}\nexit {done.returncode}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--build", required=True, help="build tree to install")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--flags", default="", help="what the library was compiled with: sanitizers")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="stint-install.") as scratch:
        prefix, outside = pathlib.Path(scratch) / "prefix", pathlib.Path(scratch) / "outside"
        run(options.cmake, "--install", options.build, "--prefix", prefix)
        headers = [str(path.relative_to(prefix)) for path in prefix.rglob("*.h")]
        strays = [name for name in headers if not name.startswith("include/stint/")]
        if strays or not headers:
            sys.exit(f"only include/stint is public, but installed: {strays or 'no header at all'}")
        print(run(prefix / "bin/stint", "version"), end="")

        run(
            options.cmake, "-S", HERE / "outside", "-B", outside, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.compiler}",
            f"-DCMAKE_CXX_FLAGS={options.flags}",
        )
        run(options.cmake, "--build", outside)
        said = run(outside / "outside", outside / "outside.db", timeout=120)
        if said != "hello, outside\n":
            sys.exit(f"the outside program said: {said!r}")
        print(said, end="")


main()
