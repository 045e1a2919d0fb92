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
PINS = ("snapshot", "xid", "dump")


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
    by_case: str = ""  # ours alone, in one table with a row per case: what its first column is called


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
        "Single submits at a fixed rate whatever happens, for {peer_openloop_seconds} s, ours at the highest rate for "
        "{openloop_seconds} s; delays count from when each was due.",
        rounds=3, default_rounds=1,
        more_figures=(("p50_ms", "p50, ms"), ("accepted_per_s", "accepted/s"), ("keeps_up", "keeps up")),
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
    Workload(
        "backlog", "A long backlog", "ratio", "of the rate with a short one", True,
        "The rate over the first {target:,} tasks of {large:,} ({peer_large:,} of the peers), divided by that of "
        "{small:,}.",
        rounds=2, default_rounds=1,
        more_figures=(("small_per_s", "short, tasks/s"), ("large_per_s", "long, tasks/s")),
    ),
    Workload(
        "pinned", "A pinned horizon", "ratio", "of the first window's rate", True,
        "Submits and drains while somebody holds on: an idle transaction with a snapshot, one with a transaction id, "
        "or one that has locked every table as a dump does. Ours for {pinned_seconds} s, the last tenth by the first; "
        "peers under a snapshot for {peer_pinned_seconds} s, the last {window} s by the first.",
        peers=tuple(k for k, (_, postgres) in PEERS.items() if postgres), rounds=1, default_rounds=1,
        more_figures=(("tasks_per_s", "tasks/s on average"),),
    ),
    Workload(
        "idle", "An idle worker", "statements_per_min", "statements a minute", False,
        "What one worker process does in {idle_seconds} s without tasks; peers in {peer_idle_seconds} s.",
        rounds=1, default_rounds=1, more_figures=(("cpu_percent", "% of a core"),),
    ),
    Workload(
        "memory", "Memory of a worker", "worker_rss_mib", "MiB at the most", False,
        "A worker with {memory_slots} slots that has finished the first {memory_first:,} of {memory_tasks:,} tasks.",
        peers=(), rounds=1, by_case="store", more_figures=(("tasks_per_s", "tasks/s"),),
    ),
    Workload(
        "future", "Beside tasks that are not due", "ratio", "of the rate without them", True,
        "Backlogs of three times {small:,}, one after the other, beside {future:,} tasks that are due tomorrow, by the "
        "rate of those without them, before and after.",
        peers=(), rounds=1,
        more_figures=(("small_per_s", "without, tasks/s"), ("future_per_s", "beside them, tasks/s")),
    ),
    Workload(
        "processes", "Worker processes", "tasks_per_s", "tasks/s", True,
        "A drain of {tasks:,} by more and more worker processes, beside their server on the same processors.",
        peers=(), rounds=3, by_case="worker processes",
        more_figures=(
            ("server_us", "server, µs of a processor per task"), ("worker_us", "workers, µs per task"),
            ("machine_percent", "% of the machine's processor time")),
    ),
    Workload(
        "sizes", "Number of tasks", "tasks_per_s", "drained, tasks/s", True,
        "All are submitted, in batches of 1,000 by one caller, then drained by one worker process; where more than "
        "{size_first:,} wait, the first {size_first:,} of them.",
        peers=(), rounds=2, by_case="waiting",
        more_figures=(("complete", "of them drained"), ("submit_tasks_per_s", "submitted, tasks/s"),
                      ("server_us", "server, µs of a processor per task")),
    ),
]
WORKLOADS = {w.key: w for w in ALL}

