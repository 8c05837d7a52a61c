"""Which parallelism matrices fit, and which costs least?  The question as plain integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix


@dataclass(frozen=True, slots=True)
class LevelTerm:
    """One column of a cost table: the split of the axes in ``axes`` at ``level``, as a product."""

    level: int
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CostTable:
    """Cost in ticks of each combination of terms; a combination that is absent is not allowed.

    ``rows[(v1, .., vn)]`` is the cost where term i has the value ``vi``.
    """

    terms: tuple[LevelTerm, ...]
    rows: Mapping[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """All parallelism matrices of these level and axis sizes under side constraints.

    With ``costs``, the objective is the sum of the tables (or their maximum).  ``excluded``
    matrices are not answers.  ``at_most`` bounds the objective in ticks.
    """

    levels: tuple[int, ...]
    axes: tuple[int, ...]
    rules: tuple[AxisRule | FixedEntry, ...] = ()
    costs: tuple[CostTable, ...] = ()
    worst: bool = False
    excluded: frozenset[Matrix] = frozenset()
    at_most: int | None = None

    def __post_init__(self) -> None:
        if not self.levels or not self.axes or min(self.levels + self.axes) < 1:
            raise InputError(
                f"levels {list(self.levels)}, axes {list(self.axes)}", "sizes must be at least 1"
            )
        devices, ranks = math.prod(self.levels), math.prod(self.axes)
        if devices != ranks:
            raise InputError(
                f"axes {list(self.axes)} with product {ranks}",
                f"the product of the axes must be the number of devices, {devices}",
                f"change an axis or the levels {list(self.levels)}",
            )
