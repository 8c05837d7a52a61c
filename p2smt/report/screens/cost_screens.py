"""The first screens of `cost`: the time first, then what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Group

from p2smt.cluster.library.model import NO_LIBRARY, Library
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.file_model import AnyPlan
from p2smt.plans.ranges import range_of, range_of_answer, request_ranges
from p2smt.plans.sides import plan_sides
from p2smt.plans.solution import Alternative
from p2smt.report.costs.cost_tables import (
    answer_parts,
    answer_steps,
    library_words,
    plan_headline,
)
from p2smt.report.costs.request_table import after_comma, answered, planned
from p2smt.report.costs.sweep import fastest_line, request_sweep
from p2smt.report.screen import (
    COLUMNS,
    LINES,
    ScreenBlock,
    fitted,
    full_width,
    indented,
    room,
    screen,
)
from p2smt.report.screens.solutions import memory_block, placement_block, request_blocks
from p2smt.report.tables import table_lines
from p2smt.units import counted, format_bytes, format_time

if TYPE_CHECKING:
    from p2smt.plans.check.check_plan import PlanReport
    from p2smt.plans.given_program import Sweep
    from p2smt.resharding.redistribution_plan import RedistributionPlan

_MOST_SIZES = 12


def cost_screen(problem: Problem, candidates: Sequence[Alternative]) -> list[str]:
    """The time of the requests, or of the programs of the one request."""
    if len(problem.requests) > 1:
        return _requests(problem, candidates[0])
    if len(candidates) > 1:
        return _programs(problem, candidates)
    (found,) = candidates
    (answer,) = found.requests
    within = range_of_answer(problem, found)
    time, *others = answer_parts(answer, problem.topology, within.whole)
    head = full_width([f"{answer.request}: {time}", *(f"{answer.program}",) * bool(answer.program)])
    below = full_width(["; ".join(others)])
    steps = table_lines(Group(*answer_steps(answer, within)), COLUMNS)
    return [*head, *fitted(steps, room(below, head)), *below]


def _requests(problem: Problem, found: Alternative) -> list[str]:
    """Several requests: what they take together, then each."""
    what = "total" if problem.objective == "sum" else "largest request"
    time = f"{format_time(found.objective_s)} per iteration ({what})"
    head = full_width([time + after_comma(range_of(problem, found))])
    ranges = request_ranges(problem, found)
    each = zip(found.requests, ranges, strict=True)
    shown = [
        replace(answered(answer, problem.topology, within), label=answer.label)
        for answer, within in each
    ]
    blocks = [*request_blocks(shown), _library(problem), _next("bounds, steps")]
    return [*head, *screen(blocks, room((), head))]


def _programs(problem: Problem, candidates: Sequence[Alternative]) -> list[str]:
    """Several programs of a request: the fastest, then each as given with what decides it."""
    best = min(candidates, key=lambda found: found.objective_s).requests[0]
    head = full_width([f"fastest: {best.program} ({format_time(best.seconds)})"])
    blocks = [_program(problem, found) for found in candidates]
    single = f"{format_time(best.single_s)} by the single collective"
    blocks += [ScreenBlock("beside", (single,), 9, 1), _library(problem), _next("bounds, steps")]
    return [*head, *screen(blocks, room((), head))]


def _program(problem: Problem, found: Alternative) -> ScreenBlock:
    (answer,) = found.requests
    within = range_of_answer(problem, found).whole
    text = f"{format_time(answer.seconds):>8}{after_comma(within)}"
    return ScreenBlock("", (text, indented(str(answer.program), 10)), 8, 3)


def _library(problem: Problem) -> ScreenBlock:
    return ScreenBlock("library", (problem.topology.library_name or NO_LIBRARY,), 7, 1)


def _next(what: str) -> ScreenBlock:
    return ScreenBlock("next", (f"{what}: --details",), 7, 1)


# Times over sizes.


def sweep_screen(sweep: Sweep) -> list[str]:
    """Which is the fastest where, or the times at the ends; then the table at some of the sizes."""
    shown = _thinned(sweep, _MOST_SIZES // len(sweep.problem.requests))
    lines: list[str] = []
    for request in range(len(sweep.problem.requests)):
        lines += full_width([_verdict(sweep, request)])
        lines += table_lines(request_sweep(shown, request, short=True), COLUMNS)
    left = len(sweep.sizes) - len(shown.sizes)
    more = [library_words(sweep.problem.topology)]
    more += [f"{counted(left, 'more size')}: --details"] if left else []
    return [*fitted(lines, LINES - len(more)), *more]


def _verdict(sweep: Sweep, request: int) -> str:
    curves = sweep.curves(request)
    if len(curves) > 1:
        return fastest_line(sweep, request, curves)
    ends = zip(sweep.sizes, curves[0].seconds, strict=True)
    first, *_, last = [f"{format_time(s)} at {format_bytes(size)}" for size, s in ends] * 2
    name = sweep.problem.requests[request].name
    return f"{name}: {first}" + (f" to {last}" if len(sweep.sizes) > 1 else "")


def _thinned(sweep: Sweep, most: int) -> Sweep:
    """The sweep at so many of its sizes, the ends among them."""
    count, most = len(sweep.sizes), max(2, most)
    if count <= most:
        return sweep
    kept = [round(n * (count - 1) / (most - 1)) for n in range(most)]
    sizes = tuple(sweep.sizes[at] for at in kept)
    return replace(sweep, sizes=sizes, by_size=tuple(sweep.by_size[at] for at in kept))


# A file.


def plan_cost_screen(plan: AnyPlan, report: PlanReport, lines: Iterable[str]) -> list[str]:
    """The verdict on a plan, of a valid one its time, placement and requests; else what is wrong.

    ``lines``: what the check says.
    """
    verdict, *said = verdict_first(lines)
    if not report.valid:
        return fitted(full_width([verdict, *said]))
    told = [] if report.unstated else [*plan_headline(plan)]
    head = full_width([verdict, *told[:1]])
    return [*head, *screen(_plan_blocks(plan, report, told[1:-1], said), room((), head))]


def _plan_blocks(
    plan: AnyPlan, report: PlanReport, told: Sequence[str], said: Sequence[str]
) -> Iterator[ScreenBlock]:
    yield ScreenBlock("", tuple(told), 7, 3)
    levels = [level.name for level in plan.topology.levels]
    order = RankList(tuple(plan.ranks), tuple(axis.size for axis in plan.axes))
    for n, side in enumerate(plan_sides(plan, "plan")):
        one = plan if n == 0 else side.plan
        text = (
            order.text() if one.matrix is None else Placement(tuple(map(tuple, one.matrix))).text()
        )
        yield placement_block(
            [(axis.name, axis.size) for axis in one.axes], levels, one.matrix, text
        )
    if not report.unstated:
        yield from request_blocks([*map(planned, plan.requests, report.regimes)])
        yield memory_block(plan.peak_bytes)
        yield ScreenBlock("library", (_named(plan.topology.library),), 7, 1)
    yield ScreenBlock("rests", tuple(said), 4, 5)
    yield _next("steps and ranges")


def _named(library: Library | str | None) -> str:
    return library.name if isinstance(library, Library) else library or NO_LIBRARY


def verdict_first(lines: Iterable[str]) -> list[str]:
    """What a check says with its verdict before what is wrong."""
    found = [*lines]
    at = next((n for n, line in enumerate(found) if line.startswith(("valid", "invalid"))), 0)
    return [found[at], *found[:at], *found[at + 1 :]]


def redistribution_cost_screen(plan: RedistributionPlan | None, said: Sequence[str]) -> list[str]:
    """The verdict, and of a valid plan its time and its steps; ``said``: what the check says."""
    if plan is None:
        return fitted(full_width(said))
    from p2smt.report.resharding_tables import headline, steps_table

    head = full_width([said[0], "the file says " + "\n".join(headline(plan)), ""])
    below = full_width(said[1:])
    return [
        *head,
        *fitted(table_lines(steps_table(plan, short=True), COLUMNS), room(below, head)),
        *below,
    ]
