"""Symbolic costs as exact data: of one way of a step, of a program, and numbers put into them.

A program of steps that each run in one way costs

    c calls + sum_j A_j alpha_j + n sum_steps max_j(l_j beta_j) + sum_steps fill

with rationals A and l, and for symbols c (seconds of a call), alpha_j (seconds of a message at
level j), beta_j (seconds per byte on one of its ports or links) and n (bytes of the payload).
Filling the pipeline of a tree grows with the square root of the payload; nothing else has a fill.
Where a step may run in several ways, the least of them counts, or that which a library takes for
the payload.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

from p2smt.cluster.topology import Topology
from p2smt.cost.symbolic.curves import PayloadCurve, RootSum
from p2smt.errors import InputError, TooLarge
from p2smt.units import plain

Rationals = tuple[Fraction, ...]
"""A number for each level, from the outermost."""

MAX_FORMS = 4096
"""Most combinations of ways that a program is spelled out in."""


@dataclass(frozen=True, slots=True)
class LinkNumbers:
    """Numbers for the symbols: ``call_s`` is c, ``latency_s`` alpha, ``s_per_byte`` beta."""

    call_s: Fraction
    latency_s: Rationals
    s_per_byte: Rationals

    def __post_init__(self) -> None:
        if min((self.call_s, *self.latency_s, *self.s_per_byte)) < 0:
            raise InputError("numbers of links", "must not be negative")

    @staticmethod
    def of(topology: Topology) -> LinkNumbers:
        """Those of a topology's links, by the first protocol of each; a call costs nothing.

        Under a library :func:`p2smt.cost.symbolic.steps.library_numbers` says what they are.
        """
        first = [level.link.pieces[0] for level in topology.levels]
        return LinkNumbers(
            Fraction(0),
            tuple(decimal(piece.latency_s) for piece in first),
            tuple(1 / decimal(piece.bandwidth_bytes_per_s) for piece in first),
        )


@dataclass(frozen=True, slots=True)
class FillTerm:
    """Filling a pipeline: min(sqrt(factor n W S), most S); ``most`` None: the root alone.

    W = max_j(loads_j beta_j) is what the step transfers a byte in, S = sum of max_j(a_j alpha_j)
    over the rows a of ``stages`` what a chunk takes from one stage to the next.
    """

    factor: Fraction
    loads: Rationals
    stages: tuple[Rationals, ...]
    most: Fraction | None = None

    def stage_s(self, numbers: LinkNumbers) -> Fraction:
        """S with numbers."""
        return sum((max(map(_times, row, numbers.latency_s)) for row in self.stages), Fraction(0))

    def radicand(self, numbers: LinkNumbers) -> Fraction:
        """What stands under the root, a byte of payload."""
        wire = max(map(_times, self.loads, numbers.s_per_byte))
        return self.factor * wire * self.stage_s(numbers)

    def full_at(self, numbers: LinkNumbers) -> Fraction | None:
        """The payload from which ``most`` is less than the root; None: there is none."""
        radicand = self.radicand(numbers)
        if self.most is None or not radicand:
            return None
        return (self.most * self.stage_s(numbers)) ** 2 / radicand

    def of_share(self, share: Fraction) -> FillTerm:
        """The same where the payload is a share of n."""
        loads = tuple(load * share for load in self.loads)
        return FillTerm(self.factor, loads, self.stages, self.most)


@dataclass(frozen=True, slots=True)
class SymbolicWay:
    """One algorithm with one protocol: A_j and l_j of a step for the whole payload n.

    ``calls``: what its call costs, in units of c.
    """

    algorithm: str
    protocol: str
    latency: Rationals
    loads: Rationals
    calls: Fraction = Fraction(1)
    fill: FillTerm | None = None

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The step's time: call, latencies and the worst link.

        Raises:
            InputError: it has a square root.
        """
        return _form_of_one(self).seconds(numbers, payload_bytes)

    def value(self, numbers: LinkNumbers, payload_bytes: Fraction) -> RootSum:
        """The step's time, whatever it is."""
        return _form_of_one(self).value(numbers, payload_bytes)

    def of_share(self, share: Fraction) -> SymbolicWay:
        """The same where the payload is a share of n."""
        loads = tuple(load * share for load in self.loads)
        fill = None if self.fill is None else self.fill.of_share(share)
        return SymbolicWay(self.algorithm, self.protocol, self.latency, loads, self.calls, fill)


