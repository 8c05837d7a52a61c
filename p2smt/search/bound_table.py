"""The table that the joint search refines: per request and scene a bound, later its answer.

Every entry starts as the least that a program can cost there.  ``refine`` replaces it by the proved
bound of the request's answer, or forbids it where the restrictions leave no program (a cut).  So
the table never says more than the true objective of a matrix, and ``propose`` can name the matrix
of least cost under it at any time, while answers to earlier proposals are still out.

Where all matrices can be listed (:mod:`p2smt.search.table.matrices`) each is looked at, in the same
integer ticks and with the same order of ties as by a solver; z3, the cross-check, is always asked.
A row is then a scene, not a combination of the terms that a solver needs: one answer refines every
matrix with that scene, and scenes that no matrix has under the rules are not there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from p2smt.cost.scene import Scene
from p2smt.errors import TooLarge
from p2smt.parallelism.placement import IntArray, Matrix
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.answers import matrix_alternative, physical_bound_s
from p2smt.plans.solution import Alternative, RequestAnswer, objective
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Result, Status, StopWatch
from p2smt.search.placements import best_matrix, placements
from p2smt.search.scene_table import TermValues, scene_table
from p2smt.search.table.entries import MAX_TICKS, BoundEntry, Listed, Loose, Tabled, filled
from p2smt.search.table.least import at_most, least
from p2smt.search.table.matrices import MatrixList, listed
from p2smt.search.table.scenes import scene_rows
from p2smt.solvers.solver import Solver

_RESOLUTION = 2**44  # ticks of the largest single collective, at first
_COARSE, _ZOOM = 2**24, 2**20

_Kind = Listed | Tabled | Loose


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
class BoundTable:
    """Bounds on all requests of a problem; ``calls`` counts the proposals and lists.

    ``lists``: matrices are listed where they are few enough; then there is no :meth:`question`.
    ``refusals``: why some requests have no table.  Proposals then ignore these requests.
    """

    problem: Problem
    solver: Solver
    calls: int = 0
    refusals: list[TooLarge] = field(default_factory=list)
    lists: bool = True
    _list: MatrixList | None = None
    _requests: list[_Kind] = field(default_factory=list)
    _tick_s: float = 1.0

    def fill(self, watch: StopWatch) -> None:
        """Lower bounds for every scene of every request, and the first tick.

        Raises:
            OutOfTimeError: the time ran out.
        """
        largest_s = 0.0
        if (
            self.lists and self.solver is Solver.CPSAT
        ):  # z3 is asked whatever there is: it is the cross-check
            self._list = listed(self._sizes.levels, self._sizes.axes, self.problem.rules)
        for request in self.problem.requests:
            rows, single_s = self._rows(request, watch)
            largest_s += request.times * single_s
            self._requests.append(rows)
        self._tick_s = largest_s / _RESOLUTION or 1.0

    def _rows(self, request: Request, watch: StopWatch) -> tuple[_Kind, float]:
        """The entries of a request, and the longest of their single collectives."""
        problem, chosen = self.problem, self.problem.axis_indices(request)
        if self._list is not None:
            rows = scene_rows(problem.topology, self._list, chosen)
            entries, single_s = filled(request, rows.by_number, watch)
            return Listed(request, chosen, rows, entries), single_s
        try:
            columns = scene_table(
                problem.topology, problem.axis_sizes, chosen, problem.rules, watch
            )
        except TooLarge as refusal:
            self.refusals.append(TooLarge(f"'{request}'", refusal.rule, refusal.remedy))
            return Loose(problem.topology, chosen, request), 0.0
        entries, single_s = filled(request, columns.scenes, watch)
        return Tabled(request, columns, entries), single_s

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
        ticks = math.floor(limit_s / self._tick_s) + 1
        if self._list is not None:
            return at_most(self._list, self._costs, self._worst, excluded, ticks, most)
        question = replace(self.question(excluded), at_most=ticks)
        return placements(question, replace(watch.left(), max_answers=most), self.solver)

    def refine(self, entry: OpenEntry, answer: RequestAnswer | None) -> None:
        """Put the answer of a request on a scene in the place of its bound; None forbids it."""
        found = self._requests[entry.number].entries[entry.values]
        found.answer, found.allowed = answer, answer is not None
        if answer is not None:
            found.bound_s = answer.bound_s

    @property
    def tick_s(self) -> float:
        """Seconds of a tick."""
        return self._tick_s

    def measure_in(self, tick_s: float) -> None:
        """Take a tick that was settled on before."""
        self._tick_s = tick_s

    def ticks(self, matrix: Matrix) -> int | None:
        """What the table says of a matrix, in ticks; None where an entry is forbidden."""
        found = [(rows.request, rows.of(matrix)) for rows in self._requests]
        if not all(entry.allowed for _, entry in found):
            return None
        costs = [entry.ticks(request, self._tick_s) for request, entry in found]
        return max(costs) if self._worst else sum(costs)

    def links_s(self, watch: StopWatch) -> float:
        """Seconds that the links alone allow the best matrix; 0 for requests without a table.

        If the time runs out before that is known: each request where it is best off.
        """
        requests = [_of_links(rows) for rows in self._requests]
        links = replace(self, solver=Solver.CPSAT, calls=0, refusals=[], _requests=requests)
        apart = tuple(
            0.0
            if isinstance(rows, Loose)
            else min((entry.bound_s for entry in rows.entries.values()), default=0.0)
            for rows in requests
        )
        return max(objective(self.problem, apart), links.propose(frozenset(), watch).bound_s or 0.0)

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
    def _tables(self) -> list[Tabled | Listed]:
        """The requests that proposals heed."""
        return [rows for rows in self._requests if not isinstance(rows, Loose)]

    def _rescaled(self, matrix: Matrix) -> bool:
        """Change the tick unless it fits; whether it was changed.

        It fits if the optimum has enough ticks to tell matrices apart, and none of its entries
        is capped.
        """
        terms_s = [rows.request.times * rows.of(matrix).bound_s for rows in self._tables]
        if any(term / self._tick_s >= MAX_TICKS for term in terms_s):
            self._tick_s *= _ZOOM
        elif 0 < max(terms_s, default=0.0) < _COARSE * self._tick_s:
            self._tick_s /= _ZOOM
        else:
            return False
        return True

    def _least(self, excluded: frozenset[Matrix], watch: StopWatch) -> Result[Matrix]:
        """The matrix of least cost in ticks, checked to be an answer."""
        self.calls += 1
        if self._list is None:
            return best_matrix(self.question(excluded), self.solver, watch)
        if watch.expired():
            return Result(Status.UNKNOWN)
        return least(self._list, self._costs, self._worst, excluded)

    def question(self, excluded: frozenset[Matrix] = frozenset()) -> PlacementProblem:
        """The matrices and their costs in ticks under the table as it is, where none are listed."""
        tables = [rows for rows in self._requests if isinstance(rows, Tabled)]
        return replace(
            self._sizes,
            costs=tuple(rows.costs(self._tick_s) for rows in tables),
            worst=self._worst,
            excluded=excluded,
        )

    @property
    def _sizes(self) -> PlacementProblem:
        """The matrices, whatever they cost."""
        problem = self.problem
        return PlacementProblem(problem.topology.sizes, problem.axis_sizes, problem.rules)

    @property
    def _worst(self) -> bool:
        return self.problem.objective == "max"

    @property
    def _costs(self) -> list[IntArray]:
        """The cost of each listed matrix in ticks, by request."""
        return [rows.ticks(self._tick_s) for rows in self._requests if isinstance(rows, Listed)]


def _of_links(rows: _Kind) -> _Kind:
    """The entries of a request with what the links alone allow on each scene."""
    if isinstance(rows, Loose):
        return rows
    entries = {
        values: BoundEntry(physical_bound_s(scene, rows.request))
        for values, scene in rows.scenes.items()
    }
    return replace(rows, entries=entries)
