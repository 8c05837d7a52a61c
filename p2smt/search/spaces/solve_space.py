"""The best placements of a problem with their programs, as a space.

A tick is the one that the table of bounds settles on for the whole problem; a matrix costs the
ticks of its requests' best programs (each rounded down), and of equal ones the lexicographically
first is the better one.  A cube is closed as a joint search is: the table proposes a matrix of
least cost beginning with the cube's rows, and at most the cutoff; its programs are found, which
refines the table, until nothing is proposed any more.  Table and programs belong to the problem,
so the cubes that one process closes share them.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import outside_package, register_library
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.files.plain import from_plain, to_plain
from p2smt.parallel_search.coordinate import given_up_words
from p2smt.parallel_search.engine import SearchOutcome
from p2smt.parallel_search.parallel_options import SearchTerms, Spread, run_spread
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
    forget,
    keep,
    kept,
)
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Alternative
from p2smt.problems.placement import CostTable, PlacementProblem
from p2smt.result import Result, SearchLimits, Status, StopWatch
from p2smt.search.bound_table import BoundTable, Proposal
from p2smt.search.near_optimal import Ranking
from p2smt.search.one_request import RequestAnswers
from p2smt.search.placements import any_matrix, best_matrix, obeys
from p2smt.search.programs_pipelined import Catalogs
from p2smt.search.spaces.matrix_subproblems import MatrixRow, MatrixSubproblems, flat, matrix_of
from p2smt.solvers.ask import Solver, solver_of, stopping_when

_ROOTS = 16
_NO_MEMBER = 2**62
"""The bound of a cube without any member."""


@dataclass(frozen=True, slots=True)
class SolveSpace:
    """The placements of a problem by their cost; one tick takes ``tick_s`` seconds."""

    problem: Problem
    tick_s: float
    solver: Solver = Solver.CPSAT

    @property
    def skeleton(self) -> SearchKind:
        """The best ones are sought."""
        return SearchKind.OPTIMISE

    @property
    def cubes(self) -> MatrixSubproblems:
        """How they are cut."""
        problem = self.problem
        sizes = problem.topology.sizes, problem.axis_sizes
        return MatrixSubproblems(problem.axis_names, *sizes, problem.rules)

    def description(self) -> Mapping[str, object]:
        """Problem, tick and solver; and the library, where not every process knows it."""
        library = outside_package(self.problem.topology.library)
        return {**to_plain(self), "library": to_plain(library)}

    def roots(self) -> tuple[Subproblem, ...]:
        """Cubes of as many first rows as make a few of them."""
        return self.cubes.roots(_ROOTS)

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """One row more."""
        return self.cubes.split(cube)

    def bound(self, cube: Subproblem) -> int:
        """What the links allow where a request's rows are fixed, and elsewhere at best."""
        found = cache_of(self).bounds.bound(self.cubes.rows(cube))
        return _NO_MEMBER if found is None else found

    def tie_bound(self, cube: Subproblem) -> tuple[int, ...]:
        """The entries that its matrices begin with: none precedes them."""
        return self.cubes.first(cube)

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        """Find the best matrices of a cube with their programs."""
        shared_cache = cache_of(self)
        search = CubeSearch(
            shared_cache.table,
            shared_cache.answers,
            self.cubes,
            task,
            signals,
            self.bound(task.cube),
        )
        ended = search.run(may_split=bool(self.split(task.cube)))
        if search.cut:  # programs that were cut short are not for another search
            forget(self)
        return ended

    def member(self, witness: str) -> Member:
        """The matrix of a text such as ``[[4,1],[1,16]]`` with the best programs."""
        shared_cache, matrix = cache_of(self), matrix_of(witness)
        Placement(matrix).check(self.problem.topology.sizes, self.problem.axis_sizes)
        if not obeys(matrix, self.problem.rules):
            raise InputError(f"matrix {witness[:60]}", "does not obey the rules of the problem")
        if shared_cache.alternative(matrix) is None:
            raise InputError(f"matrix {witness[:60]}", "leaves a request without a program")
        ticks = shared_cache.table.ticks(matrix)
        if ticks is None:
            raise EncodingBug("a priced matrix has no ticks", self.description(), witness)
        return Member(ticks, flat(matrix), witness)


