#!/usr/bin/env python3
"""Shows that each rule of tidy.py fires on a planted violation, and that none fires on a clean tree."""
import pathlib
import tempfile
import unittest

import tidy

CLEAN = {
    "src/base/CMakeLists.txt": "stint_room(base)\n",
    "src/base/clock.h": "#pragma once\n#include <chrono>\n",
    "src/base/clock.cpp": '#include "base/clock.h"\nauto t = std::chrono::steady_clock::now();\n',
    "src/model/state.cpp": '#include "base/clock.h"\nX(const X&) = delete;\nint renew = 1;\n',
    "src/store/sqlite/CMakeLists.txt": "stint_room(store_sqlite DEPS store sqlite)\n"
    "file(GLOB q queries/*.sql migrations/*.sql)\n",
    "src/store/sqlite/migrations/001_first.sql": "SELECT 1;\n",
    "src/store/sqlite/migrate.cpp": "Run(text::k_001_first);\n",
    "src/store/sqlite/queries/claim.sql": "SELECT 1;\n",
    "src/store/sqlite/store.cpp": 'auto sql = "SELECT id FROM task";\n'
    'auto more = R"(\ndelete from x\n// new Thing\n)";\n',
    "src/store/sqlite/wire.h": "#pragma once\nstruct Sent {\n    enum class Kind { kA };\n    Kind kind{};\n"
    "    int F() const { return 1; }\n    Result<std::vector<int>> x, y = {};\n};\n"
    "template <class A>\nvoid Fields(A& a, Sent& x) {\n    a(x.kind, x.x, x.y);\n}\n",
    "src/store/sqlite/wire.cpp": '#include "store/sqlite/wire.h"\n',
    "src/cli/list.cpp": '#include <CLI/CLI.hpp>\nvoid F() { printf("co_await new X"); }\n',
    "include/stint/stint.h": "#pragma once\n#include <string>\n#include <stint/stint.h>\n",
    "tests/chaos/helper.cpp": "// tidy: allow sleep, because this process is meant to be slow\n"
    "void F() { usleep(5); }\n",
    "docs/guide.md": "see below\n```cpp\nx[](int a) {}\n```\n",
    "README.md": "[guide](docs/guide.md), /usr/lib and https://example.org/work/x are fine\n",
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n### Added\n\n## [0.1.0] - 2025-01-31\n",
}

