"""Branch and bound over strategies: by their bounds, until none can be among the best or near.

The first bound is that of free communication; others follow for what it leaves open.  A strategy
whose bound is above the cutoff is closed; the cutoff only falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import IntArray
from p2smt.plans.solution import RequestAnswer
from p2smt.result import StopWatch
from p2smt.workload.search.ledger import Closed, Ledger
from p2smt.workload.search.pricing.placed import PlacedCandidates
from p2smt.workload.search.pricing.prices import Seconds

_FIRST, _CHUNK = 64, 256
"""Rows that are looked at before any time is known, and those that are bounded together."""
Bound = Callable[[IntArray], Seconds]
"""A bound on the seconds of an iteration of each row."""


class StrategyTiming(Protocol):
    """How strategies are timed on their placements."""

    @property
    def pricing(self) -> PlacedCandidates:
        """The candidates on their placements."""
        ...

    @property
    def bounds(self) -> Sequence[Bound]:
        """Bounds, the cheapest to come by first."""
        ...

    @property
    def together(self) -> int:
        """How many rows are best timed together."""
        ...

    @property
    def sampled(self) -> bool:
        """Whether timing is cheap: then the best of the rows bounded so far are timed at once."""
        ...

    def settle(self, ledger: Ledger, rows: IntArray, cutoff_s: float, watch: StopWatch) -> None:
        """Find the best placement of each row, or that it is above the cutoff.

        Raises:
            OutOfTimeError: the watch expired.
        """
        ...

    def learn(self, row: int, place: int, limit_s: float, watch: StopWatch) -> None:
        """Find what a row takes on a class of placements, unless that is above a limit.

        Raises:
            OutOfTimeError: the watch expired.
        """
        ...

    def known_s(self, row: int, place: int) -> float | None:
        """Seconds of an iteration of a row on a class of placements, if they are known."""
        ...

    def answers(self, row: int, place: int) -> dict[str, RequestAnswer]:
        """The programs of a row on a class of placements by the name of the request."""
        ...


def close(
    ledger: Ledger, timing: StrategyTiming, within: float, top: int, watch: StopWatch
) -> None:
    """Close every strategy that could be among the ``top`` best, or near the best one.

    Raises:
        OutOfTimeError: the watch expired; the ledger says what is open.
    """
    while True:
        cutoff_s = ledger.cutoff_s(within, top)
        rows = ledger.open_rows(cutoff_s)
        if not len(rows):
            return
        if not np.isfinite(cutoff_s):
            rows = rows[:_FIRST]
        for level, bound in enumerate(timing.bounds):
            loose = rows[ledger.level[rows] == level]
            for at in range(0, len(loose), _CHUNK):
                part = loose[at : at + _CHUNK]
                part = part[ledger.low_s[part] <= ledger.cutoff_s(within, top)]
                _tighten(ledger, part, level, bound, watch)
                if timing.sampled:
                    first = next(_slices(ledger, part, timing.together, within, top), part[:0])
                    _time(ledger, timing, first, ledger.cutoff_s(within, top), watch)
        rows = rows[ledger.closed[rows] == Closed.OPEN]
        for part in _slices(ledger, rows, timing.together, within, top):
            _time(ledger, timing, part, ledger.cutoff_s(within, top), watch)


def _tighten(ledger: Ledger, rows: IntArray, level: int, bound: Bound, watch: StopWatch) -> None:
    """Put a bound of the next level to rows."""
    if watch.expired():
        raise OutOfTimeError
    if len(rows):
        ledger.low_s[rows] = np.maximum(ledger.low_s[rows], bound(rows))
        ledger.level[rows] = level + 1


def _time(
    ledger: Ledger, timing: StrategyTiming, rows: IntArray, cutoff_s: float, watch: StopWatch
) -> None:
    """Time those of the rows that the launcher in use can run."""
    able = runnable(ledger, rows)
    if len(able):
        timing.settle(ledger, able, cutoff_s, watch)


def _slices(
    ledger: Ledger, rows: IntArray, together: int, within: float, top: int
) -> Iterator[IntArray]:
    """Rows by their bounds, a few at a time, as long as they are below the cutoff."""
    order = rows[np.argsort(ledger.low_s[rows], kind="stable")]
    for at in range(0, len(order), together):
        part = order[at : at + together]
        part = part[ledger.low_s[part] <= ledger.cutoff_s(within, top)]
        if not len(part):
            return
        yield part


def runnable(ledger: Ledger, rows: IntArray) -> IntArray:
    """Those that the launcher in use can run; the others are closed."""
    question = ledger.candidates.question
    if question.lacks is None:
        return rows
    columns, able = ledger.candidates.columns, []
    for row in rows.tolist():
        lacking = question.lacks(columns.strategy(row), question.model)
        able.append(not lacking)
    can = np.array(able, dtype=bool)
    ledger.closed[rows[~can]] = Closed.LACKING
    return np.asarray(rows[can])
