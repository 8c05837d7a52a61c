"""The table that the joint search refines: per request and scene a bound, later its answer.

Every entry starts as the least that a program can cost there.  ``refine`` replaces it by the proved
bound of the request's answer, or forbids it where the restrictions leave no program (a cut).  So
the table never says more than the true objective of a matrix, and ``propose`` can name the matrix
of least cost under it at any time, while answers to earlier proposals are still out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from p2smt.cluster.topology import Topology
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.answers import least_s, matrix_alternative, physical_bound_s
from p2smt.plans.solution import Alternative, RequestAnswer, objective
from p2smt.problems.placement import CostTable, PlacementProblem
from p2smt.result import Result, Status, StopWatch
from p2smt.search.placements import best_matrix, placements
from p2smt.search.scene_table import SceneTable, TermValues, scene_table
from p2smt.solvers.solver import Solver

_RESOLUTION = 2**44  # ticks of the largest single collective, at first
_COARSE, _CAP, _ZOOM = 2**24, 2**46, 2**20


@dataclass(frozen=True, slots=True)
class OpenEntry:
    """An entry that is no more than a bound: a request, by its number, on one of its scenes."""

    number: int
    values: TermValues
    request: Request
    scene: Scene


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the table proposes.

    ``status`` OPTIMAL: no matrix costs less under the table; FEASIBLE: some may; INFEASIBLE: no
    matrix is left; UNKNOWN: the time ran out.  ``matrix`` is None for the last two.  ``bound_s``:
    no matrix that was not excluded has a lesser objective, in seconds.  ``open``: entries to be
    refined before the matrix has a price.
    """

    status: Status
    matrix: Matrix | None
    bound_s: float | None
    open: tuple[OpenEntry, ...] = ()


@dataclass(slots=True)
class _Entry:
    """A bound in seconds; or, once it is refined, an answer, or not allowed."""

    bound_s: float
    answer: RequestAnswer | None = None
    allowed: bool = True


@dataclass(slots=True)
class _Loose:
    """Entries of a request with too many scenes for a table: made when a matrix falls into one.

    The solver does not see them, so its bounds hold, but say nothing of this request.
    """

    topology: Topology
    chosen: tuple[int, ...]
    request: Request
    entries: dict[TermValues, _Entry] = field(default_factory=dict)

    def values(self, matrix: Matrix) -> TermValues:
        """All that the scene of a matrix depends on, at most."""
        return tuple(entry for row in matrix for entry in row)

    def scene(self, values: TermValues) -> Scene:
        """The scene of these values."""
        width = len(self.topology.levels)
        rows = [values[at : at + width] for at in range(0, len(values), width)]
        return Scene.of(self.topology, Placement(tuple(rows)), self.chosen)

    def of(self, matrix: Matrix) -> _Entry:
        """The entry that a matrix falls into."""
        values = self.values(matrix)
        if values not in self.entries:
            bound_s = least_s(self.scene(values), self.request)
            self.entries[values] = _Entry(bound_s)
        return self.entries[values]


@dataclass(slots=True)
class _Rows:
    """Entries of one request by the values of its table's terms."""

    request: Request
    columns: SceneTable
    entries: dict[TermValues, _Entry]

    def values(self, matrix: Matrix) -> TermValues:
        """The row that a matrix falls into."""
        return self.columns.values(Placement(matrix))

    def scene(self, values: TermValues) -> Scene:
        """The scene of these values."""
        return self.columns.scenes[values]

    def of(self, matrix: Matrix) -> _Entry:
        """The entry that a matrix falls into."""
        return self.entries[self.values(matrix)]

    def costs(self, tick_s: float) -> CostTable:
        """The rows in ticks of one iteration, rounded down and capped: still lower bounds."""
        rows = {
            values: min(int(self.request.times * entry.bound_s / tick_s), _CAP)
            for values, entry in self.entries.items()
            if entry.allowed
        }
        return CostTable(self.columns.terms, rows)


