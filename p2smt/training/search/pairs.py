"""Strategies of mixtures on pairs of placements: attention by one matrix, experts by another.

Nothing but the row of pp ties the two, so each side is listed, put into classes and priced by
itself.  Of each row of pp the classes of a side that no other one beats at every price are paired
with those of the other side: since time grows with every price, one of these pairs is the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from p2smt.collectives.dispatch import AnyKind
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.folded import FoldedPlacement, experts_numbered
from p2smt.parallelism.matrices import PlacementRules
from p2smt.parallelism.placement import IntArray, Matrix, Placement, as_matrix
from p2smt.result import StopWatch
from p2smt.training.efficiency import LayerConstants
from p2smt.training.iteration import flex_dispatch
from p2smt.training.pipeline import StrategyWork, combine
from p2smt.training.prediction import DISPATCH_REQUEST
from p2smt.training.search.candidates import AxisSet, Candidates, Seconds
from p2smt.training.search.copies import (
    MANY,
    joined_rows,
    placed_rows,
    side_matrices,
    side_rules,
)
from p2smt.training.search.prices import (
    MetScenes,
    PlacedCandidates,
    PriceKey,
    SceneCache,
    front,
)

_Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlacedSide:
    """The matrices of one side in classes: alike to its requests, and with one row of pp.

    ``matrices``: the first of each class, shape (classes, axes, levels); ``scenes`` by the rows of
    both sides that a request is along; ``groups``: the classes with each row of pp; ``copies`` of
    shards; None: they are not searched for, and data parallelism is one axis.  ``every`` matrix,
    and its class in ``which``.
    """

    shared_cache: SceneCache
    matrices: IntArray
    scenes: Mapping[AxisSet, MetScenes]
    groups: Mapping[_Sizes, IntArray]
    every: IntArray
    which: IntArray
    copies: int | None = None

    @staticmethod
    def of(
        shared_cache: SceneCache, sizes: _Sizes, rules: PlacementRules, sets: Sequence[AxisSet]
    ) -> PlacedSide:
        """All matrices of these sizes under rules on their own rows."""
        every = side_matrices(shared_cache.topology.sizes, sizes, rules)
        many = len(sizes)
        stages, group = np.unique(every[:, 0], axis=0, return_inverse=True)
        own = [own_rows(axes, many) for axes in sets]
        numbers = [shared_cache.numbers(every, axes) for axes in own] if len(every) else []
        table = np.stack([group.ravel(), *numbers], axis=1)
        _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
        which = np.argsort(np.argsort(first))[which.ravel()]
        first.sort()
        scenes = {axes: MetScenes.of(table[first, i + 1]) for i, axes in enumerate(sets)}
        groups = {
            tuple(row): np.flatnonzero(table[first, 0] == at)
            for at, row in enumerate(stages.tolist())
        }
        copies = sizes[1] if many > MANY else None
        met = scenes if len(every) else {}
        return PlacedSide(shared_cache, every[first], met, groups, every, which, copies)

    def __len__(self) -> int:
        return len(self.matrices)

    def class_of(self, rows: Matrix) -> int:
        """The class of a matrix of this side, by the axes of the question."""
        matrix, mine = (
            np.array(placed_rows(rows, self.copies), dtype=np.int64),
            self.groups[rows[0]],
        )
        same = np.ones(len(mine), dtype=bool)
        for axes, met in self.scenes.items():
            own = own_rows(axes, len(matrix))
            same &= met.each[mine] == self.shared_cache.numbers(matrix[None], own)[0]
        return int(mine[same.argmax()])

    def matrix(self, place: int) -> Matrix:
        """The first matrix of a class, by the axes of the question."""
        return joined_rows(as_matrix(self.matrices[place]))

    @property
    def joined(self) -> IntArray:
        """Every matrix by the axes of the question: shape (matrices, axes, levels)."""
        if self.copies is None:
            return self.every
        return np.concatenate(
            [self.every[:, :1], self.every[:, 1:2] * self.every[:, 2:3], self.every[:, 3:]], axis=1
        )


def own_rows(axes: AxisSet, many: int) -> AxisSet:
    """Rows of both sides as rows of the one that they are of; each has so many, pp's too."""
    return axes if max(axes) < many else tuple(axis - many + 1 for axis in axes)


