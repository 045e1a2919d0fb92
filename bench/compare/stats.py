"""Medians, spreads, and ratios of what was measured next to each other."""
import dataclasses
import statistics

# Between two measurements that are compared, single commits may not have become faster or slower than this.
UNSTEADY = 1.25


@dataclasses.dataclass(frozen=True)
class Spread:
    """A figure over several rounds."""

    median: float
    low: float
    high: float
    count: int
    left_out: int = 0  # pairs between which the machine changed its speed
    unsteady: bool = False  # it did so between all of them, and none is left out


def spread(values, left_out=0):
    values = [v for v in values if v is not None]
    if not values:
        return None
    return Spread(statistics.median(values), min(values), max(values), len(values), left_out)


def figures(records, name):
    """The figure of every round that has it, by round."""
    found = {}
    for record in records:
        value = record.get("figures", {}).get(name)
        if value is not None:
            found[record["round"]] = float(value)
    return found


def steady(one, other):
    a, b = one.get("canary"), other.get("canary")
    return not a or not b or max(a, b) <= UNSTEADY * min(a, b)


def ratio(ours, theirs, name):
    """Ours divided by theirs, round by round: what drifts over an hour does not count. Rounds in which the disk
    changed its speed between the two are left out while others remain."""
    mine = {r["round"]: r for r in ours if r.get("figures", {}).get(name) is not None}
    quiet, all_pairs = [], []
    for record in theirs:
        value = record.get("figures", {}).get(name)
        partner = mine.get(record["round"])
        if not value or partner is None:
            continue
        pair = float(partner["figures"][name]) / float(value)
        all_pairs.append(pair)
        if steady(partner, record):
            quiet.append(pair)
    if all_pairs and not quiet:
        return dataclasses.replace(spread(all_pairs), unsteady=True)
    return spread(quiet, left_out=len(all_pairs) - len(quiet))


def text(value, digits=3):
    """Three digits that mean something, thousands apart."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{round(value):,}"
    places = digits - 1
    scaled = abs(value)
    while scaled >= 10 and places > 0:
        scaled /= 10
        places -= 1
    return f"{value:.{places}f}"


def spread_text(found, suffix=""):
    if found is None:
        return "–"
    rounds = "once" if found.count == 1 else f"{text(found.low)}–{text(found.high)}"
    doubt = f", {found.left_out} left out" if found.left_out else ", unsteady" if found.unsteady else ""
    return f"{text(found.median)}{suffix} ({rounds}){doubt}"