@dataclass(frozen=True, slots=True)
class SolveCache:
    """What cubes of a problem share in a process; ``bounds`` are those before any program."""

    table: BoundTable
    answers: RequestAnswers
    bounds: RowBounds

    @staticmethod
    def of(problem: Problem, solver: Solver, listings: Catalogs, tick_s: float) -> SolveCache:
        """The table filled with lower bounds, at a tick, and no program.

        Raises:
            TooLarge: a request has too many ways to lie on the levels.
        """
        table = BoundTable(problem, solver, lists=False)
        table.fill(StopWatch.start(SearchLimits()))
        table.measure_in(tick_s)
        return SolveCache.filled(table, RequestAnswers(problem, solver, listings))

    @staticmethod
    def filled(table: BoundTable, answers: RequestAnswers) -> SolveCache:
        """That of a filled table, which no program has refined.

        Raises:
            TooLarge: a request has too many ways to lie on the levels.
        """
        for refusal in table.refusals:
            raise refusal
        return SolveCache(table, answers, RowBounds(table.question()))

    def alternative(self, matrix: Matrix) -> Alternative | None:
        """A matrix with the best programs, found now where they are not known; None: there are
        none.
        """
        for entry in self.table.open(matrix):
            self.table.refine(entry, self.answers.of(entry.request, entry.scene, SearchLimits()))
        return self.table.price(matrix)


def cache_of(space: SolveSpace) -> SolveCache:
    """The shelf of a space in this process: programs are found once for all its cubes."""
    return kept(space, lambda: SolveCache.of(space.problem, space.solver, Catalogs(), space.tick_s))


def solve_space(data: Mapping[str, Any]) -> SolveSpace:
    """The space of a description.

    Raises:
        InputError: it is none.
    """
    try:
        if data["library"] is not None:
            register_library(from_plain(Library, data["library"]))
        problem, tick_s = from_plain(Problem, data["problem"]), float(data["tick_s"])
        return SolveSpace(problem, tick_s, solver_of(data["solver"]))
    except (KeyError, TypeError, AttributeError):
        raise InputError("the description of a space", "is none of a problem") from None


# Closing one cube of a problem: proposals and programs until nothing of it can be among the best.
# Every matrix of the cube that has a price is excluded from then on, so each proposal is the least
# of what is left under bounds that never exceed the truth: once it comes after the cutoff, by its
# ticks or at equal ticks by its entries, all that is left does.


