"""Where a library's choice changes: cells of the payload with exact bounds.

The rule (:class:`~p2smt.cost.library.choice.LibraryChoice`) names a way up to given sizes, and
beyond these takes the least of estimated times.  Each estimate is a line between sizes at which its
correction or its plateau changes, so that the cells are those of lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from p2smt.cost.library.choice import LibraryChoice
from p2smt.cost.library.estimate import FIRST_BYTES, EstimatedTime
from p2smt.cost.symbolic.chosen import ChosenCell
from p2smt.cost.symbolic.envelope import PayloadLine, line_cells
from p2smt.cost.symbolic.exact import decimal, simplest


def choice_cells(choice: LibraryChoice) -> tuple[ChosenCell, ...]:
    """What the library takes by the bytes of a step, from 0 on; neighbours differ.

    The rule's numbers are floats; each stands for the simplest fraction that it may be.
    """
    at, found = Fraction(0), []
    for up_to, way in choice.rungs:
        high = None if up_to == float("inf") else decimal(up_to)
        if high is None or high > at:
            found.append(ChosenCell(at, high, way))
        if high is None:
            return _merged(found)
        at = max(at, high)
    if not choice.estimates:
        last = choice.rungs[-1][1] if choice.rungs else 0
        return _merged([*found, ChosenCell(at, None, last)])
    return _merged([*found, *_estimated(choice, at)])


def _estimated(choice: LibraryChoice, start: Fraction) -> Iterator[ChosenCell]:
    """The least estimate beyond the rungs; of equal ones the first."""
    estimates = [one for _, one in choice.estimates]
    ends = sorted({end for one in estimates for end in _changes(one) if end > start})
    for low, high in zip([start, *ends], [*ends, None], strict=True):
        inside = low + 1 if high is None else (low + high) / 2
        lines = [_line(one, inside) for one in estimates]
        for cell in line_cells(lines, low, high):
            way = choice.estimates[cell.best[0]][0]
            below = cell.high is not None and _first_at(choice, cell.high) != way
            yield ChosenCell(cell.low, cell.high, way, below)


def _first_at(choice: LibraryChoice, payload: Fraction) -> int:
    """The way whose estimate is the least at this very size, where a line may just begin."""
    return min(choice.estimates, key=lambda one: _line(one[1], payload).value(payload))[0]


def _changes(one: EstimatedTime) -> Iterator[Fraction]:
    """The sizes at which an estimate goes over to another line."""
    for k in range(len(one.factors) + 1 if one.factors else 0):
        yield Fraction(FIRST_BYTES * 2**k)
    if one.plateau_bytes != float("inf"):
        yield simplest(one.plateau_bytes)


def _line(one: EstimatedTime, inside: Fraction) -> PayloadLine:
    """The line that an estimate is around a size at which it does not change."""
    k = (int(inside) // FIRST_BYTES).bit_length() - 1
    factor = one.factors[k] if 0 <= k < len(one.factors) else 1.0
    flat = one.plateau if inside >= one.plateau_bytes else 1.0
    rate = simplest(one.seconds_per_byte) / decimal(factor)
    return PayloadLine(simplest(one.latency_s) * decimal(flat), rate)


def _merged(cells: list[ChosenCell]) -> tuple[ChosenCell, ...]:
    found: list[ChosenCell] = []
    for cell in cells:
        if found and found[-1].way == cell.way:
            found[-1] = replace(cell, low=found[-1].low)
        else:
            found.append(cell)
    return tuple(found)
