"""What a search knows of each strategy: a bound, the time that was found, and how it was closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from p2smt.parallelism.placement import IntArray
from p2smt.result import SAME
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.search.candidates import (
    Candidates,
    Seconds,
    distinct_rows,
    field_numbers,
)
from p2smt.training.search.plan_answer import SpaceCounts
from p2smt.training.search.question import COPIES, MIXTURE_SEARCHED, SEARCHED

_PLAINER = ("zero", "cp", "vpp")
_PLAIN = ("recompute", "pp", "sequence_parallel", "micro_batch", "tp", "dp")
"""Fields by which equally fast strategies are ordered, before their memory and after it."""
_PLAIN_OF_MIXTURES = ("overlap", "dispatcher", "etp")
"""Those of mixtures that come before all these; ep comes last."""


class Closed(IntEnum):
    """How a strategy was closed; OPEN: it is not."""

    OPEN = 0
    TOO_LARGE = 1
    UNPLACED = 2
    LACKING = 3
    EVALUATED = 4


@dataclass(slots=True)
class BoundsTable:
    """By row of the candidates: ``low_s`` no placement beats, ``time_s`` was found on the class
    ``place`` of placements (infinite: nothing was), ``closed`` is a value of :class:`Closed`.

    ``level``: how many kinds of bounds went into ``low_s`` beside that of free communication.
    ``family``: see :func:`~p2smt.training.search.bounds_table.families`.
    """

    candidates: Candidates
    low_s: Seconds
    closed: IntArray
    time_s: Seconds = field(init=False)
    place: IntArray = field(init=False)
    level: IntArray = field(init=False)
    family: IntArray = field(init=False)

    def __post_init__(self) -> None:
        many = len(self.candidates)
        self.time_s, self.place = np.full(many, np.inf), np.full(many, -1)
        self.level = np.zeros(many, dtype=np.int64)
        self.family = families(self.candidates.columns)

    @staticmethod
    def of(candidates: Candidates) -> BoundsTable:
        """What is known before the search: those that do not fit, or have no placement."""
        found = BoundsTable(
            candidates, candidates.computing_s().copy(), np.zeros(len(candidates), int)
        )
        found.closed[candidates.placements[candidates.block] == 0] = Closed.UNPLACED
        too_large = candidates.work.memory_bytes > candidates.question.capacity_bytes
        found.closed[too_large] = Closed.TOO_LARGE
        return found

    def reach(self, other: BoundsTable) -> None:
        """Take the times that a search at higher prices found: they can be reached here, too.

        No bound of that search holds here; what the launcher lacks does.
        """
        self.place, self.time_s = other.place.copy(), other.time_s.copy()
        self.closed[other.closed == Closed.LACKING] = Closed.LACKING

    def ranked(self) -> list[int]:
        """Rows that were timed, the fastest first; of equal ones the plainest."""
        plainness = self._plainness(self.candidates.work.memory_bytes)
        return ordered(self.time_s, self.candidates.question.tie, plainness)

    def places(self) -> list[AlikeRows]:
        """The same, those that are alike together."""
        return alike(self.ranked(), self.time_s, self.family)

    def _plainness(self, memory_bytes: Seconds) -> Plainness:
        """Less where less is switched on or split; no two rows have the same."""
        question = self.candidates.question
        mixture = bool(question.model.experts)
        copies = (COPIES,) if question.copied else ()
        names = (*copies, *(_PLAIN_OF_MIXTURES if mixture else ()), *_PLAINER)
        columns = self.candidates.columns
        first = [field_numbers(columns, name) for name in names]
        rest = (*_PLAIN, *(("ep",) if mixture else ()))
        then = [field_numbers(columns, name) for name in rest]

        def plainness(row: int) -> tuple[int, ...]:
            return (
                *(int(column[row]) for column in first),
                round(float(memory_bytes[row])),
                *(int(column[row]) for column in then),
            )

        return plainness

    def least_s(self) -> float:
        """The least time that was found; infinite: none was."""
        return float(self.time_s.min(initial=np.inf))

    def top_s(self, top: int) -> float:
        """What takes more takes none of the ``top`` first places."""
        tie = self.candidates.question.tie
        return last_s(self.time_s, self.family, top) * (1 + tie) * (1 + ALIKE) * (1 + SAME)

    def cutoff_s(self, within: float, top: int) -> float:
        """Strategies that take more are neither near the best nor take one of the first places."""
        return max(self.least_s() * (1 + within) * (1 + SAME), self.top_s(top))

    def open_rows(self, cutoff_s: float) -> IntArray:
        """Rows that may still take no more than the cutoff, the least bound first."""
        rows = np.flatnonzero((self.closed == Closed.OPEN) & (self.low_s <= cutoff_s))
        return np.asarray(rows[np.argsort(self.low_s[rows], kind="stable")])

    def counts(self, cutoff_s: float) -> SpaceCounts:
        """How many were closed in which way; what is open above the cutoff is closed by bounds."""
        each = self.candidates.placements[self.candidates.block]
        still = (self.closed == Closed.OPEN) & (self.low_s <= cutoff_s)
        kinds = {kind: self.closed == kind for kind in Closed}
        bounded = kinds[Closed.OPEN] & ~still
        excluded = kinds[Closed.TOO_LARGE] | kinds[Closed.LACKING]
        return SpaceCounts(
            strategies=len(each),
            too_large=int(kinds[Closed.TOO_LARGE].sum()),
            lacking=int(kinds[Closed.LACKING].sum()),
            unplaced=int(kinds[Closed.UNPLACED].sum()),
            bounded=int(bounded.sum()),
            evaluated=int(kinds[Closed.EVALUATED].sum()),
            open=int(still.sum()),
            placements=int(each.sum()),
            placements_excluded=int(each[excluded].sum()),
            placements_priced=int(each[kinds[Closed.EVALUATED]].sum()),
            placements_bounded=int(each[bounded].sum()),
            placements_open=int(each[still].sum()),
        )


# The order of strategies that were timed: by time, and of equally fast ones the plainest first.
# A model of cost cannot tell a tenth of a per cent, so such strategies count as equal.  Among them
# are whole families whose dp, cp and micro-batch are exchanged: alike, they take one place.


ALIKE = 1e-6
"""Relative: strategies that differ in ``EXCHANGED`` only take the same time within it."""
EXCHANGED = ("dp", "cp", "micro_batch")
_FIRST = 64
"""Rows among which the best distinct ones are first looked for."""
Plainness = Callable[[int], tuple[int, ...]]
"""What equally fast rows are ordered by, the plainest first."""


@dataclass(frozen=True, slots=True)
class AlikeRows:
    """Rows that take one place: the plainest one, and those that are alike."""

    row: int
    others: tuple[int, ...]


def families(columns: StrategyColumns) -> IntArray:
    """A number for each row: the same for those that differ in ``EXCHANGED`` only."""
    more = (*MIXTURE_SEARCHED, COPIES) if columns.mixture is not None else ()
    names = [name for name in (*SEARCHED, *more) if name not in EXCHANGED]
    return distinct_rows([field_numbers(columns, name) for name in names])[2]


def ordered(time_s: Seconds, tie: float, plainness: Plainness) -> list[int]:
    """Rows that were timed, the fastest first; of those within a tie of one the plainest."""
    rows = np.flatnonzero(np.isfinite(time_s))
    rows = rows[np.argsort(time_s[rows], kind="stable")]
    sorted_s = time_s[rows]
    found: list[int] = []
    while len(found) < len(rows):
        limit_s = sorted_s[len(found)] * (1 + max(tie, SAME))
        end = int(np.searchsorted(sorted_s, limit_s, side="right"))
        found += sorted(rows[len(found) : end].tolist(), key=plainness)
    return found


def alike(rows: list[int], time_s: Seconds, family: IntArray) -> list[AlikeRows]:
    """Rows in their order, those that are alike together at the place of their first."""
    by_time = sorted(rows, key=lambda row: float(time_s[row]))
    key_of_row = dict(zip(by_time, _keys(by_time, time_s, family), strict=True))
    found: dict[tuple[int, float], list[int]] = {}
    for row in rows:
        found.setdefault(key_of_row[row], []).append(row)
    return [AlikeRows(some[0], tuple(some[1:])) for some in found.values()]


def last_s(time_s: Seconds, family: IntArray, top: int) -> float:
    """Seconds of the ``top``-th of the rows that were timed and are not alike; infinite: there
    are fewer.
    """
    known = np.flatnonzero(np.isfinite(time_s))
    many = _FIRST
    while True:
        few = known[np.argpartition(time_s[known], many)[:many]] if many < len(known) else known
        rows = few[np.argsort(time_s[few], kind="stable")].tolist()
        seen = list(dict.fromkeys(_keys(rows, time_s, family)))
        if len(seen) >= top:
            return seen[top - 1][1]
        if many >= len(known):
            return float(np.inf)
        many *= 4


def _keys(rows: list[int], time_s: Seconds, family: IntArray) -> Iterator[tuple[int, float]]:
    """Of rows by time: their family and the time of the fastest row that they are alike with."""
    first: dict[int, float] = {}
    for row, seconds in zip(rows, time_s[rows].tolist(), strict=True):
        mine = int(family[row])
        if seconds > first.get(mine, -1.0) * (1 + ALIKE):
            first[mine] = seconds
        yield mine, first[mine]
