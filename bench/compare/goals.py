"""What was aimed at, and whether it was met."""
import dataclasses

import parts
import plan
import stats
from parts import OURS, fastest_peer, select, versus


@dataclasses.dataclass(frozen=True)
class Goal:
    what: str  # with sizes of the run in it
    workload: str
    figure: str
    bound: float
    against: str = ""  # "peer", a limit, or nothing: the figure itself is meant
    case: str = ""
    more: bool = True  # at least that much; else at most
    unit: str = " ×"
    own: tuple = ()  # where the figure is a ratio of two figures of ours: their names, and what the second is

    def text(self):
        if self.unit == "yes":
            return "yes"
        return f"{'≥' if self.more else '≤'} {self.bound:g}{self.unit}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A goal in one run."""

    goal: Goal
    ours: str  # our figure
    name: str  # against what
    theirs: str  # its figure
    found: stats.Spread
    met: bool


def pins():
    names = ("last_tasks_per_s", "first_tasks_per_s", "the first tenth")
    kinds = (("snapshot", "an old snapshot"), ("xid", "a transaction with an id"), ("dump", "a dump"))
    return [Goal(f"held by {words}, last tenth of {{pinned_seconds}} s", "pinned", "ratio", 0.95, case=kind, own=names)
            for kind, words in kinds]


def drains():
    return [goal for case in ("1 process", "2 processes") for goal in (
        Goal(f"drain, {case}", "drain", "tasks_per_s", 1.5, "peer", case),
        Goal(f"drain, {case}", "drain", "tasks_per_s", 0.7, "our_writes", case))]


ALL = [
    *drains(),
    Goal("bulk submit", "submit", "tasks_per_s", 1.5, "peer"),
    Goal("bulk submit", "submit", "tasks_per_s", 0.5, "copy"),
    Goal("single submits, 16 callers", "callers", "tasks_per_s", 1.5, "single_commits"),
    Goal("latency, median", "latency", "p50_ms", 1.5, "insert_notify", more=False),
    Goal("latency, median", "latency", "p50_ms", 0.5, "peer", more=False),
    Goal("latency, p99", "latency", "p99_ms", 0.5, "peer", more=False),
    Goal("open loop at 5,000/s, p99", "openloop", "p99_ms", 50, case="5,000/s", more=False, unit=" ms"),
    Goal("open loop at 5,000/s, keeps up", "openloop", "keeps_up", 1, case="5,000/s", unit="yes"),
    Goal("backlog of {large:,}", "backlog", "ratio", 0.95, own=("large_per_s", "small_per_s", "a short backlog")),
    Goal("beside {future:,} that are not due", "future", "ratio", 0.95,
         own=("future_per_s", "small_per_s", "without them")),
    *pins(),
    Goal("a resource on every task", "resources", "ratio", 0.85,
         own=("with_tasks_per_s", "without_tasks_per_s", "the same without")),
    Goal("SQLite drain", "sqlite", "tasks_per_s", 0.5, "sqlite_drain", "drain"),
    Goal("SQLite, 16 callers", "sqlite", "tasks_per_s", 5, "sqlite_insert", "16 callers"),
    Goal("idle worker, statements", "idle", "statements_per_min", 30, more=False, unit=" a minute"),
    Goal("idle worker, processor", "idle", "cpu_percent", 0.1, more=False, unit=" % of a core"),
    *[Goal(f"memory of a worker, {{memory_slots}} slots, {{memory_tasks:,}} waiting, {store}", "memory",
           "worker_rss_mib", 64, case=store, more=False, unit=" MiB") for store in ("PostgreSQL", "SQLite")],
    # The benchmark's own process: it has opened the file first, and the worker asks it.
    Goal("memory of the process that serves the file, {memory_tasks:,} waiting, SQLite", "memory", "client_rss_mib", 64,
         case="SQLite", more=False, unit=" MiB"),
]


def spread_of(results, server, goal, contender, figure):
    records = select(results, server, goal.workload, goal.case, contender)
    return stats.spread(stats.figures(records, figure).values())


def outcome(results, server, goal):
    found = ours = spread_of(results, server, goal, OURS, goal.figure)
    name, theirs = "", None
    if goal.own:
        ours, theirs = (spread_of(results, server, goal, OURS, figure) for figure in goal.own[:2])
        name = goal.own[2]
    elif goal.against:
        other = ("limit", goal.against, "")
        name = plan.LIMITS.get(goal.against, "fastest peer on PostgreSQL, tuned")
        if goal.against == "peer":
            other = fastest_peer(results, server, goal.workload, goal.case, goal.figure, goal.more)
            name += f" ({plan.label(*other)})" if other else ""
        theirs = spread_of(results, server, goal, other, goal.figure) if other else None
        found = versus(results, server, goal.workload, goal.case, goal.figure, other)
    elif goal.unit != "yes":  # not part of the goal, but good to know
        other = fastest_peer(results, server, goal.workload, goal.case, goal.figure, goal.more)
        if other:
            name, theirs = plan.label(*other), spread_of(results, server, goal, other, goal.figure)
    worst = found.low if found and goal.unit == "yes" else found and found.median
    met = found and (worst >= goal.bound if goal.more else worst <= goal.bound)
    return Outcome(goal, figure_text(ours, goal), name, figure_text(theirs, goal), found, met)


def suffix_of(goal):
    figure = goal.own[0] if goal.own else goal.figure
    if goal.unit not in (" ×", "yes"):
        return goal.unit
    return "/s" if figure.endswith("_per_s") else " ms" if figure.endswith("_ms") else ""


def figure_text(found, goal):
    if found is None:
        return "–"
    return words(found) if goal.unit == "yes" else stats.text(found.median) + suffix_of(goal)


def words(found):
    return "yes" if found.low else "not always" if found.high else "no"


def measured(row):
    if row.found and row.goal.unit == "yes":
        return words(row.found)
    return stats.spread_text(row.found, row.goal.unit)


def table(all_parts, server):
    """A line per goal, and per part that measured it. A ratio is always of one part."""
    those = parts.with_server(all_parts, server)
    heads = ["what", "Stint", "against", "which has", "goal", "measured", "met"]
    heads += ["taken"] if len(those) > 1 else []
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for goal in ALL:
        rows = [(part, outcome(part, server, goal)) for part in those]
        rows = [(part, row) for part, row in rows if row.ours != "–"] or rows[:1]
        for part, row in rows:
            word = "–" if row.found is None else "yes" if row.met else "**no**"
            what = goal.what.format(**{**plan.FULL, **part["sizes"]})
            cells = [what, row.ours, row.name, row.theirs, goal.text(), measured(row), word]
            cells += [part["taken"] if row.found else "–"] if len(those) > 1 else []
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
