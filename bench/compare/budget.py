"""What of the plan fits into a time, and in which order it is run."""
import dataclasses

import measure
import plan

# About what two processors do in a second, on the slow side: a run should end before its time, not after it.
SUBMITTED, DRAINED, SQLITE, WITH_RESOURCE, SINGLE = 50_000, 40_000, 30_000, 7_000, 9_000
BETWEEN = 3.5  # seconds of every measurement for its canary, its database and its processes
SETTLED = 120  # seconds after which a run's own pace begins to count for more than what was expected
SERVER = 30  # seconds to start a server and to write until its log is reused
# Tasks a second that peers are filled with; of DBOS rows are copied.
FILLED = {"graphile": 30_000, "pgboss": 15_000, "bullmq_postgres": 15_000, "dbos": 5_000, "bullmq": 12_000}

# Which of the first round goes first into a time that is too short for all of it; see README.md.
SPEED = ("drain", "submit", "callers", "latency", "sqlite", "resources")
SCALING = ("processes", "sizes")
DEFAULTS = 4  # the last rank


@dataclasses.dataclass(frozen=True)
class Turn:
    """One measurement to come."""

    round: int
    workload: plan.Workload
    case: str
    contender: tuple
    seconds: float  # about

    def rank(self):
        if self.contender[2] == "default":
            return DEFAULTS
        if self.workload.key in SPEED:
            return 0
        if self.workload.key in SCALING:
            return 3
        return 1 if self.contender[0] == "ours" else 2

    def group(self):
        """What is measured together or not at all: half of the peers have no fastest."""
        return self.rank(), self.workload.key, self.case if self.workload.key == "sizes" else ""


def ours(workload, case, sizes):
    drain = sizes["tasks"] / SUBMITTED + sizes["tasks"] / DRAINED
    if workload == "sizes":
        store, count = case.split(", ", 1)
        count, first = measure.number_in(count), min(measure.number_in(count), sizes["size_first"])
        return count / SQLITE + first / SQLITE if store == "SQLite" else count / SUBMITTED + first / DRAINED
    if workload == "openloop":
        top = measure.number_in(case) == max(sizes["rates"])
        return 5 + 1.2 * sizes["openloop_seconds" if top else "peer_openloop_seconds"]
    return {
        "drain": drain, "processes": drain,
        "submit": sizes["submit_tasks"] / SUBMITTED,
        "callers": sizes["callers_tasks"] / SINGLE,
        "latency": sizes["latency_tasks"] / 100,
        "sqlite": 3 * sizes["tasks"] / SQLITE,
        "resources": 4 * sizes["tasks"] / SUBMITTED + 2 * sizes["tasks"] / DRAINED + 2 * sizes["tasks"] / WITH_RESOURCE,
        "backlog": 10 + (sizes["large"] + 2 * sizes["small"]) / SUBMITTED,
        "future": 10 + (sizes["future"] + 24 * sizes["small"]) / SUBMITTED + 18 * sizes["small"] / DRAINED,
        "memory": sizes["memory_tasks"] / SQLITE + sizes["memory_first"] / DRAINED,
        "pinned": 5 + 1.3 * sizes["pinned_seconds"],
        "idle": sizes["idle_settle"] + sizes["idle_seconds"],
    }[workload]


def peers(workload, case, key, mode, sizes):
    drain = sizes["drain_seconds"] * (1 if mode == "tuned" else 0.5)
    filled = FILLED[key]
    # What waits in PostgreSQL is made once and copied then; before the first case there is nothing to copy.
    again = plan.PEERS[key][1] and sizes["peer_large"] == sizes["tasks"]
    return {
        "drain": drain + (sizes["tasks"] / filled if case == "1 process" or key == "bullmq" else 0),
        "submit": sizes["submit_seconds"],
        "callers": sizes["callers_seconds"],
        "latency": sizes["latency_tasks"] / 50 + 2,
        "openloop": 5 + 1.5 * sizes["peer_openloop_seconds"],
        "backlog": BETWEEN + drain + (sizes["small"] + (0 if again else sizes["peer_large"])) / filled,
        "pinned": sizes["peer_pinned_seconds"] + 3,
        "idle": sizes["peer_idle_settle"] + sizes["peer_idle_seconds"],
    }[workload]


def seconds(workload, case, contender, sizes):
    """About how long one measurement takes."""
    kind, key, mode = contender
    if kind == "ours":
        return BETWEEN + ours(workload, case, sizes)
    if kind == "peer":
        return BETWEEN + peers(workload, case, key, mode, sizes)
    return BETWEEN + max(3, sizes["latency_tasks"] / 80 if workload == "latency" else sizes["callers_seconds"])


