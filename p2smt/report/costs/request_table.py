"""Requests step by step, as every command shows them: an answer's, or those of a plan file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group

from p2smt.cluster.topology import Topology
from p2smt.cost.accuracy import PriceBasis, PriceRange
from p2smt.cost.regime import regime
from p2smt.cost.scene import NamedWay
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.ranges import RequestRange
from p2smt.plans.solution import (
    TIMED_STEP,
    Gain,
    ProgramGain,
    RequestAnswer,
    Solution,
    in_chunks,
    timed_steps,
)
from p2smt.plans.untimed import told
from p2smt.report.tables import table, times_title
from p2smt.result import SAME, Status
from p2smt.search.gain import single_of
from p2smt.units import format_bytes, format_time, plain

if TYPE_CHECKING:
    from p2smt.plans.file_model import RequestModel, StepModel


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step in words; ``bottleneck`` is the level whose worst link carries ``load_bytes``,
    ``within`` its range, and what that rests on where it is not what the request does."""

    instruction: str
    seconds: float
    how: str
    bottleneck: str | None
    load_bytes: float
    within: str

    @property
    def cells(self) -> list[str]:
        """Instruction, time, algorithm, bottleneck and range."""
        level = self.bottleneck
        worst = "" if level is None else f"{level} {format_bytes(self.load_bytes)}"
        return [self.instruction, format_time(self.seconds), self.how, worst, self.within]


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request in words, its time per iteration, and its steps (of one of ``chunks`` chunks).

    ``regime`` is what decides its time, ``within`` its range and what that rests on; empty: none.
    """

    label: str
    total_s: float
    chunks: int
    steps: tuple[ShownStep, ...]
    regime: str
    within: str


def _shown(step: Mapping[str, Any], within: str) -> ShownStep:
    """A step with the keys of TIMED_STEP in words, and its range."""
    how = f"{step['algorithm']} {step['protocol']}".strip()
    bottleneck, load = step["bottleneck"], step["load_bytes"]
    return ShownStep(step["instruction"], step["seconds"], how, bottleneck, load, within)


def how_of(step: StepTime) -> str:
    """What a step ran by."""
    return f"{step.algorithm} {step.protocol}".strip()


def shown_steps(answer: RequestAnswer, ranges: RequestRange) -> tuple[ShownStep, ...]:
    """The steps of an answer in words."""
    return tuple(map(_shown, timed_steps(answer), _step_cells(ranges)))


def _step_cells(ranges: RequestRange) -> Iterator[str]:
    """The ranges of several steps; a single one's is the request's."""
    whole, steps = ranges.whole, ranges.steps
    for one in steps:
        if one is None or whole is None or len(steps) == 1:
            yield ""
        elif one.known == whole.known:
            yield one.ends
        else:
            yield one.text


RANGE = "range"
"""Heading of what is known of times."""


def range_cell(within: PriceRange | None) -> str:
    """The range of a time and what it rests on; empty: it takes none."""
    return "" if within is None else within.text


def after_comma(within: PriceRange | None) -> str:
    """The same behind a time."""
    return "" if within is None else f", {within.text}"


def answered(answer: RequestAnswer, topology: Topology, ranges: RequestRange) -> ShownRequest:
    """The answer of a search: its label says what is not proved."""
    label, steps = answer.label + _open(answer.status), shown_steps(answer, ranges)
    within = ranges.whole
    decides = regime(topology, answer.steps, answer.chunks) or ""
    cell = range_cell(within and within.times(answer.request.times))
    return ShownRequest(label, answer.total_s, answer.chunks, steps, decides, cell)


def planned(model: RequestModel, decides: str | None) -> ShownRequest:
    """A request of a plan file, its numbers as the file states them, and what decides its time."""
    ranges = RequestRange(planned_range(model), tuple(map(planned_range, model.steps)))
    texts = ({key: getattr(step, key) for key in TIMED_STEP} for step in model.steps)
    steps = tuple(map(_shown, texts, _step_cells(ranges)))
    label = f"{model.as_request}{in_chunks(model.chunks)}{_open(model.status)}"
    total_s, within = model.times * told(model.seconds), ranges.whole
    cell = range_cell(within and within.times(model.times))
    return ShownRequest(label, total_s, model.chunks, steps, decides or "", cell)


def planned_range(model: RequestModel | StepModel) -> PriceRange | None:
    """The range of one execution, or of a step, that a plan file states; None: it states none."""
    if model.range_s is None or model.basis is None:
        return None
    low_s, high_s = model.range_s
    return PriceRange(told(model.seconds), low_s, high_s, model.basis, model.basis_why or "")


def _open(status: Status) -> str:
    return "" if status is Status.OPTIMAL else f" ({status.value})"


def request_table(requests: Iterable[ShownRequest]) -> Group:
    """A line per request, with the regime that decides its time, and one per step.

    The steps of a pipelined request are those of one chunk, and say so.
    """
    rows, chunks = [], []
    for request in requests:
        chunks.append(request.chunks)
        total = format_time(request.total_s)
        rows.append([request.label, total, "", request.regime, request.within])
        each = ", per chunk" if request.chunks > 1 else ""
        rows += [[f"  {step.cells[0]}{each}", *step.cells[1:]] for step in request.steps]
    columns = ["request and steps", ">time", "algorithm", "bottleneck", RANGE]
    return table(times_title(chunks), columns, rows)


def layout_table(
    axes: Sequence[tuple[str, int]],
    levels: Sequence[str],
    matrix: Sequence[Sequence[int]] | None,
    order: str = "",
    title: str = "placement",
) -> Group:
    """Axes (name, size) by the levels; where no matrix expresses it, the text of a rank order."""
    rows = [[name, str(size)] for name, size in axes]
    if matrix is None:
        return Group(
            table("axes, outermost first", ["axis", ">size"], rows),
            f"no matrix expresses this order; devices of ranks 0, 1, ..: {order}",
        )
    split = [[*row, *map(str, entries)] for row, entries in zip(rows, matrix, strict=True)]
    return table(title, ["axis", ">size", *(f">{name}" for name in levels)], split)


def peak_line(peak_bytes: int) -> str:
    """The most memory that the payload of a request takes on a device, and what that leaves out."""
    return (
        f"peak payload per device {format_bytes(peak_bytes)}: buffers of the largest request, "
        "no parameters or activations"
    )


# What an answer gains, for people: how much, whether it would be measured, and by what.


WORTH_NAMING = 0.01
"""A smaller part of the programs' gain is not said to be the library's choice."""
MODEL_ONLY = "by the model only: no table has both algorithms"
KNOWN = "tables that have both algorithms on such a system agree"


def gain_lines(solution: Solution, *, short: bool = False) -> Iterator[str]:
    """The gain over the default layout, and how much of it naming an algorithm would give.

    ``short``: under a heading that says what it is, without the answer's own time.
    """
    gain = solution.gain
    if gain is None:
        return
    yield _over_default(gain, short)
    if gain.programs is not None:
        yield from choice_lines(gain.programs, len(solution.problem.requests))


def _over_default(gain: Gain, short: bool) -> str:
    """How much it is, the ranges of both times, and whether who measures would find it."""
    over, none = gain.over_default, "none" if short else "no gain"
    if over < -SAME:
        return f"{none}: {_percent(1 / (1 + over) - 1)} slower than the default layout"
    if over <= SAME:
        return f"{none}: the default layout takes no longer"
    told = gain.sides[-1:] if short else gain.sides
    sides = " against ".join(f"{format_time(one.seconds)}, {one.ends}" for one in told)
    why = next((f" ({one.why})" for one in gain.sides if one.basis is PriceBasis.ASSUMED), "")
    found = f"{gain.shown.value}{why}"
    if short:
        return f"{_percent(over)} over the default layout of {sides}: {found}"
    return f"gain {_percent(over)} over the default layout, {sides}: {found}"


def choice_lines(programs: ProgramGain, requests: int = 1) -> Iterator[str]:
    """Which part of what programs of so many requests gain is the library's choice, and how to
    make it; nothing unless that exceeds the ranges of both times."""
    if programs.part_by_choice < WORTH_NAMING or not programs.advised:
        return
    part, gained = _percent(programs.part_by_choice), _percent(programs.over_singles)
    each = "the single collective" if requests == 1 else "single collectives"
    ways = "; ".join(_way(*named) for named in programs.named)
    rests = _rests(*(way for _, way in programs.named))
    yield f"{part} of the programs' gain ({gained} over {each}) {ways}; {rests}"


def _way(request: Request, way: NamedWay) -> str:
    return f"{named_text(way)} for {request}"


def single_notes(
    problem: Problem, placement: Placement, answers: Iterable[RequestAnswer]
) -> tuple[str, ...]:
    """What to name for each single collective whose library takes a slower way, beyond both
    ranges."""
    singles = (
        single_of(problem, placement, answer.request)
        for answer in answers
        if len(answer.steps) == 1 and answer.chunks == 1 and answer.seconds == answer.single_s
    )
    return tuple(
        f"{one.request} takes {format_time(one.way.cheapest.seconds)} {named_text(one.way)}; "
        f"{_rests(one.way)}"
        for one in singles
        if one.advised and one.way
    )


def _rests(*ways: NamedWay) -> str:
    """What the advice rests on."""
    return KNOWN if all(way.known for way in ways) else MODEL_ONLY


def named_text(way: NamedWay) -> str:
    """What to name, and what the library's rule takes instead."""
    settings = f" ({way.settings})" if way.settings else ""
    return (
        f"by the library's own {how_of(way.cheapest)}{settings}: "
        f"its rule chooses {how_of(way.chosen)}{_tie(way)}"
    )


CLOSE = 0.1
"""Estimates of a library that are so near each other tell nothing: its constants are rounder."""


def _tie(way: NamedWay) -> str:
    """That the library is all but undecided."""
    if way.behind is None or not SAME < way.behind < CLOSE:
        return ""
    percent = _percent(round(way.behind, 2))
    return f", {percent} ahead by its own estimate, so that other hosts may differ"


def _percent(part: float) -> str:
    """A part as a percentage; what is rounding alone is nothing."""
    if abs(part) < SAME:
        return "0 %"
    return f"{plain(100 * part)} %"