@dataclass(slots=True)
class BoundTable:
    """Bounds on all requests of a problem; ``calls`` counts the solver's runs.

    ``refusals``: why some requests have no table.  Proposals then ignore these requests.
    """

    problem: Problem
    solver: Solver
    calls: int = 0
    refusals: list[TooLarge] = field(default_factory=list)
    _requests: list[_Rows | _Loose] = field(default_factory=list)
    _tick_s: float = 1.0

    def fill(self, watch: StopWatch) -> None:
        """Lower bounds for every scene of every request, and the first tick.

        Raises:
            OutOfTimeError: the time ran out.
        """
        problem, largest_s = self.problem, 0.0
        for request in problem.requests:
            chosen = problem.axis_indices(request)
            try:
                columns = scene_table(
                    problem.topology, problem.axis_sizes, chosen, problem.rules, watch
                )
            except TooLarge as refusal:
                self.refusals.append(TooLarge(f"'{request}'", refusal.rule, refusal.remedy))
                self._requests.append(_Loose(problem.topology, chosen, request))
                continue
            rows, single_s = _filled(request, columns, watch)
            largest_s += request.times * single_s
            self._requests.append(rows)
        self._tick_s = largest_s / _RESOLUTION or 1.0

    def propose(self, excluded: frozenset[Matrix], watch: StopWatch) -> Proposal:
        """The matrix of least cost under the table as it is, none of the excluded ones."""
        while True:
            result = self._least(excluded, watch)
            matrix, proved = result.value, result.status is Status.OPTIMAL
            if matrix is None or not proved or not self._rescaled(matrix):
                bound_s = None if result.bound is None else result.bound * self._tick_s
                still_open = () if matrix is None else self.open(matrix)
                return Proposal(result.status, matrix, bound_s, still_open)

    def within(
        self, limit_s: float, excluded: frozenset[Matrix], watch: StopWatch, most: int
    ) -> Result[tuple[Matrix, ...]]:
        """Matrices that may cost at most so many seconds under the table as it is, each checked.

        COMPLETE if there are no others, beside those excluded; TRUNCATED after ``most``.
        """
        self.calls += 1
        at_most = math.floor(limit_s / self._tick_s) + 1
        question = replace(self._question(excluded), at_most=at_most)
        return placements(question, replace(watch.left(), max_answers=most), self.solver)

    def refine(self, entry: OpenEntry, answer: RequestAnswer | None) -> None:
        """Put the answer of a request on a scene in the place of its bound; None forbids it."""
        found = self._requests[entry.number].entries[entry.values]
        found.answer, found.allowed = answer, answer is not None
        if answer is not None:
            found.bound_s = answer.bound_s

    def links_s(self) -> float:
        """Seconds that the links alone allow at best: each request where it is best off."""
        least = (
            min(
                (physical_bound_s(s, rows.request) for s in rows.columns.scenes.values()), default=0
            )
            if isinstance(rows, _Rows)
            else 0.0
            for rows in self._requests
        )
        return objective(self.problem, tuple(least))

    def bound_s(self, matrix: Matrix) -> float:
        """What the table says of a matrix: its objective is no less, in seconds.

        Infinite where an entry is forbidden.
        """
        entries = [rows.of(matrix) for rows in self._requests]
        bounds = (entry.bound_s if entry.allowed else math.inf for entry in entries)
        return objective(self.problem, tuple(bounds))

    def open(self, matrix: Matrix) -> tuple[OpenEntry, ...]:
        """The entries that are no more than a bound, of those that a matrix falls into."""
        found = [(rows, rows.values(matrix), rows.of(matrix)) for rows in self._requests]
        return tuple(
            OpenEntry(number, values, rows.request, rows.scene(values))
            for number, (rows, values, entry) in enumerate(found)
            if entry.allowed and entry.answer is None
        )

    def price(self, matrix: Matrix) -> Alternative | None:
        """The matrix with its answers, once each of its entries has one."""
        found = [rows.of(matrix).answer for rows in self._requests]
        answers = tuple(answer for answer in found if answer is not None)
        if len(answers) < len(found):
            return None
        return matrix_alternative(self.problem, matrix, answers)

    @property
    def _tables(self) -> list[_Rows]:
        """The requests that the solver sees."""
        return [rows for rows in self._requests if isinstance(rows, _Rows)]

    def _rescaled(self, matrix: Matrix) -> bool:
        """Change the tick unless it fits; whether it was changed.

        It fits if the optimum has enough ticks to tell matrices apart, and none of its entries
        is capped.
        """
        terms_s = [rows.request.times * rows.of(matrix).bound_s for rows in self._tables]
        if any(term / self._tick_s >= _CAP for term in terms_s):
            self._tick_s *= _ZOOM
        elif 0 < max(terms_s, default=0.0) < _COARSE * self._tick_s:
            self._tick_s /= _ZOOM
        else:
            return False
        return True

    def _least(self, excluded: frozenset[Matrix], watch: StopWatch) -> Result[Matrix]:
        """The matrix of least cost in ticks, checked to be an answer."""
        self.calls += 1
        return best_matrix(self._question(excluded), self.solver, watch)

    def _question(self, excluded: frozenset[Matrix]) -> PlacementProblem:
        """The matrices and their costs in ticks under the table as it is."""
        problem = self.problem
        return PlacementProblem(
            problem.topology.sizes,
            problem.axis_sizes,
            problem.rules,
            tuple(rows.costs(self._tick_s) for rows in self._tables),
            problem.objective == "max",
            excluded,
        )


def _filled(request: Request, columns: SceneTable, watch: StopWatch) -> tuple[_Rows, float]:
    """Lower bounds on the scenes of a table, and the longest of their single collectives."""
    entries, longest_s = {}, 0.0
    for values, scene in columns.scenes.items():
        if watch.expired():
            raise OutOfTimeError
        entries[values] = _Entry(least_s(scene, request))
        single_s = scene.fixed_time(request.kind, request.payload_bytes).seconds
        longest_s = max(longest_s, single_s)
    return _Rows(request, columns, entries), longest_s
