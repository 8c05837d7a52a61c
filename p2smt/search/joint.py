"""Placement and programs together, by lazily refined cost tables.

A table has a cost per request and scene, and starts with lower bounds.  The matrix of least cost
under it is proposed: by looking at all matrices where they can be listed, else by the placement
encoding.  Each one proposed has its entries replaced by the proved optimum of the program
synthesis; once all entries of the proposed optimum are exact, it is the optimum: every other entry
is exact or a lower bound.  (This is logic-based Benders decomposition: the programs are the
subproblems.)  Further alternatives come from excluding the matrices found.

Where the search ends without a proof, the rest of the time goes to ``weaker``: known matrices,
better ones near them, and their programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations, product

from p2smt.collectives.dispatch import AnyKind
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.parallelism.rank_list import matrix_of
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import RequestAnswer, Solution, matrix_alternative, objective
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.bound_table import BoundTable, Proposal
from p2smt.search.near_optimal import Nearness, NearSearch, Ranking
from p2smt.search.one_request import RequestAnswers, single_answer
from p2smt.search.placements import any_matrix, obeys
from p2smt.search.programs_pipelined import Catalogs
from p2smt.solvers.ask import Solver

Rank = Callable[[Ranking, BoundTable, RequestAnswers, StopWatch], None]
"""Another way to fill a ranking, such as by workers."""
ProgressCallback = Callable[[float | None, float], None]

_NONE = Status.INFEASIBLE
_PROPOSALS, _PROGRAMS = 0.9, 0.95
"""Shares of a time limit after which nothing is proposed, and no proposal's programs are sought."""


@dataclass(frozen=True, slots=True)
class JointSearch:
    """Searches one problem; ``progress`` is told the least objective so far and the bound.

    ``orders`` are rank orders whose matrices are answers known beforehand.  ``nearness``: which
    placements near the optimum are looked for after it; None: none.  ``rank``: ranks instead of the
    loop that this module is about.
    """

    problem: Problem
    limits: SearchLimits
    solver: Solver = Solver.CPSAT
    progress: ProgressCallback | None = None
    listings: Catalogs = field(default_factory=Catalogs)
    orders: tuple[IntArray, ...] = ()
    nearness: Nearness | None = None
    rank: Rank | None = None

    def run(self, top: int) -> Solution:
        """The ``top`` best alternatives in order, or as many as the limits allow.

        After a time limit or an interrupt: what was found until then.
        """
        watch, ranking, interrupted = StopWatch.start(self.limits), Ranking(top), False
        table = BoundTable(self.problem, self.solver)
        answers = RequestAnswers(self.problem, self.solver, self.listings)
        try:
            (self.rank or self._rank)(ranking, table, answers, watch)
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            interrupted = True
        if ranking.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            whole = self.limits.time_limit_s is None and not table.refusals
            looked = whole and ranking.least_s is not None  # proposed to the end: no second look
            quick = interrupted or looked
            interrupted |= self._without_proof(ranking, answers, watch, quick)
        counters = (("programs", len(answers)),)
        stats = SolveStats(self.solver, watch.elapsed_s(), table.calls, counters)
        found = self._solution(ranking, stats, interrupted, table.refusals)
        if self.nearness is None:
            return found
        near = NearSearch(ranking, self.nearness)
        interrupted |= _look(near, table, answers, watch, found.status is not Status.OPTIMAL)
        return replace(found, near=near.answer, interrupted=interrupted)

    def _rank(
        self, ranking: Ranking, table: BoundTable, answers: RequestAnswers, watch: StopWatch
    ) -> None:
        """Propose and refine until the ranking is done, or a proposal could not be proved."""
        if self.problem.rules:
            ranking.exhausted = any_matrix(self.problem, self.solver, watch).status is _NONE
            if ranking.exhausted:
                return
        early, late = _until(watch, _PROPOSALS), _until(watch, _PROGRAMS)
        table.fill(early)
        ranking.take_links(table.links_s(early))
        while ranking.unfinished:
            proposal = table.propose(ranking.excluded, early)
            ranking.take_bound(proposal)
            if proposal.matrix is None:
                return
            _refine(table, proposal, answers, late)
            found = table.price(proposal.matrix)
            if found is not None:
                ranking.take(found)
            self._report(ranking)
            if proposal.status is not Status.OPTIMAL or table.refusals:
                return
            if found is not None and not proposal.open:  # it had its price when it was proposed
                ranking.settle(found)

    def _without_proof(
        self, ranking: Ranking, answers: RequestAnswers, watch: StopWatch, quick: bool
    ) -> bool:
        """Take what is known beforehand, and use the time left; whether it was interrupted."""
        estimates = Estimates(self.problem)
        fallback = Fallback(self.problem, self.solver, answers, estimates, self.orders)
        try:
            fallback.start(ranking, watch)
            if not quick:
                fallback.improve(ranking, watch)
        except KeyboardInterrupt:
            return True
        return False

    def _report(self, ranking: Ranking) -> None:
        if self.progress is not None and not ranking.ranked:
            self.progress(ranking.least_s, ranking.proved_s)

    def _solution(
        self, ranking: Ranking, stats: SolveStats, interrupted: bool, refusals: Sequence[TooLarge]
    ) -> Solution:
        return Solution(
            self.problem,
            ranking.status,
            ranking.alternatives,
            ranking.bound_s,
            ranking.physical_bound_s,
            ranking.completeness,
            stats,
            interrupted=interrupted,
            notes=(*map(_unseen, refusals), *ranking.notes),
        )


