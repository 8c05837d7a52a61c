"""What a synthesis found, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.result import Status
from p2smt.schedules.certificate.certificate import BoundKind
from p2smt.schedules.verify.report import Verdict
from p2smt.search.schedule.synthesis.answer import LETTERS, Answer, Synthesis
from p2smt.search.schedule.synthesis.question import CHUNKS_OF, SynthesisSetting, shown_collective
from p2smt.units import format_time

if TYPE_CHECKING:
    from p2smt.problems.sums import ScheduleClass
    from p2smt.search.schedule.bounds.rate import RateBound
    from p2smt.search.schedule.frontier import FrontierPoint, ScheduleFrontier

OTHER_SIZES = "more chunks at the same R/C, or more rounds, may still have a schedule"
OUTSIDE = "switches that copy or add (NVLS, SHARP) and coding across chunks are outside every bound"
UNMADE = "the time limit came before the fabric was made"
_WORDS = {
    Status.FEASIBLE: "schedule",
    Status.INFEASIBLE: "none",
    Status.UNKNOWN: "unknown",
}


def synthesis_tables(found: Synthesis) -> RenderableType:
    """The answer, what proves it, and what was searched."""
    alike = Counter((a.order, a.family, a.status, a.why) for a in found.attempts)
    rows = [
        [_groups(order, count), _family(family), _WORDS[status], why]
        for (order, family, status, why), count in alike.items()
    ]
    searches = table("searches", ["symmetries", "class", "answer", ""], rows)
    shown: list[RenderableType] = ["", searches] if rows else []
    return Group(*_lines(found), *shown)


def _lines(found: Synthesis) -> Iterator[str]:
    yield printable(found.reason + (f": {found.detail}" if found.detail else ""))
    yield f"{setting_words(found.setting)}: {_size_words(found)}"
    yield from _bound_lines(found)
    if found.status is Answer.SCHEDULE:
        yield found_words(found)
        yield verdict_words(found)
    yield f"in {format_time(found.wall_s)}"


def setting_words(setting: SynthesisSetting) -> str:
    """Such as ``all-gather on dgx1, 8 ranks``."""
    root = f" of root {setting.root}" if setting.rooted else ""
    fabric = printable(setting.fabric.name)
    return f"{shown_collective(setting.collective)}{root} on {fabric}, {setting.fabric.ranks} ranks"


def _size_words(found: Synthesis) -> str:
    size, of = found.size, CHUNKS_OF[found.setting.collective]
    return (
        f"{_many(size.steps, 'step')}, {_many(size.rounds, 'round')}, "
        f"{_many(size.chunks, 'chunk')} {of}: R/C = {size.rate}"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _bound_lines(found: Synthesis) -> Iterator[str]:
    if found.bound is None:
        return
    if found.bound.kind is BoundKind.DISTANCE:
        yield f"bound: at least {_many(int(found.bound.value), 'step')} (distance)"
        return
    word = "optimal" if found.optimal else "bound"
    yield f"{word}: {bound_words(found.bound, found.size.steps)}"
    if found.status is Answer.NO_SCHEDULE and found.rate == found.bound.value:
        yield OTHER_SIZES
    yield OUTSIDE


def bound_words(bound: RateBound, steps: int | None) -> str:
    """What a bound on the rate says."""
    within = "any number of steps" if steps is None else _many(steps, "step")
    return f"R/C is at least {bound.value} in {within}, whatever the chunks ({bound.kind})"


def found_words(found: Synthesis) -> str:
    """By which search it was found."""
    order = found.group_order or 1
    how = f"with a group of {order} symmetries" if order > 1 else "without symmetry"
    return f"found {how}" + (f", class {_family(found.family)}" if found.family else "")


def verdict_words(found: Synthesis) -> str:
    """What the check of the schedule says."""
    if found.report is None:
        return "not checked: it is no schedule file"
    if found.report.verdict is Verdict.VALID:
        return "verified: right in every interleaving"
    return f"not settled whether it is right in every interleaving: {found.report.reason}"


def _groups(order: int, count: int) -> str:
    """So many groups of an order, or ways in which they move chunks."""
    if order == 1:
        return "none"
    return f"group of {order}" if count == 1 else f"{count} groups of {order}"


def _family(family: ScheduleClass | None) -> str:
    return "" if family is None else f"{LETTERS[family]} ({family.value})"


def frontier_tables(found: ScheduleFrontier) -> RenderableType:
    """The points with their proofs, and why there are no more."""
    of = CHUNKS_OF[found.setting.collective]
    columns = [">steps", ">bound", ">R/C", ">rounds", ">chunks", "class", "symmetries", "proof"]
    made = table(f"rounds a chunk by steps; chunks {of}", columns, map(_row, found.points))
    return Group(setting_words(found.setting), "", made, "", *_ending_lines(found))


def _row(point: FrontierPoint) -> list[str]:
    one = point.found
    if one is None:
        return [str(point.steps), str(point.bound.value), *[""] * 5, proof_words(point)]
    order = one.group_order or 1
    return [
        *(str(point.steps), str(point.bound.value), str(one.rate)),
        *(str(one.size.rounds), str(one.size.chunks), _family(one.family)),
        *("none" if order == 1 else f"group of {order}", proof_words(point)),
    ]


def proof_words(point: FrontierPoint) -> str:
    """Whether the best in so many steps is proved, and by what; or the gap."""
    if point.gap is None:
        return "no schedule found"
    if not point.proved:
        gap = f"gap {100 * float(point.gap):.2g} %"
        return gap if point.found else f"{gap} to fewer steps"
    optimal = f"optimal ({point.bound.kind})"
    return optimal if point.found else f"as good with fewer steps ({point.bound.kind})"


def _ending_lines(found: ScheduleFrontier) -> Iterator[str]:
    yield f"ends: {found.ending.value}"
    if found.limit is not None:
        yield f"limit: {bound_words(found.limit, None)}"
    yield OUTSIDE
    yield f"in {format_time(found.wall_s)}"
