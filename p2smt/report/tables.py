"""Tables of solutions, topologies, programs and placements, as rich renderables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table

from p2smt.solution import Alternative, RequestPlan, Solution
from p2smt.topology import Topology
from p2smt.units import format_bandwidth, format_bytes, format_time


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table; columns whose heading starts with ">" are right-aligned."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.startswith(">")
        made.add_column(column.lstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def gap(value: float, bound: float) -> str:
    """How far a value lies above a bound, in percent."""
    if value <= 0 or bound >= value * (1 - 1e-9):
        return "0 %"
    return f"{100 * (value - bound) / value:.3g} %"


def solution_tables(solution: Solution) -> RenderableType:
    """Everything `solve` tells a person."""
    best = solution.best
    if best is None:
        return f"{solution.status.value}: no placement found"
    parts: list[RenderableType] = [_headline(solution, best), "", _matrix_table(solution, best), ""]
    parts += [_request_table(best), ""]
    if len(solution.alternatives) > 1:
        parts += [_alternatives_table(solution), ""]
    parts.append(_comparison_table(solution, best))
    if solution.sensitivity:
        parts += ["", _sensitivity_table(solution)]
    return Group(*parts)


def _headline(solution: Solution, best: Alternative) -> str:
    bound, physical = solution.bound_s, solution.physical_bound_s
    what = "total" if solution.problem.objective == "sum" else "largest request"
    lines = [
        f"{solution.status.value}: {format_time(best.objective_s)} per iteration ({what})",
        f"proved bound {format_time(bound)} (gap {gap(best.objective_s, bound)}), "
        f"link-level bound {format_time(physical)} (gap {gap(best.objective_s, physical)})",
        f"peak memory per device {format_bytes(best.peak_bytes)}",
    ]
    if solution.interrupted:
        lines.insert(0, "interrupted: the best found so far")
    return "\n".join(lines)


def _matrix_table(solution: Solution, best: Alternative) -> Table:
    names = solution.problem.topology.names
    rows = [
        [axis.name, str(axis.size), *map(str, row)]
        for axis, row in zip(solution.problem.axes, best.matrix, strict=True)
    ]
    return table("placement", ["axis", ">size", *(f">{name}" for name in names)], rows)


def _request_table(best: Alternative) -> Table:
    rows = []
    for plan in best.requests:
        rows.append([str(plan.request), "", format_time(plan.total_s), "", "", plan.checked])
        rows += [["", *row] for row in _step_rows(plan)]
    columns = ["request", "step", ">time", "algorithm", "bottleneck", "checked on"]
    return table("requests (total per iteration, then one execution by step)", columns, rows)


def _step_rows(plan: RequestPlan) -> list[list[str]]:
    if plan.program is None:
        names = [plan.request.kind.value] * len(plan.steps)
    else:
        names = [str(i) for i in plan.program.instructions]
    levels = [name for name, _ in plan.hierarchy.aliases[1:]]
    return [
        [
            name,
            format_time(step.seconds),
            f"{step.algorithm} {step.protocol}".strip(),
            "" if step.level is None else f"{levels[step.level]} {format_bytes(step.load_bytes)}",
            "",
        ]
        for name, step in zip(names, plan.steps, strict=True)
    ]


def _alternatives_table(solution: Solution) -> Table:
    rows = [
        [
            str(n),
            format_time(a.objective_s),
            f"{a.objective_s / max(solution.alternatives[0].objective_s, 1e-300):.3g}x",
            a.placement.text(),
            format_bytes(a.peak_bytes),
            " | ".join(str(r.program or r.request.kind.value) for r in a.requests),
        ]
        for n, a in enumerate(solution.alternatives, start=1)
    ]
    columns = [">rank", ">time", ">ratio", "placement", ">peak", "programs"]
    return table(f"alternatives ({solution.ranking.value})", columns, rows)


def _comparison_table(solution: Solution, best: Alternative) -> Table:
    rows = []
    for layout in (solution.default, solution.compared):
        if layout is not None:
            ratio = layout.objective_s / best.objective_s if best.objective_s else 1.0
            name = f"{layout.name} layout, one collective each"
            rows.append([name, format_time(layout.objective_s), f"{ratio:.4g}x"])
    return table("compared with this answer", ["layout", ">time", ">ratio"], rows)


def _sensitivity_table(solution: Solution) -> Table:
    rows = [
        [
            f"{p.level} x {p.factor:g}",
            format_time(p.winner_s),
            format_time(p.optimum_s),
            "yes" if p.holds else f"no, {gap(p.winner_s, p.optimum_s)} worse",
            p.status.value,
        ]
        for p in solution.sensitivity
    ]
    columns = ["bandwidth", ">winner", ">best there", "still wins", "status"]
    return table("if a bandwidth is off", columns, rows)


def topology_tables(topology: Topology) -> RenderableType:
    """A topology for people: its levels and links."""
    rows = []
    for j, level in enumerate(topology.levels):
        link = level.link
        for piece in link.pieces:
            rows.append(
                [
                    level.name,
                    str(level.size),
                    link.kind.value + ("x".join(["", *map(str, link.torus)]).replace("x", " ", 1)),
                    f"{link.ports} per {topology.devices_under(j)} devices",
                    piece.name,
                    format_bandwidth(piece.bandwidth_bytes_per_s),
                    format_time(piece.latency_s),
                ]
            )
    columns = ["level", ">size", "link", "ports", "protocol", ">bandwidth/port", ">latency"]
    head = f"{topology.name}: {topology.devices} devices; {topology.description}".rstrip("; ")
    runs = ", ".join(a.value for a in topology.algorithms)
    return Group(head, "", table("levels, outermost first", columns, rows), "", f"runs: {runs}")


def console(stderr: bool = False) -> Console:
    """The console that all output goes through; wide where the output is no terminal."""
    made = Console(stderr=stderr, highlight=False, soft_wrap=False, markup=False)
    if not made.is_terminal:
        made.width = 200
    return made
