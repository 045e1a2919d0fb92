#!/usr/bin/env python3
"""Shows that the document tests can fail: each kind of mistake is planted and must be found."""
import importlib.util
import pathlib
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


requirements = load(TESTS / "docs/requirements_test.py")
readme = load(TESTS / "readme/readme_test.py")


def full_table(**changed):
    rows = []
    for part, last in requirements.LAST.items():
        for number in range(1, last + 1):
            item = f"{part}.{number}"
            rows.append(changed.get(item.replace(".", "_"), f"| {item} | words | later |"))
    return "\n".join(row for row in rows if row)


class Requirements(unittest.TestCase):
    def problems(self, **changed):
        return requirements.check(full_table(**changed), {"Claim.Skips", "Claim.Takes"}, {"tidy"})

    def test_full_table_is_accepted(self):
        self.assertEqual(self.problems(), [])

    def test_existing_proofs_are_accepted(self):
        self.assertEqual(self.problems(S1_7="| S1.7 | w | `Claim.Skips`, tidy, Claim.* |"), [])

    def test_missing_item_is_found(self):
        self.assertIn("missing: S2.90", self.problems(S2_90=""))

    def test_unknown_case_is_found(self):
        self.assertIn("no test", self.problems(S0_1="| S0.1 | w | Claim.Sings |")[0])

    def test_unknown_suite_and_entry_are_found(self):
        self.assertEqual(len(self.problems(S0_1="| S0.1 | w | Sing.*, song |")), 2)

    def test_missing_proof_is_found(self):
        self.assertIn("names no proof", self.problems(S0_1="| S0.1 | w |  |")[0])

    def test_double_and_surplus_items_are_found(self):
        found = self.problems(S0_1="| S0.1 | w | later |\n| S0.1 | w | later |\n| S0.99 | w | later |")
        self.assertEqual(len(found), 2, found)

    def test_cases_are_found_in_sources(self):
        text = "TEST(A, B) {\nTYPED_TEST(C,\n    D) {\n// TEST(E, F)\n"
        self.assertEqual([".".join(c) for c in requirements.CASE.findall(text)], ["A.B", "C.D"])


class Readme(unittest.TestCase):
    def check(self, page, files=None):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, text in (files or {}).items():
                (root / name).write_text(text, encoding="utf-8")
            (root / "README.md").write_text(page, encoding="utf-8")
            return readme.check_page(root, root / "README.md", {"PATH": "/usr/bin:/bin"})

    def test_commands_run_in_order_in_one_directory(self):
        page = "<!-- run -->\n```sh\necho a >x\n$ test \\\n  -e x\n# no\n```\n"
        self.assertEqual(self.check(page), ([], 2, 0))

    def test_failing_command_is_found(self):
        problems, _, _ = self.check("<!-- run -->\n```sh\nfalse | cat\n```\n")
        self.assertIn("exit 1: false | cat", problems[0])

    def test_unmarked_block_is_not_run(self):
        self.assertEqual(self.check("```sh\nfalse\n```\n"), ([], 0, 0))

    def test_marker_without_block_is_found(self):
        self.assertEqual(len(self.check("<!-- run -->\nwords\n")[0]), 1)

    def test_equal_file_and_region_are_accepted(self):
        files = {"a.cpp": "int a;\n", "b.cpp": "x\n    // [r]\n    int b;\n    // [r]\n"}
        page = "<!-- file: a.cpp -->\n```cpp\nint a;\n```\n<!-- file: b.cpp#r -->\n```cpp\nint b;\n```\n"
        self.assertEqual(self.check(page, files), ([], 0, 2))

    def test_other_content_is_found(self):
        problems, _, _ = self.check("<!-- file: a.cpp -->\n```cpp\nint b;\n```\n", {"a.cpp": "int a;\n"})
        self.assertIn("differs from a.cpp", problems[0])

    def test_missing_region_and_file_are_found(self):
        page = "<!-- file: a.cpp#r -->\n```cpp\nx\n```\n<!-- file: c.cpp -->\n```cpp\nx\n```\n"
        self.assertEqual(len(self.check(page, {"a.cpp": "x\n"})[0]), 2)


if __name__ == "__main__":
    unittest.main()
