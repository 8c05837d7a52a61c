"""Candidates on their placements: bounds, and times on the placements that can be best.

The time of an iteration grows with every price.  So of two classes of placements one of which has
no lower price for any request of a strategy, only the other one need be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.collectives.names import RequestKind
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.result import StopWatch
from p2smt.workload.search.pricing.candidates import AxisSet, Candidates, axis_set
from p2smt.workload.search.pricing.prices import PlacedAxes, SceneShelf, Seconds
from p2smt.workload.timing.combine import combine

PriceKey = tuple[AxisSet, RequestKind, int]
"""What a price depends on beside the placement: axes, kind and bytes."""
_FRONT = 512
"""Classes that are compared with all others, at most."""


@dataclass(frozen=True, slots=True)
class PlacedCandidates:
    """Candidates with the prices of their requests by placement; tables grow as they are asked.

    ``called`` and ``payloads``: shape (requests, strategies), in the order of the work's requests.
    """

    candidates: Candidates
    shelf: SceneShelf
    called: BoolArray
    payloads: IntArray
    watch: StopWatch
    _blocks: dict[int, PlacedAxes] = field(default_factory=dict)
    _seconds: dict[tuple[RequestKind, int], dict[tuple[int, AxisSet], Seconds]] = field(
        default_factory=dict
    )
    _fronts: dict[tuple[int, tuple[PriceKey, ...]], IntArray] = field(default_factory=dict)

    @staticmethod
    def of(candidates: Candidates, shelf: SceneShelf, watch: StopWatch) -> PlacedCandidates:
        """Nothing priced so far; what it lists and prices, it does before the watch expires."""
        columns = [one.column for one in candidates.work.requests]
        called = np.stack([np.any(column.calls > 0, axis=1) for column in columns])
        payloads = np.stack([column.payload_bytes for column in columns])
        return PlacedCandidates(candidates, shelf, called, payloads, watch)

    def at(self, shelf: SceneShelf) -> PlacedCandidates:
        """The same candidates and placements at the prices of a shelf of the same scenes."""
        return replace(self, shelf=shelf, _seconds={}, _fronts={})

    def placed(self, block: int) -> PlacedAxes:
        """The placements of a block of candidates.

        Raises:
            OutOfTimeError: they were not listed before the watch expired.
        """
        if block not in self._blocks:
            if self.watch.expired():
                raise OutOfTimeError
            mine, sizes = self.candidates, self.candidates.sizes[block].tolist()
            self._blocks[block] = PlacedAxes.of(self.shelf, sizes, mine.question.rules, mine.sets)
        return self._blocks[block]

    def least_s(self, rows: IntArray) -> Seconds:
        """A bound on the seconds of an iteration of each row: each request is best off alone."""
        block = self.candidates.block
        asked = np.where(self.called, self.payloads, -1)[:, rows]
        alike = np.concatenate([block[rows][None], asked]).T
        _, first, same = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        names = [one.column.name for one in self.candidates.work.requests]
        least = {name: np.zeros(len(first)) for name in names}
        for at, row in enumerate(rows[first].tolist()):
            for name, key in self.keys(row).items():
                least[name][at] = self._of_scenes(int(block[row]), key).min()
        prices = {name: found[same.ravel()] for name, found in least.items()}
        return combine(self.candidates.work.take(rows), prices)

    def best(self, rows: IntArray) -> tuple[Seconds, IntArray]:
        """The least seconds of an iteration of each row over its placements, and their class."""
        chosen = [self._front(row) for row in rows.tolist()]
        many = [len(front) for front in chosen]
        start = np.concatenate([[0], np.cumsum(many)])
        prices = {one.column.name: np.zeros(start[-1]) for one in self.candidates.work.requests}
        for row, front, first in zip(rows.tolist(), chosen, start.tolist(), strict=False):
            for name, seconds in self._of_classes(row, front).items():
                prices[name][first : first + len(front)] = seconds
        seconds = combine(self.candidates.work.take(np.repeat(rows, many)), prices)
        at = [int(part.argmin()) for part in np.split(seconds, start[1:-1])]
        place = np.array([front[i] for front, i in zip(chosen, at, strict=True)], dtype=np.int64)
        return seconds[start[:-1] + at], place

    def seconds(self, row: int) -> Seconds:
        """Seconds of an iteration of a row on every class of its placements."""
        every = np.arange(len(self.placed(int(self.candidates.block[row]))))
        return combine(self.candidates.work.take(np.array([row])), self._of_classes(row, every))

    def improve(self, number: int, kind: RequestKind, payload_bytes: int, seconds: float) -> None:
        """Take what is known better of the seconds of a request on a scene."""
        self.shelf.replace(number, kind, payload_bytes, seconds)
        self._seconds.pop((kind, payload_bytes), None)
        self._fronts.clear()

    def keys(self, row: int) -> dict[str, PriceKey]:
        """What prices the requests depend on that a row calls, by the name of the request."""
        called, payloads = self.called[:, row].tolist(), self.payloads[:, row].tolist()
        requests = zip(self.candidates.work.requests, called, payloads, strict=True)
        return {
            one.column.name: (axis_set(one.column.axes), one.column.kind, payload)
            for one, calls, payload in requests
            if calls
        }

    def _of_scenes(self, block: int, key: PriceKey) -> Seconds:
        """Seconds of a call of a request on each distinct scene of a block."""
        axes, kind, payload_bytes = key
        known = self._seconds.setdefault((kind, payload_bytes), {})
        if (block, axes) not in known:
            numbers = self.placed(block).scenes[axes].numbers
            found = self.shelf.seconds_on(numbers, kind, payload_bytes)
            known[block, axes] = np.array(found, dtype=np.float64)
        return known[block, axes]

    def _of_classes(self, row: int, classes: IntArray) -> dict[str, Seconds]:
        """Seconds of a call of each request of a row on some classes of its placements."""
        block = int(self.candidates.block[row])
        scenes = self.placed(block).scenes
        return {
            name: self._of_scenes(block, key)[scenes[key[0]].place[classes]]
            for name, key in self.keys(row).items()
        }

    def _front(self, row: int) -> IntArray:
        """The classes of placements of a row that no other one beats at every price."""
        # in the order of the requests: that of a set would depend on the hashes of a process
        block = int(self.candidates.block[row])
        keys = tuple(dict.fromkeys(self.keys(row).values()))
        if (block, keys) not in self._fronts:
            placed = self.placed(block)
            prices = [self._of_scenes(block, key)[placed.scenes[key[0]].place] for key in keys]
            table = np.stack(prices, axis=1) if prices else np.zeros((len(placed), 1))
            self._fronts[block, keys] = front(table)
        return self._fronts[block, keys]


def front(table: Seconds) -> IntArray:
    """Rows that no other row undercuts or equals in every column, of equal ones the first.

    Where there are many, some others may be among them.
    """
    rows = np.argsort((table / np.maximum(table.max(axis=0), 1e-300)).sum(axis=1), kind="stable")
    left = table[rows]
    found: list[int] = []
    while len(rows) and len(found) < _FRONT:
        found.append(int(rows[0]))
        better = (left < left[0]).any(axis=1)
        rows, left = rows[better], left[better]
    return np.array(sorted([*found, *rows.tolist()]), dtype=np.int64)
