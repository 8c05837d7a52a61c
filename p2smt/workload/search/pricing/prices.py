"""Seconds of requests on placements: each distinct scene is priced once, whatever leads to it.

What a request costs depends on a placement through the digits of its axes only
(:class:`~p2smt.cost.scene.Scene`), and few of them differ: a table by scene, kind and bytes serves
all strategies and all axis sizes, and placements that are alike to every request are one class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import relevant_digits
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.workload.search.pricing.matrices import PlacementRules, matrices

Seconds = npt.NDArray[np.float64]
SecondsOf = Callable[[Scene, RequestKind, int], float]
"""What one execution of a request takes on a scene, in seconds."""


def collective_s(scene: Scene, kind: RequestKind, payload_bytes: int) -> float:
    """Seconds of the single collective, as the topology runs it."""
    return scene.fixed_time(kind, payload_bytes).seconds


@dataclass(frozen=True, slots=True)
class SceneShelf:
    """Scenes of a topology by number, and the seconds of requests on them, each found once.

    ``below``: a shelf of the same scenes whose prices hold where this one has no better ones.
    """

    topology: Topology
    seconds_of: SecondsOf = collective_s
    below: SceneShelf | None = None
    _scenes: list[Scene] = field(default_factory=list)
    _numbers: dict[tuple[Digits, ...], int] = field(default_factory=dict)
    _by_key: dict[tuple[int, bytes], int] = field(default_factory=dict)
    _seconds: dict[tuple[RequestKind, int], dict[int, float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self._seconds.values()))

    def at(self, seconds_of: SecondsOf) -> SceneShelf:
        """The same scenes by the same numbers, at other prices."""
        return self._of_scenes(seconds_of, None)

    def above(self) -> SceneShelf:
        """The same scenes at the same prices, some of which may be replaced there."""
        return self._of_scenes(self.seconds_of, self)

    def _of_scenes(self, seconds_of: SecondsOf, below: SceneShelf | None) -> SceneShelf:
        known = self._scenes, self._numbers, self._by_key
        return SceneShelf(self.topology, seconds_of, below, *known)

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

    def seconds(self, number: int, kind: RequestKind, payload_bytes: int) -> float:
        """Seconds of one execution of a request on a scene."""
        return self.seconds_on((number,), kind, payload_bytes)[0]

    def seconds_on(
        self, numbers: Sequence[int], kind: RequestKind, payload_bytes: int
    ) -> list[float]:
        """Seconds of one execution of a request on each of these scenes."""
        known = self._seconds.setdefault((kind, payload_bytes), {})
        for number in numbers:
            if number not in known:
                known[number] = self._priced(number, kind, payload_bytes)
        return [known[number] for number in numbers]

    def replace(self, number: int, kind: RequestKind, payload_bytes: int, seconds: float) -> None:
        """Put what is known better in the place of the seconds of a request on a scene."""
        self._seconds.setdefault((kind, payload_bytes), {})[number] = seconds

    def _priced(self, number: int, kind: RequestKind, payload_bytes: int) -> float:
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


def as_matrix(matrix: IntArray) -> Matrix:
    """An array as a parallelism matrix."""
    return tuple(tuple(row) for row in matrix.tolist())


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
    ``scenes``: those that requests meet there, by the axes of the request.
    """

    shelf: SceneShelf
    matrices: IntArray
    scenes: dict[tuple[int, ...], MetScenes]

    @staticmethod
    def of(
        shelf: SceneShelf,
        sizes: Sequence[int],
        rules: PlacementRules,
        sets: Sequence[tuple[int, ...]],
    ) -> PlacedAxes:
        """All placements of axes of these sizes under the rules; requests are along the sets."""
        every = matrices(shelf.topology.sizes, sizes, rules)
        numbers = np.stack([shelf.numbers(every, axes) for axes in sets], axis=1)
        _, first = np.unique(numbers, axis=0, return_index=True)
        first.sort()
        scenes = {axes: MetScenes.of(numbers[first, i]) for i, axes in enumerate(sets)}
        return PlacedAxes(shelf, every[first], scenes)

    def __len__(self) -> int:
        return len(self.matrices)

    def class_of(self, matrix: IntArray) -> int:
        """The class of a placement of these axes."""
        same = np.ones(len(self), dtype=bool)
        for axes, met in self.scenes.items():
            same &= met.each == self.shelf.numbers(matrix[None], axes)[0]
        return int(same.argmax())
