"""Results as Markdown, and the place in a document where they go."""
import plan
import stats

BEGIN = "<!-- bench/compare/report writes from here -->"
END = "<!-- bench/compare/report writes up to here -->"
NOTHING = "*Not measured yet.*"


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
    ours = select(results, server, workload, case, ("ours", "stint", "tuned"))
    return stats.ratio(ours, select(results, server, workload, case, other), figure) if other else None


# ---- the goals -----------------------------------------------------------------------------------


def goals(results, server):
    """(what, against what, goal, measured ratio or figure, whether it is met)"""
    rows = []

    def against(what, workload, case, figure, other, name, goal, more=True):
        found = versus(results, server, workload, case, figure, other)
        met = found and (found.median >= goal if more else found.median <= goal)
        rows.append((what, name, f"{'≥' if more else '≤'} {goal:g} ×", found, met, " ×"))

    def peer(what, workload, case, figure, goal, more=True):
        best = fastest_peer(results, server, workload, case, figure, more)
        name = f"fastest peer on PostgreSQL, tuned{' (' + plan.label(*best) + ')' if best else ''}"
        against(what, workload, case, figure, best, name, goal, more)

    def limit(what, workload, case, figure, key, goal, more=True):
        against(what, workload, case, figure, ("limit", key, ""), plan.LIMITS[key], goal, more)

    def own(what, workload, name, goal):
        found = stats.spread(
            stats.figures(select(results, server, workload, "", ("ours", "stint", "tuned")), "ratio").values())
        rows.append((what, name, f"≥ {goal:g} ×", found, found and found.median >= goal, " ×"))

    for case in ("1 process", "2 processes"):
        peer(f"drain, {case}", "drain", case, "tasks_per_s", 1.5)
        limit(f"drain, {case}", "drain", case, "tasks_per_s", "our_writes", 0.7)
    peer("bulk submit", "submit", "", "tasks_per_s", 1.5)
    limit("bulk submit", "submit", "", "tasks_per_s", "copy", 0.5)
    limit("single submits, 16 callers", "callers", "", "tasks_per_s", "single_commits", 1.5)
    limit("latency, median", "latency", "", "p50_ms", "insert_notify", 1.5, more=False)
    for figure, word in (("p50_ms", "median"), ("p99_ms", "p99")):
        peer(f"latency, {word}", "latency", "", figure, 0.5, more=False)
    top = stats.spread(
        stats.figures(select(results, server, "openloop", "5,000/s", ("ours", "stint", "tuned")), "p99_ms").values())
    rows.append(("open loop at 5,000/s, p99", "", "≤ 50 ms", top, top and top.median <= 50, " ms"))
    own("backlog of 1,000,000", "backlog", "backlog of 30,000", 0.95)
    own("pinned horizon, last window", "pinned", "first window", 0.95)
    own("a resource on every task", "resources", "the same without", 0.85)
    limit("SQLite drain", "sqlite", "drain", "tasks_per_s", "sqlite_drain", 0.5)
    limit("SQLite, 16 callers", "sqlite", "16 callers", "tasks_per_s", "sqlite_insert", 5)
    idle = stats.spread(stats.figures(
        select(results, server, "idle", "", ("ours", "stint", "tuned")), "statements_per_min").values())
    rows.append(("idle worker", "", "≤ 30 statements/min", idle, idle and idle.median <= 30, ""))
    return rows


def goals_table(results, server):
    lines = ["| what | against | goal | measured | met |", "|---|---|---|---|---|"]
    for what, name, goal, found, met, unit in goals(results, server):
        word = "–" if found is None else "yes" if met else "**no**"
        lines.append(f"| {what} | {name} | {goal} | {stats.spread_text(found, unit)} | {word} |")
    return "\n".join(lines)


# ---- one workload --------------------------------------------------------------------------------


def cell(records, name):
    values = [r["figures"].get(name) for r in records if name in r.get("figures", {})]
    if not values:
        return "–"
    if all(isinstance(v, bool) for v in values):
        return "yes" if all(values) else f"{sum(values)} of {len(values)}" if any(values) else "no"
    return stats.spread_text(stats.spread(values))


def workload_table(results, server, workload, case):
    heads = [f"{workload.title}{', ' + case if case else ''}", workload.unit]
    heads += [heading for _, heading in workload.more_figures] + ["Stint ÷ this"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    problems = []
    for contender in plan.contenders(workload, case):
        records = select(results, server, workload.key, case, contender)
        if not records:
            continue
        name = plan.label(*contender)
        said = sorted({r["problem"] for r in records if r.get("problem")})
        problems += [f"{name}: {problem}" for problem in said]
        cells = [cell(records, figure) for figure in (workload.figure, *(f for f, _ in workload.more_figures))]
        found = None
        if contender != ("ours", "stint", "tuned"):
            found = versus(results, server, workload.key, case, workload.figure, contender)
        if found and found.left_out:
            cells.append(stats.spread_text(found) + f", {found.left_out} left out")
        else:
            cells.append(stats.spread_text(found))
        lines.append("| " + " | ".join([name, *cells]) + " |")
    if len(lines) == 2:
        return ""
    return "\n".join(lines + ([""] + [f"Not measured: {p}." for p in problems] if problems else []))


def tables(results, charts=None):
    """Everything that the document shows, for every server in the results."""
    if not results or not results.get("records"):
        return NOTHING
    parts = []
    for server in results["servers"]:
        parts.append(f"### PostgreSQL {server}\n\n{about(results, server)}")
        if charts and server in charts:
            parts.append(f"![Bars with spread per workload, PostgreSQL {server}]({charts[server]})")
        parts.append(goals_table(results, server))
        parts += [text for text in [per_core(results, server)] if text]
        sizes = results["sizes"]
        for workload in plan.ALL:
            shown = [workload_table(results, server, workload, case) for case in plan.cases(workload, sizes)]
            shown = [table for table in shown if table]
            if shown:
                parts.append(f"#### {workload.title}\n\n{workload.note.format(**sizes)}")
                parts += shown
    return "\n\n".join(parts)


def about(results, server):
    machine, versions = results["machine"], results["versions"]
    canary = stats.spread([r.get("canary") for r in results["records"] if r["server"] == server])
    quick = " **A quick run: the figures mean nothing.**" if results["quick"] else ""
    peers = ", ".join(f"{name} {version}" for name, version in sorted(versions["peers"].items()))
    return (
        f"Taken on {results['taken']}: {machine['processors']} × {machine['model']}, {machine['memory_gib']} GiB, "
        f"{machine['filesystem']}, Linux {machine['kernel']}. PostgreSQL {versions['postgres'][server]}, "
        f"Redis {versions['redis'] or 'none'}, {versions['stint']}; {peers}. Single commits beside each "
        f"measurement: {stats.spread_text(canary, '/s')}.{quick}")


def per_core(results, server):
    """For sizing: what a processor carried when all of them were busy with everything."""
    records = select(results, server, "drain", "2 processes", ("ours", "stint", "tuned"))
    found = stats.spread(stats.figures(records, "tasks_per_s").values())
    if found is None:
        return ""
    each = found.median / results["machine"]["processors"]
    return (f"Drained with two worker processes, each processor of this machine carried {stats.text(each)} no-op "
            "tasks a second, the server's share included.")


def put(document, text):
    """The document with this between its markers."""
    head, rest = document.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}"


def between(document):
    return document.split(BEGIN, 1)[1].split(END, 1)[0].strip()