def turns(workloads, sizes, wanted):
    """Everything in its order: a round of all workloads before the second of any."""
    found = []
    for number in range(1, sizes["rounds"] + 1):
        for key in workloads:
            workload = plan.WORKLOADS[key]
            found += [
                Turn(number, workload, case, contender, seconds(key, case, contender, sizes))
                for case, contender in plan.schedule(workload, sizes, number) if wanted(key, case, contender)]
    return found


def choose(order, available):
    """(what is run, what of the first round is left out). What of the first round fits, by rank; further rounds come
    after all of it, as long as there is time."""
    first = [t for t in order if t.round == 1]
    groups = {}
    for turn in sorted(first, key=Turn.rank):  # in the order of the plan within a rank
        groups.setdefault(turn.group(), []).append(turn)
    left, out = available, set()
    for group in groups.values():
        needed = sum(t.seconds for t in group)
        if needed <= left:
            left -= needed
        else:
            out.update(group)
    if out:  # no further rounds of some while others have none
        return [t for t in first if t not in out], [t for t in first if t in out]
    return order, []


class Watch:
    """The time of a run: how much is left, and how fast it has been so far compared with what was expected."""

    def __init__(self, available, clock):
        self.clock = clock
        self.begun = clock()
        self.available = available
        self.expected = 0  # seconds, of what was run
        self.groups = set()  # that have been begun

    def fits(self, coming):
        """Whether the first of these may begin. What is left of the first round is chosen again each time, so that on a
        slow machine what matters least makes room for what matters more."""
        turn = coming[0]
        spent = self.clock() - self.begun
        left = (self.available - spent) * (self.expected + SETTLED) / (spent + SETTLED)
        if turn.round > 1 or turn.group() in self.groups:
            return turn.seconds <= left
        spare = 0.95 if turn.rank() == DEFAULTS else 1
        return turn not in choose([t for t in coming if t.round == 1], left * spare)[1]

    def go(self, turns, run):
        """Runs what fits; answers what did not."""
        late, skipped = [], set()
        for number, turn in enumerate(turns):
            if turn.group() in skipped or not self.fits(turns[number:]):
                late.append(turn)
                skipped.update({turn.group()} if turn.round == 1 else ())
                continue
            self.groups.add(turn.group())
            run(turn)
            self.expected += turn.seconds
        return late

    def all(self, order, run):
        """The first round, then what of it fits after all, and only then further ones."""
        late = self.go([t for t in order if t.round == 1], run)
        late = self.go(sorted(late, key=Turn.rank), run)
        return late or self.go([t for t in order if t.round > 1], run)


def expected(chosen, available):
    """(seconds, how many whole rounds each workload will have)"""
    used, lacking = 0, {}
    for turn in chosen:
        if used + turn.seconds <= available:
            used += turn.seconds
        else:
            lacking.setdefault(turn.workload.key, turn.round)
    rounds = {}
    for turn in chosen:
        most = lacking.get(turn.workload.key, turn.round + 1) - 1
        rounds[turn.workload.key] = min(most, max(turn.round, rounds.get(turn.workload.key, 0)))
    return used, rounds


def named(out):
    """What is left out, a line per workload and kind of contender."""
    names = {}
    for turn in out:
        kind, _, mode = turn.contender
        who = {"ours": "Stint", "limit": "the limits", "peer": "peers, tuned"}[kind]
        where = names.setdefault((turn.workload.key, "peers in their defaults" if mode == "default" else who), [])
        if turn.case and turn.case not in where:
            where.append(turn.case)
    return [f"{key}: {who}{' (' + '; '.join(where) + ')' if where else ''}" for (key, who), where in names.items()]


def announcement(order, chosen, out, available):
    """What is said before anything is measured."""
    used, rounds = expected(chosen, available)
    counts = {}
    for key, count in rounds.items():
        counts.setdefault(count, []).append(key)
    all_of_it = sum(t.seconds for t in order)
    lines = [f"about {minutes(used)} of {minutes(available)}; all rounds of everything would take {minutes(all_of_it)}"]
    for count, keys in sorted(counts.items(), reverse=True):
        lines.append(f"{count} round{'s' if count != 1 else ''} of {', '.join(keys)}")
    lines += [f"left out: {line}" for line in named(out)]
    return lines


def minutes(count):
    return f"{count / 60:.0f} min"
