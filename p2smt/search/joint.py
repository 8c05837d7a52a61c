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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Solution
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.bound_table import BoundTable, Proposal
from p2smt.search.one_request import RequestAnswers
from p2smt.search.order.near import Nearness, NearSearch
from p2smt.search.order.ranking import Ranking
from p2smt.search.placements import any_matrix
from p2smt.search.programs_pipelined import Listings
from p2smt.search.weaker.estimates import Estimates
from p2smt.search.weaker.fallback import Fallback
from p2smt.solvers.solver import Solver

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
    listings: Listings = field(default_factory=Listings)
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
        if self.problem.topology.library:  # otherwise the first proposal's bound is the links'
            ranking.take_links(table.links_s())
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
