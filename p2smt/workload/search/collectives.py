"""Strategies timed with a single collective for each request."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import IntArray
from p2smt.plans.solution import RequestAnswer
from p2smt.result import StopWatch
from p2smt.workload.search.branch import Bound
from p2smt.workload.search.ledger import Closed, Ledger
from p2smt.workload.search.pricing.placed import PlacedCandidates


@dataclass(frozen=True, slots=True)
class CollectiveTiming:
    """Each request is a single collective: all placements of a row are timed at once."""

    pricing: PlacedCandidates
    together: int = 64
    sampled: bool = True

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each request on the placement that is best for it alone."""
        return (self.pricing.least_s,)

    def settle(self, ledger: Ledger, rows: IntArray, _: float, watch: StopWatch) -> None:
        """As :class:`~p2smt.workload.search.branch.StrategyTiming` has it; all rows are timed."""
        if watch.expired():
            raise OutOfTimeError
        seconds, ledger.place[rows] = self.pricing.best(rows)
        ledger.low_s[rows] = ledger.time_s[rows] = seconds
        ledger.closed[rows] = Closed.EVALUATED

    def learn(self, _: int, __: int, ___: float, ____: StopWatch) -> None:
        """Nothing is left to be known."""

    def known_s(self, row: int, place: int) -> float | None:
        """Seconds of an iteration of a row on a class of placements."""
        return float(self.pricing.seconds(row)[place])

    def answers(self, _: int, __: int) -> dict[str, RequestAnswer]:
        """No programs, whatever the row and the class."""
        return {}
