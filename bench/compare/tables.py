"""Results as Markdown, and the place in a document where they go."""
import goals
import parts
import plan
import stats
from parts import OURS, select, versus

BEGIN = "<!-- bench/compare/report writes from here -->"
END = "<!-- bench/compare/report writes up to here -->"
NOTHING = "*Not measured yet.*"
# From this share of the machine's processor time on, more workers can only take it from the server.
BUSY_PERCENT = 90


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
        if contender != OURS:
            found = versus(results, server, workload.key, case, workload.figure, contender)
        cells.append(stats.spread_text(found))
        lines.append("| " + " | ".join([name, *cells]) + " |")
    if len(lines) == 2:
        return ""
    return "\n".join(lines + ([""] + [f"Not measured: {p}." for p in problems] if problems else []))


def scaling_table(results, server, workload):
    """A row per case of ours; compared with one of them, round by round."""
    heads = [workload.by_case, workload.unit, *(heading for _, heading in workload.more_figures)]
    compared = workload.key in ("processes", "sizes")
    heads += ["of the rate with " + {"processes": "1", "sizes": "100,000"}[workload.key]] if compared else []
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    problems = []
    for case in plan.cases(workload, results["sizes"]):
        records = select(results, server, workload.key, case, OURS)
        if not records:
            continue
        problems += sorted({f"{case}: {r['problem']}" for r in records if r.get("problem")})
        cells = [case, *(cell(records, f) for f in (workload.figure, *(f for f, _ in workload.more_figures)))]
        if compared:
            base = select(results, server, workload.key, plan.base_case(case), OURS)
            cells.append(stats.spread_text(stats.ratio(records, base, workload.figure)))
        lines.append("| " + " | ".join(cells) + " |")
    if len(lines) == 2:
        return ""
    return "\n".join(lines + ([""] + [f"Not measured: {p}." for p in problems] if problems else []))


def where_processors_end(results, server):
    """From how many worker processes on the machine's processors are the limit."""
    workload = plan.WORKLOADS["processes"]
    used = {}
    for case in plan.cases(workload, results["sizes"]):
        records = select(results, server, workload.key, case, OURS)
        found = stats.spread(stats.figures(records, "machine_percent").values())
        if found:
            used[case] = found.median
    if not used:
        return ""
    busy = [case for case, share in used.items() if share >= BUSY_PERCENT]
    machine = f"{results['machine']['processors']} processors"
    if not busy:
        return (f"At most {stats.text(max(used.values()))} % of the time of {machine} was used: they were not the "
                "limit, but waits for commits and for each other.")
    return (f"With {busy[0]} or more, at least {BUSY_PERCENT} % of the time of {machine} is used, the server's share "
            "included: they are the limit, and more worker processes only share them.")


def sections(results, server):
    """Every workload of one run that has figures."""
    sizes, found = results["sizes"], []
    for workload in plan.ALL:
        if workload.by_case:
            shown = [scaling_table(results, server, workload)]
            shown += [where_processors_end(results, server)] if workload.key == "processes" else []
        else:
            shown = [workload_table(results, server, workload, case) for case in plan.cases(workload, sizes)]
        shown = [text for text in shown if text]
        if shown:
            found.append(f"#### {workload.title}\n\n{workload.note.format(**sizes)}")
            found += shown
    return found


def tables(all_parts, charts=None):
    """Everything that the document shows: per server its goals, then each run by itself."""
    all_parts = [part for part in all_parts or [] if part.get("records")]
    if not all_parts:
        return NOTHING
    shown = []
    for server in parts.servers(all_parts):
        shown.append(f"### Goals on PostgreSQL {server}\n\n{goals.table(all_parts, server)}")
        for part in parts.with_server(all_parts, server):
            shown.append(f"### PostgreSQL {server}, taken on {part['taken']}\n\n{about(part, server)}")
            name = (charts or {}).get((all_parts.index(part), server))
            if name:
                shown.append(f"![Bars with spread per workload, PostgreSQL {server}]({name})")
            shown += [text for text in [per_core(part, server)] if text]
            shown += sections(part, server)
    return "\n\n".join(shown)


def about(results, server):
    machine, versions = results["machine"], results["versions"]
    canary = stats.spread([r.get("canary") for r in results["records"] if r["server"] == server])
    peers = ", ".join(f"{name} {version}" for name, version in sorted(versions["peers"].items()))
    said = (
        f"{machine['processors']} × {machine['model']}, {machine['memory_gib']} GiB, "
        f"{machine['filesystem']}, Linux {machine['kernel']}. PostgreSQL {versions['postgres'][server]}, "
        f"Redis {versions['redis'] or 'none'}, {versions['stint']}; {peers}. Single commits beside each "
        f"measurement: {stats.spread_text(canary, '/s')}.")
    return said + how_it_ended(results)


def how_it_ended(results):
    """What a reader must know before the figures: how short it was, and what is missing."""
    said = ""
    if results["quick"]:
        said += " **A quick run: the figures mean nothing.**"
    if results.get("brief"):
        said += " A brief run: sizes of the peers are smaller."
    if results.get("ended") in ("interrupted", "running"):
        said += " **It did not come to its end: what is missing was not measured.**"
    out = results.get("left_out", [])
    if out:
        said += f" Left out, for lack of time: {'; '.join(out)}."
    return said


def per_core(results, server):
    """For sizing: what a processor carried when all of them were busy with everything."""
    records = select(results, server, "drain", "2 processes", OURS)
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
