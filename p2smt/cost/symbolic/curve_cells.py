"""Which of many functions a + b x + sum of sqrt(r x) is least, where.

Lines cross at rationals.  Where a root enters, the crossing is a root of a quadratic: cells then
end and begin at rationals on both sides of it, close together, and between them none is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, lru_cache

from p2smt.cost.symbolic.curves import CurveDifference, PayloadCurve
from p2smt.cost.symbolic.form import (
    CostForm,
    FormCell,
    LeastCell,
    LinkNumbers,
    SymbolicCost,
    SymbolicStep,
    SymbolicWay,
    forms_of,
)

_BITS = 44
"""Both sides of a root differ by about this part of it, in binary digits."""
_FAR = 1e-9
"""A function is looked at exactly where it comes as near to the least as this part of both."""


@dataclass(frozen=True, slots=True)
class CurvePiece:
    """From ``low`` to ``high`` (None: without end) what is labelled so costs what a curve says."""

    low: Fraction
    high: Fraction | None
    curve: PayloadCurve
    labels: tuple[int, ...]


def _never() -> bool:
    return False


def piecewise_cells(
    pieces: Sequence[CurvePiece], expired: Callable[[], bool] = _never
) -> tuple[LeastCell, ...]:
    """The cells from 0 on of what costs least, by label; of equal functions all are named.

    ``expired``: asked between two bounds whether to stop there, with the cells so far.
    """
    ends = sorted({piece.low for piece in pieces} | {p.high for p in pieces if p.high is not None})
    found: list[LeastCell] = []
    for low, high in zip(ends, [*ends[1:], None], strict=True):
        if expired():
            break
        labels: dict[PayloadCurve, set[int]] = {}
        for piece in pieces:
            if piece.low <= low and (piece.high is None or piece.high > low):
                labels.setdefault(piece.curve, set()).update(piece.labels)
        curves = list(labels)
        for cell in curve_cells(curves, low, high) if curves else ():
            best = tuple(sorted(labels[curves[cell.best[0]]]))
            _append(found, LeastCell(cell.low, cell.high, best))
    return tuple(found)


def _append(found: list[LeastCell], cell: LeastCell) -> None:
    """Add a cell, to the one before where that has the same best and ends where this begins."""
    if found and (found[-1].best, found[-1].high) == (cell.best, cell.low):
        found[-1] = LeastCell(found[-1].low, cell.high, cell.best)
    else:
        found.append(cell)


def curve_cells(
    curves: Sequence[PayloadCurve], low: Fraction, high: Fraction | None
) -> tuple[LeastCell, ...]:
    """The cells of the least of different functions between two bounds."""
    at, cells = low, []
    while True:
        least = _least_beyond(curves, at)
        crossing = _next_crossing(curves, least, at, high)
        cells.append(LeastCell(at, high if crossing is None else crossing[0], (least,)))
        if crossing is None or (high is not None and crossing[1] >= high):
            return tuple(cells)
        at = crossing[1]


def _least_beyond(curves: Sequence[PayloadCurve], at: Fraction) -> int:
    """The function that is least just above a point."""
    values = [_near(curve, at) for curve in curves]
    limit = min(values) * (1 + _FAR)
    close = [n for n, value in enumerate(values) if value <= limit]

    def order(m: int, n: int) -> int:
        return CurveDifference.of(curves[m], curves[n]).sign_beyond(at)

    return min(close, key=cmp_to_key(order))


def _near(curve: PayloadCurve, x: Fraction) -> float:
    roots = sum(math.sqrt(radicand * x) * float(factor) for factor, radicand in curve.roots)
    return float(curve.at_zero + curve.slope * x) + roots


def _next_crossing(
    curves: Sequence[PayloadCurve], least: int, at: Fraction, high: Fraction | None
) -> tuple[Fraction, Fraction] | None:
    """Both sides of where another function falls below the least one first."""
    found = []
    for n, curve in enumerate(curves):
        if n != least and _comes_near(curve, curves[least], at, high):
            crossing = _crossing(CurveDifference.of(curve, curves[least]), at, high)
            if crossing is not None:
                found.append(crossing)
    if not found:
        return None
    found.sort()
    low, end = found[0]
    for other, far in found:
        if other <= end:
            end = max(end, far)
    return low, end


def _comes_near(
    curve: PayloadCurve, least: PayloadCurve, low: Fraction, high: Fraction | None
) -> bool:
    """Whether it may fall below the least one between two bounds: no, only where that is certain.

    The least value of a + sigma y + b y^2, where each number is first made less by a part of both.
    """
    one, two = _parts(curve), _parts(least)
    a, sigma, b = (p - q - _FAR * (p + q) for p, q in zip(one, two, strict=True))
    first = math.sqrt(low)
    last = math.inf if high is None else math.sqrt(high)
    if b < 0 and last == math.inf:
        return True
    ends = [first] if last == math.inf else [first, last]
    if last == math.inf and not b and sigma < 0:
        return True
    if b > 0 and first < -sigma / (2 * b) < last:
        ends.append(-sigma / (2 * b))
    return any(a + (sigma + b * y) * y <= 0 for y in ends)


def _parts(curve: PayloadCurve) -> tuple[float, float, float]:
    roots = sum(math.sqrt(radicand) * float(factor) for factor, radicand in curve.roots)
    return float(curve.at_zero), roots, float(curve.slope)


def _crossing(
    difference: CurveDifference, at: Fraction, high: Fraction | None
) -> tuple[Fraction, Fraction] | None:
    """Both sides of where a difference that is positive above ``at`` becomes negative first."""
    if difference.sign_at_end(high) < 0:
        right = high if high is not None else _far_enough(difference, at)
    else:
        point = difference.below_zero(at, high)
        if point is None:
            return None
        right = point
    if not difference.sigma.roots and not difference.sigma.rational:
        root = -difference.a / difference.b
        return root, root
    return _isolated(difference, at, right)


def _far_enough(difference: CurveDifference, at: Fraction) -> Fraction:
    """A point beyond which it stays negative: it is so for large payloads."""
    x = max(at, Fraction(1))
    while difference.sign(x) >= 0:
        x *= 4
    return x


def _isolated(
    difference: CurveDifference, low: Fraction, high: Fraction
) -> tuple[Fraction, Fraction]:
    """The bounds of the root, closer and closer; signs on both sides are exact."""
    guess = _guess(difference, low, high)
    if guess is not None:
        near = tuple(_on_grid(guess, side) for side in (-1, 2))
        inside = low < near[0] and near[1] < high
        if inside and difference.sign(near[0]) > 0 > difference.sign(near[1]):
            return near[0], near[1]
    while high - low > high / 2**_BITS:
        middle = (low + high) / 2
        match difference.sign(middle):
            case 0:
                return middle, middle
            case 1:
                low = middle
            case _:
                high = middle
    return low, high


def _guess(difference: CurveDifference, low: Fraction, high: Fraction) -> float | None:
    """A root in floating point."""
    a, sigma, b = difference.floats
    square = sigma * sigma - 4 * a * b
    if square < 0:
        return None
    q = -(sigma + math.copysign(math.sqrt(square), sigma)) / 2
    roots = [y for y in (q / b if b else -1.0, a / q if q else -1.0) if y > 0]
    return next((y * y for y in roots if low < y * y < high), None)


def _on_grid(near: float, steps: int) -> Fraction:
    """A number of few binary digits beside a float."""
    unit = Fraction(2) ** (math.frexp(near)[1] - _BITS)
    return (math.floor(Fraction(near) / unit) + steps) * unit


# Costs with numbers put in: which way each step runs in, by the payload.
# Where the fastest of several ways runs, that is the least of their functions of the payload. Where
# two of these cross at a root, all ways stay open between its two sides.


@dataclass(frozen=True, slots=True)
class _OpenWays:
    """From ``low`` to ``high`` bytes (None: without end) the fastest of these ways runs."""

    low: Fraction
    high: Fraction | None
    ways: tuple[SymbolicWay, ...]


def settled_cells(cost: SymbolicCost, numbers: LinkNumbers) -> tuple[FormCell, ...]:
    """The forms of a program by the payload, with numbers: in most cells there is one."""
    steps = [_settled(step, numbers) for step in cost.steps if step.ways]
    ends = sorted({cell.high for step in steps for cell in step if cell.high is not None})
    found: list[FormCell] = []
    for low, high in zip([Fraction(0), *ends], [*ends, None], strict=True):
        ways = [_at(step, low) for step in steps]
        forms = forms_of(ways, len(cost.levels))
        found.append(FormCell(low, high, tuple(forms), tuple(forms.values())))
    return tuple(found)


def _at(step: tuple[_OpenWays, ...], low: Fraction) -> tuple[SymbolicWay, ...]:
    """The ways of the cell that begins at a payload or holds it."""
    return next(cell.ways for cell in reversed(step) if cell.low <= low)


@lru_cache(maxsize=4096)
def _settled(step: SymbolicStep, numbers: LinkNumbers) -> tuple[_OpenWays, ...]:
    if step.choice:
        return tuple(_OpenWays(one.low, one.high, (step.ways[one.way],)) for one in step.choice)
    if len(step.ways) == 1:
        return (_OpenWays(Fraction(0), None, step.ways),)
    found: list[_OpenWays] = []
    for cell in piecewise_cells(list(_pieces(step, numbers))):
        if found and found[-1].high is not None and found[-1].high < cell.low:
            found.append(_OpenWays(found[-1].high, cell.low, step.ways))
        found.append(_OpenWays(cell.low, cell.high, (step.ways[cell.best[0]],)))
    return tuple(found)


def _pieces(step: SymbolicStep, numbers: LinkNumbers) -> Iterator[CurvePiece]:
    for n, way in enumerate(step.ways):
        yield from curve_pieces(CostForm.of([way], len(way.latency)), numbers, (n,))


def curve_pieces(
    form: CostForm,
    numbers: LinkNumbers,
    labels: tuple[int, ...],
    low: Fraction = Fraction(0),
    high: Fraction | None = None,
) -> Iterator[CurvePiece]:
    """A form's functions of the payload between two bounds: it changes where a pipeline is full."""
    full = [at for at in form.full_at(numbers) if at > low and (high is None or at < high)]
    for first, last in zip([low, *full], [*full, high], strict=True):
        yield CurvePiece(first, last, form.curve(numbers, last), labels)