def _look(
    near: NearSearch, table: BoundTable, answers: RequestAnswers, watch: StopWatch, quick: bool
) -> bool:
    """Look for placements near the optimum, unless ``quick``; whether it was interrupted."""
    near.take_known()
    try:
        if not quick:
            near.look(table, answers, near.nearness.watch(watch))
    except OutOfTimeError:
        pass
    except KeyboardInterrupt:
        return True
    return False


def _unseen(refusal: TooLarge) -> str:
    """What a request without a table means for the answer."""
    remedy = f"; to have it proved: {refusal.remedy}"
    return f"{refusal.given} {refusal.rule}: the answer is the best of those tried{remedy}"


def _until(watch: StopWatch, share: float) -> StopWatch:
    """The watch that ends after a share of the time limit."""
    limit_s = watch.limits.time_limit_s
    return watch if limit_s is None else watch.ending_at(share * limit_s)


def _refine(
    table: BoundTable, proposal: Proposal, answers: RequestAnswers, watch: StopWatch
) -> None:
    """Answer the open entries of a proposal; the rest is of no use once one is forbidden."""
    for entry in proposal.open:
        answer = answers.of(entry.request, entry.scene, watch.left())
        table.refine(entry, answer)
        if answer is None:
            return


# What a matrix costs with one collective per request, and the least it can cost.


