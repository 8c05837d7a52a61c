"""The first screen of `solve`: what is best and how sure, the gain, the programs, what next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from p2smt.plans.explanation import SEARCHED, Explanation
from p2smt.plans.ranges import range_of, request_ranges
from p2smt.plans.solution import Alternative, Solution
from p2smt.report.costs.request_table import (
    ShownRequest,
    after_comma,
    answered,
    gain_lines,
)
from p2smt.report.screen import (
    ScreenBlock,
    fitted,
    full_width,
    indented,
    plan_words,
    room,
    screen,
)
from p2smt.report.solution_tables import (
    bounds_text,
    checked_notes,
    near_line,
    nothing_text,
    order_notes,
    split_texts,
    stability,
)
from p2smt.report.tipping_points import tipping_point_text
from p2smt.units import counted, format_bytes, format_time, plain

_MOST_REQUESTS = 4
_MOST_RIVALS = 3


def solve_screen(
    solution: Solution, below: Sequence[str] = (), file: str | None = None
) -> list[str]:
    """The time and its proof, the gain, where axes lie, the programs, what comes near.

    ``below``: lines of others, for which there must be room.  ``file``: the plan was written to it.
    """
    best = solution.best
    if best is None:
        return fitted(full_width([nothing_text(solution)]), room(below))
    head = full_width(verdict_lines(solution, best))
    return [*head, *screen(_blocks(solution, best, file), room(below, head))]


def verdict_lines(solution: Solution, best: Alternative, how: str = "") -> Iterator[str]:
    """The status with the time and its range; before it that the search was interrupted."""
    if solution.interrupted:
        yield "interrupted: the best found so far"
    what = "total" if solution.problem.objective == "sum" else "largest request"
    within = after_comma(range_of(solution.problem, best))
    time = format_time(best.objective_s)
    yield f"{solution.status.value}: {time} per iteration ({what}){how}{within}"


def _blocks(solution: Solution, best: Alternative, file: str | None) -> Iterator[ScreenBlock]:
    yield ScreenBlock("gain", tuple(gain_lines(solution, short=True)), 9, 4)
    yield ScreenBlock("bounds", (bounds_text(solution, best),), 6, 2)
    yield placement_block(
        [(axis.name, axis.size) for axis in solution.problem.axes],
        solution.problem.topology.names,
        best.matrix,
        best.placement.text(),
    )
    yield from request_blocks(shown_requests(solution, best))
    if solution.splits is not None:
        yield ScreenBlock("split", tuple(split_texts(solution, best)), 9, 5)
    notes = (*solution.notes, *order_notes(solution))
    yield ScreenBlock("caution", notes, 8, 4)
    yield ScreenBlock("rests", tuple(checked_notes(solution, best)), 3, 2)
    yield memory_block(best.peak_bytes)
    yield from _others(solution)
    yield next_block(file)


def next_block(file: str | None) -> ScreenBlock:
    """What comes after an answer, which was written to ``file``, or is not yet."""
    words = f"{plan_words(file)} --to FORMAT; all tables: --details"
    return ScreenBlock("next", (words,), 5, 2)


def memory_block(peak_bytes: int) -> ScreenBlock:
    """The most memory that the payload of a request takes on a device."""
    words = f"{format_bytes(peak_bytes)} of payload a device; no parameters or activations"
    return ScreenBlock("memory", (words,), 4, 1)


def shown_requests(solution: Solution, best: Alternative) -> list[ShownRequest]:
    """The requests of an answer in words."""
    topology, ranges = solution.problem.topology, request_ranges(solution.problem, best)
    pairs = zip(best.requests, ranges, strict=True)
    return [answered(answer, topology, within) for answer, within in pairs]


def placement_block(
    axes: Sequence[tuple[str, int]],
    levels: Sequence[str],
    matrix: Sequence[Sequence[int]] | None,
    text: str,
) -> ScreenBlock:
    """Each axis with its factors at the levels, and the matrix as options take it."""
    if matrix is None:
        order = ",".join(f"{name}={size}" for name, size in axes)
        words = f"{order}: no matrix expresses this order; devices of ranks 0, 1, ..: {text}"
        return ScreenBlock("where", (words,), 9, 3)
    each = (
        f"{name}={size} as {_factors(levels, row)}"
        for (name, size), row in zip(axes, matrix, strict=True)
    )
    return ScreenBlock("where", (f"placement {text}: {'; '.join(each)}",), 9, 4)


def _factors(levels: Sequence[str], row: Sequence[int]) -> str:
    parts = [f"{name} {size}" for name, size in zip(levels, row, strict=True) if size > 1]
    return " x ".join(parts) or "1"


def request_blocks(requests: Sequence[ShownRequest]) -> Iterator[ScreenBlock]:
    """The requests that take longest in their order: time, what decides it, and the program."""
    order = sorted(range(len(requests)), key=lambda at: -requests[at].total_s)
    first, largest = True, sorted(order[:_MOST_REQUESTS])
    for at in largest:
        weight = 8 - order.index(at)
        yield ScreenBlock("requests" * first, _request_texts(requests[at]), weight, 3)
        first = False
    if rest := [requests[at] for at in order[_MOST_REQUESTS:]]:
        took = format_time(sum(one.total_s for one in rest))
        yield ScreenBlock("", (f"and {counted(len(rest), 'other')}, {took} in all",), 5, 1)


def _request_texts(one: ShownRequest) -> tuple[str, ...]:
    """A line of the request, and its program where that is more than the request itself."""
    decides = f", decided by {one.regime}" if one.regime else ""
    head = f"{format_time(one.total_s):>8}  {one.label}{decides}"
    program = "; ".join(step.instruction for step in one.steps)
    if not program or one.label.startswith(f"{program} "):
        return (head,)
    return (head, indented(program, 10))


def _others(solution: Solution) -> Iterator[ScreenBlock]:
    """The next best placements, how many are near, and how the answer stands changes."""
    best_s = max(solution.alternatives[0].objective_s, 1e-300)
    rows = [
        f"{n}. {format_time(one.objective_s)}, {plain(one.objective_s / best_s)}x: "
        f"{one.placement.text()}"
        for n, one in enumerate(solution.alternatives[1 : 1 + _MOST_RIVALS], start=2)
    ]
    more = len(solution.alternatives) - 1 - len(rows)
    rows += [f"and {more} more of the ranking"] * (more > 0)
    near = near_line(solution)
    yield ScreenBlock("others", (*rows, *([near] if near else [])), 4, _MOST_RIVALS + 2)
    if (compared := solution.compared) is not None and solution.best is not None:
        ratio = compared.objective_s / max(solution.best.objective_s, 1e-300)
        words = f"{format_time(compared.objective_s)}, {plain(ratio, 4)}x"
        yield ScreenBlock("yours", (f"{compared.name} layout, one collective each: {words}",), 9, 2)
    if solution.sensitivity:
        yield ScreenBlock("if off", (stability(solution.sensitivity),), 7, 2)
    if solution.explanation is not None:
        yield ScreenBlock("flips", _flips(solution.explanation), 7, 4)


def _flips(found: Explanation) -> tuple[str, ...]:
    """The nearest numbers at which another placement or program wins, and how much is open."""
    if found.placements is None:
        return (f"not explained: {found.why}",)
    programs = (one for one in found.flips if one.request is not None and one.factor is not None)
    nearest = min(programs, key=lambda one: one.factor or math.inf, default=None)
    each = dict.fromkeys([found.nearest(hardware=True), found.nearest(), nearest])
    texts = [tipping_point_text(one) for one in each if one is not None]
    texts = texts or [f"no number was found that another answer wins by, up to {SEARCHED}x"]
    open_ = found.unsettled()
    return (*texts, *(f"{counted(open_, 'number')} not settled",) * bool(open_))