@dataclass(frozen=True, slots=True)
class SymbolicStep:
    """A step by its text and the ways to run it; none: nothing is sent, and it costs nothing.

    ``choice``: which of them a library takes, by n from 0 on; empty: the fastest runs.
    """

    text: str
    ways: tuple[SymbolicWay, ...]
    choice: tuple[ChosenCell, ...] = ()

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The time of the way that runs.

        Raises:
            InputError: it has a square root.
        """
        ways = self.ways_at(payload_bytes)
        return min((way.seconds(numbers, payload_bytes) for way in ways), default=Fraction(0))

    def value(self, numbers: LinkNumbers, payload_bytes: Fraction) -> RootSum:
        """The time of the way that runs, whatever it is."""
        every = [way.value(numbers, payload_bytes) for way in self.ways_at(payload_bytes)]
        least = every[0] if every else RootSum(Fraction(0))
        for other in every[1:]:
            least = other if other.plus(least, -1).sign() < 0 else least
        return least

    def ways_at(self, payload_bytes: Fraction) -> tuple[SymbolicWay, ...]:
        """The ways of which the fastest runs: that which a library takes, or all."""
        if not self.choice:
            return self.ways
        cell = next(one for one in self.choice if one.reaches(payload_bytes))
        return (self.ways[cell.way],)

    def ways_beyond(self, payload_bytes: Fraction) -> tuple[SymbolicWay, ...]:
        """The same for payloads that are a little larger."""
        later = (one for one in self.choice if one.high is None or payload_bytes < one.high)
        return next(((self.ways[one.way],) for one in later), self.ways)

    def of_share(self, share: Fraction) -> SymbolicStep:
        """The same where the payload is a share of n."""
        choice = tuple(one.of_share(share) for one in self.choice)
        return SymbolicStep(self.text, tuple(way.of_share(share) for way in self.ways), choice)


@dataclass(frozen=True, slots=True)
class CostForm:
    """The cost of a program of which every step runs in one way.

    ``maxima`` has the loads l_j of each step, those of proportional loads added up, in order: two
    programs with equal forms cost the same on every hardware.
    """

    calls: int | Fraction
    latency: Rationals
    maxima: tuple[Rationals, ...]
    fills: tuple[FillTerm, ...] = ()

    @staticmethod
    def of(ways: Sequence[SymbolicWay], levels: int) -> CostForm:
        """The form of a program whose steps run in these ways, over so many levels."""
        latency = tuple(sum((way.latency[j] for way in ways), Fraction(0)) for j in range(levels))
        calls = sum((way.calls for way in ways), Fraction(0))
        fills = [way.fill for way in ways if way.fill is not None]
        return CostForm(
            int(calls) if calls.denominator == 1 else calls,
            latency,
            merged_maxima([way.loads for way in ways]),
            tuple(sorted(fills, key=repr)),
        )

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The program's time.

        Raises:
            InputError: a pipeline's filling makes it no linear function of the payload.
        """
        if self.fills:
            rule = "has the square root of the payload, and no linear form"
            raise InputError("a pipelined algorithm", rule, "name one that is linear, such as ring")
        fixed = self.calls * numbers.call_s + _dot(self.latency, numbers.latency_s)
        return fixed + self.s_per_byte(numbers.s_per_byte) * payload_bytes

    def value(self, numbers: LinkNumbers, payload_bytes: Fraction) -> RootSum:
        """The program's time, whatever it is."""
        return self.curve(numbers, payload_bytes).value(payload_bytes)

    def s_per_byte(self, betas: Rationals) -> Fraction:
        """What each byte of a large payload takes, with one beta for each level."""
        return sum((max(map(_times, loads, betas)) for loads in self.maxima), Fraction(0))

    def full_at(self, numbers: LinkNumbers) -> tuple[Fraction, ...]:
        """The payloads from which some pipeline is full, ascending: the function changes there."""
        every = {fill.full_at(numbers) for fill in self.fills}
        return tuple(sorted(at for at in every if at is not None))

    def curve(self, numbers: LinkNumbers, below: Fraction | None) -> PayloadCurve:
        """The function of the payload up to ``below``, as far as no pipeline becomes full; None: of
        large payloads."""
        fixed = self.calls * numbers.call_s + _dot(self.latency, numbers.latency_s)
        radicands = []
        for fill in self.fills:
            full = fill.full_at(numbers)
            if full is not None and fill.most is not None and (below is None or below > full):
                fixed += fill.most * fill.stage_s(numbers)
            else:
                radicands.append(fill.radicand(numbers))
        return PayloadCurve.of(fixed, self.s_per_byte(numbers.s_per_byte), radicands)


