"""Placement and programs together, by lazily refined cost tables.

The placement encoding minimises over a table of costs per request and scene.  The table
starts with physical lower bounds.  Each matrix that the solver proposes has its entries
replaced by the proved optimum of the program synthesis; once all entries of the proposed
optimum are exact, it is the optimum: every other entry is exact or a lower bound.  (This is
logic-based Benders decomposition: the programs are the subproblems.)  Further alternatives
come from excluding the matrices found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, OutOfTimeError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import Alternative, RequestPlan, Solution, objective
from p2smt.problems.placement import CostTable, PlacementProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.one_request import physical_bound_s, plan_request
from p2smt.search.placements import is_answer
from p2smt.search.programs_pipelined import Listings
from p2smt.search.scene_table import SceneTable, Values, scene_table
from p2smt.solvers.ask import ask
from p2smt.solvers.questions import Optimum
from p2smt.solvers.solver import Solver

_RESOLUTION = 2**44  # ticks of the largest single collective, at first
_MOST_ASIDE = 100  # alternatives set aside before the search gives up
_COARSE, _CAP, _ZOOM = 2**24, 2**46, 2**20
Progress = Callable[[float | None, float], None]


@dataclass(slots=True)
class _Entry:
    """A request on one scene: a bound in seconds, and its plan once it is computed."""

    bound_s: float
    plan: RequestPlan | None = None
    allowed: bool = True


@dataclass(slots=True)
class _Table:
    """Entries of one request by the values of its table's terms."""

    request: Request
    columns: SceneTable
    entries: dict[Values, _Entry]

    def bound_s(self, matrix: Matrix) -> float:
        """The bound in seconds of the entry that a matrix falls into."""
        return self.entries[self.columns.values(Placement(matrix))].bound_s

    def costs(self, tick_s: float) -> CostTable:
        """The table in ticks of one iteration, rounded down and capped: still lower bounds."""
        rows = {
            values: min(int(self.request.times * entry.bound_s / tick_s), _CAP)
            for values, entry in self.entries.items()
            if entry.allowed
        }
        return CostTable(self.columns.terms, rows)