@dataclass(slots=True)
class CubeSearch:
    """The search in one cube; ``formula`` is the cube's bound without a solver, in ticks.

    ``best``: members of the cube in order, at most ``top``.  ``unproved``: a matrix whose programs
    are not proved the best costs no less than so many ticks; None: there is none.
    """

    table: BoundTable
    answers: RequestAnswers
    cubes: MatrixSubproblems
    task: SubproblemTask
    signals: Signals
    formula: int
    best: list[Member] = field(default_factory=list)
    unproved: int | None = None
    _priced: set[Matrix] = field(default_factory=set)
    _started_s: float = field(default_factory=time.monotonic)

    def run(self, *, may_split: bool) -> Closure | OverBudget:
        """Close the cube; above its budget it is given back, if it may be split."""
        lowest = self.formula
        while True:
            if may_split and self._past(self.task.budget_s):
                return OverBudget(self.task.cube, tuple(self.best))
            if self.cut:
                return self._closure(SubproblemVerdict.UNKNOWN, lowest)
            found = self._proposal(may_split=may_split)
            cutoff = self.cutoff()
            if found.status is Status.INFEASIBLE:
                return self._ended(None if cutoff is None else cutoff.value + 1)
            if found.bound is not None and cutoff and found.bound > cutoff.value:
                return self._ended(found.bound)
            if found.status is not Status.OPTIMAL or found.value is None or found.bound is None:
                continue
            lowest = max(lowest, min([found.bound, *(one.value for one in self.best)]))
            if cutoff and (found.bound, flat(found.value)) > (cutoff.value, cutoff.tie):
                return self._ended(found.bound)
            try:
                self._price(found.value)
            except OutOfTimeError:
                return self._closure(SubproblemVerdict.UNKNOWN, lowest)

    def cutoff(self) -> Member | None:
        """What a member must precede, or be: the worst of the best ``top`` that are known."""
        known = sorted({*self.task.known, *self.best})
        mine = known[self.task.top - 1] if len(known) >= self.task.top else None
        told = self.signals.cutoff()
        return min((one for one in (mine, told) if one is not None), default=None)

    def _proposal(self, *, may_split: bool) -> Result[Matrix]:
        """A matrix of least cost under the table, of those that are left and may count."""
        self.table.calls += 1
        cutoff, excluded = self.cutoff(), frozenset(self._priced)
        rules = self.cubes.fixed(self.task.cube)
        question = replace(self.table.question(excluded), rules=rules)
        if cutoff is not None:
            question = replace(question, at_most=cutoff.value)
        question = narrowed(question, self.cubes.rows(self.task.cube))
        left = StopWatch.start(self._limits(self.task.budget_s if may_split else None))
        with stopping_when(self._useless):
            return best_matrix(question, self.table.solver, left)

    def _useless(self, bound: int | None) -> bool:
        """Whether a solver need not go on: the search is over, or nothing it finds would count."""
        cutoff = self.cutoff()
        beyond = bound is not None and cutoff is not None and bound > cutoff.value
        return beyond or self.signals.stopped()

    def _limits(self, budget_s: float | None) -> SearchLimits:
        """The time left of the budget and of the deadline, whichever ends first."""
        gone_s = time.monotonic() - self._started_s
        limits = [one - gone_s for one in (budget_s, self.task.deadline_s) if one is not None]
        left_s = max(0.0, min(limits)) if limits else None
        return SearchLimits(left_s, None, self.task.seed, self.task.threads)

    def _price(self, matrix: Matrix) -> None:
        """Find the programs of a matrix; a member if all are proved the best.

        Raises:
            OutOfTimeError: the deadline came first, or the search is over.
        """
        for entry in self.table.open(matrix):
            limits = self._limits(None)
            with stopping_when(lambda _: self.signals.stopped()):
                answer = self.answers.of(entry.request, entry.scene, limits)
            if self.cut:
                raise OutOfTimeError
            self.table.refine(entry, answer)
            if answer is None:
                return
        found, ticks = self.table.price(matrix), self.table.ticks(matrix)
        if found is None or ticks is None:
            return
        self._priced.add(matrix)
        if found.status is not Status.OPTIMAL:
            self.unproved = ticks if self.unproved is None else min(ticks, self.unproved)
            return
        insort(self.best, Member(ticks, flat(matrix), Placement(matrix).text()))
        del self.best[self.task.top :]

    @property
    def cut(self) -> bool:
        """Whether the deadline came, or the search is over: what was found may not be the best."""
        return self._past(self.task.deadline_s) or self.signals.stopped()

    def _past(self, limit_s: float | None) -> bool:
        return limit_s is not None and time.monotonic() - self._started_s >= limit_s

    def _ended(self, bound: int | None) -> Closure:
        """Closed by proof: what is left costs at least ``bound`` (None: nothing is left)."""
        cutoff = self.cutoff()
        self.best = [one for one in self.best if cutoff is None or one <= cutoff]
        if self.unproved is not None and (cutoff is None or self.unproved <= cutoff.value):
            least = [one.value for one in self.best]
            return self._closure(SubproblemVerdict.UNKNOWN, min([self.unproved, *least]))
        if self.best:
            return self._closure(SubproblemVerdict.SOLVED, self.best[0].value)
        if cutoff is None:
            return self._closure(SubproblemVerdict.EMPTY, None)
        return self._closure(
            SubproblemVerdict.BOUNDED, max(self.formula, min(_some(bound), cutoff.value))
        )

    def _closure(self, verdict: SubproblemVerdict, bound: int | None) -> Closure:
        best: Sequence[Member] = () if verdict is SubproblemVerdict.BOUNDED else self.best
        if best and bound is not None:
            bound = min(bound, best[0].value)
        return Closure(self.task.cube, verdict, bound, tuple(best))


def _some(bound: int | None) -> int:
    """A bound, where nothing is left one that is above all."""
    return 2**62 if bound is None else bound


# What the first rows of a matrix say of its cost: a bound without a solver.
# A row of a cost table fits the first rows of a matrix if its terms may still come out: a term
# whose axes all have their rows is their product, of another one the product so far is a divisor.
# The least cost of the fitting rows of each table, summed (or the largest of them), bounds all
# matrices that begin with these rows: where all axes of a request have their rows it is what the
# links allow on its scene, elsewhere what they allow on the best scene that is left.


_Known = tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class RowBounds:
    """Bounds by the cost tables of a question, in its ticks."""

    question: PlacementProblem
    _least: dict[tuple[int, _Known], int | None] = field(default_factory=dict)

    def bound(self, rows: Sequence[MatrixRow]) -> int | None:
        """Ticks that no matrix with these first rows is below; None: there is no such matrix."""
        found = [self._of(number, rows) for number in range(len(self.question.costs))]
        least = [ticks for ticks in found if ticks is not None]
        if len(least) < len(found):
            return None
        return max(least, default=0) if self.question.worst else sum(least)

    def _of(self, number: int, rows: Sequence[MatrixRow]) -> int | None:
        table = self.question.costs[number]
        known = _known(table, rows)
        if (number, known) not in self._least:
            fits = (ticks for values, ticks in table.rows.items() if _fits(values, known))
            self._least[number, known] = min(fits, default=None)
        return self._least[number, known]


