"""Placements that cost nearly as little as the best one, with their best programs.

Where the ranking already goes beyond the limit, or no matrix is left, it has them all.  Else the
solver lists every matrix whose bounds allow it to cost so little, and each is priced: the table
of bounds never says more than the true objective, so what the list leaves out costs more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from p2smt.errors import InputError, OutOfTimeError
from p2smt.parallelism.placement import Matrix
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.solution import Alternative, NearOptimal
from p2smt.result import PROVED_WITHIN, SAME, Status, StopWatch
from p2smt.search.bound_table import BoundTable, Proposal
from p2smt.search.one_request import RequestAnswers

MAX_GAP = 10.0
"""The largest gap that can be asked for: eleven times the optimum."""
_MOST, _TRIED = 10_000, 10  # placements that are listed, and matrices tried for each of these


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
        beyond = bool(ranked) and ranked[-1].objective_s > self.limit_s * (1 + PROVED_WITHIN)
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


# Alternatives in order, and what is proved of them.
# The ranking takes proposals for the bounds they prove and priced alternatives as they come.  One
# that a proposal proves to be the least of all that are left is ranked if its programs are proved
# best; if not, it is set aside, and nothing after it has a rank.


_MOST_ASIDE = 100  # alternatives set aside before the search gives up


@dataclass(slots=True)
class Ranking:
    """The ``top`` best alternatives as far as they are known.

    ``ranked``: proved to be the best ones, in order.  ``aside``: without a rank.  ``exhausted``:
    no matrix is left beside these.  ``proved_s``: the largest bound on the objective so far.
    ``notes``: what else is to be known of the search, in words.
    """

    top: int
    ranked: list[Alternative] = field(default_factory=list)
    aside: list[Alternative] = field(default_factory=list)
    exhausted: bool = False
    proved_s: float = 0.0
    notes: list[str] = field(default_factory=list)
    _physical_s: float = 0.0
    _priced: dict[tuple[Matrix | None, RankList | None], Alternative] = field(default_factory=dict)

    @property
    def unfinished(self) -> bool:
        """Whether more alternatives are wanted.

        The search goes on behind one set aside for settled ones, which may be faster than it is.
        """
        settled = sum(one.status is Status.OPTIMAL for one in self.aside)
        enough = len(self.ranked) + settled >= self.top
        return not (self.exhausted or enough or len(self.aside) >= _MOST_ASIDE)

    @property
    def excluded(self) -> frozenset[Matrix]:
        """Matrices that need not be proposed again."""
        found = (one.matrix for one in (*self.ranked, *self.aside))
        return frozenset(matrix for matrix in found if matrix is not None)

    def take_links(self, bound_s: float) -> None:
        """Note the least objective that the links allow."""
        self._physical_s = bound_s

    def take_bound(self, proposal: Proposal) -> None:
        """Note what a proposal proves of all matrices (that were not excluded)."""
        self.exhausted |= proposal.status is Status.INFEASIBLE
        if proposal.bound_s is None or self.excluded:
            return
        self.proved_s = max(self.proved_s, proposal.bound_s)

    def take(self, found: Alternative) -> None:
        """Note an alternative with its price; the better one of two on a matrix stays."""
        key = found.matrix, found.rank_list
        known = self._priced.get(key)
        proved = found.status is Status.OPTIMAL
        if known is None or proved or found.objective_s < known.objective_s:
            self._priced[key] = found

    def settle(self, found: Alternative) -> None:
        """Rank an alternative that no other one of those left can beat, or set it aside."""
        if found.status is Status.OPTIMAL and not self.aside:
            self.ranked.append(found)
        else:
            self.aside.append(found)

    @property
    def priced(self) -> tuple[Alternative, ...]:
        """All alternatives that have a price, in no order."""
        return tuple(self._priced.values())

    @property
    def least_s(self) -> float | None:
        """The least objective of all priced alternatives."""
        return min((one.objective_s for one in self._priced.values()), default=None)

    @property
    def status(self) -> Status:
        """What is proved of the first alternative."""
        if self.ranked:
            return Status.OPTIMAL
        if self.exhausted and not self.aside:
            return Status.INFEASIBLE
        return Status.FEASIBLE if self._priced else Status.UNKNOWN

    @property
    def completeness(self) -> Status:
        """COMPLETE if the alternatives are proved to be the best ones in order, else TRUNCATED."""
        whole = len(self.ranked) == self.top or (self.exhausted and not self.aside)
        return Status.COMPLETE if whole else Status.TRUNCATED

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The ranked ones; if there are none, the best of all that have a price."""
        if self.ranked:
            return tuple(self.ranked)
        known = self._priced.values()
        priced = sorted(known, key=lambda a: (a.objective_s, a.matrix is None, a.matrix or ()))
        return tuple(priced[: self.top])

    @property
    def bound_s(self) -> float:
        """The proved bound on the objective."""
        return self._at_most_best(self.proved_s)

    @property
    def physical_bound_s(self) -> float:
        """The least objective that the links allow."""
        return self._at_most_best(self._physical_s)

    def _at_most_best(self, bound_s: float) -> float:
        """Sums in another order can end an ulp above the price that they bound."""
        return min([bound_s, *(one.objective_s for one in self.alternatives[:1])])
