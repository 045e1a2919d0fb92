"""Results as they are stored: of one run, or of several beside each other, across which nothing is computed."""
import json

import plan
import stats

OURS = ("ours", "stint", "tuned")


def of(stored):
    """The parts in what a file holds, which are results of one run each."""
    return stored["parts"] if "parts" in stored else [stored]


def load(files):
    return [part for file in files for part in of(json.loads(file.read_text(encoding="utf-8")))]


def together(parts):
    """What a file holds for these."""
    return parts[0] if len(parts) == 1 else {"format": 2, "parts": parts}


def servers(parts):
    """Versions of PostgreSQL in all of them, in the order in which they appear."""
    return list(dict.fromkeys(server for part in parts for server in part["servers"]))


def with_server(parts, server):
    return [part for part in parts if server in part["servers"]]


# ---- within one part -----------------------------------------------------------------------------


def select(results, server, workload, case, contender):
    return [
        r for r in results["records"]
        if (r["server"], r["workload"], r["case"], tuple(r["contender"])) == (server, workload, case, tuple(contender))
    ]


def fastest_peer(results, server, workload, case, figure, more_is_better):
    """Among those that keep their tasks in PostgreSQL, tuned."""
    best = None
    for key, (_, in_postgres) in plan.PEERS.items():
        contender = ("peer", key, "tuned")
        found = stats.spread(stats.figures(select(results, server, workload, case, contender), figure).values())
        if not in_postgres or found is None:
            continue
        if best is None or (found.median > best[1]) == more_is_better:
            best = (contender, found.median)
    return best[0] if best else None


def versus(results, server, workload, case, figure, other):
    """Ours by another's, round by round."""
    ours = select(results, server, workload, case, OURS)
    return stats.ratio(ours, select(results, server, workload, case, other), figure) if other else None