@dataclass(frozen=True, slots=True)
class PlacedPairs:
    """The pairs of placements of axes of some sizes, by the classes of both sides.

    A place is a number: of attention's class times the number of experts' classes, plus theirs.
    ``numbered``: the first pair of each place that has one whose ranks are numbered once, as rows;
    None: any pair will do.
    """

    attention: PlacedSide
    experts: PlacedSide
    numbered: Mapping[int, Matrix] | None = None

    @staticmethod
    def numbered_once(attention: PlacedSide, experts: PlacedSide) -> PlacedPairs:
        """The pairs in which experts have the ranks of attention."""
        known = {one.tobytes(): at for at, one in enumerate(experts.joined)}
        mine, found = attention.joined, dict[int, Matrix]()
        sizes = experts.joined[:1].prod(axis=2).ravel().tolist()
        at, others = experts_numbered(mine, sizes) if len(mine) and sizes else ((), ())
        for one, theirs in zip(at, others, strict=True):
            other = known.get(theirs.tobytes())
            if other is not None:
                place = int(attention.which[one]) * len(experts) + int(experts.which[other])
                found.setdefault(place, as_matrix(mine[one]) + as_matrix(theirs[1:]))
        return PlacedPairs(attention, experts, found)

    def places(self) -> IntArray:
        """All places."""
        if self.numbered is not None:
            return np.array(sorted(self.numbered), dtype=np.int64)
        many = len(self.experts)
        pairs = [(mine[:, None] * many + others).ravel() for _, mine, others in self.groups()]
        return np.concatenate(pairs)

    def matrix(self, place: int) -> Matrix:
        """The rows of the first pair of a place: those of attention, and of experts but pp's."""
        if self.numbered is not None:
            return self.numbered[place]
        one, other = divmod(place, len(self.experts))
        return self.attention.matrix(one) + self.experts.matrix(other)[1:]

    def class_of(self, rows: Matrix) -> int:
        """The place of a pair with these rows."""
        one = self.attention.class_of(rows[:MANY])
        other = self.experts.class_of((rows[0], *rows[MANY:]))
        return one * len(self.experts) + other

    def groups(self) -> Iterator[tuple[_Sizes, IntArray, IntArray]]:
        """The rows of pp that both sides have, with the classes of each."""
        for stages, mine in self.attention.groups.items():
            others = self.experts.groups.get(stages)
            if others is not None:
                yield stages, mine, others


_SideKey = tuple[bool, _Sizes]
"""Whether a side is of experts, and the sizes of its axes."""


