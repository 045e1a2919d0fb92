"""Results as an SVG for light and dark pages: a bar per contender with its spread, the limit as a line."""
import html

import parts
import plan
import stats

WIDTH, LEFT, RIGHT = 760, 250, 90  # of the page, of the names, of the figures
BAR, GAP, HEAD = 16, 6, 44
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 13px; }
.faint { fill: #59636e; }
.ours { fill: #0969da; }
.theirs { fill: #8c959f; }
.other { fill: #bf8700; }
.spread { stroke: #1f2328; stroke-width: 1.2; }
.limit { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 5 3; }
.limit-name { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .faint { fill: #9198a1; }
  .ours { fill: #4493f8; }
  .theirs { fill: #6e7681; }
  .other { fill: #d29922; }
  .spread { stroke: #e6edf3; }
  .limit { stroke: #f85149; }
  .limit-name { fill: #f85149; }
}
"""


def bars(results, server, workload, case):
    """(label, class, spread) of those who were measured, or of our cases, and (label, median) of the limits."""
    shown, lines = [], []
    if workload.by_case:
        for each in plan.cases(workload, results["sizes"]):
            records = parts.select(results, server, workload.key, each, parts.OURS)
            found = stats.spread(stats.figures(records, workload.figure).values())
            if found:
                shown.append((each, "ours", found))
        return shown, lines
    for contender in plan.contenders(workload, case):
        kind, key, mode = contender
        records = parts.select(results, server, workload.key, case, contender)
        found = stats.spread(stats.figures(records, workload.figure).values())
        if found is None:
            continue
        if kind == "limit":
            lines.append((plan.label(*contender), found.median))
        elif mode == "tuned":
            look = "ours" if kind == "ours" else "theirs" if plan.PEERS[key][1] else "other"
            shown.append((plan.label(*contender), look, found))
    return shown, lines


def panel(results, server, workload, case, top):
    """The lines of one workload, and where the next may begin."""
    shown, limits = bars(results, server, workload, case)
    if not shown:
        return [], top
    most = max([s.high for _, _, s in shown] + [value for _, value in limits]) or 1
    scale = (WIDTH - LEFT - RIGHT) / most
    heading = f"{workload.title}{', ' + case if case else ''}"
    hint = f"{workload.unit}, {'more' if workload.more_is_better else 'less'} is better"
    out = [
        f'<text class="title" x="8" y="{top + 14}">{html.escape(heading)}</text>',
        f'<text class="faint" x="{LEFT}" y="{top + 14}">{html.escape(hint)}</text>',
    ]
    first = top + HEAD - 16
    y = first
    for label, look, found in shown:
        middle = y + BAR / 2
        out.append(f'<text x="{LEFT - 8}" y="{middle + 4:g}" text-anchor="end">{html.escape(label)}</text>')
        out.append(f'<rect class="{look}" x="{LEFT}" y="{y:g}" width="{max(1, found.median * scale):.1f}" '
                   f'height="{BAR}" rx="2"/>')
        end = LEFT + max(found.high, found.median) * scale
        if found.count > 1:
            low, high = LEFT + found.low * scale, LEFT + found.high * scale
            out.append(f'<path class="spread" fill="none" d="M{low:.1f} {middle:g}H{high:.1f}'
                       f'M{low:.1f} {middle - 4:g}v8M{high:.1f} {middle - 4:g}v8"/>')
        out.append(f'<text x="{end + 6:.1f}" y="{middle + 4:g}">{stats.text(found.median)}</text>')
        y += BAR + GAP
    for number, (label, value) in enumerate(limits):
        x = LEFT + value * scale
        name_y = y + 10 + number * 14
        out.append(f'<path class="limit" d="M{x:.1f} {first - 4}V{name_y - 10:g}"/>')
        anchor = "end" if x > WIDTH / 2 else "start"
        out.append(f'<text class="limit-name" x="{x:.1f}" y="{name_y:g}" text-anchor="{anchor}">'
                   f'{html.escape(label)}: {stats.text(value)}</text>')
    return out, y + 14 * len(limits) + 22


def svg(results, server):
    body, top = [], 12
    for workload in plan.ALL:
        for case in ("",) if workload.by_case else plan.cases(workload, results["sizes"]):
            lines, top = panel(results, server, workload, case, top)
            body += lines
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:g}" width="{WIDTH}" role="img" '
        f'aria-label="Stint and others on PostgreSQL {html.escape(server)}">',
        f"<style>{STYLE}</style>", *body, "</svg>", ""])