@dataclass(slots=True)
class JointSearch:
    """One search; ``run`` gives the solution, also after a time limit or an interrupt."""

    problem: Problem
    limits: SearchLimits
    solver: Solver = Solver.CPSAT
    progress: Progress | None = None
    listings: Listings = field(default_factory=Listings)
    _tables: list[_Table] = field(default_factory=list)
    _tick_s: float = 1.0
    _watch: StopWatch = field(default_factory=lambda: StopWatch.start(SearchLimits()))
    _seen: dict[Matrix, Alternative] = field(default_factory=dict)
    _plans: dict[tuple[Any, ...], RequestPlan | None] = field(default_factory=dict)
    _calls: int = 0
    _physical_s: float = 0.0
    _bound_s: float = 0.0
    _exhausted: bool = False
    _aside: frozenset[Matrix] = frozenset()
    _settled: int = 0

    def run(self, top: int) -> Solution:
        """The ``top`` best alternatives in order, or as many as the limits allow."""
        self._watch = StopWatch.start(self.limits)
        ranked: list[Alternative] = []
        status, interrupted = Status.UNKNOWN, False
        try:
            self._prepare()
            status = self._rank(ranked, top)
        except OutOfTimeError:
            status = ranked[0].status if ranked else Status.UNKNOWN
        except KeyboardInterrupt:
            interrupted = True
            status = ranked[0].status if ranked else Status.UNKNOWN
        return self._solution(ranked, status, top, interrupted)

    def _prepare(self) -> None:
        """Scene tables, filled with physical bounds, and the tick."""
        problem = self.problem
        largest = 0.0
        for request in problem.requests:
            chosen = problem.axis_indices(request)
            columns = scene_table(problem.topology, problem.axis_sizes, chosen)
            entries, singles = {}, [0.0]
            for values, scene in columns.scenes.items():
                if self._watch.expired():
                    raise OutOfTimeError
                entries[values] = _Entry(physical_bound_s(scene, request))
                singles.append(scene.fixed_time(request.kind, request.payload_bytes).seconds)
            largest += request.times * max(singles)
            self._tables.append(_Table(request, columns, entries))
        self._tick_s = largest / _RESOLUTION or 1.0

    def _propose(self, excluded: frozenset[Matrix]) -> Result[Matrix]:
        """The matrix of least cost under the table as it is, at a fitting scale.

        The scale fits if the optimum has enough ticks to tell matrices apart, and none of its
        entries is capped.
        """
        while True:
            result = self._propose_at_scale(excluded)
            if result.value is None or result.status is not Status.OPTIMAL:
                return result
            terms = [t.request.times * t.bound_s(result.value) for t in self._tables]
            if any(term / self._tick_s >= _CAP for term in terms):
                self._tick_s *= _ZOOM
            elif 0 < max(terms) < _COARSE * self._tick_s:
                self._tick_s /= _ZOOM
            else:
                return result

    def _propose_at_scale(self, excluded: frozenset[Matrix]) -> Result[Matrix]:
        problem = self.problem
        self._calls += 1
        question = PlacementProblem(
            problem.topology.sizes,
            problem.axis_sizes,
            problem.rules,
            tuple(table.costs(self._tick_s) for table in self._tables),
            problem.objective == "max",
            excluded,
        )
        result = ask(question, Optimum(), self.solver, self._watch.left())
        if result.value is not None and not is_answer(question, result.value):
            sizes = {"levels": question.levels, "axes": question.axes, "rules": question.rules}
            raise EncodingBug("a decoded placement is not an answer", sizes, result.value)
        return result

    def _rank(self, ranked: list[Alternative], top: int) -> Status:
        """Find alternatives in order; the status of the first one."""
        status = Status.UNKNOWN
        while len(ranked) + self._settled < top and len(self._aside) < _MOST_ASIDE:
            excluded = frozenset(a.matrix for a in ranked) | self._aside
            result = self._propose(excluded)
            if not excluded and result.bound is not None:
                self._bound_s = max(self._bound_s, result.bound * self._tick_s)
                if not self._plans:
                    self._physical_s = self._bound_s
            if result.value is None:
                self._exhausted = result.status is Status.INFEASIBLE
                return Status.INFEASIBLE if self._exhausted and not excluded else status
            proved = result.status is Status.OPTIMAL
            exact = self._refine(result.value)
            self._report(ranked)
            if exact and proved:
                status = self._place(self._seen[result.value], ranked, status)
            elif not proved:
                return status
        return status

    def _place(self, found: Alternative, ranked: list[Alternative], status: Status) -> Status:
        """Rank an alternative, or set it aside.

        One whose programs are not all proved best has no rank, nor has any after it; the
        search goes on for settled ones, which may be faster than it is.
        """
        if found.status is Status.OPTIMAL and not self._aside:
            ranked.append(found)
            return Status.OPTIMAL
        self._aside |= {found.matrix}
        self._settled += found.status is Status.OPTIMAL
        return status

    def _report(self, ranked: list[Alternative]) -> None:
        if self.progress is not None and not ranked:
            best = min((a.objective_s for a in self._seen.values()), default=None)
            self.progress(best, self._bound_s)

    def _refine(self, matrix: Matrix) -> bool:
        """Make the matrix's entries exact; True if they already were."""
        placement, plans, known = Placement(matrix), [], True
        for table in self._tables:
            values = table.columns.values(placement)
            entry = table.entries[values]
            if entry.plan is None and entry.allowed:
                known = False
                plan = self._plan(table.request, table.columns.scenes[values])
                entry.plan, entry.allowed = plan, plan is not None
                entry.bound_s = entry.bound_s if plan is None else plan.bound_s
            if entry.plan is None:
                return False
            plans.append(entry.plan)
        seconds = tuple(plan.seconds for plan in plans)
        proved = all(plan.status is Status.OPTIMAL for plan in plans)
        status = Status.OPTIMAL if proved else Status.FEASIBLE
        total = objective(self.problem, seconds)
        self._seen[matrix] = Alternative(matrix, tuple(plans), total, status)
        return known

    def _plan(self, request: Request, scene: Scene) -> RequestPlan | None:
        """Plans are shared by requests that differ in ``times`` only."""
        key = (request.kind, request.payload_bytes, scene.digits)
        if key not in self._plans:
            self._plans[key] = plan_request(
                self.problem, request, scene, self._watch.left(), self.solver, self.listings
            )
        plan = self._plans[key]
        return plan and replace(plan, request=request)

    def _solution(
        self, ranked: list[Alternative], status: Status, top: int, interrupted: bool
    ) -> Solution:
        alternatives = tuple(ranked)
        if status in (Status.UNKNOWN, Status.FEASIBLE):
            seen = sorted(self._seen.values(), key=lambda a: (a.objective_s, a.matrix))
            alternatives = tuple(seen[:top])
            status = Status.FEASIBLE if seen else Status.UNKNOWN
        best = alternatives[0].objective_s if alternatives else None
        whole = len(ranked) == top or (self._exhausted and not self._aside)
        return Solution(
            self.problem,
            status,
            alternatives,
            self._bound_s if best is None else min(self._bound_s, best),
            self._physical_s if best is None else min(self._physical_s, best),
            Status.COMPLETE if whole else Status.TRUNCATED,
            SolveStats(
                self.solver, self._watch.elapsed_s(), self._calls, (("programs", len(self._plans)),)
            ),
            interrupted=interrupted,
        )