@dataclass(frozen=True, slots=True)
class PairedCandidates(PlacedCandidates):
    """Candidates of a mixture with the prices of their requests by pair of placements.

    ``sets``: the sets of axes that requests are along.
    """

    sets: tuple[AxisSet, ...] = ()
    _sides: dict[_SideKey, PlacedSide] = field(default_factory=dict)
    _prices: dict[tuple[_SideKey, PriceKey], Seconds] = field(default_factory=dict)
    _side_fronts: dict[tuple[_SideKey, tuple[PriceKey, ...]], Mapping[_Sizes, IntArray]] = field(
        default_factory=dict
    )
    _numbered: dict[int, PlacedPairs] = field(default_factory=dict)
    _numbered_fronts: dict[tuple[int, tuple[PriceKey, ...]], IntArray] = field(default_factory=dict)

    @staticmethod
    def of(candidates: Candidates, shared_cache: SceneCache, watch: StopWatch) -> PairedCandidates:
        """Nothing priced so far; what it lists and prices, it does before the watch expires."""
        nothing = np.zeros((0, len(candidates)), dtype=np.int64)
        rest = (), nothing > 0, nothing, watch
        return PairedCandidates(candidates, shared_cache, *rest, sets=candidates.sets)

    def part(self, candidates: Candidates, watch: StopWatch) -> PairedCandidates:
        """Some of the candidates, maybe under more rules; under the same, what is known is shared.

        No table of a side depends on which strategies there are.
        """
        if candidates.question.rules != self.candidates.question.rules:
            return PairedCandidates.of(candidates, self.shared_cache, watch)
        return replace(self, candidates=candidates, watch=watch)

    def at(self, shared_cache: SceneCache) -> PairedCandidates:
        """The same candidates and placements at the prices of a shelf of the same scenes."""
        nothing: dict[str, Any] = {"_prices": {}, "_side_fronts": {}, "_numbered_fronts": {}}
        return replace(self, shared_cache=shared_cache, **nothing)

    def placed(self, block: int) -> PlacedPairs:  # type: ignore[override]
        """The pairs of placements of a block of candidates.

        Raises:
            OutOfTimeError: they were not listed before the watch expired.
        """
        if not self.candidates.question.numbered_once:
            one, other = map(self._side, self._side_keys(block))
            return PlacedPairs(one, other)
        if block not in self._numbered:
            sides = (self._side(key) for key in self._side_keys(block))
            self._numbered[block] = PlacedPairs.numbered_once(*sides)
        return self._numbered[block]

    def least_s(self, rows: IntArray) -> Seconds:
        """A bound on the seconds of an iteration of each row: each request is best off alone."""
        done = self.candidates.work.take(rows)
        found = {one.column.name: np.zeros(len(rows)) for one in done.requests}
        for at, (row, keys) in enumerate(
            zip(rows.tolist(), self._all_keys(rows, done), strict=True)
        ):
            sides = self._side_keys(int(self.candidates.block[row]))
            for name, key in keys.items():
                found[name][at] = self._of_side(sides[self._is_experts(key)], key).min()
        return combine(done, found)

    def best(self, rows: IntArray) -> tuple[Seconds, IntArray]:
        """The least seconds of an iteration of each row over its pairs, and their place."""
        done = self.candidates.work.take(rows)
        keys = self._all_keys(rows, done)
        chosen = [self._pairs(row, asked) for row, asked in zip(rows.tolist(), keys, strict=True)]
        many = [len(pairs) for pairs in chosen]
        start = np.concatenate([[0], np.cumsum(many)])
        prices = {one.column.name: np.zeros(start[-1]) for one in done.requests}
        for at, (row, pairs) in enumerate(zip(rows.tolist(), chosen, strict=True)):
            for name, seconds in self._of_places(row, keys[at], pairs).items():
                prices[name][start[at] : start[at + 1]] = seconds
        seconds = combine(done.take(np.repeat(np.arange(len(rows)), many)), prices)
        least = [int(part.argmin()) for part in np.split(seconds, start[1:-1])]
        place = np.array([pairs[i] for pairs, i in zip(chosen, least, strict=True)])
        return seconds[start[:-1] + least], place.astype(np.int64)

    def every(self, row: int) -> tuple[Seconds, IntArray]:
        """Seconds of an iteration of a row on every pair of placements, and their places."""
        places = self.placed(int(self.candidates.block[row])).places()
        return self._seconds_on(row, places), places

    def seconds_at(self, row: int, place: int) -> float:
        """Seconds of an iteration of a row on a pair of placements."""
        return float(self._seconds_on(row, np.array([place]))[0])

    def _seconds_on(self, row: int, places: IntArray) -> Seconds:
        done = self.candidates.work.take(np.array([row]))
        (keys,) = self._all_keys(np.array([row]), done)
        free = {one.column.name: np.zeros(len(places)) for one in done.requests}
        found = combine(done, free | self._of_places(row, keys, places))
        return np.broadcast_to(found, places.shape)

    def asked(self, row: int) -> dict[str, PriceKey]:
        """What prices the requests of a row depend on, by the name of the request."""
        rows = np.array([row])
        return self._all_keys(rows, self.candidates.work.take(rows))[0]

    def prices_on(self, row: int, rows: Matrix) -> dict[str, float]:
        """Seconds of a call of each request of a row on the pair with these rows, found anew."""
        pair, topology, found = FoldedPlacement.of_rows(rows), self.shared_cache.topology, {}
        copies = self.candidates.copies(row)
        for name, key in self.asked(row).items():
            axes, kind, payload_bytes = key
            own = pair.experts if self._is_experts(key) else pair.attention
            side = Placement(placed_rows(own.matrix, copies))
            scene = Scene.of(topology, side, own_rows(axes, self._many))
            seconds = self.shared_cache.seconds_of(scene, kind, payload_bytes)
            found[name] = seconds / self._reached(kind)
        return found

    def _reached(self, kind: AnyKind) -> float:
        """The part of the library's rate at which tokens move in a training."""
        layers = self.candidates.question.efficiency.layers or LayerConstants()
        return layers.dispatch if kind is RequestKind.ALL_TO_ALL else 1.0

    def _all_keys(self, rows: IntArray, done: StrategyWork) -> list[dict[str, PriceKey]]:
        """The same of each of some rows, whose work this is."""
        found: list[dict[str, PriceKey]] = [{} for _ in range(len(done.vpp))]
        for one in done.requests:
            column, axes = one.column, self.candidates.axis_set(one.column.axes)
            payloads = column.payload_bytes.tolist()
            for at in np.flatnonzero((column.calls > 0).any(axis=1)).tolist():
                found[at][column.name] = (axes, column.kind, payloads[at])
        more = self.candidates.columns.mixture
        assert more is not None
        for at in np.flatnonzero(more.dispatcher[rows] == "flex").tolist():
            if DISPATCH_REQUEST in found[at]:
                found[at][DISPATCH_REQUEST] = self._flex(found[at][DISPATCH_REQUEST])
        return found

    def _flex(self, key: PriceKey) -> PriceKey:
        """A dispatch once to each entity that needs a token, as an all-to-all is asked for."""
        one = self.candidates.question.model.experts
        assert one is not None
        axes, _, payload_bytes = key
        return axes, *flex_dispatch(one, payload_bytes)

    def _side_keys(self, block: int) -> tuple[_SideKey, _SideKey]:
        sizes = tuple(self.candidates.sizes[block].tolist())
        return (False, sizes[: self._many]), (True, (sizes[0], *sizes[self._many :]))

    @property
    def _many(self) -> int:
        """Rows of each side."""
        return self.candidates.rows_of_attention

    def _is_experts(self, key: PriceKey) -> bool:
        return max(key[0]) >= self._many

    def _side(self, key: _SideKey) -> PlacedSide:
        if key not in self._sides:
            if self.watch.expired():
                raise OutOfTimeError
            of_experts, sizes = key
            rules = side_rules(self.candidates.question.rules, of_experts=of_experts)
            sets = [axes for axes in self.sets if (max(axes) >= self._many) is of_experts]
            self._sides[key] = PlacedSide.of(self.shared_cache, sizes, rules, sets)
        return self._sides[key]

    def _of_side(self, side: _SideKey, key: PriceKey) -> Seconds:
        """Seconds of a call of a request on each distinct scene of its side."""
        if (side, key) not in self._prices:
            axes, kind, payload_bytes = key
            numbers = self._side(side).scenes[axes].numbers
            seconds = np.array(self.shared_cache.seconds_on(numbers, kind, payload_bytes))
            self._prices[side, key] = seconds / self._reached(kind)
        return self._prices[side, key]

    def _of_classes_of(self, side: _SideKey, key: PriceKey) -> Seconds:
        """The same on each class of its side."""
        return self._of_side(side, key)[self._side(side).scenes[key[0]].place]

    def _of_places(
        self, row: int, keys: Mapping[str, PriceKey], places: IntArray
    ) -> dict[str, Seconds]:
        """Seconds of a call of each request of a row on some pairs of placements."""
        block = int(self.candidates.block[row])
        sides = self._side_keys(block)
        classes = np.divmod(places, len(self._side(sides[True])))
        return {
            name: self._of_classes_of(sides[of_experts], key)[classes[of_experts]]
            for name, key in keys.items()
            for of_experts in (self._is_experts(key),)
        }

    def _pairs(self, row: int, keys: Mapping[str, PriceKey]) -> IntArray:
        """The places of a row that may be best, those of each row of pp together."""
        if self.candidates.question.numbered_once:
            return self._numbered_front(row, keys)
        block = int(self.candidates.block[row])
        sides, asked = self._side_keys(block), dict.fromkeys(keys.values())
        fronts = [
            self._fronts_of(side, tuple(key for key in asked if self._is_experts(key) is side[0]))
            for side in sides
        ]
        many = len(self._side(sides[True]))
        shared = (stages for stages in fronts[0] if stages in fronts[1])
        pairs = [
            (fronts[0][stages][:, None] * many + fronts[1][stages]).ravel() for stages in shared
        ]
        return np.concatenate(pairs)

    def _numbered_front(self, row: int, keys: Mapping[str, PriceKey]) -> IntArray:
        """The same of pairs whose ranks are numbered once."""
        block = int(self.candidates.block[row])
        asked = block, tuple(keys.values())
        if asked not in self._numbered_fronts:
            places = self.placed(block).places()
            prices = list(self._of_places(row, keys, places).values())
            table = np.stack(prices, axis=1) if prices else np.zeros((len(places), 1))
            self._numbered_fronts[asked] = places[front(table)]
        return self._numbered_fronts[asked]

    def _fronts_of(self, side: _SideKey, keys: tuple[PriceKey, ...]) -> Mapping[_Sizes, IntArray]:
        """Of each row of pp the classes of a side that no other one beats at every price."""
        if (side, keys) not in self._side_fronts:
            placed = self._side(side)
            prices = [self._of_classes_of(side, key) for key in keys]
            table = np.stack(prices, axis=1) if prices else np.zeros((len(placed), 1))
            self._side_fronts[side, keys] = {
                stages: mine[front(table[mine])] for stages, mine in placed.groups.items()
            }
        return self._side_fronts[side, keys]


def placed_candidates(
    candidates: Candidates, shared_cache: SceneCache, watch: StopWatch
) -> PlacedCandidates:
    """Candidates on their placements, or pairs of these, at the prices of a shelf."""
    if candidates.question.model.experts:
        return PairedCandidates.of(candidates, shared_cache, watch)
    return PlacedCandidates.of(candidates, shared_cache, watch)
