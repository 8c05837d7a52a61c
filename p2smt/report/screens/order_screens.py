"""The first screens of `compare`, and of `solve` on named hosts: the gain over other orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.plans.solution import Alternative, Solution, rank_hosts
from p2smt.report.order_tables import (
    crossing_table,
    decided_by,
    headline,
    near_words,
    non_blocking_lines,
    orders_table,
    unstated_lines,
)
from p2smt.report.screen import COLUMNS, LINES, ScreenBlock, fitted, full_width, room, screen
from p2smt.report.screens.solutions import (
    memory_block,
    next_block,
    request_blocks,
    shown_requests,
    verdict_lines,
)
from p2smt.report.solution_tables import stability
from p2smt.report.tables import bound_text, table_lines
from p2smt.report.text import printable
from p2smt.units import counted, format_time, plain

if TYPE_CHECKING:
    from p2smt.search.comparison import ComparedOrder, Comparison, OrderFigures

_MORE = "next: p2smt solve with these options -o PLAN; requests by order: --details"


def comparison_screen(found: Comparison) -> list[str]:
    """What the best order gains, then the orders with what decides them."""
    if not found.times_known:
        return _unstated(found, LINES)
    head = full_width([*_loss(found), *headline(found)])
    lines = table_lines(orders_table(found, short=True), COLUMNS)
    return [*head, "", *fitted(lines, room(["", _MORE], head)), _MORE]


def _loss(found: Comparison) -> Iterator[str]:
    """How much longer the first order takes than the best: what is gained by taking that."""
    first = found.orders[0]
    if first.gap is not None and first.gap > 0:
        name = printable(first.name)
        yield f"{name} takes {plain(100 * first.gap)} % longer than the best order"


def _unstated(found: Comparison, most: int) -> list[str]:
    lines = [*full_width(unstated_lines(found)), ""]
    return fitted([*lines, *table_lines(crossing_table(found), COLUMNS)], most)


def hosts_screen(
    solution: Solution,
    found: Comparison,
    below: Sequence[str] = (),
    file: str | None = None,
    *,
    explained: bool = False,
) -> list[str]:
    """The time and its proof, the other orders beside it, the hosts, the requests.

    ``below``: lines of others, for which there must be room.  ``file``: the plan was written to it.
    ``explained``: also what binds.
    """
    best = solution.best
    if best is None:
        return [f"{solution.status.value}: no order was found; give the search more time"]
    if not found.times_known:
        lines = _unstated(found, max(1, room(below) - 4))
        return [*lines, *screen([_hosts(solution, best)], 4)]
    head = full_width(verdict_lines(solution, best, ", one collective per request"))
    blocks = [*_blocks(solution, found, best, explained=explained), next_block(file)]
    return [*head, *screen(blocks, room(below, head))]


def _blocks(
    solution: Solution, found: Comparison, best: Alternative, *, explained: bool
) -> Iterator[ScreenBlock]:
    yield ScreenBlock("gain", tuple(_beside(found.orders)), 9, 6)
    yield ScreenBlock("bounds", (bound_text("proved", solution.bound_s, best.objective_s),), 6, 2)
    yield _hosts(solution, best)
    allocation = solution.allocation
    idle = allocation.idle if allocation is not None else ()
    yield ScreenBlock("idle", (", ".join(map(printable, idle)),) * bool(idle), 8, 2)
    each = zip(shown_requests(solution, best), best.requests, strict=True)
    yield from request_blocks([replace(one, label=answer.label) for one, answer in each])
    if explained and found.best_figures is not None:
        yield ScreenBlock("binds", tuple(_binding(found, found.best_figures)), 8, 4)
    notes = (*map(printable, solution.notes), *non_blocking_lines(found))
    yield ScreenBlock("caution", notes, 8, 3)
    if allocation is not None and allocation.with_programs_s is not None:
        words = f"{format_time(allocation.with_programs_s)} with programs on the same ranks"
        yield ScreenBlock("programs", (words,), 6, 1)
    if allocation is not None and allocation.near is not None:
        yield ScreenBlock("near", (near_words(allocation.near, solution.status),), 6, 2)
    if solution.sensitivity:
        yield ScreenBlock("if off", (stability(solution.sensitivity),), 7, 2)
    yield memory_block(best.peak_bytes)


def _beside(orders: Sequence[ComparedOrder]) -> Iterator[str]:
    """How much longer each order takes than the best; those alike in one line."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in orders:
        time = format_time(one.figures.order.objective_s)
        alike.setdefault((time, _slower(one.gap)), []).append(printable(one.name))
    for (time, slower), names in alike.items():
        yield f"{slower} {', '.join(names)}: {time}"


def _slower(gap: float | None) -> str:
    if gap is None:
        return "not compared with"
    if abs(gap) < 1e-9:
        return "nothing over"
    return f"{plain(100 * gap)} % over" if gap > 0 else f"none: {plain(-100 * gap)} % slower than"


def _hosts(solution: Solution, best: Alternative) -> ScreenBlock:
    """The hosts in the order of their ranks."""
    ranks = rank_hosts(solution.problem.topology, best.ranks) or ()
    names = [*dict.fromkeys(ranks)]
    axes = ",".join(f"{axis.name}={axis.size}" for axis in solution.problem.axes)
    listed = ", ".join(map(printable, names))
    words = f"{axes} on {counted(len(names), 'host')} in this order: {listed}"
    return ScreenBlock("where", (words,), 9, 4)


def _binding(found: Comparison, best: OrderFigures) -> Iterator[str]:
    """What each request waits for, and how long the fullest link of that level is busy."""
    for request, decisive in zip(found.problem.requests, best.decisive, strict=True):
        yield f"{request}: {decided_by(decisive)}"
