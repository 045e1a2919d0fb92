#!/usr/bin/env python3
"""House rules as a test: tidy.py [ROOT]. Prints `file:line: rule: what to do instead`; exit 1 if any.

A line may ask for an exception by name and with a reason: `// tidy: allow RULE, because …`,
on that line or the one above it.
"""
import pathlib
import re
import subprocess
import sys

# Which room may include which. A room is the first directory below src/ (two for store/X); a room may
# always include itself and <stint/…>. CMake's DEPS must stay within the same table.
ROOMS = {
    "base": "",
    "model": "base",
    "sqlite": "base",
    "postgres": "base",
    "amqp": "base",
    "http": "base",
    "store": "model base",
    "store/memory": "store model base",
    "store/sqlite": "store sqlite model base",
    "store/postgres": "store postgres model base",
    "wake": "postgres amqp model base",
    "engine": "store wake model base",
    "flow": "engine store wake model base",
    "services": "engine store wake model base",
    "node": "flow services engine store store/memory store/sqlite store/postgres wake sqlite postgres "
    "amqp model base",
    "api": "http node model base",
    "ui": "base",
    "cli": "api ui http node model base",
    "apps": "cli",
}
# Who owns a foreign library: header prefix → rooms (or other top directories) that may include it.
LIBRARIES = {
    "sqlite3.h": "sqlite",
    "libpq-fe.h": "postgres",
    "libpq/": "postgres",
    "boost/": "http",
    "amqp.h": "amqp",
    "curl/": "http",
    "CLI/": "cli",
    "toml++/": "node",
    "date/": "model",
    "spdlog/": "cli apps",
    "prometheus/": "node",
    "openssl/": "base http",
}
# The model is given time, randomness and bytes; it fetches none.
NOT_IN_MODEL = "thread mutex condition_variable future fstream iostream filesystem random unistd.h"

STORES = r"src/(store/(sqlite|postgres|memory)|sqlite|postgres)/"
UNIT_TEST = r".*_(pg)?test\.cpp$"
LIBRARY = r"(src/(?!cli/)|include/)"
ANY, NONE = "", "$^"
SQL = (
    r'"\s*(SELECT\s+[\w*(]|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|ALTER\s+TABLE'
    r"|CREATE\s+(TABLE|INDEX|VIEW)|DROP\s+(TABLE|SCHEMA)|BEGIN\s+IMMEDIATE|PRAGMA\s)"
)
# rule, pattern, what to do instead, the files it applies to, and those among them that are exempt
BANNED = [
    ("coroutine", r"\bco_(await|yield|return)\b", "a plain function: g++ 12 destroys temporaries twice", ANY, NONE),
    ("choice", r"\?[^;?]*:[^;?]*\)\s*=\s*\{", "a reference to the one that is meant: g++ 12 loses members of it",
     ANY, NONE),
    ("clock", r"_clock::now\b|\b(clock_gettime|gettimeofday)\s*\(|(?<![\w.])time\((nullptr|NULL|0)\)",
     "take a base::Clock&", ANY, r"(src/base|bench)/"),
    ("random", r"\bstd::(random_device|mt19937\w*)\b|(?<![\w:.])s?rand\s*\(",
     "take a base::Random&", "(src|include)/", r"src/base/|" + UNIT_TEST),
    ("sleep", r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<!\w)sleep\s*\(\s*\d",
     "wait for a base::TestPoint or the Clock", "(src|include|tests)/", r"src/(base|cli)/"),
    ("thread", r"\bstd::thread\b(?!::)|\bstd::jthread\s*\(|\bstd::jthread \w+\(",
     "base::StartThread: the host's signals are not for our threads", LIBRARY, r"src/base/|" + UNIT_TEST),
    ("env", r"(?<!\w)(secure_)?getenv\s*\(", "options passed in: only node and the doors read configuration",
     LIBRARY, r"src/(node|base)/|" + UNIT_TEST),
    ("new", r"(?<![\w.])new\s+[A-Za-z_(:]", "std::make_unique, or a value", ANY, NONE),
    ("delete", r"(?<![\w.])delete(\[\])?\s+[A-Za-z_*(]", "let a unique_ptr own it", ANY, NONE),
    ("regex", r"\bstd::(regex|wregex|regex_\w+|smatch)\b|#\s*include <regex>",
     "a small parser: std::regex overflows the stack on long input", ANY, NONE),
    ("stdout", r"(?<![\w.])(printf|puts|putchar)\s*\(|\bstd::(cout|cerr)\b|\bfmt::print\s*\(",
     "log through the sink: a library has no output of its own", LIBRARY, UNIT_TEST + r"|src/base/check\.cpp"),
    ("json", r"[.>]dump\(|[jJ]son::parse\(", "base::JsonText, base::ReadJson: compiled once",
     "src/", r"src/base/json\.cpp|" + UNIT_TEST),
    ("namespace", r"\busing namespace std\s*;", "name what is used", ANY, NONE),
    ("sql", SQL, "an operation of store::Store; SQL lives below src/store", LIBRARY, STORES + "|" + UNIT_TEST),
]
# Spelt so that this file does not match itself.
MACHINE = re.compile(r"(?<![\w.])/(wor" r"k|hom" r"e/\w+|Use" r"rs|roo" r"t)/")
NOLINT_WITH_REASON = re.compile(r"NOLINT\w*\([\w\-.,* ]+\):? \S|NOLINTEND")
RELEASE = re.compile(r"## \[(Unreleased\]|\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d)")
CHANGE_KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
TEXT = {".cpp", ".h", ".py", ".cmake", ".txt", ".md", ".sql", ".json", ".toml", ".sh", ".yml", ".in", ""}


