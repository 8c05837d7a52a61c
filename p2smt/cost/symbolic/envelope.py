"""Which of many lines is least, where: exact cells of a number from one bound to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from p2smt.cost.symbolic.form import CostForm, LinkNumbers, Rationals


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
