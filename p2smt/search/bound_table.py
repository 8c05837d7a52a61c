"""The table that the joint search refines: per request and scene a bound, later its answer.

Every entry starts as the least that a program can cost there.  ``refine`` replaces it by the proved
bound of the request's answer, or forbids it where the restrictions leave no program (a cut).  So
the table never says more than the true objective of a matrix, and ``propose`` can name the matrix
of least cost under it at any time, while answers to earlier proposals are still out.

Where all matrices can be listed (:mod:`p2smt.search.matrix_list`) each is looked at, in the same
integer ticks and with the same order of ties as by a solver; z3, the cross-check, is always asked.
A row is then a scene, not a combination of the terms that a solver needs: one answer refines every
matrix with that scene, and scenes that no matrix has under the rules are not there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.cost.bounds import relevant_digits
from p2smt.cost.loads.footprint import Digits, digits_of
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.parallelism.placement import AxisRule, FixedEntry, IntArray, Matrix, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import (
    Alternative,
    RequestAnswer,
    matrix_alternative,
    objective,
)
from p2smt.problems.placement import CostTable, LevelTerm, PlacementProblem
from p2smt.result import Result, SolveStats, Status, StopWatch
from p2smt.search.matrix_list import (
    Column,
    Columns,
    MatrixList,
    Split,
    across_levels,
    fixed_values,
    listed,
)
from p2smt.search.placements import best_matrix, placements
from p2smt.solvers.ask import Solver

# All scenes that a request could meet, as the rows of a placement cost table.
# The time of a request depends on a placement only through the digits of its axes at each level,
# and on their strides only where positions matter (:func:`p2smt.cost.bounds.relevant_digits`). Each
# such combination is one row of the cost table that goes into the placement encodings; some of them
# belong to no whole matrix, which does no harm. Rules leave out rows that they exclude.  The rows
# are counted before any is built.


MAX_SCENES = 50_000
TermValues = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SceneTable:
    """Terms of a request's cost table, and the scene of each combination of their values."""

    terms: tuple[LevelTerm, ...]
    scenes: Mapping[TermValues, Scene]

    def values(self, placement: Placement) -> TermValues:
        """The row of the table that a placement falls into."""
        return tuple(
            math.prod(placement.matrix[i][term.level] for i in term.axes) for term in self.terms
        )


def scene_table(
    topology: Topology,
    axes: Sequence[int],
    chosen: Sequence[int],
    rules: Sequence[AxisRule | FixedEntry] = (),
    watch: StopWatch | None = None,
) -> SceneTable:
    """The table of the chosen axes (indices, ascending); ``axes`` are all axis sizes.

    Raises:
        TooLarge: more than MAX_SCENES rows; told before they are built.
        OutOfTimeError: the watch expired.
    """
    exact = _position_levels(topology)
    columns = Columns(
        topology.sizes,
        tuple(axes),
        tuple(chosen),
        tuple(exact),
        fixed_values(rules),
        across_levels(rules),
    )
    if columns.more_than(MAX_SCENES):
        raise TooLarge(
            f"a request on axes of sizes {[axes[i] for i in chosen]}",
            f"has more than {MAX_SCENES} ways to lie on the levels",
            "fix entries of these axes with --fix, keep them inside a level with --require, or "
            "write fewer levels",
        )
    scenes: dict[TermValues, Scene] = {}
    for split in columns.splits():
        values = tuple(v for column in split for v in column.values)
        if watch is not None and watch.expired():
            raise OutOfTimeError
        if values not in scenes:
            scenes[values] = _scene(topology, split)
    return SceneTable(_terms(exact, len(axes), chosen), scenes)


def _scene(topology: Topology, split: Split) -> Scene:
    return Scene(topology, relevant_digits(topology, [column.digits for column in split]))


def _position_levels(topology: Topology) -> list[bool]:
    """Levels where the positions of the members matter, not only their number."""
    found, below_ports = [], False
    for j, level in enumerate(topology.levels):
        found.append(below_ports or level.link.kind is not LinkKind.SWITCH)
        below_ports |= 1 < level.link.ports < topology.devices_under(j)
    return found


def _terms(exact: Sequence[bool], axes: int, chosen: Sequence[int]) -> tuple[LevelTerm, ...]:
    terms = []
    for j, positions in enumerate(exact):
        if not positions:
            terms.append(LevelTerm(j, tuple(chosen)))
            continue
        for i in chosen:
            terms.append(LevelTerm(j, (i,)))
            if i + 1 < axes:
                terms.append(LevelTerm(j, tuple(range(i + 1, axes))))
    return tuple(terms)


# Bounds and answers of one request, by scene; three kinds, by how a matrix finds its scene.
# ``Listed``: every matrix is known, and its row.  ``SolverTable``: the values of a cost table's
# terms say which row, which is what a solver needs.  ``Untabulated``: too many rows for a table.


MAX_TICKS = 2**46
"""A row's cost is capped here: sums of them fit a solver's integers."""
FORBIDDEN = 2**62