# rule → list of (file, its text, the line that must be named)
PLANTED = {
    "layer": [
        ("src/model/a.cpp", '#include "store/store.h"\n', 1),
        ("src/model/a.cpp", "\n#include <mutex>\n", 2),
        ("src/engine/a.cpp", '#include "sqlite/connection.h"\n', 1),
        ("src/engine/a.cpp", '#include "services/x.h"\n', 1),
        ("src/store/sqlite/a.cpp", '#include "store/postgres/x.h"\n', 1),
        ("src/store/postgres/a.cpp", "#include <sqlite3.h>\n", 1),
        ("src/node/a.cpp", "#include <boost/asio.hpp>\n", 1),
        ("src/cli/a.cpp", '#include "store/store.h"\n', 1),
        ("include/stint/a.h", '#pragma once\n#include "base/clock.h"\n', 2),
        ("include/stint/a.h", "#pragma once\n#include <fmt/format.h>\n", 2),
        ("src/model/CMakeLists.txt", "stint_room(model DEPS base store)\n", 1),
        ("src/attic/CMakeLists.txt", "stint_room(attic)\n", 1),
    ],
    "coroutine": [("src/engine/a.cpp", "co_await x;\n", 1)],
    "clock": [
        ("src/engine/a.cpp", "std::chrono::system_clock::now();\n", 1),
        ("tests/sim/a.cpp", "clock_gettime(CLOCK_REALTIME, &t);\n", 1),
    ],
    "random": [("src/engine/a.cpp", "std::random_device device;\n", 1)],
    "choice": [("src/engine/a.cpp", "(first ? one : other) = {1, 2};\n", 1)],
    "sleep": [
        ("tests/sim/a.cpp", "std::this_thread::sleep_for(1s);\n", 1),
        ("src/engine/a_test.cpp", "usleep(1);\n", 1),
        ("tests/sim/a.cpp", "usleep(1);  // tidy: allow sleep\n", 1),  # no reason given
    ],
    "thread": [("src/engine/a.cpp", "std::thread worker;\n", 1)],
    "env": [("src/engine/a.cpp", 'std::getenv("X");\n', 1)],
    "new": [("src/engine/a.cpp", "auto* x = new Thing();\n", 1)],
    "delete": [("src/engine/a.cpp", "delete x;\n", 1), ("src/engine/a.cpp", "delete[] x;\n", 1)],
    "json": [
        ("src/engine/a.cpp", "return json.dump();\n", 1),
        ("src/engine/a.cpp", "auto x = base::OrderedJson::parse(text);\n", 1),
    ],
    "regex": [("src/engine/a.cpp", "std::regex x;\n", 1)],
    "stdout": [
        ("src/engine/a.cpp", 'printf("x");\n', 1),
        ("src/node/a.cpp", "std::cout << 1;\n", 1),
    ],
    "namespace": [("tests/a.cpp", "using namespace std;\n", 1)],
    "sql": [("src/engine/a.cpp", '/* a\n b */ auto q = "UPDATE task SET state = 1";\n', 2)],
    "width": [("src/engine/a.cpp", "x" * 101 + "\n", 1), ("cmake/a.cmake", "x" * 121 + "\n", 1)],
    "pragma": [("src/engine/a.h", "int x;\n", 1)],
    "nolint": [
        ("src/engine/a.cpp", "int x;  // NOLINT\n", 1),
        ("src/engine/a.cpp", "int x;  // NOLINT(misc-thing)\n", 1),
    ],
    "path": [("docs/guide.md", "built in /wor" "k/main\n", 1)],
    "link": [("docs/guide.md", "see [that](../nowhere.md)\n", 1)],
    "size": [("docs/picture.png", "x" * 1_000_001, 0)],
    "wire": [
        (
            "src/store/sqlite/wire.h",
            "#pragma once\nstruct Sent {\n    int a = 0, b;\n    std::map<int, C> c{};\n};\n"
            "template <class A>\nvoid Fields(A& a, Sent& x) {\n    a(x.a, x.c);\n}\n",
            7,
        ),
    ],
    "changelog": [
        ("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n", 3),
        ("CHANGELOG.md", "## [Unreleased]\n\n### Improved\n", 3),
    ],
    "orphan": [
        ("src/engine/lonely.h", "#pragma once\n", 0),
        ("src/store/sqlite/lonely.sql", "SELECT 1;\n", 0),
        ("src/store/sqlite/migrations/002_lonely.sql", "SELECT 1;\n", 0),
        ("docs/lonely.md", "nobody links here\n", 0),
    ],
}


def complaints(files):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return tidy.Tidy(root).run()


class TidyTest(unittest.TestCase):
    def test_clean_tree_gives_no_complaint(self):
        self.assertEqual(complaints(CLEAN), [])

    def test_each_rule_fires_on_its_planted_violation(self):
        for rule, plants in PLANTED.items():
            for name, text, line in plants:
                with self.subTest(rule=rule, file=name, text=text[:40]):
                    found = complaints({**CLEAN, name: text})
                    wanted = f"{name}:{line}: {rule}: "
                    self.assertTrue(any(f.startswith(wanted) for f in found), f"{wanted} not in {found}")

    def test_every_banned_construct_is_planted_here(self):
        rules = {rule for rule, *_ in tidy.BANNED}
        self.assertEqual(rules - PLANTED.keys(), set())


if __name__ == "__main__":
    unittest.main()
