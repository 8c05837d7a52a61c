"""How the placements of axes of given sizes are cut: by rows of attention's matrix, then experts'.

A pair of a mixture shares the row of pp, so once all rows of attention are given, those of experts
are rows of a matrix over what pp leaves of each level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from p2smt.parallel_search.subproblem import Subproblem
from p2smt.parallelism.placement import FixedEntry
from p2smt.search.spaces.matrix_subproblems import MatrixRules, MatrixSubproblems
from p2smt.training.search.copies import MANY, divides, numbered_pairs, side_rules
from p2smt.training.strategy import AXES, EXPERT_AXES

_OWN = EXPERT_AXES[1:]
"""Rows that experts have for themselves."""


@dataclass(frozen=True, slots=True)
class PlacementCubes:
    """The placements of attention, and of a mixture those of experts with each, under rules.

    ``sizes`` are those of the rows of both, pp's once; ``rules`` count these rows.  A path is
    ``first``, the sizes as text, then rows: of a matrix the last row follows from the others.
    ``copies``: of shards, into which the rows of data parallelism must be divided.
    ``numbered_once``: experts have the ranks of attention, whose rows leave them one matrix.
    """

    levels: tuple[int, ...]
    sizes: tuple[int, ...]
    rules: MatrixRules
    first: str
    copies: int = 1
    numbered_once: bool = False

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """One row more; none where the rows left are determined."""
        if len(cube.path) < MANY or not self._mixture or self.numbered_once:
            return self._attention.split(cube)
        return self._experts(cube).split(cube)

    def fixed(self, cube: Subproblem) -> MatrixRules:
        """The rules, and those that fix the rows of a cube.

        Raises:
            InputError: a decision is no row of its axis, or the rows exceed a level.
        """
        rows = dict(enumerate(self._attention.rows(self._of_attention(cube))))
        if len(cube.path) > MANY and self._mixture:
            rows |= dict(enumerate(self._experts(cube).rows(cube), start=MANY))
        entries = [FixedEntry(i, j, n) for i, row in rows.items() for j, n in enumerate(row)]
        return (*self.rules, *entries)

    def empty(self, cube: Subproblem) -> bool:
        """Whether no placement of a cube obeys the rules."""
        attention = self._attention.matrices(self._of_attention(cube))
        if self.numbered_once:
            every = np.array(list(attention), dtype=np.int64).reshape(-1, MANY, len(self.levels))
            theirs = side_rules(self.rules, of_experts=True)
            return not len(numbered_pairs(every, self.sizes, theirs, self.copies))
        if not any(divides(rows[1], self.copies) for rows in attention):
            return True
        if not self._mixture:
            return False
        if len(cube.path) == 1:
            return all(self.empty(child) for child in self.split(cube))
        experts = self._experts(cube).matrices(cube)
        return not any(divides(rows[0], self.copies) for rows in experts)

    @property
    def _mixture(self) -> bool:
        return len(self.sizes) > MANY

    @property
    def _attention(self) -> MatrixSubproblems:
        rules = tuple(rule for rule in self.rules if rule.axis < MANY)
        return MatrixSubproblems(AXES, self.levels, self.sizes[:MANY], rules, (self.first,))

    def _of_attention(self, cube: Subproblem) -> Subproblem:
        """The decisions on attention alone."""
        return Subproblem(cube.path[:MANY]) if self._mixture else cube

    def _experts(self, cube: Subproblem) -> MatrixSubproblems:
        """The rows of experts beside the row of pp that a cube has."""
        stages = self._attention.rows(self._of_attention(cube))[0]
        left = tuple(size // ways for size, ways in zip(self.levels, stages, strict=True))
        rules = tuple(
            replace(rule, axis=rule.axis - MANY) for rule in self.rules if rule.axis >= MANY
        )
        return MatrixSubproblems(_OWN, left, self.sizes[MANY:], rules, cube.path[:MANY])
