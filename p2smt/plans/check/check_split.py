"""What proves a split of a payload over programs, and that none gains more: by fractions alone.

**A split** sends parts of the payload through programs that run at once, each part whole.  A step
begins when that before it has ended, and has the links of each level for as long as it transfers
there; no other step has them then.  So its time is the end of the last step.  The links of a level
count as one, like those of programs in chunks (:mod:`p2smt.cost.step_time`): where steps load other
links of a level most, they could share it better.

**No split is faster.**  Levels have prices y_l >= 0, 1 in all.  A step of program p, run in way w,
takes the links of level l for a(p, l, w) seconds per byte of the payload.  Parts x_p add up to 1,
and every level is taken one part after another, whatever starts when and in however many chunks.
So the time is at least, for a payload of n bytes,

    n sum_l y_l sum_p x_p a(p, l)  >=  n min_p sum of its steps' min_w sum_l y_l a(step, l, w)

and also at least what the steps of some program take of no bytes.  Every program of the request
counts, and every way that its library has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import ProgramOperation, RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import StepTime
from p2smt.parallelism.request import Request
from p2smt.plans.file_model import SplitModel
from p2smt.plans.sides import part_bytes
from p2smt.programs.check import checked_once
from p2smt.programs.program import Grouping, Program, parse_program
from p2smt.result import SAME


class LeastSplit:
    """What no split of a request over programs is below, at prices of the levels.

    ``steps``: of each program the part of the payload that a step works on and the number of its
    instruction; ``rates``: of each instruction the ways, in seconds per byte at each level.
    """

    def __init__(self, scene: Scene, kind: RequestKind, programs: Sequence[Program]) -> None:
        self.scene, hierarchy = scene, scene.hierarchy
        self.steps = list[list[tuple[Fraction, int]]]()
        self.keys: dict[tuple[ProgramOperation, Grouping], int] = {}
        self.rates: list[list[tuple[Fraction, ...]]] = []
        self._empty_s: list[float] = []
        for program in programs:
            rows = checked_once(demand_of(kind), hierarchy, program).trace.payload_rows
            parts = [Fraction(count, hierarchy.size) for count in rows]
            keys = [
                self._key(one.collective, hierarchy.grouping(one)) for one in program.instructions
            ]
            self.steps.append(list(zip(parts, keys, strict=True)))

    def _key(self, collective: ProgramOperation, grouping: Grouping) -> int:
        """The number of an instruction, whose ways are looked up once."""
        if (collective, grouping) not in self.keys:
            self.keys[collective, grouping] = len(self.rates)
            model = self.scene.step_model(collective, grouping)
            every = {tuple(map(Fraction, way.level_s_per_byte)) for way in model.ways}
            self.rates.append(sorted(every))
            self._empty_s.append(min(way.seconds(0.0) for way in model.ways))
        return self.keys[collective, grouping]

    def seconds(self, prices: Sequence[Fraction], payload_bytes: int) -> float:
        """What every split of so many bytes takes at least."""
        return max(float(self.per_byte(prices) * payload_bytes), self.empty_s)

    @cached_property
    def empty_s(self) -> float:
        """What every program takes at least, whatever its part: latencies and calls."""
        return min(sum(self._empty_s[key] for _, key in steps) for steps in self.steps)

    def per_byte(self, prices: Sequence[Fraction]) -> Fraction:
        """Seconds per byte that every split takes at least."""
        costs = [min(_priced(prices, rate) for rate in rates) for rates in self.rates]
        every = (
            sum((part * costs[key] for part, key in steps), Fraction(0)) for steps in self.steps
        )
        return min(every)

    def one(self, prices: Sequence[Fraction]) -> Fraction:
        """Seconds per byte that one program comes near in ever more chunks, by the way of each step
        that is cheapest at these prices."""
        ways = [min(rates, key=lambda rate: _priced(prices, rate)) for rates in self.rates]
        return min(max(_loads(steps, ways, len(prices))) for steps in self.steps)


def _loads(
    steps: Sequence[tuple[Fraction, int]], ways: Sequence[Sequence[Fraction]], levels: int
) -> list[Fraction]:
    """What a program loads of each level."""
    every = range(levels)
    return [sum((part * ways[key][j] for part, key in steps), Fraction(0)) for j in every]


def _priced(prices: Sequence[Fraction], rates: Sequence[Fraction]) -> Fraction:
    return sum((y * rate for y, rate in zip(prices, rates, strict=True)), Fraction(0))


def overlaps(
    steps: Sequence[Sequence[StepTime]], starts: Sequence[Sequence[float]]
) -> Iterator[str]:
    """What keeps parts from running so: a step before the one before it has ended, or two steps
    that have the links of a level at once."""
    taken: list[list[tuple[float, float]]] = [[] for _ in steps[0][0].level_s_per_byte]
    for number, (own, at) in enumerate(zip(steps, starts, strict=True), 1):
        if len(own) != len(at):
            yield f"part {number} has {len(own)} steps and {len(at)} starts"
            return
        ends = [a + step.seconds for a, step in zip(at, own, strict=True)]
        if any(b < a * (1 - SAME) for a, b in zip(ends, at[1:], strict=False)):
            yield f"a step of part {number} begins before the one before it has ended"
        for start, step in zip(at, own, strict=True):
            for level, wire_s in enumerate(step.level_wire_s):
                taken[level].append((start, start + wire_s))
    for level, every in enumerate(taken):
        used = sorted((a, b) for a, b in every if b > a)
        if any(b[0] < a[1] * (1 - SAME) for a, b in pairwise(used)):
            yield f"two steps have the links of level {level} at once"


def end_s(steps: Sequence[Sequence[StepTime]], starts: Sequence[Sequence[float]]) -> float:
    """When the last step has ended."""
    return max(at[-1] + own[-1].seconds for own, at in zip(steps, starts, strict=True))


# Against a file.


def split_faults(
    model: SplitModel, request: Request, single_s: float, scene: Scene, least: LeastSplit | None
) -> Iterator[str]:
    """What a split of a file misstates, beside its parts as requests.

    ``request`` takes ``single_s`` by one program; ``least`` is None where not every program of it
    is known.
    """
    yield from _price_faults(model, request, scene, least)
    if not model.parts:
        if abs(model.seconds - single_s) > SAME * single_s:
            yield f"takes {model.seconds} s without parts, and its program {single_s} s"
        return
    shares = [Fraction(part.share) for part in model.parts]
    if sum(shares) != 1 or min(shares) <= 0:
        yield f"shares {', '.join(map(str, shares))} are not positive, or not 1 in all"
        return
    parts = [part.request for part in model.parts]
    if [part.bytes for part in parts] != part_bytes(request.payload_bytes, shares):
        yield "its parts have not the bytes of their shares"
    others = {(part.kind, tuple(part.axes), part.times, part.chunks) for part in parts}
    if others != {(request.kind, request.axes, request.times, 1)}:
        yield "its parts are not of the kind, axes and times of their request, each in one chunk"
        return
    steps = [_steps(scene, request, part.program or "", part.bytes) for part in parts]
    starts = [part.starts_s for part in model.parts]
    faults = list(overlaps(steps, starts))
    yield from faults
    if not faults and abs(end_s(steps, starts) - model.seconds) > SAME * model.seconds:
        yield f"its last step ends after {end_s(steps, starts)} s, not {model.seconds} s"


def _steps(scene: Scene, request: Request, text: str, payload: int) -> tuple[StepTime, ...]:
    program = scene.hierarchy.canonical(parse_program(text))
    assert isinstance(request.kind, RequestKind)
    rows = checked_once(demand_of(request.kind), scene.hierarchy, program).trace.payload_rows
    return scene.program_times(program, rows, payload)


def _price_faults(
    model: SplitModel, request: Request, scene: Scene, least: LeastSplit | None
) -> Iterator[str]:
    prices = [Fraction(one.price) for one in model.prices]
    names = [one.level for one in model.prices]
    if model.least_s is None:
        if prices:
            yield "it has prices that prove nothing"
    elif names != list(scene.topology.names) or sum(prices) != 1 or min(prices) < 0:
        yield "its prices are not one of each level, from 0 on and 1 in all"
    elif least is None:
        yield "it claims a bound, and not every program of the request is known"
    elif model.least_s > (proved := least.seconds(prices, request.payload_bytes)) * (1 + SAME):
        yield f"its prices prove {proved} s, and not {model.least_s} s"
    elif model.seconds < model.least_s * (1 - SAME):
        yield f"it takes {model.seconds} s, which is below {model.least_s} s"
