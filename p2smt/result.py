"""What a search returns: a status, an answer, a proved bound and statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Generic, TypeVar

from p2smt.errors import OutOfTimeError

T = TypeVar("T")

OUT_OF_TIME = "the time limit came"
OUT_OF_EFFORT = "the limit of solver effort came"
STOPPED = "it was stopped"
"""Why a search ended: words for people."""
SAME = 1e-9
"""Relative: times that differ by less are one time, summed in another order."""
ROUNDING = 1e-12
"""Relative: prices, sums of few floats, that differ by no more are equal."""
PROVED_WITHIN = 1e-6
"""Relative: the ticks to which times are rounded when a solver proves an optimum."""


class Status(Enum):
    """Outcome of a search.  A time limit never yields OPTIMAL, INFEASIBLE or COMPLETE."""

    OPTIMAL = "optimal"  # an answer, and a proof that none is better
    FEASIBLE = "feasible"  # an answer, not proved best
    INFEASIBLE = "infeasible"  # a proof that there is no answer
    UNKNOWN = "unknown"  # neither an answer nor a proof
    COMPLETE = "complete"  # an enumeration that is proved to hold every answer
    TRUNCATED = "truncated"  # an enumeration that stopped early

    @property
    def settled(self) -> bool:
        """Whether the outcome is a proof."""
        return self in (Status.OPTIMAL, Status.INFEASIBLE, Status.COMPLETE)


@dataclass(frozen=True, slots=True)
class SolveStats:
    """How an answer was found: solver name, wall seconds, solver calls, and free counters.

    effort: spent, in the units of SearchLimits.effort.  reason: why nothing is proved.
    """

    solver: str
    wall_s: float = 0.0
    calls: int = 1
    counters: tuple[tuple[str, int], ...] = ()
    effort: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """``value`` is None unless the status says that there is an answer.

    ``bound`` is the solver's proved lower bound on the integer objective of the problem
    (ticks), or None where there is no objective.
    """

    status: Status
    value: T | None = None
    bound: int | None = None
    stats: SolveStats = field(default_factory=lambda: SolveStats("none"))


@dataclass(frozen=True, slots=True)
class SearchStage:
    """How far a search has come: what it is ``doing``, the best so far and a bound in seconds, and
    how many of how many (None: not known) are done."""

    doing: str
    best_s: float | None = None
    bound_s: float | None = None
    done: int | None = None
    every: int | None = None

    @property
    def share(self) -> float:
        """What part is done; 0: that is not known."""
        return self.done / self.every if self.done and self.every else 0.0


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits and reproducibility of one search.

    ``time_limit_s`` bounds the wall time in seconds (None: no bound), ``max_answers`` an
    enumeration, ``seed`` and ``workers`` go to the solver and never change a proved optimum.
    ``effort`` bounds what each call of a solver spends in units of its own, which do not depend on
    the machine: thousandths of CP-SAT's deterministic time; z3's resource count, for encodings that
    call z3 once.  ``told``: who is told how far it has come; limits are the same without.
    """

    time_limit_s: float | None = None
    max_answers: int | None = None
    seed: int = 0
    workers: int = 1
    effort: int | None = None
    told: Callable[[SearchStage], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StopWatch:
    """One wall-clock limit over several solves: ``started_s`` on the monotonic clock."""

    limits: SearchLimits
    started_s: float

    @staticmethod
    def start(limits: SearchLimits) -> StopWatch:
        """A watch that starts now."""
        return StopWatch(limits, time.monotonic())

    def elapsed_s(self) -> float:
        """Wall seconds since the start."""
        return time.monotonic() - self.started_s

    def remaining_s(self) -> float | None:
        """Seconds left, never below 0; None if there is no limit."""
        limit = self.limits.time_limit_s
        return None if limit is None else max(0.0, limit - self.elapsed_s())

    def expired(self) -> bool:
        """Whether no time is left."""
        return self.remaining_s() == 0.0

    def check(self) -> None:
        """Go on only where time is left.

        Raises:
            OutOfTimeError: none is.
        """
        if self.expired():
            raise OutOfTimeError(OUT_OF_TIME)

    def tell(
        self,
        doing: str,
        best_s: float | None = None,
        bound_s: float | None = None,
        *,
        done: int | None = None,
        every: int | None = None,
    ) -> None:
        """Say how far the search has come, where somebody looks on."""
        if self.limits.told is not None:
            self.limits.told(SearchStage(doing, best_s, bound_s, done, every))

    def ending_at(self, limit_s: float) -> StopWatch:
        """The same watch with another time limit, in seconds from its start."""
        return replace(self, limits=replace(self.limits, time_limit_s=limit_s))

    def part(self, share: float, least_s: float = 0.0) -> StopWatch:
        """The same watch with a share of the time that is left, of which ``least_s`` at least."""
        left = self.remaining_s()
        if left is None:
            return self
        return self.ending_at(self.elapsed_s() + min(left, max(share * left, least_s)))

    def left(self) -> SearchLimits:
        """The same limits with the time that is left."""
        return replace(self.limits, time_limit_s=self.remaining_s())


LOOK_EVERY = 1024
"""Items of :func:`timely` between two looks at the watch."""


def timely(items: Iterable[T], watch: StopWatch | None) -> Iterator[T]:
    """The items one by one, as long as there is time: the first ``LOOK_EVERY`` always.

    Raises:
        OutOfTimeError: the time came.
    """
    waiting = iter(items)
    while some := tuple(islice(waiting, LOOK_EVERY)):
        yield from some
        if watch is not None and len(some) == LOOK_EVERY and watch.expired():
            raise OutOfTimeError(OUT_OF_TIME)


def known_bound(bound_s: float, objective_s: float | None) -> float | None:
    """The bound, or None if it says nothing: 0, which stands where none was proved.

    ``objective_s`` is what it bounds, None where there is no answer; of 0 the bound 0 is one.
    """
    return bound_s if bound_s > 0 or objective_s == 0 else None
