"""Seconds of requests on placements: each distinct scene is priced once, whatever leads to it.

What a request costs depends on a placement through the digits of its axes only
(:class:`~p2smt.cost.scene.Scene`), and few of them differ: a table by scene, kind and bytes serves
all strategies and all axis sizes, and placements that are alike to every request are one class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.dispatch import AnyKind
from p2smt.cost.bounds import relevant_digits
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.matrices import PlacementRules
from p2smt.parallelism.placement import BoolArray, IntArray, Matrix, Placement, as_matrix
from p2smt.result import StopWatch
from p2smt.training.pipeline import CoveredRequest, combine
from p2smt.training.search.candidates import AxisSet, Candidates, Seconds
from p2smt.training.search.copies import MANY, joined_rows, placed_rows, side_matrices

SecondsOf = Callable[[Scene, AnyKind, int], float]
"""What one execution of a request takes on a scene, in seconds."""


def collective_s(scene: Scene, kind: AnyKind, payload_bytes: int) -> float:
    """Seconds of the single collective, as the topology runs it."""
    return scene.fixed_time(kind, payload_bytes).seconds


@dataclass(frozen=True, slots=True)
class SceneCache:
    """Scenes of a topology by number, and the seconds of requests on them, each found once.

    ``below``: a shelf of the same scenes whose prices hold where this one has no better ones.
    """

    topology: Topology
    seconds_of: SecondsOf = collective_s
    below: SceneCache | None = None
    _scenes: list[Scene] = field(default_factory=list)
    _numbers: dict[tuple[Digits, ...], int] = field(default_factory=dict)
    _by_key: dict[tuple[int, bytes], int] = field(default_factory=dict)
    _seconds: dict[tuple[AnyKind, int], dict[int, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self._seconds.values()))

    def at(self, seconds_of: SecondsOf) -> SceneCache:
        """The same scenes by the same numbers, at other prices."""
        return self._of_scenes(seconds_of, None)

    def above(self) -> SceneCache:
        """The same scenes at the same prices, some of which may be replaced there."""
        return self._of_scenes(self.seconds_of, self)

    def _of_scenes(self, seconds_of: SecondsOf, below: SceneCache | None) -> SceneCache:
        known = self._scenes, self._numbers, self._by_key
        return SceneCache(self.topology, seconds_of, below, *known)

    @property
    def by_position(self) -> tuple[bool, ...]:
        """Levels where positions of the members count, not only how many there are."""
        probe = [((1, 1),)] * len(self.topology.levels)
        return tuple(map(bool, relevant_digits(self.topology, probe)))

    def numbers(self, placed: IntArray, axes: tuple[int, ...]) -> IntArray:
        """The number of the scene of some axes on each placement: shape (placements,)."""
        keys = self._keys(placed, axes)
        _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        found = [self._number(keys[at], placed[at], axes) for at in first]
        return np.array(found, dtype=np.int64)[place.ravel()]

    def scene(self, number: int) -> Scene:
        """The scene of a number."""
        return self._scenes[number]

    def seconds(self, number: int, kind: AnyKind, payload_bytes: int) -> float:
        """Seconds of one execution of a request on a scene."""
        return self.seconds_on((number,), kind, payload_bytes)[0]

    def seconds_on(self, numbers: Sequence[int], kind: AnyKind, payload_bytes: int) -> list[float]:
        """Seconds of one execution of a request on each of these scenes."""
        known = self._seconds.setdefault((kind, payload_bytes), {})
        for number in numbers:
            if number not in known:
                known[number] = self._priced(number, kind, payload_bytes)
        return [known[number] for number in numbers]

    def replace(self, number: int, kind: AnyKind, payload_bytes: int, seconds: float) -> None:
        """Put what is known better in the place of the seconds of a request on a scene."""
        self._seconds.setdefault((kind, payload_bytes), {})[number] = seconds

    def _priced(self, number: int, kind: AnyKind, payload_bytes: int) -> float:
        if self.below is not None:
            return self.below.seconds(number, kind, payload_bytes)
        return self.seconds_of(self._scenes[number], kind, payload_bytes)

    def _number(self, key: IntArray, matrix: IntArray, axes: tuple[int, ...]) -> int:
        known = len(axes), key.tobytes()
        if known not in self._by_key:
            scene = Scene.of(self.topology, Placement(as_matrix(matrix)), axes)
            if scene.digits not in self._numbers:
                self._numbers[scene.digits] = len(self._scenes)
                self._scenes.append(scene)
            self._by_key[known] = self._numbers[scene.digits]
        return self._by_key[known]

    def _keys(self, placed: IntArray, axes: tuple[int, ...]) -> IntArray:
        """All that the digits of some axes depend on: shape (placements, keys)."""
        keys = []
        for j, exact in enumerate(self.by_position):
            column = placed[:, :, j]
            if not exact:
                keys.append(column[:, axes].prod(axis=1))
                continue
            for i in axes:
                stride = column[:, i + 1 :].prod(axis=1)
                keys += [column[:, i], np.where(column[:, i] > 1, stride, 0)]  # of 1 there is none
        return np.stack(keys, axis=1)


@dataclass(frozen=True, slots=True)
class MetScenes:
    """The ``numbers`` of distinct scenes, and which of them (``place``) each class has."""

    numbers: tuple[int, ...]
    place: IntArray

    @staticmethod
    def of(each: IntArray) -> MetScenes:
        """Those of classes whose scenes have these numbers."""
        numbers, place = np.unique(each, return_inverse=True)
        return MetScenes(tuple(numbers.tolist()), place.ravel())

    @property
    def each(self) -> IntArray:
        """The number of the scene of each class."""
        return np.array(self.numbers, dtype=np.int64)[self.place]


@dataclass(frozen=True, slots=True)
class PlacedAxes:
    """The placements of axes of some sizes, in classes that no request tells apart.

    ``matrices``: the first of each class in lexicographic order, shape (classes, axes, levels);
    ``scenes``: those that requests meet there, by the axes of the request.  ``copies`` of shards;
    None: they are not searched for, and dp is one axis.
    """

    shared_cache: SceneCache
    matrices: IntArray
    scenes: dict[tuple[int, ...], MetScenes]
    copies: int | None = None

    @staticmethod
    def of(
        shared_cache: SceneCache,
        sizes: Sequence[int],
        rules: PlacementRules,
        sets: Sequence[tuple[int, ...]],
    ) -> PlacedAxes:
        """All placements of axes of these sizes under the rules; requests are along the sets."""
        every = side_matrices(shared_cache.topology.sizes, sizes, rules)
        numbers = np.stack([shared_cache.numbers(every, axes) for axes in sets], axis=1)
        _, first = np.unique(numbers, axis=0, return_index=True)
        first.sort()
        scenes = {axes: MetScenes.of(numbers[first, i]) for i, axes in enumerate(sets)}
        copies = sizes[1] if len(sizes) > MANY else None
        return PlacedAxes(shared_cache, every[first], scenes, copies)

    def __len__(self) -> int:
        return len(self.matrices)

    def matrix(self, place: int) -> Matrix:
        """The first placement of a class, by the axes of the question."""
        return joined_rows(as_matrix(self.matrices[place]))

    def class_of(self, rows: Matrix) -> int:
        """The class of a placement of these axes."""
        matrix = np.array(placed_rows(rows, self.copies), dtype=np.int64)
        same = np.ones(len(self), dtype=bool)
        for axes, met in self.scenes.items():
            same &= met.each == self.shared_cache.numbers(matrix[None], axes)[0]
        return int(same.argmax())


# Candidates on their placements: bounds, and times on the placements that can be best.
# The time of an iteration grows with every price.  So of two classes of placements one of which has
# no lower price for any request of a strategy, only the other one need be looked at.


PriceKey = tuple[AxisSet, AnyKind, int]
"""What a price depends on beside the placement: axes, kind and bytes."""
_FRONT = 512
"""Classes that are compared with all others, at most."""


@dataclass(frozen=True, slots=True)
class PlacedCandidates:
    """Candidates with the prices of their requests by placement; tables grow as they are asked.

    ``called`` and ``payloads``: shape (requests, strategies), in the order of the requests.
    """

    candidates: Candidates
    shared_cache: SceneCache
    requests: tuple[CoveredRequest, ...]
    called: BoolArray
    payloads: IntArray
    watch: StopWatch
    _blocks: dict[int, PlacedAxes] = field(default_factory=dict)
    _seconds: dict[tuple[AnyKind, int], dict[tuple[int, AxisSet], Seconds]] = field(
        default_factory=dict
    )
    _fronts: dict[tuple[int, tuple[PriceKey, ...]], IntArray] = field(default_factory=dict)

    @staticmethod
    def of(candidates: Candidates, shared_cache: SceneCache, watch: StopWatch) -> PlacedCandidates:
        """Nothing priced so far; what it lists and prices, it does before the watch expires."""
        requests = candidates.whole_work.requests
        columns = [one.column for one in requests]
        called = np.stack([np.any(column.calls > 0, axis=1) for column in columns])
        payloads = np.stack([column.payload_bytes for column in columns])
        return PlacedCandidates(candidates, shared_cache, requests, called, payloads, watch)

    def at(self, shared_cache: SceneCache) -> PlacedCandidates:
        """The same candidates and placements at the prices of a shelf of the same scenes."""
        return replace(self, shared_cache=shared_cache, _seconds={}, _fronts={})

    def placed(self, block: int) -> PlacedAxes:
        """The placements of a block of candidates.

        Raises:
            OutOfTimeError: they were not listed before the watch expired.
        """
        if block not in self._blocks:
            if self.watch.expired():
                raise OutOfTimeError
            mine, sizes = self.candidates, self.candidates.sizes[block].tolist()
            self._blocks[block] = PlacedAxes.of(
                self.shared_cache, sizes, mine.question.rules, mine.sets
            )
        return self._blocks[block]

    def least_s(self, rows: IntArray) -> Seconds:
        """A bound on the seconds of an iteration of each row: each request is best off alone."""
        block = self.candidates.block
        asked = np.where(self.called, self.payloads, -1)[:, rows]
        alike = np.concatenate([block[rows][None], asked]).T
        _, first, same = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        names = [one.column.name for one in self.requests]
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
        prices = {one.column.name: np.zeros(start[-1]) for one in self.requests}
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

    def every(self, row: int) -> tuple[Seconds, IntArray]:
        """The same, with the place of each."""
        seconds = self.seconds(row)
        return seconds, np.arange(len(seconds))

    def seconds_at(self, row: int, place: int) -> float:
        """The same on one class."""
        return float(self.seconds(row)[place])

    def improve(self, number: int, kind: AnyKind, payload_bytes: int, seconds: float) -> None:
        """Take what is known better of the seconds of a request on a scene."""
        self.shared_cache.replace(number, kind, payload_bytes, seconds)
        self._seconds.pop((kind, payload_bytes), None)
        self._fronts.clear()

    def keys(self, row: int) -> dict[str, PriceKey]:
        """What prices the requests depend on that a row calls, by the name of the request."""
        called, payloads = self.called[:, row].tolist(), self.payloads[:, row].tolist()
        requests = zip(self.requests, called, payloads, strict=True)
        return {
            one.column.name: (self.candidates.axis_set(one.column.axes), one.column.kind, payload)
            for one, calls, payload in requests
            if calls
        }

    def _of_scenes(self, block: int, key: PriceKey) -> Seconds:
        """Seconds of a call of a request on each distinct scene of a block."""
        axes, kind, payload_bytes = key
        known = self._seconds.setdefault((kind, payload_bytes), {})
        if (block, axes) not in known:
            numbers = self.placed(block).scenes[axes].numbers
            found = self.shared_cache.seconds_on(numbers, kind, payload_bytes)
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