@dataclass(slots=True)
class BoundEntry:
    """A bound in seconds; or, once it is refined, an answer, or not allowed."""

    bound_s: float
    answer: RequestAnswer | None = None
    allowed: bool = True

    def ticks(self, request: Request, tick_s: float) -> int:
        """The bound in ticks of one iteration, rounded down and capped: still a lower bound."""
        return min(int(request.times * self.bound_s / tick_s), MAX_TICKS)


@dataclass(slots=True)
class Untabulated:
    """Entries of a request with too many scenes for a table: made when a matrix falls into one.

    The solver does not see them, so its bounds hold, but say nothing of this request.
    """

    topology: Topology
    chosen: tuple[int, ...]
    request: Request
    entries: dict[TermValues, BoundEntry] = field(default_factory=dict)

    def values(self, matrix: Matrix) -> TermValues:
        """All that the scene of a matrix depends on, at most."""
        return tuple(entry for row in matrix for entry in row)

    def scene(self, values: TermValues) -> Scene:
        """The scene of these values."""
        width = len(self.topology.levels)
        rows = [values[at : at + width] for at in range(0, len(values), width)]
        return Scene.of(self.topology, Placement(tuple(rows)), self.chosen)

    def of(self, matrix: Matrix) -> BoundEntry:
        """The entry that a matrix falls into."""
        values = self.values(matrix)
        if values not in self.entries:
            bound_s = self.scene(values).least_s(self.request)
            self.entries[values] = BoundEntry(bound_s)
        return self.entries[values]


@dataclass(slots=True)
class SolverTable:
    """Entries of one request by the values of its table's terms."""

    request: Request
    columns: SceneTable
    entries: dict[TermValues, BoundEntry]

    @property
    def scenes(self) -> Mapping[TermValues, Scene]:
        """The scene of each entry."""
        return self.columns.scenes

    def values(self, matrix: Matrix) -> TermValues:
        """The row that a matrix falls into."""
        return self.columns.values(Placement(matrix))

    def scene(self, values: TermValues) -> Scene:
        """The scene of these values."""
        return self.columns.scenes[values]

    def of(self, matrix: Matrix) -> BoundEntry:
        """The entry that a matrix falls into."""
        return self.entries[self.values(matrix)]

    def costs(self, tick_s: float) -> CostTable:
        """The rows in ticks, as a solver takes them."""
        rows = {
            values: entry.ticks(self.request, tick_s)
            for values, entry in self.entries.items()
            if entry.allowed
        }
        return CostTable(self.columns.terms, rows)


@dataclass(slots=True)
class Listed:
    """Entries of one request by the number of its scene, which is known of every matrix."""

    request: Request
    chosen: tuple[int, ...]
    rows: SceneRows
    entries: dict[TermValues, BoundEntry]

    @property
    def scenes(self) -> Mapping[TermValues, Scene]:
        """The scene of each entry."""
        return self.rows.by_number

    def values(self, matrix: Matrix) -> TermValues:
        """The row that a matrix falls into."""
        return (self.rows.number(Placement(matrix), self.chosen),)

    def scene(self, values: TermValues) -> Scene:
        """The scene of this row."""
        return self.rows.scenes[values[0]]

    def of(self, matrix: Matrix) -> BoundEntry:
        """The entry that a matrix falls into."""
        return self.entries[self.values(matrix)]

    def ticks(self, tick_s: float) -> IntArray:
        """The cost of each listed matrix in ticks; FORBIDDEN where it has no program."""
        costs = [
            entry.ticks(self.request, tick_s) if entry.allowed else FORBIDDEN
            for entry in self.entries.values()
        ]
        return np.array(costs, dtype=np.int64)[self.rows.of_matrix]


def filled(
    request: Request, scenes: Mapping[TermValues, Scene], watch: StopWatch
) -> tuple[dict[TermValues, BoundEntry], float]:
    """Lower bounds on scenes, in their order, and the longest of their single collectives.

    Raises:
        OutOfTimeError: the watch expired.
    """
    entries, longest_s = {}, 0.0
    for values, scene in scenes.items():
        if watch.expired():
            raise OutOfTimeError
        entries[values] = BoundEntry(scene.least_s(request))
        single_s = scene.fixed_time(request.kind, request.payload_bytes).seconds
        longest_s = max(longest_s, single_s)
    return entries, longest_s


_RESOLUTION = 2**44  # ticks of the largest single collective, at first
_COARSE, _ZOOM = 2**24, 2**20

_Kind = Listed | SolverTable | Untabulated


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
            return Untabulated(problem.topology, chosen, request), 0.0
        entries, single_s = filled(request, columns.scenes, watch)
        return SolverTable(request, columns, entries), single_s

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
            if isinstance(rows, Untabulated)
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
    def _tables(self) -> list[SolverTable | Listed]:
        """The requests that proposals heed."""
        return [rows for rows in self._requests if not isinstance(rows, Untabulated)]

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
        tables = [rows for rows in self._requests if isinstance(rows, SolverTable)]
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
    if isinstance(rows, Untabulated):
        return rows
    entries = {
        values: BoundEntry(scene.physical_bound_s(rows.request))
        for values, scene in rows.scenes.items()
    }
    return replace(rows, entries=entries)


