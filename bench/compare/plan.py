"""What is measured, against whom, how large."""
import dataclasses

PEERS = {
    # key: label, whether it keeps its tasks in PostgreSQL
    "graphile": ("Graphile Worker", True),
    "pgboss": ("pg-boss", True),
    "bullmq_postgres": ("BullMQ on PostgreSQL", True),
    "dbos": ("DBOS", True),
    "bullmq": ("BullMQ on Redis, fsync always", False),
}
LIMITS = {
    "our_writes": "our writes in a SQL loop",
    "copy": "COPY of the same rows",
    "single_commits": "single-row commits, 16 clients",
    "single_commits_notify": "the same with NOTIFY",
    "insert_notify": "INSERT + NOTIFY seen",
    "sqlite_drain": "SQLite claim + update, batches of 100",
    "sqlite_insert": "SQLite, an fsync per insert",
}
MODES = ("tuned", "default")


@dataclasses.dataclass(frozen=True)
class Workload:
    key: str
    title: str
    figure: str  # what is compared, by its name in the records
    unit: str
    more_is_better: bool
    note: str
    limits: tuple = ()
    peers: tuple = tuple(PEERS)
    rounds: int = 99  # no more than that
    default_rounds: int = 99  # of the peers in their defaults
    more_figures: tuple = ()  # further columns: (name in the records, heading)


ALL = [
    Workload(
        "drain", "Drain", "tasks_per_s", "tasks/s", True,
        "{tasks:,} no-op tasks wait; from the first handler until the store says that none is unfinished.",
        limits=("our_writes",),
    ),
    Workload(
        "submit", "Bulk submit", "tasks_per_s", "tasks/s", True,
        "{submit_tasks:,} tasks from one caller, in batches as large as each likes best.",
        limits=("copy",),
    ),
    Workload(
        "callers", "Single submits from 16 callers", "tasks_per_s", "tasks/s", True,
        "16 callers in one process, each waiting for its acknowledged task before the next.",
        limits=("single_commits", "single_commits_notify"),
    ),
    Workload(
        "latency", "Latency on an empty queue", "p50_ms", "ms, median", False,
        "From the call of a submit to the start of the handler in another process.",
        limits=("insert_notify",), more_figures=(("p99_ms", "p99, ms"),),
    ),
    Workload(
        "openloop", "Open loop", "p99_ms", "ms, p99", False,
        "Single submits at a fixed rate whatever happens; delays count from when each was due.",
        rounds=3, default_rounds=1,
        more_figures=(("p50_ms", "p50, ms"), ("accepted_per_s", "accepted/s"), ("keeps_up", "keeps up")),
    ),
    Workload(
        "backlog", "A long backlog", "ratio", "of the rate with a short one", True,
        "The rate over the first {target:,} tasks of {large:,}, divided by that of {small:,}.",
        rounds=2, default_rounds=1,
        more_figures=(("small_per_s", "short, tasks/s"), ("large_per_s", "long, tasks/s")),
    ),
    Workload(
        "pinned", "A pinned horizon", "ratio", "of the first window's rate", True,
        "Submits and drains for {pinned_seconds} s under an old snapshot; the last {window} s by the first.",
        peers=tuple(k for k, (_, postgres) in PEERS.items() if postgres), rounds=1, default_rounds=1,
        more_figures=(("tasks_per_s", "tasks/s on average"),),
    ),
    Workload(
        "idle", "An idle worker", "statements_per_min", "statements a minute", False,
        "What one worker process sends in {idle_seconds} s without tasks.", rounds=1, default_rounds=1,
        more_figures=(("cpu_percent", "% of a core"),),
    ),
    Workload(
        "sqlite", "SQLite", "tasks_per_s", "tasks/s", True,
        "The same drain and the same 16 callers on a file, WAL, synchronous=FULL.",
        peers=(), limits=("sqlite_drain", "sqlite_insert"),
    ),
    Workload(
        "resources", "One resource on every task", "ratio", "of the rate without", True,
        "A resource of capacity 64 that every task needs.", peers=(), rounds=3,
    ),
]
WORKLOADS = {w.key: w for w in ALL}

FULL = {
    "rounds": 5, "tasks": 100_000, "drain_seconds": 12, "submit_tasks": 100_000, "submit_seconds": 8,
    "callers_tasks": 60_000, "callers_seconds": 3, "latency_tasks": 500, "rates": (500, 1000, 2000, 5000),
    "openloop_seconds": 20, "small": 30_000, "large": 1_000_000, "target": 20_000, "pinned_seconds": 80,
    "window": 10, "idle_seconds": 60, "idle_settle": 10, "warm_mb": 1500, "loop_batch": 1000,
}
# Everything once around, to see whether it works: the figures mean nothing.
QUICK = {
    "rounds": 2, "tasks": 2_000, "drain_seconds": 4, "submit_tasks": 2_000, "submit_seconds": 3,
    "callers_tasks": 500, "callers_seconds": 1, "latency_tasks": 30, "rates": (100, 200),
    "openloop_seconds": 2, "small": 1_000, "large": 3_000, "target": 500, "pinned_seconds": 4,
    "window": 2, "idle_seconds": 5, "idle_settle": 2, "warm_mb": 0, "loop_batch": 500,
}
# Ours, tuned: `stint bench` as it comes. More slots and larger batches were measured and are slower.
OURS_TUNED = {}


def cases(workload, sizes):
    """The variants of a workload, each compared on its own."""
    if workload.key == "drain":
        return ("1 process", "2 processes")
    if workload.key == "openloop":
        return tuple(f"{rate:,}/s" for rate in sizes["rates"])
    if workload.key == "sqlite":
        return ("drain", "16 callers")
    return ("",)


def contenders(workload, case):
    """Who takes part: (kind, key, mode), ours first."""
    ours = [("ours", "stint", "tuned")]
    if workload.key in ("drain", "latency", "openloop"):
        ours.append(("ours", "stint", "default"))
    limits = workload.limits
    if workload.key == "sqlite":
        limits = ("sqlite_drain",) if case == "drain" else ("sqlite_insert",)
    peers = [("peer", key, mode) for key in workload.peers for mode in MODES]
    return ours + peers + [("limit", key, "") for key in limits]


def label(kind, key, mode):
    if kind == "limit":
        return LIMITS[key]
    name = "Stint" if kind == "ours" else PEERS[key][0]
    return name if mode == "tuned" else f"{name}, defaults"


def schedule(workload, sizes):
    """(round, case, contender) in the order in which they are run: rounds interleaved, each round begun by another."""
    everyone = [(case, c) for case in cases(workload, sizes) for c in contenders(workload, case)]
    for number in range(1, min(sizes["rounds"], workload.rounds) + 1):
        turn = (number - 1) * len(everyone) // max(1, sizes["rounds"])
        for case, contender in everyone[turn:] + everyone[:turn]:
            if contender[0] == "peer" and contender[2] == "default" and number > workload.default_rounds:
                continue
            yield number, case, contender
