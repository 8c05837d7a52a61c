"""Rank orders and the hosts of ranks: side by side, as data, and an answer on named hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from rich.console import Group, RenderableType

from p2smt.cluster.allocation import blocking_levels, unstated_levels
from p2smt.cluster.topology import Topology
from p2smt.cost.regime import Decisive
from p2smt.cost.requested_algorithms import topology_notes
from p2smt.parallelism.placement import ParallelismAxis
from p2smt.plans.ranges import range_of, request_ranges
from p2smt.plans.solution import Alternative, HostsNear, Solution, rank_hosts
from p2smt.report.costs.request_table import (
    RANGE,
    after_comma,
    answered,
    peak_line,
    range_cell,
    request_table,
)
from p2smt.report.outputs.orders import CompareOutput, OrderBeside, OrderParts
from p2smt.report.outputs.shape import range_data
from p2smt.report.outputs.solve import (
    BindingLinks,
    HostFields,
    NearHostOrder,
    NearHostOrders,
    NearStatus,
)
from p2smt.report.tables import bound_text, table
from p2smt.report.text import no_time_line, printable
from p2smt.result import Status, known_bound
from p2smt.units import format_bytes, format_time, plain

if TYPE_CHECKING:
    from p2smt.cost.regime import Decisive
    from p2smt.search.comparison import Comparison, OrderFigures


# Rank orders side by side, for people.


def comparison_tables(found: Comparison) -> RenderableType:
    """What could be gained, the orders, and what decides each request of them."""
    if not found.times_known:
        return Group(*unstated_lines(found), "", crossing_table(found))
    return Group(*headline(found), "", orders_table(found), "", request_times(found))


def headline(found: Comparison) -> Iterator[str]:
    """The best order and what is proved of it."""
    best = found.best
    if best.interrupted:
        yield "interrupted: the best found so far"
    if best.best is None:
        yield f"{best.status.value}: no best order was found; give the search more time"
        return
    best_s = best.best.objective_s
    proved = "proved" if best.status is Status.OPTIMAL else "found, not proved"
    within = None if found.best_figures is None else found.best_figures.order.within
    what = "per iteration, one collective per request"
    yield f"best order {proved}: {format_time(best_s)} {what}{after_comma(within)}"
    if best.bounded:
        yield bound_text("proved", best.bound_s, best_s)
    yield from (f"note: {printable(note)}" for note in best.notes)
    yield from non_blocking_lines(found)
    if best.allocation is not None and (idle := best.allocation.idle):
        yield f"idle in the best order: {printable(_listed(idle))}"
    yield from _without_matrix(found)


def _without_matrix(found: Comparison) -> Iterator[str]:
    """On a regular cluster the best is a matrix, which other orders may beat."""
    faster = [one for one in found.orders if one.gap is not None and one.gap < 0]
    if faster:
        names = ", ".join(printable(one.name) for one in faster)
        yield (
            f"note: no matrix expresses {names}, and none is as fast; of such orders nothing is "
            "proved"
        )


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, .. ({len(names)} in all)"


def orders_table(found: Comparison, *, short: bool = False) -> Group:
    """An order a line: its time, how much more than the best, and what decides its largest part.

    ``short``: on narrow screens without ranges and crossings.
    """
    rows = []
    if found.best_figures is not None:
        rows.append(_row(found, found.best_figures, "best", 0.0))
    rows += [_row(found, one.figures, printable(one.name), one.gap) for one in found.orders]
    levels = [name for name, _ in found.orders[0].figures.crossings]
    crossed = [f">{name} crossings" for name in levels]
    return table(
        "orders of ranks, one collective per request",
        ["order", ">time", ">slower by", *crossed, "decided by", RANGE],
        rows,
        [RANGE, *(one.lstrip(">") for one in crossed)] if short else (),
    )


def _row(found: Comparison, one: OrderFigures, name: str, gap: float | None) -> list[str]:
    counts = [str(count) for _, count in one.crossings]
    slower = "" if gap is None else f"{plain(100 * gap)} %"
    decisive = one.decisive[_largest(found, one)]
    own = format_time(one.order.objective_s)
    return [name, own, slower, *counts, decided_by(decisive), range_cell(one.order.within)]


def _largest(found: Comparison, one: OrderFigures) -> int:
    """The request that takes most of an iteration."""
    pairs = zip(found.problem.requests, one.order.seconds, strict=True)
    totals = [request.times * seconds for request, seconds in pairs]
    return totals.index(max(totals))


def decided_by(one: Decisive) -> str:
    """What decides a request: latency, or the uplink (of a switch or host by name) that is full."""
    if one.regime is None:
        return "nothing to do"
    if one.level is None or one.regime == "latency":
        return one.regime
    where = one.level if one.owner is None else f"{one.level} {printable(one.owner)}"
    return f"{where} {format_bytes(one.load_bytes)}"


def request_times(found: Comparison) -> Group:
    """The time of each request per iteration, by order."""
    every = [one.figures for one in found.orders]
    names = [printable(one.name) for one in found.orders]
    if found.best_figures is not None:
        every, names = [found.best_figures, *every], ["best", *names]
    rows = [
        [str(request), *(format_time(request.times * one.order.seconds[n]) for one in every)]
        for n, request in enumerate(found.problem.requests)
    ]
    columns = ["request", *(f">{name}" for name in names)]
    return table("time of each request per iteration", columns, rows)


def crossing_table(found: Comparison) -> Group:
    """Per order the connections between switches, and the oversubscription that slows it down."""
    every = [(printable(one.name), one.figures) for one in found.orders]
    if found.best_figures is not None:
        every = [("best", found.best_figures), *every]
    rows = [
        [name, *(str(count) for _, count in one.crossings), _from(one.matters_from)]
        for name, one in every
    ]
    levels = [name for name, _ in found.orders[0].figures.crossings]
    columns = ["order", *(f">{name} crossings" for name in levels), ">slower from oversubscription"]
    return table("connections of ranks over uplinks, all requests", columns, rows)


def _from(ratio: float | None) -> str:
    return "never" if ratio is None or math.isinf(ratio) else plain(ratio)


# What `solve` tells a person of an answer on named hosts.


_ROWS_SHOWN = 32
_RUNS_SHOWN = 4


def host_tables(
    solution: Solution, found: Comparison, *, explained: bool = False
) -> RenderableType:
    """The answer, where its ranks lie, its requests, and the orders that it is compared with.

    ``explained``: also what each request waits for.
    """
    best = solution.best
    if best is None:
        return f"{solution.status.value}: no order was found; give the search more time"
    topology = solution.problem.topology
    cells = host_cells(topology, solution.problem.axes, best.ranks)
    placed = [cells, *_inside(solution), ""]
    if not found.times_known:
        return Group(*unstated_lines(found), "", *placed, crossing_table(found))
    requests = [
        replace(answered(answer, topology, within), label=answer.label)
        for answer, within in zip(
            best.requests, request_ranges(solution.problem, best), strict=True
        )
    ]
    return Group(
        *_host_headline(solution, best),
        *non_blocking_lines(found),
        "",
        *placed,
        request_table(requests),
        "",
        orders_table(found),
        *_around(solution, found, explained),
    )


def _around(solution: Solution, found: Comparison, explained: bool) -> Iterator[RenderableType]:
    """What was asked for besides: what binds, the orders near the best, other bandwidths."""
    if explained and found.best_figures is not None:
        yield from ("", _binding_table(found, found.best_figures))
    allocation, best = solution.allocation, solution.best
    if allocation is not None and allocation.near is not None and best is not None:
        yield from ("", _near_orders(allocation.near, best.objective_s, solution.status))
    if solution.sensitivity:
        from p2smt.report.solution_tables import sensitivity

        yield from ("", *sensitivity(solution.sensitivity))


def _binding_table(found: Comparison, best: OrderFigures) -> Group:
    """How long each request occupies the fullest link of each level, in an iteration."""
    rows = []
    each = zip(
        *(found.problem.requests, best.order.seconds, best.decisive, best.wire_s), strict=True
    )
    for request, seconds, decisive, wire_s in each:
        took = (request.times * one for one in (seconds, *wire_s))
        rows.append([str(request), decided_by(decisive), *map(format_time, took)])
    levels = [f">{name}" for name in found.problem.topology.names]
    title = "what binds the best order: time per iteration on the fullest link of each level"
    return table(title, ["request", "decided by", ">takes", *levels], rows)


def _near_orders(near: HostsNear, best_s: float, status: Status) -> Group:
    """Orders near the best, those alike in one line."""
    rows = []
    for one in near.orders[:_ROWS_SHOWN]:
        slower = f"{plain(100 * max(0.0, one.objective_s / best_s - 1))} %"
        inside = str([list(row) for row in one.inside])
        hosts = printable(_listed(one.hosts, 16))
        rows.append([format_time(one.objective_s), slower, str(one.alike), inside, hosts])
    if len(near.orders) > _ROWS_SHOWN:
        rows.append([f".. ({len(near.orders)} lines in all)"])
    columns = [">time", ">slower by", ">alike", "inside each node", "hosts in the order of cells"]
    return table(near_words(near, status), columns, rows)


def near_words(near: HostsNear, status: Status) -> str:
    """How many orders come near the best."""
    least = "" if near.status is Status.COMPLETE else "at least "
    best = "best" if status is Status.OPTIMAL else "best found"
    return (
        f"orders within {plain(100 * near.within, 6)} % of the {best}: {least}{near.count:,} of "
        f"the {near.looked:,} looked at"
    )


def _host_headline(solution: Solution, best: Alternative) -> Iterator[str]:
    if solution.interrupted:
        yield "interrupted: the best found so far"
    what = "total" if solution.problem.objective == "sum" else "largest request"
    time = format_time(best.objective_s)
    within = after_comma(range_of(solution.problem, best))
    how = "one collective per request"
    yield f"{solution.status.value}: {time} per iteration ({what}), {how}{within}"
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


def host_cells(
    topology: Topology,
    every: Sequence[ParallelismAxis],
    devices: Sequence[int],
    what: str = "hosts in the order of their ranks",
) -> Group:
    """A line per host, in the order of its first rank: what it holds of each axis, and where.

    ``devices``: that of each rank, row-major over the axes.
    """
    ranks_of: dict[str, list[int]] = {}
    for rank, host in enumerate(rank_hosts(topology, devices) or ()):
        ranks_of.setdefault(host, []).append(rank)
    axes = [(n, axis) for n, axis in enumerate(every) if axis.size > 1]
    rows = []
    for host, ranks in list(ranks_of.items())[:_ROWS_SHOWN]:
        at = np.unravel_index(ranks, [axis.size for axis in every])
        parts = [_runs(np.unique(at[n]).tolist()) for n, _ in axes]
        switches = map(printable, _switches(topology, host))
        rows.append([_runs(ranks), printable(host), *switches, *parts])
    if len(ranks_of) > _ROWS_SHOWN:
        rows.append([f".. ({len(ranks_of)} hosts in all)"])
    outer = topology.names[: topology.node_level]
    columns = ["ranks", "host", *reversed(outer), *(axis.name for _, axis in axes)]
    return table(what, columns, rows)


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


# Rank orders side by side as plain data, for ``compare --json`` and ``solve --json``.


def comparison_data(found: Comparison) -> CompareOutput:
    """The numbers of the best order, and ``orders``.

    Where bandwidths are not stated there are no times: they are null.
    """
    best, known = found.best, found.times_known
    figures = found.best_figures
    objective_s = None if best.best is None else best.best.objective_s
    bound_s = known_bound(best.bound_s, objective_s) if best.bounded else None
    return CompareOutput(
        status=best.status,
        interrupted=best.interrupted,
        notes=[*topology_notes(found.problem.topology), *best.notes, *network_lines(found)],
        objective=found.problem.objective,
        objective_s=objective_s if known else None,
        bound_s=bound_s if known else None,
        requests=[str(one) for one in found.problem.requests],
        orders=orders_data(found),
        best=None if figures is None else _figures(figures, known),
        idle=None if best.allocation is None else best.allocation.idle,
        uplinks_stated=known,
        **range_data(None if figures is None or not known else figures.order.within),
    )


def orders_data(found: Comparison) -> list[OrderBeside]:
    """Each order with its distance to the best."""
    known = found.times_known
    return [
        OrderBeside(
            **vars(_figures(one.figures, known)),
            gap=one.gap if known else None,
            bound_gap=one.bound_gap if known else None,
        )
        for one in found.orders
    ]


def _figures(one: OrderFigures, known: bool) -> OrderParts:
    return OrderParts(
        name=one.order.name,
        objective_s=one.order.objective_s if known else None,
        seconds=one.order.seconds if known else None,
        bottlenecks=one.decisive if known else None,
        crossings=dict(one.crossings),
        matters_from=one.matters_from,
        matrix=one.order.matrix,
        hosts=one.hosts,
        **range_data(one.order.within if known else None),
    )


def hosts_data(
    solution: Solution, found: Comparison | None, *, explained: bool = False
) -> HostFields:
    """What an answer on named hosts says besides; nulls for others."""
    allocation = None if found is None else solution.allocation
    if allocation is None or found is None:
        nothing: dict[str, Any] = dict.fromkeys(one.name for one in fields(HostFields))
        return HostFields(**nothing)
    figures, best = found.best_figures, solution.best
    near = None if best is None else allocation.near
    return HostFields(
        hosts=None if figures is None else figures.hosts,
        idle=allocation.idle,
        inside=allocation.inside,
        with_programs_s=allocation.with_programs_s,
        orders=orders_data(found),
        near_orders=None
        if near is None
        else _near_data(near, solution.alternatives[0].objective_s),
        binding=list(_binding(found, figures)) if explained and figures is not None else None,
    )


def _near_data(near: HostsNear, best_s: float) -> NearHostOrders:
    return NearHostOrders(
        within=near.within,
        status=cast(NearStatus, near.status.value),
        count=near.count,
        looked=near.looked,
        orders=[
            NearHostOrder(**asdict(one), gap=max(0.0, one.objective_s / best_s - 1))
            for one in near.orders
        ],
    )


def _binding(found: Comparison, best: OrderFigures) -> Iterator[BindingLinks]:
    if not found.times_known:
        return
    each = zip(
        *(found.problem.requests, best.order.seconds, best.decisive, best.wire_s), strict=True
    )
    for request, seconds, decisive, wire_s in each:
        levels = dict(zip(found.problem.topology.names, wire_s, strict=True))
        yield BindingLinks(
            request=str(request),
            times=request.times,
            seconds=seconds,
            levels=levels,
            decided_by=decisive,
        )


# What is said of an answer where uplinks have no stated bandwidth, or cannot block.


NON_BLOCKING = (
    "no uplink of a switch can block here: every order of the hosts is optimal in bandwidth"
)


def unstated_lines(found: Comparison) -> Iterator[str]:
    """That times cannot be told, and from which oversubscription the order matters; nothing where
    every bandwidth is stated."""
    assumed = unstated_levels(found.problem.topology)
    if not assumed:
        return
    yield no_time_line(assumed)
    yield (
        "on a non-blocking tree every order is optimal in bandwidth: no uplink is then the "
        "bottleneck of any"
    )
    every = [one.figures.matters_from for one in found.orders]
    least = min((one for one in every if one is not None), default=math.inf)
    if math.isinf(least):
        yield "no order here uses these uplinks"
    else:
        from_there = f"from an oversubscription of {plain(least)} on"
        yield f"{from_there}, uplinks slow one of these orders down"
    remedy = f"--uplink {assumed[-1]}=400GB/s or --oversubscription {assumed[-1]}=4"
    yield f"to state it, give {remedy} to topology import"


def non_blocking_lines(found: Comparison) -> Iterator[str]:
    """That orders do not differ in bandwidth, where each uplink carries all that its hosts send."""
    topology = found.problem.topology
    if topology.hosts is None or topology.node_level < 1 or not found.times_known:
        return
    if not blocking_levels(topology):
        yield NON_BLOCKING


def network_lines(found: Comparison) -> Iterator[str]:
    """Both, as notes."""
    yield from unstated_lines(found)
    yield from non_blocking_lines(found)
