"""The best answer without proof, where the search ended before it had one.

It begins with matrices that are known beforehand, so an answer is never worse than the default
layout that a matrix expresses, goes on to better ones near them, and looks for programs on those
whose links allow most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.answers import matrix_alternative
from p2smt.plans.solution import RequestAnswer
from p2smt.result import StopWatch
from p2smt.search.one_request import RequestAnswers, single_answer
from p2smt.search.order.ranking import Ranking
from p2smt.search.placements import any_matrix
from p2smt.search.weaker.estimates import Estimates
from p2smt.search.weaker.starts import start_matrices
from p2smt.solvers.solver import Solver

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
        return single_answer(self.problem, request, scene, self.solver)