def _form_of_one(way: SymbolicWay) -> CostForm:
    return CostForm.of([way], len(way.latency))


def merged_maxima(maxima: Sequence[Rationals]) -> tuple[Rationals, ...]:
    """The terms of a sum of maxima in order, proportional ones added up, zeros left out."""
    found: dict[Rationals, Fraction] = {}
    for loads in maxima:
        total = sum(loads, Fraction(0))
        if total:
            shape = tuple(load / total for load in loads)
            found[shape] = found.get(shape, Fraction(0)) + total
    return tuple(sorted(tuple(part * total for part in shape) for shape, total in found.items()))


@dataclass(frozen=True, slots=True)
class FormCell:
    """From ``low`` to ``high`` bytes (None: without end) a program costs the least of ``forms``.

    ``ways``: of each form, how the steps that send something run.  ``below``: at ``high`` itself
    the next cell holds.
    """

    low: Fraction
    high: Fraction | None
    forms: tuple[CostForm, ...]
    ways: tuple[tuple[SymbolicWay, ...], ...]
    below: bool = False


_StepWays = list[tuple[SymbolicWay, ...]]


@dataclass(frozen=True, slots=True)
class SymbolicCost:
    """What a program costs on a scene: its steps over the named levels."""

    levels: tuple[str, ...]
    steps: tuple[SymbolicStep, ...]

    def seconds(self, numbers: LinkNumbers, payload_bytes: Fraction) -> Fraction:
        """The program's time with numbers put in: exact.

        Raises:
            InputError: it has a square root.
        """
        return sum((step.seconds(numbers, payload_bytes) for step in self.steps), Fraction(0))

    def value(self, numbers: LinkNumbers, payload_bytes: Fraction) -> RootSum:
        """The program's time with numbers put in, whatever it is: exact."""
        total = RootSum(Fraction(0))
        for step in self.steps:
            total = total.plus(step.value(numbers, payload_bytes))
        return total

    def s_per_byte(self, betas: Rationals) -> Fraction:
        """What each byte of a large payload takes, by the ways that run then."""
        total = Fraction(0)
        for step in self.steps:
            ways = (step.ways[step.choice[-1].way],) if step.choice else step.ways
            total += min((max(map(_times, way.loads, betas)) for way in ways), default=Fraction(0))
        return total

    def form(self) -> CostForm | None:
        """Its form where each step runs in one way; None: in several."""
        ways = [step.ways for step in self.steps if step.ways]
        if any(len(several) > 1 for several in ways):
            return None
        return CostForm.of([one for (one,) in ways], len(self.levels))

    @property
    def chosen(self) -> bool:
        """Whether a library takes different ways for different payloads."""
        return any(len(step.choice) > 1 for step in self.steps)

    def forms(self) -> tuple[CostForm, ...]:
        """The distinct forms of which the least is its cost: one for each choice of ways.

        Raises:
            InputError: a library takes one or another by the payload.
            TooLarge: these are too many.
        """
        if self.chosen:
            rule = "a library chooses by the payload, so that no least of forms is the cost"
            raise InputError("a program", rule, "add --nominal --algorithm ring")
        return tuple(self._forms(self._ways_at(Fraction(0))))

    def cells(self) -> tuple[FormCell, ...]:
        """Its forms by the payload: one cell, or one for each choice of a library.

        Raises:
            TooLarge: there are too many forms.
        """
        ends = {cell.high for step in self.steps for cell in step.choice if cell.high is not None}
        bounds = [Fraction(0), *sorted(ends)]
        every = zip(bounds, [*bounds[1:], None], strict=True)
        return tuple(cell for low, high in every for cell in self._cells(low, high))

    def _cells(self, low: Fraction, high: Fraction | None) -> list[FormCell]:
        """The cell between two bounds, and one of the upper bound itself, where it is a third."""
        ways = self._ways_at(low + 1 if high is None else (low + high) / 2)
        if high is None:
            return [self._cell(low, None, ways)]
        at, beyond = self._ways_at(high), [step.ways_beyond(high) for step in self.steps]
        found = [self._cell(low, high, ways, at != ways)]
        return found if at in (ways, beyond) else [*found, self._cell(high, high, at)]

    def _ways_at(self, payload_bytes: Fraction) -> _StepWays:
        return [step.ways_at(payload_bytes) for step in self.steps]

    def _cell(
        self, low: Fraction, high: Fraction | None, ways: _StepWays, below: bool = False
    ) -> FormCell:
        forms = self._forms(ways)
        return FormCell(low, high, tuple(forms), tuple(forms.values()), below)

    def _forms(self, ways: _StepWays) -> dict[CostForm, tuple[SymbolicWay, ...]]:
        sending = [several for several in ways if several]
        count = math.prod(map(len, sending))
        if count > MAX_FORMS:
            rule = f"at most {MAX_FORMS} can be spelled out"
            raise TooLarge(f"{count} choices of algorithms", rule, "name one: --algorithm ring")
        return forms_of(sending, len(self.levels))


