"""Parallelism matrices and reduction programs as problems: what the encodings are asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from p2smt.collectives.demand import Demand
from p2smt.collectives.names import Collective, ProgramOperation, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.parallelism.request import MAX_PROGRAM_LENGTH
from p2smt.programs.program import Grouping, ProofBasis, groupings, proof_basis

# Which parallelism matrices fit, and which costs least?  The question as plain integers.


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
    matrices are not answers.  ``at_most`` bounds the objective in ticks.  With ``folded``, the last
    so many rows make with the first one a second matrix over the same levels, apart from the rows
    in between (:mod:`p2smt.parallelism.folded`); rows are numbered as one matrix.
    """

    levels: tuple[int, ...]
    axes: tuple[int, ...]
    rules: tuple[AxisRule | FixedEntry, ...] = ()
    costs: tuple[CostTable, ...] = ()
    worst: bool = False
    excluded: frozenset[Matrix] = frozenset()
    at_most: int | None = None
    folded: int = 0

    def __post_init__(self) -> None:
        if not self.levels or not self.axes or min(self.levels + self.axes) < 1:
            raise InputError(
                f"levels {list(self.levels)}, axes {list(self.axes)}", "sizes must be at least 1"
            )
        if not 0 <= self.folded < len(self.axes):
            raise InputError(
                f"{self.folded} folded axes of {len(self.axes)}", "must leave the first one"
            )
        devices = math.prod(self.levels)
        for rows in self.blocks:
            sizes = [self.axes[i] for i in rows]
            if math.prod(sizes) != devices:
                raise InputError(
                    f"axes {sizes} with product {math.prod(sizes)}",
                    f"the product of the axes must be the number of devices, {devices}",
                    f"change an axis or the levels {list(self.levels)}",
                )

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The axes whose entries at a level multiply to its size: all, or those of each matrix."""
        first = len(self.axes) - self.folded
        mine = tuple(range(first))
        return (mine, (0, *range(first, len(self.axes)))) if self.folded else (mine,)


# Which programs meet a demand, and which costs least?  The question as plain data.


Indices = tuple[int, ...]


def reduction_items(depth: int) -> tuple[tuple[Collective, Grouping], ...]:
    """All instructions of reduction programs over a hierarchy of this depth."""
    return tuple((c, g) for c in Collective for g in groupings(depth))


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """Instructions by index: (collective, grouping) pairs in tie-breaking order."""

    items: tuple[tuple[ProgramOperation, Grouping], ...]

    @staticmethod
    def of(depth: int) -> InstructionSet:
        """Those of reduction programs over a hierarchy of this depth."""
        return InstructionSet(reduction_items(depth))

    @staticmethod
    def of_exchanges(depth: int) -> InstructionSet:
        """Those of an all-to-all: all-to-alls, of groups that leave no member out."""
        every = (g for g in groupings(depth) if not g.master)
        return InstructionSet(tuple((RequestKind.ALL_TO_ALL, g) for g in every))


@dataclass(frozen=True, slots=True)
class StepLimit:
    """A side constraint: at most ``at_most`` steps use one of these instruction indices."""

    instructions: frozenset[int]
    at_most: int


@dataclass(frozen=True, slots=True)
class ProgramProblem:
    """Programs that lead from the start of a demand to its goal.

    ``factors`` are the real reduction factors (> 1), ``instructions`` what may be used.
    ``costs[(instruction, rows)]`` is the cost in ticks of an instruction whose payload is
    ``rows`` of the k rows of a state matrix (k: product of the factors).  Programs whose
    costs differ by ``slack`` ticks or less from the optimum count as tied with it: that is
    the rounding of the costs.
    """

    demand: Demand
    factors: tuple[int, ...]
    max_length: int
    instructions: InstructionSet
    forbidden: frozenset[int] = frozenset()
    limits: tuple[StepLimit, ...] = ()
    costs: Mapping[tuple[int, int], int] | None = None
    excluded: frozenset[tuple[int, ...]] = frozenset()
    at_most: int | None = None
    slack: int = 0

    def __post_init__(self) -> None:
        if not (self.demand.has_programs or self.demand.has_exchanges):
            raise InputError(f"request {self.demand}", "has one fixed step and no programs")
        if min(self.factors, default=2) < 2:
            raise InputError(f"factors {list(self.factors)}", "must be at least 2 each")
        if not 1 <= self.max_length <= MAX_PROGRAM_LENGTH:
            raise InputError(f"length {self.max_length}", f"must be 1 to {MAX_PROGRAM_LENGTH}")

    @property
    def rows(self) -> int:
        """Rows of a state matrix: the number of devices in a reduction group."""
        return math.prod(self.factors)

    @property
    def small_model(self) -> bool:
        """Whether the small-model theorem covers the problem; that of an all-to-all always."""
        if self.demand.has_exchanges:
            return True
        return proof_basis(len(self.factors), self.max_length) is ProofBasis.SMALL_MODEL

    @property
    def model_factors(self) -> tuple[int, ...]:
        """The factors to synthesize on: all twos in the range of the small-model theorem.

        Outside it (longer programs, more factors) these are the real factors.
        """
        return (2,) * len(self.factors) if self.small_model else self.factors