class Tidy:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.files = sorted(self.listed())
        self.texts = {}
        for name in self.files:
            path = root / name
            if path.stat().st_size > 1_000_000:
                self.report(name, 0, "size", "more than 1 MB: generate it, or keep it elsewhere")
            elif path.suffix in TEXT:
                self.texts[name] = path.read_text(encoding="utf-8", errors="replace")

    def listed(self):
        """What git tracks or would track; without git, everything but build trees."""
        git = ["git", "-c", f"safe.directory={self.root}", "ls-files", "-co", "--exclude-standard"]
        answer = subprocess.run(git, cwd=self.root, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            names = answer.stdout.splitlines()
        else:
            names = [str(p.relative_to(self.root)) for p in self.root.rglob("*")]
        hidden = re.compile(r"(build|\.git|\.stint)/|.*__pycache__")
        return {n for n in names if not hidden.match(n) and (self.root / n).is_file()}

    def report(self, name, line, rule, advice):
        self.problems.append(f"{name}:{line}: {rule}: {advice}")

    def run(self):
        for name, text in self.texts.items():
            lines = text.splitlines()
            if name.endswith((".cpp", ".h")):
                self.cpp(name, text, lines)
            self.lines(name, lines)
            if name.endswith("CMakeLists.txt"):
                self.cmake(name, text)
            if name.endswith(".md"):
                self.links(name, lines)
            if name == "CHANGELOG.md":
                self.changelog(name, lines)
        self.orphans()
        self.wire()
        return self.problems

    # ---- one file ----

    def lines(self, name, lines):
        width = 100 if name.endswith((".cpp", ".h")) else 120
        may_be_long = name.endswith((".md", ".sql", ".json"))
        for number, line in enumerate(lines, 1):
            too_long = len(line) > width and not may_be_long and "://" not in line
            if too_long and not allowed("width", lines, number):
                self.report(name, number, "width", f"{len(line)} columns; at most {width}")
            if MACHINE.search(line) and not allowed("path", lines, number):
                self.report(name, number, "path", "a path of somebody's machine: make it relative")
            if "NOLINT" in line and width == 100 and not NOLINT_WITH_REASON.search(line):
                self.report(name, number, "nolint", "write NOLINT(check-name): reason")

    def cpp(self, name, text, lines):
        if name.endswith(".h") and "#pragma once" not in text:
            self.report(name, 1, "pragma", "begin the header with #pragma once")
        code = blank_out(text, strings=False).splitlines()
        bare = blank_out(text, strings=True).splitlines()
        for rule, pattern, advice, only, exempt in BANNED:
            if not re.match(only, name) or re.match(exempt, name):
                continue
            regex = re.compile(pattern)
            for number, line in enumerate(code if rule == "sql" else bare, 1):
                if regex.search(line) and not allowed(rule, lines, number):
                    self.report(name, number, rule, "instead: " + advice)
        for number, line in enumerate(code, 1):
            found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if found and not allowed("layer", lines, number):
                self.include(name, number, found.group(1) == '"', found.group(2))

    def include(self, name, number, quoted, header):
        room = room_of(name)
        test = re.search(r"_(pg)?test\.cpp$|_bench\.cpp$", name)
        bound = (room or name.startswith("include/")) and not test
        for prefix, owners in LIBRARIES.items():
            if bound and header.startswith(prefix) and room not in owners.split():
                self.report(name, number, "layer", f"<{header}> belongs to {owners} alone; use that room")
        if name.startswith("include/"):
            foreign = quoted or ("/" in header and not header.startswith(("stint/", "sys/", "nlohmann/")))
            if foreign or (header.startswith("nlohmann/") and not name.endswith(("codec.h", "json.h"))):
                self.report(name, number, "layer", f"public headers include std and <stint/…> only, not {header}")
        if room == "model" and not test and header in NOT_IN_MODEL.split():
            self.report(name, number, "layer", f"model reads no clock, file, thread or random number: not <{header}>")
        if room is None or test or not quoted:
            return
        target = room_of("src/" + header)
        if target and target != room and target in ROOMS and target not in ROOMS.get(room, "").split():
            self.report(name, number, "layer", f"{room} may not include {target} (may: {ROOMS.get(room) or 'nothing'})")

    def cmake(self, name, text):
        for call in re.finditer(r"stint_room\(\s*(\w+)([^)]*)\)", text):
            room = call.group(1).replace("store_", "store/")
            wanted = re.search(r"\bDEPS\s+(.*?)(\bLIBS\b|\bTHREADED|\bTEST_DEPS|\bSUBDIRS|$)", call.group(2), re.S)
            if room not in ROOMS:
                self.report(name, 1, "layer", f"room {room} is not in the table of tools/tidy.py")
                continue
            for dep in wanted.group(1).split() if wanted else []:
                if dep.replace("store_", "store/") not in ROOMS[room].split():
                    self.report(name, 1, "layer", f"{room} may not depend on {dep} (may: {ROOMS[room]})")

    def changelog(self, name, lines):
        sections = [line for line in lines if line.startswith("## ")]
        if not sections or sections[0] != "## [Unreleased]":
            self.report(name, 1, "changelog", "the first section is ## [Unreleased]")
        for number, line in enumerate(lines, 1):
            if line.startswith("## ") and not RELEASE.fullmatch(line):
                self.report(name, number, "changelog", "write ## [1.2.3] - 2025-01-31")
            if line.startswith("### ") and line[4:] not in CHANGE_KINDS:
                self.report(name, number, "changelog", "one of " + ", ".join(sorted(CHANGE_KINDS)))

    def links(self, name, lines):
        code = False
        for number, line in enumerate(lines, 1):
            code ^= line.lstrip().startswith("```")
            if code:
                continue
            for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", re.sub(r"`[^`]*`", "", line)):
                if "://" not in target and not (self.root / name).parent.joinpath(target).exists():
                    self.report(name, number, "link", f"there is no {target}")

    # ---- the tree ----

    def orphans(self):
        included = set()
        for text in self.texts.values():
            included.update(re.findall(r'#\s*include\s*[<"]([^>"]+)[>"]', text))
        included_names = {pathlib.PurePath(header).name for header in included}
        prose = "\n".join(t for n, t in self.texts.items() if not n.endswith((".h", ".cpp", ".sql")))
        pages = {n: t for n, t in self.texts.items() if n.endswith((".md", ".py", ".cmake", "CMakeLists.txt"))}
        for name in self.files:
            path = pathlib.PurePath(name)
            if path.suffix == ".h" and not name.startswith("include/") and path.name not in included_names:
                self.report(name, 0, "orphan", "no file includes this header")
            if path.suffix == ".sql" and not self.sql_is_used(path, prose):
                self.report(name, 0, "orphan", "no CMakeLists.txt, script or page names this file")
            if path.suffix == ".sql" and path.parent.name == "migrations" and not self.migration_is_run(path):
                self.report(name, 0, "orphan", "no source beside it names this migration: it would never run")
            if path.suffix == ".md" and name.startswith("docs/") and path.name != "README.md":
                if not any(path.name in text for page, text in pages.items() if page != name):
                    self.report(name, 0, "orphan", "no other page links to this one")

    def wire(self):
        """What Fields() leaves out of a struct is lost on the way to the owner of a SQLite file."""
        structs = {}
        for name, text in self.texts.items():
            if name.endswith(".h") and name.startswith(("src/", "include/")):
                for struct, members in structs_of(blank_out(text, strings=True)):
                    structs.setdefault(struct, []).append(members)
        for name, text in self.texts.items():
            if not re.match(r"src/store/sqlite/wire\w*\.h$", name):
                continue
            for found in re.finditer(r"\bFields\(A& a, ([\w:]+)& x\) \{(.*?)\n\}", text, re.S):
                sent = set(re.findall(r"\bx\.(\w+)", found.group(2)))
                # Of several structs of one name, the one that has what is sent.
                for members in structs.get(found.group(1).split("::")[-1], []):
                    left_out = [m for m in members if m not in sent] if sent <= set(members) else []
                    if left_out:
                        line = text.count("\n", 0, found.start()) + 1
                        self.report(name, line, "wire", f"send {', '.join(left_out)} of {found.group(1)} as well")

    def migration_is_run(self, path):
        beside = path.parent.parent
        sources = [t for n, t in self.texts.items() if n.endswith(".cpp") and pathlib.PurePath(n).parent == beside]
        return any(re.search(rf"\b(k_)?{path.stem}\b", text) for text in sources)

    def sql_is_used(self, path, prose):
        if path.name in prose or path.stem in prose:
            return True
        # Listed by a glob, such as queries/*.sql, in a CMakeLists.txt above it.
        for above in path.parents:
            text = self.texts.get(str(above / "CMakeLists.txt"), "")
            if re.search(re.escape(str(path.parent.relative_to(above))) + r"/[^\s)]*\*[^\s)]*\.sql", text):
                return True
        return False


def room_of(name):
    """The room of a file below src/, or the top directory for apps; None where rooms do not apply."""
    parts = pathlib.PurePath(name).parts
    if parts[0] == "apps":
        return "apps"
    if parts[0] != "src" or len(parts) < 3:
        return None
    return "/".join(parts[1:3]) if parts[1] == "store" and len(parts) > 3 else parts[1]


def structs_of(code):
    """The structs of a header without comments, each with the names of its data members."""
    for found in re.finditer(r"\bstruct (\w+)[^{};()]*\{", code):
        depth, body = 1, ""
        for char in code[found.end() :]:
            depth += (char == "{") - (char == "}")
            if depth == 0:
                break
            body += char if depth == 1 and char != "}" else " "
        members = []
        for statement in body.split(";"):
            if re.match(r"\s*(using|enum|struct|static|friend|template)\b", statement) or "operator" in statement:
                continue
            words, less = "", statement
            while words != less:
                words, less = less, re.sub(r"<[^<>]*>", " ", less)
            words = re.sub(r"=[^,]*", " ", words)
            if "(" in words:
                continue
            members += [parts[-1] for one in words.split(",") if (parts := re.findall(r"\w+", one))]
        yield found.group(1), members


def allowed(rule, lines, number):
    """Whether this line, or the one above it, asks for an exception and says why."""
    near = "\n".join(lines[max(0, number - 2) : number])
    return re.search(rf"tidy: allow {rule}\b[,:]? \S+ \S", near) is not None


def blank_out(text, strings):
    """The text without its comments, and if asked without what is in strings; lines stay in place."""
    def replace(found):
        token = found.group(0)
        if token.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", token)
        if token.startswith("'") or not strings:
            return token
        return '""' + "\n" * token.count("\n")

    include = r'(?m:^\s*#\s*include[^\n]*)'
    token = r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/'
    parts = re.split(f"({include})", text)
    return "".join(p if i % 2 else re.sub(token, replace, p, flags=re.S) for i, p in enumerate(parts))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    problems = Tidy(root).run()
    print("\n".join(problems) if problems else "tidy: no complaints")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