# What is measured of ours has the size that its goal names; peer_… is what peers get where theirs may be smaller.
FULL = {
    "rounds": 5, "default_rounds": 5, "default_rates": 4,
    "tasks": 100_000, "drain_seconds": 12, "loop_batch": 1000,
    "submit_tasks": 100_000, "submit_seconds": 8, "callers_tasks": 60_000, "callers_seconds": 3, "latency_tasks": 500,
    "rates": (500, 1000, 2000, 5000), "openloop_seconds": 60, "peer_openloop_seconds": 20,
    "small": 30_000, "large": 1_000_000, "peer_large": 1_000_000, "target": 20_000, "future": 10_000_000,
    "pinned_seconds": 600, "peer_pinned_seconds": 80, "window": 10,
    "idle_seconds": 300, "idle_settle": 12, "peer_idle_seconds": 60, "peer_idle_settle": 10, "warm_mb": 1500,
    "memory_tasks": 1_000_000, "memory_first": 200_000, "memory_slots": 100, "processes": (1, 2, 4, 8),
    "postgres_sizes": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
    "sqlite_sizes": (1_000, 10_000, 100_000, 1_000_000), "size_first": 1_000_000,
}
# The same goals in less time: peers run in their defaults once, are watched for less long and hold shorter backlogs;
# ours is pinned for less than a minute.
BRIEF = {
    **FULL, "default_rounds": 1, "default_rates": 1, "drain_seconds": 6,
    "submit_seconds": 4, "callers_tasks": 40_000, "callers_seconds": 2, "latency_tasks": 200,
    "rates": (1000, 5000), "peer_openloop_seconds": 6, "peer_large": 100_000,
    "pinned_seconds": 40, "peer_pinned_seconds": 16, "window": 4,
    "peer_idle_seconds": 10, "peer_idle_settle": 3, "warm_mb": 1000,
}
# Everything once around, to see whether it works: the figures mean nothing.
QUICK = {
    "rounds": 2, "default_rounds": 1, "default_rates": 1,
    "tasks": 2_000, "drain_seconds": 4, "loop_batch": 500,
    "submit_tasks": 2_000, "submit_seconds": 3, "callers_tasks": 500, "callers_seconds": 1, "latency_tasks": 30,
    "rates": (100, 200), "openloop_seconds": 2, "peer_openloop_seconds": 2,
    "small": 1_000, "large": 3_000, "peer_large": 3_000, "target": 500, "future": 3_000,
    "pinned_seconds": 4, "peer_pinned_seconds": 4, "window": 2,
    "idle_seconds": 5, "idle_settle": 4, "peer_idle_seconds": 5, "peer_idle_settle": 2, "warm_mb": 0,
    "memory_tasks": 3_000, "memory_first": 1_000, "memory_slots": 100, "processes": (1, 2, 4, 8),
    "postgres_sizes": (1_000, 5_000), "sqlite_sizes": (1_000, 2_000), "size_first": 2_000,
}


def cases(workload, sizes):
    """The variants of a workload, each compared on its own."""
    if workload.key == "sizes":
        stores = (("SQLite", "sqlite_sizes"), ("PostgreSQL", "postgres_sizes"))  # what takes longest is the last
        return tuple(f"{store}, {count:,}" for store, name in stores for count in sizes.get(name, ()))
    return {
        "drain": ("1 process", "2 processes"),
        "openloop": tuple(f"{rate:,}/s" for rate in sizes["rates"]),
        "sqlite": ("drain", "16 callers"),
        "pinned": PINS,
        "memory": ("PostgreSQL", "SQLite"),
        "processes": tuple(f"{count}" for count in sizes.get("processes", ())),
    }.get(workload.key, ("",))


def contenders(workload, case):
    """Who takes part: (kind, key, mode), ours first. Ours as it comes: it chooses for itself what others are told."""
    ours = [("ours", "stint", "tuned")]
    limits = workload.limits
    if workload.key == "sqlite":
        limits = ("sqlite_drain",) if case == "drain" else ("sqlite_insert",)
    peers = [("peer", key, mode) for key in workload.peers for mode in MODES]
    if workload.key == "pinned" and case != "snapshot":
        peers = []
    return ours + peers + [("limit", key, "") for key in limits]


def base_case(case):
    """What a row of a table by case is compared with: one process, or a hundred thousand in the same store."""
    store, comma, _ = case.partition(", ")
    return f"{store}, 100,000" if comma else "1"


def label(kind, key, mode):
    if kind == "limit":
        return LIMITS[key]
    name = "Stint" if kind == "ours" else PEERS[key][0]
    return name if mode == "tuned" else f"{name}, defaults"


def schedule(workload, sizes, number):
    """(case, contender) of one round, in the order in which they take turns: each round is begun by another."""
    if number > min(sizes["rounds"], workload.rounds):
        return []
    everyone = [(case, c) for case in cases(workload, sizes) for c in contenders(workload, case)]
    # Far apart, and never twice the same: few contenders in many rounds would begin two rounds alike.
    turn = max(number - 1, (number - 1) * len(everyone) // max(1, sizes["rounds"])) % max(1, len(everyone))
    in_defaults = cases(workload, sizes) if number <= min(workload.default_rounds, sizes["default_rounds"]) else ()
    if workload.key == "openloop":
        in_defaults = in_defaults[:sizes["default_rates"]]
    return [
        (case, contender) for case, contender in everyone[turn:] + everyone[:turn]
        if contender[2] != "default" or case in in_defaults]