def forms_of(
    ways: Sequence[tuple[SymbolicWay, ...]], levels: int
) -> dict[CostForm, tuple[SymbolicWay, ...]]:
    """The distinct forms of steps that may run in these ways, each with the first that have it."""
    found: dict[CostForm, tuple[SymbolicWay, ...]] = {}
    for chosen in product(*ways):
        found.setdefault(CostForm.of(chosen, levels), chosen)
    return found


def _times(a: Fraction, b: Fraction) -> Fraction:
    return a * b


def _dot(a: Rationals, b: Rationals) -> Fraction:
    return sum(map(_times, a, b), Fraction(0))


# Up to which payload a library takes one way of a step.


@dataclass(frozen=True, slots=True)
class ChosenCell:
    """From ``low`` to ``high`` bytes (None: without end) a library takes the way of this index.

    ``below``: at ``high`` itself it takes that of the next cell.
    """

    low: Fraction
    high: Fraction | None
    way: int
    below: bool = False

    def reaches(self, payload_bytes: Fraction) -> bool:
        """Whether a payload is not beyond its end."""
        if self.high is None or payload_bytes < self.high:
            return True
        return payload_bytes == self.high and not self.below

    def of_share(self, share: Fraction) -> ChosenCell:
        """The same where the payload is a share of n."""
        high = None if self.high is None else self.high / share
        return ChosenCell(self.low / share, high, self.way, self.below)


# Which of many lines is least, where: exact cells of a number from one bound to another.


@dataclass(frozen=True, slots=True)
class PayloadLine:
    """The function at_zero + slope x."""

    at_zero: Fraction
    slope: Fraction

    def value(self, x: Fraction) -> Fraction:
        """Its value."""
        return self.at_zero + self.slope * x


@dataclass(frozen=True, slots=True)
class LeastCell:
    """From ``low`` to ``high`` (None: without end) the functions ``best``, by index, are least."""

    low: Fraction
    high: Fraction | None
    best: tuple[int, ...]


def line_cells(
    lines: Sequence[PayloadLine], low: Fraction, high: Fraction | None
) -> tuple[LeastCell, ...]:
    """The cells of the least line between two bounds; of equal lines all are named."""
    at, cells = low, []
    while high is None or at < high:
        least = min(lines, key=lambda line: (line.value(at), line.slope))
        end = _next_crossing(lines, least, at)
        if high is not None and (end is None or end > high):
            end = high
        best = tuple(n for n, line in enumerate(lines) if line == least)
        cells.append(LeastCell(at, end, best))
        if end is None:
            break
        at = end
    return tuple(cells)


def _next_crossing(
    lines: Sequence[PayloadLine], least: PayloadLine, at: Fraction
) -> Fraction | None:
    """Where another line falls below the least one first, beyond a point."""
    steeper = (line for line in lines if line.slope < least.slope)
    ends = ((line.at_zero - least.at_zero) / (least.slope - line.slope) for line in steeper)
    return min((end for end in ends if end > at), default=None)


