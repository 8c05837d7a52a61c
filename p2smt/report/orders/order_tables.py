"""Rank orders side by side, for people."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from p2smt.report.orders.unstated import non_blocking_lines, unstated_lines
from p2smt.report.tables import bound_text, table
from p2smt.report.text import printable
from p2smt.result import Status
from p2smt.search.comparison.compare import Comparison
from p2smt.search.comparison.figures import Decisive, OrderFigures
from p2smt.units import format_bytes, format_time


def comparison_tables(found: Comparison) -> RenderableType:
    """What could be gained, the orders, and what decides each request of them."""
    if not found.times_known:
        return Group(*unstated_lines(found), "", crossing_table(found))
    return Group(*_headline(found), "", orders_table(found), "", request_times(found))


def _headline(found: Comparison) -> Iterator[str]:
    best = found.best
    if best.interrupted:
        yield "interrupted: the best found so far"
    if best.best is None:
        yield f"{best.status.value}: no best order was found; give the search more time"
        return
    best_s = best.best.objective_s
    proved = "proved" if best.status is Status.OPTIMAL else "found, not proved"
    yield f"best order {proved}: {format_time(best_s)} per iteration, one collective per request"
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


def orders_table(found: Comparison) -> Group:
    """An order a line: its time, how much more than the best, and what decides its largest part."""
    rows = []
    if found.best_figures is not None:
        rows.append(_row(found, found.best_figures, "best", 0.0))
    rows += [_row(found, one.figures, printable(one.name), one.gap) for one in found.orders]
    levels = [name for name, _ in found.orders[0].figures.crossings]
    crossed = [f">{name} crossings" for name in levels]
    return table(
        "orders of ranks, one collective per request",
        ["order", ">time", ">slower by", *crossed, "decided by"],
        rows,
    )


def _row(found: Comparison, one: OrderFigures, name: str, gap: float | None) -> list[str]:
    counts = [str(count) for _, count in one.crossings]
    slower = "" if gap is None else f"{100 * gap:.3g} %"
    decisive = one.decisive[_largest(found, one)]
    return [name, format_time(one.order.objective_s), slower, *counts, decided_by(decisive)]


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
    return "never" if ratio is None or math.isinf(ratio) else f"{ratio:.3g}"
