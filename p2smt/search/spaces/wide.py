"""A ranking filled by a search over cubes: the same one that a search in one piece fills.

The table of bounds is filled and asked once here, which gives the physical bound and settles the
tick; cubes are then closed wherever the engine has them.  The best matrices come back as texts:
their programs are found again here, by the ordinary path.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cost.library.file import packaged_names
from p2smt.cost.library.registry import library_of
from p2smt.parallelism.request import Problem
from p2smt.result import Status, StopWatch
from p2smt.search.bound_table import BoundTable, Proposal
from p2smt.search.one_request import RequestAnswers
from p2smt.search.order.ranking import Ranking
from p2smt.search.placements import any_matrix
from p2smt.search.spaces.solve import SolveShelf, SolveSpace, keep_shelf
from p2smt.search.spaces.texts import matrix_of
from p2smt.skeletons.coordination.conclude import given_up_words
from p2smt.skeletons.outcome import SearchOutcome
from p2smt.skeletons.spread import SearchTerms, Spread, run_spread

SCALE = "a tick is tick_s seconds of the objective, each request rounded down"
CUBE_RULE = "rows of the parallelism matrix, in the order of the axes"


@dataclass(frozen=True, slots=True)
class WideRank:
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
        if self.problem.topology.library:
            ranking.take_links(table.links_s())
        proposal = table.propose(frozenset(), watch)
        ranking.take_bound(proposal)
        if proposal.matrix is None:
            return
        shelf = self._shelf(table, answers, watch)
        space = self._space(table)
        keep_shelf(space, shelf)
        question = SearchTerms("solve", ranking.top, SCALE, CUBE_RULE, table.tick_s)
        outcome = run_spread(space, question, self.spread, watch)
        _take(ranking, shelf, outcome)
        if outcome.given_up:
            ranking.notes.append(given_up_words(outcome.given_up))
        if outcome.interrupted:
            raise KeyboardInterrupt

    def _shelf(self, table: BoundTable, answers: RequestAnswers, watch: StopWatch) -> SolveShelf:
        """A table for solvers, which have no list of matrices, in the ticks of the other one."""
        tabled = BoundTable(self.problem, table.solver, lists=False)
        tabled.fill(watch)
        tabled.measure_in(table.tick_s)
        return SolveShelf.filled(tabled, answers)

    def _space(self, table: BoundTable) -> SolveSpace:
        name = self.problem.topology.library
        known = library_of(name) if name and name not in packaged_names() else None
        return SolveSpace(self.problem, table.tick_s, table.solver, known)


def _take(ranking: Ranking, shelf: SolveShelf, outcome: SearchOutcome) -> None:
    """Put what a search found into a ranking."""
    proved, tick_s = outcome.status is Status.OPTIMAL, shelf.table.tick_s
    if not proved and outcome.bound is not None:
        ranking.take_bound(Proposal(Status.UNKNOWN, None, outcome.bound * tick_s))
    for member in outcome.best:
        matrix = matrix_of(member.witness)
        found = shelf.alternative(matrix)
        if found is None:
            continue
        ranking.take(found)
        if proved:
            bound_s = member.value * tick_s
            ranking.take_bound(Proposal(Status.OPTIMAL, matrix, bound_s))
            ranking.settle(found)
    fewer = proved and len(outcome.best) < ranking.top
    ranking.exhausted |= fewer or outcome.status is Status.INFEASIBLE
