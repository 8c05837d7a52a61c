"""What `solve` tells a person of an answer on named hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from rich.console import Group, RenderableType

from p2smt.cluster.topology import Topology
from p2smt.plans.allocation import rank_hosts
from p2smt.plans.solution import Alternative, Solution
from p2smt.report.costs.request_table import answered, peak_line, request_table
from p2smt.report.orders.order_tables import crossing_table, orders_table
from p2smt.report.orders.unstated import non_blocking_lines, unstated_lines
from p2smt.report.tables import bound_text, table
from p2smt.report.text import printable
from p2smt.search.comparison.compare import Comparison
from p2smt.units import format_time

_ROWS_SHOWN = 32
_RUNS_SHOWN = 4


def host_tables(solution: Solution, found: Comparison) -> RenderableType:
    """The answer, where its ranks lie, its requests, and the orders that it is compared with."""
    best = solution.best
    if best is None:
        return f"{solution.status.value}: no order was found; give the search more time"
    topology = solution.problem.topology
    placed = [_cells(solution, best), *_inside(solution), ""]
    if not found.times_known:
        return Group(*unstated_lines(found), "", *placed, crossing_table(found))
    requests = [replace(answered(answer, topology), label=answer.label) for answer in best.requests]
    return Group(
        *_headline(solution, best),
        *non_blocking_lines(found),
        "",
        *placed,
        request_table(requests),
        "",
        orders_table(found),
    )


def _headline(solution: Solution, best: Alternative) -> Iterator[str]:
    if solution.interrupted:
        yield "interrupted: the best found so far"
    what = "total" if solution.problem.objective == "sum" else "largest request"
    time = format_time(best.objective_s)
    yield f"{solution.status.value}: {time} per iteration ({what}), one collective per request"
    yield bound_text("proved", solution.bound_s, best.objective_s)
    allocation = solution.allocation
    if allocation is not None and allocation.with_programs_s is not None:
        yield f"with programs on the same ranks: {format_time(allocation.with_programs_s)}"
    yield peak_line(best.peak_bytes)
    yield from (f"note: {printable(note)}" for note in solution.notes)
    if allocation is not None and allocation.idle:
        idle = ", ".join(map(printable, allocation.idle[:16]))
        more = "" if len(allocation.idle) <= 16 else f", .. ({len(allocation.idle)} in all)"
        yield f"idle: {idle}{more}"


def _cells(solution: Solution, best: Alternative) -> Group:
    """A line per host, in the order of its first rank: what it holds of each axis, and where."""
    problem, topology = solution.problem, solution.problem.topology
    ranks_of: dict[str, list[int]] = {}
    for rank, host in enumerate(rank_hosts(topology, best.ranks) or ()):
        ranks_of.setdefault(host, []).append(rank)
    axes = [axis for axis in problem.axes if axis.size > 1]
    rows = []
    for host, ranks in list(ranks_of.items())[:_ROWS_SHOWN]:
        at = np.unravel_index(ranks, problem.axis_sizes)
        parts = [_runs(np.unique(at[problem.axis_names.index(a.name)]).tolist()) for a in axes]
        switches = map(printable, _switches(topology, host))
        rows.append([_runs(ranks), printable(host), *switches, *parts])
    if len(ranks_of) > _ROWS_SHOWN:
        rows.append([f".. ({len(ranks_of)} hosts in all)"])
    outer = topology.names[: topology.node_level]
    columns = ["ranks", "host", *reversed(outer), *(axis.name for axis in axes)]
    return table("hosts in the order of their ranks", columns, rows)


def _switches(topology: Topology, host: str) -> Iterator[str]:
    """The switches above a host, the nearest first."""
    hosts = topology.hosts
    if hosts is None:
        return
    entity = hosts.slots[hosts.names.index(host)]
    for j in reversed(range(topology.node_level)):
        entity //= topology.sizes[j + 1]
        yield hosts.switches[j][entity]


def _runs(numbers: Sequence[int]) -> str:
    """Ascending numbers as runs: ``0-3,8-11``; a few of them."""
    cuts = [i for i, (a, b) in enumerate(pairwise(numbers), start=1) if b != a + 1]
    starts, ends = [0, *cuts], [*cuts, len(numbers)]
    runs = [(numbers[a], numbers[b - 1]) for a, b in zip(starts, ends, strict=True)]
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in runs[:_RUNS_SHOWN]]
    return ",".join(shown) + (",.." if len(runs) > _RUNS_SHOWN else "")


def _inside(solution: Solution) -> Iterator[RenderableType]:
    """The matrix inside each node, where it splits more than one axis over more than one level."""
    allocation, topology = solution.allocation, solution.problem.topology
    levels = topology.levels[topology.node_level + 1 :]
    if allocation is None or not levels:
        return
    rows = [
        [axis.name, *map(str, row)]
        for axis, row in zip(solution.problem.axes, allocation.inside, strict=True)
    ]
    yield ""
    yield table("inside each node", ["axis", *(f">{level.name}" for level in levels)], rows)
