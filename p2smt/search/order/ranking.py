"""Alternatives in order, and what is proved of them.

The ranking takes proposals for the bounds they prove and priced alternatives as they come.  One
that a proposal proves to be the least of all that are left is ranked if its programs are proved
best; if not, it is set aside, and nothing after it has a rank.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from p2smt.parallelism.placement import Matrix
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.solution import Alternative
from p2smt.result import Status
from p2smt.search.bound_table import Proposal

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
    _physical_s: float | None = None
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
        """Note what a proposal proves of all matrices (that were not excluded).

        The first one comes of a table that nothing has refined: its bound is the physical one,
        unless :meth:`take_links` has named another.
        """
        self.exhausted |= proposal.status is Status.INFEASIBLE
        if proposal.bound_s is None or self.excluded:
            return
        self.proved_s = max(self.proved_s, proposal.bound_s)
        if self._physical_s is None:
            self._physical_s = self.proved_s

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
        return self._at_most_best(self._physical_s or 0.0)

    def _at_most_best(self, bound_s: float) -> float:
        """Sums in another order can end an ulp above the price that they bound."""
        return min([bound_s, *(one.objective_s for one in self.alternatives[:1])])