_Key = tuple[AnyKind, int, tuple[Digits, ...]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Objectives of a matrix: ``single_s`` with one collective per request, ``bound_s`` no less."""

    single_s: float
    bound_s: float


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of the matrices met so far (``met``), each made once."""

    problem: Problem
    met: dict[Matrix, Estimate] = field(default_factory=dict)
    _requests: dict[_Key, Estimate] = field(default_factory=dict)

    def of(self, matrix: Matrix) -> Estimate:
        """The estimate of a matrix."""
        if matrix not in self.met:
            found = [self._request(matrix, request) for request in self.problem.requests]
            single_s = objective(self.problem, tuple(one.single_s for one in found))
            bound_s = objective(self.problem, tuple(one.bound_s for one in found))
            self.met[matrix] = Estimate(single_s, bound_s)
        return self.met[matrix]

    def _request(self, matrix: Matrix, request: Request) -> Estimate:
        chosen = self.problem.axis_indices(request)
        scene = Scene.of(self.problem.topology, Placement(matrix), chosen)
        key = (request.kind, request.payload_bytes, scene.digits)
        if key not in self._requests:
            single_s = scene.fixed_time(request.kind, request.payload_bytes).seconds
            alone = math.prod(scene.hierarchy.factors) == 1
            self._requests[key] = Estimate(0.0 if alone else single_s, scene.least_s(request))
        return self._requests[key]

    def descend(self, starts: Iterable[Matrix], watch: StopWatch) -> None:
        """Meet the matrices on the way from each start to one whose neighbours are no better.

        Ends early when the time runs out.
        """
        for start in starts:
            at: Matrix | None = start
            while at is not None and not watch.expired():
                better = min(self._near(at, watch), default=(math.inf, at))
                at = better[1] if better[0] < self.of(at).single_s else None

    def _near(self, matrix: Matrix, watch: StopWatch) -> Iterator[tuple[float, Matrix]]:
        for near in neighbours(self.problem, matrix):
            if watch.expired():
                return
            yield self.of(near).single_s, near


# The best answer without proof, where the search ended before it had one.
# It begins with matrices that are known beforehand, so an answer is never worse than the default
# layout that a matrix expresses, goes on to better ones near them, and looks for programs on those
# whose links allow most.


_AT_ONCE = 24  # known matrices that are costed even if no time is left
_DESCENTS = 5  # starts from which better matrices are sought
_SINGLES = 3  # matrices that are answered by one collective a request
_TRIED = 10  # matrices for which programs are sought


@dataclass(frozen=True, slots=True)
class Fallback:
    """Answers to a problem beside its search; ``orders`` are rank orders to begin with."""

    problem: Problem
    solver: Solver
    answers: RequestAnswers
    estimates: Estimates
    orders: tuple[IntArray, ...] = ()

    def start(self, ranking: Ranking, watch: StopWatch) -> None:
        """Price the best of the known matrices with one collective per request.

        The first one, the default layout if a matrix expresses it, is an answer before the others
        are looked at: an interrupt then finds one.
        """
        starts = start_matrices(self.problem, self.orders) or self._any(watch)
        for n, matrix in enumerate(starts):
            if n >= _AT_ONCE and watch.expired():
                break
            self.estimates.of(matrix)
            if n == 0:
                self._take_singles(ranking, 1)
        self._take_singles(ranking, 1)

    def improve(self, ranking: Ranking, watch: StopWatch) -> None:
        """Look near the known matrices, then for programs, until the time runs out."""
        self.estimates.descend(self._best()[:_DESCENTS], watch)
        self._take_singles(ranking, 1 if watch.expired() else _SINGLES)
        by_bound = sorted(self.estimates.met, key=lambda m: (self.estimates.of(m).bound_s, m))
        for matrix in dict.fromkeys([*self._best()[:1], *by_bound[:_TRIED]]):
            least_s = ranking.least_s
            if watch.expired():
                return
            if least_s is None or self.estimates.of(matrix).bound_s < least_s:
                self._take_programs(ranking, matrix, watch)

    def _any(self, watch: StopWatch) -> Sequence[Matrix]:
        """A matrix that obeys the rules, where none of the known ones does: found in no time."""
        limit_s = watch.limits.time_limit_s
        if limit_s is not None:
            watch = watch.ending_at(max(limit_s, watch.elapsed_s() + 1.0))
        found = any_matrix(self.problem, self.solver, watch).value
        return [] if found is None else [found]

    def _best(self) -> list[Matrix]:
        """The matrices met, by their time with one collective per request."""
        return sorted(self.estimates.met, key=lambda m: (self.estimates.of(m).single_s, m))

    def _take_singles(self, ranking: Ranking, count: int) -> None:
        for matrix in self._best()[:count]:
            least_s, single_s = ranking.least_s, self.estimates.of(matrix).single_s
            if count > 1 or least_s is None or single_s < least_s:
                scenes = self._scenes(matrix)
                self._take(ranking, matrix, [self._single(request, at) for request, at in scenes])

    def _take_programs(self, ranking: Ranking, matrix: Matrix, watch: StopWatch) -> None:
        found: list[RequestAnswer | None] = []
        try:
            for request, scene in self._scenes(matrix):
                found.append(self.answers.of(request, scene, watch.left()))
        except OutOfTimeError:
            return
        self._take(ranking, matrix, found)

    def _take(
        self, ranking: Ranking, matrix: Matrix, found: Sequence[RequestAnswer | None]
    ) -> None:
        """Note a matrix, unless the restrictions leave a request without an answer."""
        answers = tuple(answer for answer in found if answer is not None)
        if len(answers) == len(found):
            ranking.take(matrix_alternative(self.problem, matrix, answers))

    def _scenes(self, matrix: Matrix) -> Iterator[tuple[Request, Scene]]:
        for request in self.problem.requests:
            chosen = self.problem.axis_indices(request)
            yield request, Scene.of(self.problem.topology, Placement(matrix), chosen)

    def _single(self, request: Request, scene: Scene) -> RequestAnswer | None:
        found = single_answer(self.problem, request, scene, self.solver)
        if found is not None and request.kind.has_exchanges:
            least_s = scene.least_s(request)
            if least_s < found.bound_s:
                return replace(found, status=Status.UNKNOWN, bound_s=least_s)
        return found


# Matrices known before any search: rank orders that a matrix expresses, and axes packed in order.
# A packed matrix gives the innermost level to the first axis of an order, as far as sizes divide,
# then to the second, and so outwards; among them are the layouts of frameworks that name their axes
# from the innermost (such as Megatron's tp-cp-ep-dp-pp).


MAX_ORDERS = 720
"""All orders of 6 axes; of more axes those that keep the heaviest ones inside."""


def packed(levels: Sequence[int], axes: Sequence[int], order: Sequence[int]) -> Matrix:
    """The matrix that packs the axes in this order (first innermost); ``order`` may leave out 1s.

    What divides a level's rest goes there; the products being equal, nothing is left over.
    """
    left = list(axes)
    rows = [[1] * len(levels) for _ in axes]
    for j in reversed(range(len(levels))):
        free = levels[j]
        for axis in order:
            rows[axis][j] = math.gcd(left[axis], free)
            left[axis] //= rows[axis][j]
            free //= rows[axis][j]
    return tuple(tuple(row) for row in rows)


def start_matrices(problem: Problem, orders: Sequence[IntArray]) -> tuple[Matrix, ...]:
    """Different matrices that obey the rules: those of rank orders first, then packed ones."""
    levels = problem.topology.sizes
    given = [matrix_of(ranks, levels) for ranks in orders]
    found = dict.fromkeys(matrix for matrix in given if matrix is not None)
    for order in islice(permutations(_heaviest_first(problem)), MAX_ORDERS):
        found[packed(levels, problem.axis_sizes, order)] = None
    return tuple(matrix for matrix in found if obeys(matrix, problem.rules))


def _heaviest_first(problem: Problem) -> list[int]:
    """Axes of more than one rank by the bytes of their requests, the heaviest first."""
    weight = {i: 0 for i, size in enumerate(problem.axis_sizes) if size > 1}
    for request in problem.requests:
        for i in set(problem.axis_indices(request)) & set(weight):
            weight[i] += request.payload_bytes * request.times
    return sorted(weight, key=lambda i: -weight[i])


def neighbours(problem: Problem, matrix: Matrix) -> Iterator[Matrix]:
    """Matrices that obey the rules and differ by two axes exchanging a prime between two levels."""
    axes, levels = range(len(matrix)), range(len(matrix[0]))
    for a, b, j, k in product(axes, axes, levels, levels):
        if a < b and j != k:
            for prime in _primes(math.gcd(matrix[a][j], matrix[b][k])):
                rows = [list(row) for row in matrix]
                rows[a][j], rows[a][k] = rows[a][j] // prime, rows[a][k] * prime
                rows[b][k], rows[b][j] = rows[b][k] // prime, rows[b][j] * prime
                found = tuple(tuple(row) for row in rows)
                if obeys(found, problem.rules):
                    yield found


def _primes(number: int) -> Iterator[int]:
    divisor = 2
    while number > 1:
        if number % divisor == 0:
            yield divisor
            while number % divisor == 0:
                number //= divisor
        divisor += 1
