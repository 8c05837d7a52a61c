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
from dataclasses import dataclass, field

from p2smt.errors import OutOfTimeError
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Solution
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.bound_table import BoundTable, Proposal
from p2smt.search.one_request import RequestAnswers
from p2smt.search.programs_pipelined import Listings
from p2smt.search.ranking import Ranking
from p2smt.solvers.solver import Solver

ProgressCallback = Callable[[float | None, float], None]


@dataclass(frozen=True, slots=True)
class JointSearch:
    """Searches one problem; ``progress`` is told the least objective so far and the bound."""

    problem: Problem
    limits: SearchLimits
    solver: Solver = Solver.CPSAT
    progress: ProgressCallback | None = None
    listings: Listings = field(default_factory=Listings)

    def run(self, top: int) -> Solution:
        """The ``top`` best alternatives in order, or as many as the limits allow.

        After a time limit or an interrupt: what was found until then.
        """
        watch, ranking, interrupted = StopWatch.start(self.limits), Ranking(top), False
        table = BoundTable(self.problem, self.solver)
        answers = RequestAnswers(self.problem, self.solver, self.listings)
        try:
            self._rank(ranking, table, answers, watch)
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            interrupted = True
        counters = (("programs", len(answers)),)
        stats = SolveStats(self.solver, watch.elapsed_s(), table.calls, counters)
        return self._solution(ranking, stats, interrupted)

    def _rank(
        self, ranking: Ranking, table: BoundTable, answers: RequestAnswers, watch: StopWatch
    ) -> None:
        """Propose and refine until the ranking is done, or a proposal could not be proved."""
        table.fill(watch)
        while ranking.unfinished:
            proposal = table.propose(ranking.excluded, watch)
            ranking.take_bound(proposal)
            if proposal.matrix is None:
                return
            _refine(table, proposal, answers, watch)
            found = table.price(proposal.matrix)
            if found is not None:
                ranking.take(found)
            self._report(ranking)
            if proposal.status is not Status.OPTIMAL:
                return
            if found is not None and not proposal.open:  # it had its price when it was proposed
                ranking.settle(found)

    def _report(self, ranking: Ranking) -> None:
        if self.progress is not None and not ranking.ranked:
            self.progress(ranking.least_s, ranking.proved_s)

    def _solution(self, ranking: Ranking, stats: SolveStats, interrupted: bool) -> Solution:
        return Solution(
            self.problem,
            ranking.status,
            ranking.alternatives,
            ranking.bound_s,
            ranking.physical_bound_s,
            ranking.completeness,
            stats,
            interrupted=interrupted,
        )


def _refine(
    table: BoundTable, proposal: Proposal, answers: RequestAnswers, watch: StopWatch
) -> None:
    """Answer the open entries of a proposal; the rest is of no use once one is forbidden."""
    for entry in proposal.open:
        answer = answers.of(entry.request, entry.scene, watch.left())
        table.refine(entry, answer)
        if answer is None:
            return
