"""Cells of ratios and payloads in which one program is best: exact breakpoints, no solver.

With factors alone, numbers are ratios to the innermost level: its latency and its seconds per byte
are 1, and the payload is x = n beta / alpha of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from p2smt.cost.symbolic.envelope import LeastCell, bandwidth_cells, payload_cells
from p2smt.cost.symbolic.form import CostForm, LinkNumbers, Rationals
from p2smt.errors import InputError
from p2smt.plans.crossings.certificate import EqualPrograms, SymbolicSetting
from p2smt.programs.program import Program
from p2smt.result import SearchLimits
from p2smt.search.crossings.costs import equal_programs

LARGEST_RATIO = 2**40


@dataclass(frozen=True, slots=True)
class LevelRatios:
    """Numbers of each level over those of the innermost, which has 1; ``call`` over its latency.

    ``bandwidth`` says how many times slower a port is: of beta, not of its inverse.
    """

    latency: Rationals
    bandwidth: Rationals
    call: Fraction

    def __post_init__(self) -> None:
        for name, numbers in (("latency", self.latency), ("bandwidth", self.bandwidth)):
            if not all(0 < ratio <= LARGEST_RATIO for ratio in numbers):
                shown = ",".join(map(str, numbers))[:80]
                rule = f"must be positive, and at most {LARGEST_RATIO}"
                raise InputError(f"{name} ratios {shown}", rule, "give some such as 4 or 1/2")
        if not 0 <= self.call <= LARGEST_RATIO:
            raise InputError(f"cost per call {self.call}"[:80], "must not be negative")

    @property
    def numbers(self) -> LinkNumbers:
        """As numbers of links."""
        return LinkNumbers(self.call, self.latency, self.bandwidth)

    def with_outermost(self, bandwidth: Fraction) -> LevelRatios:
        """The same with another bandwidth ratio of the outermost level."""
        return LevelRatios(self.latency, (bandwidth, *self.bandwidth[1:]), self.call)


@dataclass(frozen=True, slots=True)
class NamedForm:
    """A cost and the programs that have it, the shortest first."""

    programs: tuple[Program, ...]
    form: CostForm


@dataclass(frozen=True, slots=True)
class RatioRow:
    """The cells of the payload at one bandwidth ratio of the outermost level."""

    ratios: LevelRatios
    cells: tuple[LeastCell, ...]


@dataclass(frozen=True, slots=True)
class CrossingTable:
    """Which costs, by index, are best: ``rows`` by payload, ``large`` of large payloads by the
    bandwidth ratio of the outermost level, between the first row's and the last row's."""

    forms: tuple[NamedForm, ...]
    rows: tuple[RatioRow, ...]
    large: tuple[LeastCell, ...]

    @property
    def shown(self) -> tuple[int, ...]:
        """The costs that are first in some cell, by index."""
        cells = [cell for row in self.rows for cell in row.cells] + list(self.large)
        return tuple(sorted({cell.best[0] for cell in cells}))


def crossing_table(
    setting: SymbolicSetting, ratios: tuple[LevelRatios, ...], limits: SearchLimits
) -> CrossingTable | None:
    """The cells for each of these ratios, ascending in that of the outermost bandwidth.

    None: the time ran out before the programs were listed.

    Raises:
        InputError: ratios for another number of levels.
    """
    if any(len(one.latency) != len(setting.factors) for one in ratios):
        raise InputError("ratios", f"must be for {len(setting.factors)} levels")
    costs = equal_programs(setting, limits)
    return None if costs is None else table_of(costs, ratios)


def table_of(costs: tuple[EqualPrograms, ...], ratios: tuple[LevelRatios, ...]) -> CrossingTable:
    """The cells of these costs for each of the ratios."""
    forms = [one.form for one in costs]
    rows = tuple(RatioRow(one, payload_cells(forms, one.numbers)) for one in ratios)
    low, high = ratios[0].bandwidth[0], ratios[-1].bandwidth[0]
    large = bandwidth_cells(forms, ratios[0].bandwidth, 0, low, high) if low < high else ()
    return CrossingTable(tuple(NamedForm(one.programs, one.form) for one in costs), rows, large)