def narrowed(question: PlacementProblem, rows: Sequence[MatrixRow]) -> PlacementProblem:
    """The question with only those rows of its tables that fit the first rows of a matrix."""
    costs = []
    for table in question.costs:
        known = _known(table, rows)
        kept = {values: ticks for values, ticks in table.rows.items() if _fits(values, known)}
        costs.append(CostTable(table.terms, kept))
    return replace(question, costs=tuple(costs))


def _known(table: CostTable, rows: Sequence[MatrixRow]) -> _Known:
    """Of each term of a table its product so far, and whether that is all of it."""
    found = []
    for term in table.terms:
        so_far = math.prod(rows[i][term.level] for i in term.axes if i < len(rows))
        found.append((so_far, all(i < len(rows) for i in term.axes)))
    return tuple(found)


def _fits(values: Sequence[int], known: _Known) -> bool:
    return all(
        value == so_far if whole else value % so_far == 0
        for value, (so_far, whole) in zip(values, known, strict=True)
    )


# A ranking filled by a search over cubes: the same one that a search in one piece fills.
# The table of bounds is filled and asked once here, which gives the physical bound and settles the
# tick; cubes are then closed wherever the engine has them.  The best matrices come back as texts:
# their programs are found again here, by the ordinary path.


SCALE = "a tick is tick_s seconds of the objective, each request rounded down"
CUBE_RULE = "rows of the parallelism matrix, in the order of the axes"


@dataclass(frozen=True, slots=True)
class ParallelRank:
    """Fills rankings of a problem as the options of ``spread`` say."""

    problem: Problem
    spread: Spread

    def __call__(
        self, ranking: Ranking, table: BoundTable, answers: RequestAnswers, watch: StopWatch
    ) -> None:
        """Rank the best alternatives.

        Raises:
            InputError: the journal, the engine, or a request with too many scenes.
            OutOfTimeError: the watch expired.
            KeyboardInterrupt: after what was found until then is in the ranking.
        """
        if self.problem.rules:
            found = any_matrix(self.problem, table.solver, watch)
            ranking.exhausted = found.status is Status.INFEASIBLE
            if ranking.exhausted:
                return
        table.fill(watch)
        ranking.take_links(table.links_s(watch))
        proposal = table.propose(frozenset(), watch)
        ranking.take_bound(proposal)
        if proposal.matrix is None:
            return
        shared_cache = self._shelf(table, answers, watch)
        space = self._space(table)
        keep(space, shared_cache)
        question = SearchTerms("solve", ranking.top, SCALE, CUBE_RULE, table.tick_s)
        outcome = run_spread(space, question, self.spread, watch)
        _take(ranking, shared_cache, outcome)
        if outcome.given_up:
            ranking.notes.append(given_up_words(outcome.given_up))
        if outcome.interrupted:
            raise KeyboardInterrupt

    def _shelf(self, table: BoundTable, answers: RequestAnswers, watch: StopWatch) -> SolveCache:
        """A table for solvers, which have no list of matrices, in the ticks of the other one."""
        tabled = BoundTable(self.problem, table.solver, lists=False)
        tabled.fill(watch)
        tabled.measure_in(table.tick_s)
        return SolveCache.filled(tabled, answers)

    def _space(self, table: BoundTable) -> SolveSpace:
        return SolveSpace(self.problem, table.tick_s, table.solver)


def _take(ranking: Ranking, shared_cache: SolveCache, outcome: SearchOutcome) -> None:
    """Put what a search found into a ranking."""
    proved, tick_s = outcome.status is Status.OPTIMAL, shared_cache.table.tick_s
    if not proved and outcome.bound is not None:
        ranking.take_bound(Proposal(Status.UNKNOWN, None, outcome.bound * tick_s))
    for member in outcome.best:
        matrix = matrix_of(member.witness)
        found = shared_cache.alternative(matrix)
        if found is None:
            continue
        ranking.take(found)
        if proved:
            bound_s = member.value * tick_s
            ranking.take_bound(Proposal(Status.OPTIMAL, matrix, bound_s))
            ranking.settle(found)
    fewer = proved and len(outcome.best) < ranking.top
    ranking.exhausted |= fewer or outcome.status is Status.INFEASIBLE
