"""Placements that cost nearly as little as the best one, with their best programs.

Where the ranking already goes beyond the limit, or no matrix is left, it has them all.  Else the
solver lists every matrix whose bounds allow it to cost so little, and each is priced: the table
of bounds never says more than the true objective, so what the list leaves out costs more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from p2smt.errors import InputError, OutOfTimeError
from p2smt.parallelism.placement import Matrix
from p2smt.plans.solution import SAME, Alternative, NearOptimal
from p2smt.result import Status, StopWatch
from p2smt.search.bound_table import BoundTable
from p2smt.search.one_request import RequestAnswers
from p2smt.search.order.ranking import Ranking

MAX_GAP = 10.0
"""The largest gap that can be asked for: eleven times the optimum."""
_MOST, _TRIED = 10_000, 10  # placements that are listed, and matrices tried for each of these
_BEYOND = 1e-6  # relative: more than the ticks to which an order is proved


@dataclass(frozen=True, slots=True)
class Nearness:
    """Which placements count as near-optimal, and how long they are looked for.

    ``within``: the largest gap to the optimum, relative (0.05 is five per cent).  ``most``: how
    many are wanted.  ``share``: the part of the time spent so far that they may take; None: what
    the time limit leaves.

    Raises:
        InputError: a gap below 0 or above ``MAX_GAP``.
    """

    within: float
    most: int = _MOST
    share: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.within <= MAX_GAP:
            rule = f"must be from 0 to {MAX_GAP:g}"
            raise InputError(f"within {self.within}", rule, "0.05 is five per cent")

    @property
    def listed(self) -> bool:
        """Whether they are wanted one by one, not only their number."""
        return self.share is None

    def watch(self, watch: StopWatch) -> StopWatch:
        """The watch that ends when their time is over."""
        if self.share is None:
            return watch
        limit_s, end_s = watch.limits.time_limit_s, watch.elapsed_s() * (1 + self.share)
        return watch.ending_at(end_s if limit_s is None else min(limit_s, end_s))


BRIEFLY = Nearness(0.05, most=100, share=0.2)
"""How many there are within five per cent, as far as a fifth of the solve's time tells."""


@dataclass(slots=True)
class NearSearch:
    """Finds the placements near the optimum of a ranking; ``whole``: there are no others.

    Each one found costs at most ``limit_s``, whatever becomes of the search.
    """

    ranking: Ranking
    nearness: Nearness
    whole: bool = False
    found: dict[Matrix, Alternative] = field(default_factory=dict)

    @property
    def limit_s(self) -> float:
        """What a placement may cost: the gap above the optimum, or above what is proved of it."""
        optimal = self.ranking.status is Status.OPTIMAL
        least_s = self.ranking.alternatives[0].objective_s if optimal else self.ranking.bound_s
        return (1 + self.nearness.within) * least_s * (1 + SAME)

    @property
    def answer(self) -> NearOptimal:
        """What was found, in order of time."""
        found = sorted(self.found.values(), key=lambda one: (one.objective_s, one.matrix or ()))
        status = Status.COMPLETE if self.whole else Status.TRUNCATED
        return NearOptimal(self.nearness.within, status, tuple(found), self.nearness.listed)

    def take_known(self) -> None:
        """Note those that have a price; they may be all."""
        for one in self.ranking.priced:
            self._take(one)
        ranked = self.ranking.ranked
        beyond = bool(ranked) and ranked[-1].objective_s > self.limit_s * (1 + _BEYOND)
        nothing_left = self.ranking.exhausted and not self.ranking.aside
        self.whole = nothing_left or beyond

    def look(self, table: BoundTable, answers: RequestAnswers, watch: StopWatch) -> None:
        """Price every matrix that may cost so little, those of least bound first.

        Raises:
            OutOfTimeError: the watch expired.
        """
        if self.whole:
            return
        ranked = frozenset(one.matrix for one in self.ranking.ranked if one.matrix is not None)
        listed = table.within(self.limit_s, ranked, watch, _TRIED * self.nearness.most)
        decided = listed.status is Status.COMPLETE
        for matrix in sorted(listed.value or (), key=lambda m: (table.bound_s(m), m)):
            if watch.expired():
                raise OutOfTimeError
            if len(self.found) >= self.nearness.most:
                return
            decided &= self._try(matrix, table, answers, watch)
        self.whole = decided

    def _try(
        self, matrix: Matrix, table: BoundTable, answers: RequestAnswers, watch: StopWatch
    ) -> bool:
        """Price a matrix unless it costs too much; whether it is known on which side it lies."""
        for entry in table.open(matrix):
            if table.bound_s(matrix) > self.limit_s:  # infinite where a request has no program
                return True
            table.refine(entry, answers.of(entry.request, entry.scene, watch.left()))
        found = table.price(matrix)
        if found is None or table.bound_s(matrix) > self.limit_s:
            return True
        return self._take(found) or found.status is Status.OPTIMAL

    def _take(self, found: Alternative) -> bool:
        """Note an alternative that costs little enough; whether it does."""
        if found.matrix is None or found.objective_s > self.limit_s:
            return False
        known = self.found.get(found.matrix)
        if known is None or found.objective_s < known.objective_s:
            self.found[found.matrix] = found
        return True
