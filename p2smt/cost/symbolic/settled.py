"""Costs with numbers put in: which way each step runs in, by the payload.

Where the fastest of several ways runs, that is the least of their functions of the payload.  Where
two of these cross at a root, all ways stay open between its two sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from p2smt.cost.symbolic.curve_cells import CurvePiece, piecewise_cells
from p2smt.cost.symbolic.form import (
    CostForm,
    FormCell,
    LinkNumbers,
    SymbolicCost,
    SymbolicStep,
    SymbolicWay,
    forms_of,
)


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