def payload_cells(forms: Sequence[CostForm], numbers: LinkNumbers) -> tuple[LeastCell, ...]:
    """Which cost is least, by the payload in bytes from 0 on, with these numbers of links."""
    none = Fraction(0)
    lines = [
        PayloadLine(form.seconds(numbers, none), form.s_per_byte(numbers.s_per_byte))
        for form in forms
    ]
    return line_cells(lines, none, None)


def bandwidth_cells(
    forms: Sequence[CostForm], betas: Rationals, level: int, low: Fraction, high: Fraction
) -> tuple[LeastCell, ...]:
    """Which cost is least for large payloads, by the beta of one level from ``low`` to ``high``.

    betas: those of the levels; that of ``level`` does not count.

    Between the kinks of all costs each is a line.
    """
    shapes = [_by_level(form, betas, level) for form in forms]
    kinks = {at for parts in shapes for slope, rest in parts if slope for at in (rest / slope,)}
    bounds = [low, *sorted(at for at in kinks if low < at < high), high]
    cells: list[LeastCell] = []
    for first, last in pairwise(bounds):
        middle = (first + last) / 2
        lines = [_line_at(parts, middle) for parts in shapes]
        cells += line_cells(lines, first, last)
    return _merged(cells)


def _by_level(form: CostForm, betas: Rationals, level: int) -> list[tuple[Fraction, Fraction]]:
    """Each maximum as max(slope x, rest) in the beta x of one level."""
    others = [j for j in range(len(betas)) if j != level]
    none = Fraction(0)
    return [
        (loads[level], max((loads[j] * betas[j] for j in others), default=none))
        for loads in form.maxima
    ]


def _line_at(parts: Sequence[tuple[Fraction, Fraction]], x: Fraction) -> PayloadLine:
    """The line that a sum of max(slope x, rest) is around a point that is no kink."""
    steep = [slope * x > rest for slope, rest in parts]
    zero = Fraction(0)
    return PayloadLine(
        sum((rest for (_, rest), up in zip(parts, steep, strict=True) if not up), zero),
        sum((slope for (slope, _), up in zip(parts, steep, strict=True) if up), zero),
    )


def _merged(cells: Sequence[LeastCell]) -> tuple[LeastCell, ...]:
    """Neighbours with the same best put together."""
    found: list[LeastCell] = []
    for cell in cells:
        if found and found[-1].best == cell.best:
            found[-1] = LeastCell(found[-1].low, cell.high, cell.best)
        else:
            found.append(cell)
    return tuple(found)


# The rational that a load in floating point stands for.
# A load is made of whole numbers by a handful of operations, so it is a rational of a small
# denominator, and its float differs from it by a few roundings.  Two fractions of denominators up
# to Q differ by at least 1 / Q^2: where that is far more than the roundings, one fraction alone is
# near the float, and that is the load.


_ROUNDING = Fraction(1, 2**48)
"""More than the relative error of a load: 32 roundings."""
_ROUNDINGS = 4
"""Of the handful of operations that a library estimates times by."""
_MARGIN = 2**5
"""So many times smaller than they might be are denominators, so that no other float passes."""


def exact(value: float) -> Fraction:
    """The fraction of a small denominator that a float stands for.

    Raises:
        InputError: there is none within the rounding.
    """
    near = Fraction(value)
    error = abs(near) * _ROUNDING
    if not error:
        return near
    most = math.isqrt(int(1 / (2 * error))) // _MARGIN
    found = near.limit_denominator(max(1, most))
    if abs(found - near) > error:
        rule = "has a denominator too large to be told from its rounding"
        raise InputError(f"a load of {plain(value, 6)}", rule, "take smaller groups or fewer ports")
    return found


def decimal(value: float) -> Fraction:
    """The shortest decimal number whose float this is, as a file would write it."""
    return Fraction(repr(value))


def simplest(value: float) -> Fraction:
    """The fraction of the least denominator within a few roundings of a float that is not negative.

    For numbers made of decimals whose fraction :func:`exact` could not tell from others.
    """
    if not value:
        return Fraction(0)
    error = Fraction(math.ulp(value)) * _ROUNDINGS
    return _between(Fraction(value) - error, Fraction(value) + error)


def _between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction of the least denominator between two positive ones."""
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    below = low.numerator // low.denominator
    return below + 1 / _between(1 / (high - below), 1 / (low - below))