# The matrix of least cost of a list, and those that cost little: by looking at each of them.


_STATS = SolveStats("list")


def least(
    listed: MatrixList, costs: Sequence[IntArray], worst: bool, excluded: frozenset[Matrix]
) -> Result[Matrix]:
    """The matrix of least cost; of several the first, which is lexicographically smallest.

    ``costs`` hold ticks of each matrix by request, which add up, or of which the largest counts
    (``worst``).  OPTIMAL or INFEASIBLE: every matrix was looked at.
    """
    totals = _totals(listed, costs, worst, excluded)
    best = int(totals.argmin()) if len(totals) else None
    if best is None or totals[best] >= FORBIDDEN:
        return Result(Status.INFEASIBLE, stats=_STATS)
    return Result(Status.OPTIMAL, listed.matrix(best), int(totals[best]), _STATS)


def at_most(
    listed: MatrixList,
    costs: Sequence[IntArray],
    worst: bool,
    excluded: frozenset[Matrix],
    ticks: int,
    most: int,
) -> Result[tuple[Matrix, ...]]:
    """The matrices of at most so many ticks, in lexicographic order.

    COMPLETE, or TRUNCATED to the ``most`` of least cost.
    """
    totals = _totals(listed, costs, worst, excluded)
    found = np.flatnonzero(totals <= min(ticks, FORBIDDEN - 1))
    cheapest = found[np.argsort(totals[found], kind="stable")][:most]
    status = Status.COMPLETE if len(cheapest) == len(found) else Status.TRUNCATED
    return Result(status, tuple(listed.matrix(n) for n in sorted(cheapest)), stats=_STATS)


def _totals(
    listed: MatrixList, costs: Sequence[IntArray], worst: bool, excluded: frozenset[Matrix]
) -> IntArray:
    """The objective of each matrix in ticks; FORBIDDEN, or more, where it is no answer."""
    totals = np.zeros(len(listed), dtype=np.int64)
    for ticks in costs:
        forbidden = (totals >= FORBIDDEN) | (ticks >= FORBIDDEN)
        totals = np.maximum(totals, ticks) if worst else totals + ticks
        totals[forbidden] = FORBIDDEN
    for matrix in excluded:
        number = listed.number(matrix)
        if number is not None:
            totals[number] = FORBIDDEN
    return totals


# Which scene of a request each listed matrix has: one row per scene, many matrices to a row.
# Times depend on the scene alone, so what is learnt of a row holds for all of its matrices at once.
# Positions that do not matter are gone from the digits of a scene
# (:func:`p2smt.cost.bounds.relevant_digits`), level by level, so the digits of each column are
# worked out once.


@dataclass(frozen=True, slots=True)
class SceneRows:
    """The scenes of a request, and of each listed matrix the number of its scene."""

    scenes: tuple[Scene, ...]
    of_matrix: IntArray
    _numbers: dict[tuple[Digits, ...], int] = field(default_factory=dict)

    @property
    def by_number(self) -> Mapping[tuple[int, ...], Scene]:
        """The scenes by the numbers of their rows."""
        return {(n,): scene for n, scene in enumerate(self.scenes)}

    def number(self, placement: Placement, chosen: Sequence[int]) -> int:
        """The number of the scene of a listed matrix."""
        if not self._numbers:
            self._numbers.update((scene.digits, n) for n, scene in enumerate(self.scenes))
        return self._numbers[Scene.of(self.scenes[0].topology, placement, chosen).digits]


def scene_rows(topology: Topology, listed: MatrixList, chosen: Sequence[int]) -> SceneRows:
    """The rows of a request on these axes (indices, ascending)."""
    codes = np.zeros(len(listed), dtype=np.int64)
    digits = []
    for j, columns in enumerate(listed.columns):
        here = [_digits(topology, j, column, chosen) for column in columns]
        different = sorted(set(here))
        numbers = np.array([different.index(one) for one in here], dtype=np.int64)
        digits.append([different[n] for n in numbers])
        _, codes = np.unique(
            codes * len(different) + numbers[listed.ids[:, j]], return_inverse=True
        )
    _, first = np.unique(codes, return_index=True)
    found = (
        tuple(level[n] for level, n in zip(digits, listed.ids[at], strict=True)) for at in first
    )
    return SceneRows(tuple(Scene(topology, one) for one in found), codes.reshape(-1))


def _digits(topology: Topology, level: int, column: Column, chosen: Sequence[int]) -> Digits:
    """The digits of a column's axes at its level, as far as they matter there."""
    (here,) = digits_of(Placement(tuple((entry,) for entry in column)), chosen)
    alone: list[Digits] = [()] * len(topology.levels)
    alone[level] = here
    return relevant_digits(topology, alone)[level]
