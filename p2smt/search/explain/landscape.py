"""The answer and what it is held against: matrices, and for each request its programs on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import ChangedNumber
from p2smt.plans.solution import Alternative
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.explain.linear import LinearCosts
from p2smt.search.explain.sampled import SampledCosts
from p2smt.search.explain.tables import ProgramTable, program_table
from p2smt.search.placements import placements
from p2smt.search.programs_pipelined import Listings
from p2smt.solvers.solver import Solver

MAX_MATRICES = 500
"""Of more matrices those that the search met are looked at, and others as they turn up."""


@dataclass(slots=True)
class Landscape:
    """``matrices``: the answer's first.  ``whole``: there are no others.

    Where costs are linear, all programs of a request are looked at, if they are not too many;
    otherwise those known beforehand and the answer's own.
    """

    problem: Problem
    answer: Alternative
    costs: LinearCosts | SampledCosts
    listings: Listings
    watch: StopWatch
    matrices: tuple[Matrix, ...]
    whole: bool
    _tables: dict[tuple[int, Scene], ProgramTable] = field(default_factory=dict)
    _of: dict[tuple[int, Matrix], ProgramTable] = field(default_factory=dict)

    def table(self, matrix: Matrix, number: int) -> ProgramTable:
        """The programs of a request on a matrix; those of one scene are listed once.

        Raises:
            OutOfTimeError: no time is left.
        """
        if (number, matrix) not in self._of:
            self._of[number, matrix] = self._listed(matrix, number)
        return self._of[number, matrix]

    def _listed(self, matrix: Matrix, number: int) -> ProgramTable:
        request = self.problem.requests[number]
        axes = self.problem.axis_indices(request)
        scene = Scene.of(self.problem.topology, Placement(matrix), axes)
        if (number, scene) not in self._tables:
            if self.watch.expired():
                raise OutOfTimeError
            every = self.listings if isinstance(self.costs, LinearCosts) else None
            program = self.answer.requests[number].program
            also = () if program is None or matrix != self.answer.matrix else (program,)
            found = program_table(self.problem, number, scene, every, self.watch, also)
            self._tables[number, scene] = found
        return self._tables[number, scene]

    def tables(self, matrix: Matrix) -> tuple[ProgramTable, ...]:
        """The same of every request."""
        return tuple(self.table(matrix, r) for r in range(len(self.problem.requests)))

    def ours(self, number: int) -> int | None:
        """Which program of its table a request of the answer has; None: none of these."""
        program = self.answer.requests[number].program
        table = self.table(self.answer.matrix or (), number)
        if program is None:
            return 0
        return table.programs.index(program) if program in table.programs else None

    def with_matrix(self, matrix: Matrix) -> Landscape:
        """The same with one more matrix to be held against."""
        return replace(self, matrices=(*self.matrices, matrix))

    def step_s(self, number: ChangedNumber, table: ProgramTable, xs: FloatArray) -> FloatArray:
        """Times of the programs of a table at these x, shape (programs, points).

        Raises:
            OutOfTimeError: no time is left.
        """
        if self.watch.expired():
            raise OutOfTimeError
        return table.times(self.costs.step_s(number, table, xs))

    def objective_s(
        self, number: ChangedNumber, matrices: Sequence[Matrix], xs: FloatArray
    ) -> FloatArray:
        """Of each matrix with its best programs, at each x: shape (matrices, points)."""
        least: dict[int, FloatArray] = {}
        found = []
        for matrix in matrices:
            terms = []
            for table in self.tables(matrix):
                key = id(table)
                if key not in least:
                    least[key] = self.step_s(number, table, xs).min(axis=0)
                terms.append(self.problem.requests[table.number].times * least[key])
            together = np.max if self.problem.objective == "max" else np.sum
            found.append(together(np.array(terms), axis=0))
        return np.array(found)

    def best_programs(self, number: ChangedNumber, matrix: Matrix, x: float) -> tuple[int, ...]:
        """The best program of each request on a matrix, as a row of its table."""
        at = np.array([x])
        return tuple(
            int(self.step_s(number, table, at)[:, 0].argmin()) for table in self.tables(matrix)
        )

    @property
    def different(self) -> list[Matrix]:
        """The matrices beside the answer's."""
        return [matrix for matrix in self.matrices if matrix != self.answer.matrix]


def landscape(
    problem: Problem,
    answer: Alternative,
    known: Sequence[Matrix],
    costs: LinearCosts | SampledCosts,
    listings: Listings,
    watch: StopWatch,
) -> Landscape:
    """All matrices of a problem, if they are not too many; else those that are known."""
    sizes = problem.topology.sizes, problem.axis_sizes
    limits = SearchLimits(watch.left().time_limit_s, MAX_MATRICES)
    listed = placements(PlacementProblem(*sizes, problem.rules), limits, Solver.CPSAT)
    whole = listed.status is Status.COMPLETE
    every = (answer.matrix or (), *((listed.value or ()) if whole else known))
    return Landscape(problem, answer, costs, listings, watch, tuple(dict.fromkeys(every)), whole)
