"""The steps from each state under a cap on memory, with their times and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit
from p2smt.arrays.steps import KINDS, ArrayStep, StepKind
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.redistribution.prices import StepPrices, moved_bytes
from p2smt.parallelism.placement import BoolArray, IntArray
from p2smt.search.redistribution.exact.moves import Bundle, DigitMoves
from p2smt.search.redistribution.exact.sends import Sends
from p2smt.search.redistribution.exact.symmetry import Symmetry
from p2smt.search.redistribution.exact.table import StateTable

NUMBERED = tuple(StepKind)
"""Kinds by number."""
PERMUTE = NUMBERED.index(StepKind.PERMUTE)


@dataclass(frozen=True, slots=True, eq=False)
class NextSteps:
    """Steps from one state: where to, seconds (NaN: not priced yet), kind by number, and bytes.

    ``bytes`` are input, output and pack buffer where these are capped, else the output.
    """

    targets: IntArray
    seconds: FloatArray
    kinds: IntArray
    bytes: IntArray

    def where(self, kept: BoolArray) -> NextSteps:
        """Those that a mask keeps."""
        return NextSteps(self.targets[kept], self.seconds[kept], self.kinds[kept], self.bytes[kept])


class StateGraph:
    """States of a table and the steps between them; ``counted``: the number of steps matters."""

    def __init__(
        self, ends: Ends, table: StateTable, prices: StepPrices, memory: MemoryLimit, counted: bool
    ) -> None:
        self.table, self.memory, self.prices = table, memory, prices
        self.symmetry = Symmetry.of(prices.topology, table)
        self.sends = Sends(table, prices, self.symmetry)
        self._counted = counted
        self._moves = DigitMoves(table, range(len(ends.frame.digits)))
        self._lettered = DigitMoves(table, self.symmetry.letters)
        self._beside = ends.frame.local_bytes(ends.source) if memory.keep_source else 0
        self._prices: dict[tuple[StepKind, tuple[int, ...], int, int], float] = {}
        self._least: dict[tuple[StepKind, tuple[int, ...], int, int], float] = {}
        self._shape = np.array(ends.frame.shape, dtype=np.int64)
        self._timed = self._exact = True

    def steps_from(self, number: int, first: bool) -> NextSteps:
        """The steps that keep to the cap; ``first``: nothing stands beside the source yet."""
        edges = self._all_from(number, first)
        return edges.where(edges.bytes <= self.memory.limit_bytes)

    def relaxed_from(self, number: int, first: bool) -> NextSteps:
        """From a state that speaks for its letters the steps that keep to the cap in some order.

        Permutes lead to states that speak for theirs, at the price of the cheapest exchange.
        """
        self._exact = False
        edges = self.steps_from(number, first)
        self._exact = True
        return edges

    def untimed_from(self, number: int, first: bool) -> NextSteps:
        """Every step, whatever it needs, with times that mean nothing."""
        self._timed = False
        edges = self._all_from(number, first)
        self._timed = True
        return edges

    def _all_from(self, number: int, first: bool) -> NextSteps:
        moves = self._moves if self._exact else self._lettered
        bundles = list(moves.bundles(number, self._whole_slices(number)))
        sent = self.sends.targets(number) if self._exact else self.sends.speakers(number)
        found = [*self._collectives(number, bundles, first), self._permutes(number, sent, first)]
        columns = [
            [getattr(edges, name) for edges in found]
            for name in ("targets", "seconds", "kinds", "bytes")
        ]
        targets, seconds, kinds, size = map(np.concatenate, columns)
        return NextSteps(targets, seconds, kinds, size)

    def _whole_slices(self, number: int) -> bool:
        """Whether one slice of several digits can do what slices of a digit each cannot."""
        if self._counted or not (self.memory.of_steps and self._timed):
            return self._counted or self.memory.of_steps
        size = int(self.table.size[number])
        largest = size + -(-size // min(self.table.frame.sizes)) + self._beside
        return largest > self.memory.limit_bytes

    def _collectives(self, number: int, bundles: Sequence[Bundle], first: bool) -> list[NextSteps]:
        if not bundles:
            return []
        every = self.table.find(np.concatenate([bundle.codes for bundle in bundles]))
        found, at = [], 0
        for bundle in bundles:
            targets = every[at : at + len(bundle.codes)]
            at += len(bundle.codes)
            if targets[0] < 0 or targets.min() < 0:
                kept = targets >= 0
                targets, plain = targets[kept], bundle.plain[kept]
            else:
                plain = bundle.plain
            if len(targets):
                found.append(self._edges(number, bundle, targets, plain, first))
        return found

    def _edges(
        self,
        number: int,
        bundle: Bundle,
        targets: IntArray,
        plain: BoolArray,
        first: bool,
    ) -> NextSteps:
        apart = targets if self.table.frame.nested else targets[:1]
        prices = np.array([self._price(number, bundle, int(target)) for target in apart])
        seconds = np.broadcast_to(prices, targets.shape)
        kind = NUMBERED.index(bundle.kind)
        count = len(targets)
        size = self._bytes(number, bundle.kind, targets, plain, first)
        return NextSteps(targets, seconds, np.full(count, kind), size)

    def _price(self, number: int, bundle: Bundle, target: int) -> float:
        """The time of a bundle's steps: they have one kind, one set of digits and one payload.

        Uneven chunks have a payload for each target.
        """
        if bundle.kind is StepKind.SLICE or not self._timed:
            return 0.0
        before, after = int(self.table.size[number]), int(self.table.size[target])
        key = (
            bundle.kind,
            bundle.digits,
            moved_bytes(bundle.kind, self.table.frame.ways(bundle.digits), before, after),
            int(self.table.order[number]),
        )
        known = self._prices if self._exact else self._least
        found = known.get(key)
        if found is None:
            found = known[key] = self._new_price(*key)
        return found

    def _new_price(
        self, kind: StepKind, digits: tuple[int, ...], payload_bytes: int, order: int
    ) -> float:
        if self._exact:
            first = self.symmetry.first_of_kind(digits)
            return self.prices.collective(kind, first, payload_bytes, order).seconds
        return min(
            self.prices.collective(kind, some, payload_bytes, order).seconds
            for some in self.symmetry.same_letters(digits)
        )

    def _permutes(self, number: int, targets: IntArray, first: bool) -> NextSteps:
        size = self._bytes(number, StepKind.PERMUTE, targets, np.ones(len(targets), bool), first)
        unknown = np.full(len(targets), np.nan)
        price = self.sends.seconds if self._exact else self.sends.lettered
        seconds = price(number, targets) if self._timed else unknown
        return NextSteps(targets, seconds, np.full(len(targets), PERMUTE), size)

    def _bytes(
        self,
        number: int,
        kind: StepKind,
        targets: IntArray,
        plain: BoolArray,
        first: bool,
    ) -> IntArray:
        after = self.table.size[targets]
        if not self.memory.of_steps:
            return after
        before = int(self.table.size[number])
        kept = 0 if first and kind is not StepKind.ALL_REDUCE else self._beside
        match kind:
            case StepKind.ALL_REDUCE:
                return np.full(len(targets), before + kept)
            case StepKind.ALL_TO_ALL:
                return after + before + np.maximum(before, after) + kept
            case StepKind.ALL_GATHER:
                packed = after * ~self._whole(number, targets, plain, gathers=True)
            case StepKind.REDUCE_SCATTER:
                packed = self._scattered(number, targets, plain)
            case _:
                packed = np.zeros(len(targets), dtype=np.int64)
        return np.asarray(after + before + kept + packed, dtype=np.int64)

    def _scattered(self, number: int, targets: IntArray, plain: BoolArray) -> IntArray:
        """Pack buffers of reduce-scatters: parts that may differ in length are padded."""
        here, there = self.table.ways[number], self.table.ways[targets]
        padded = ((here != there) & (self._shape % there != 0)).any(axis=1)
        parts = self.table.size[targets] * (there.prod(axis=1) // here.prod())
        packed = self.table.size[number] * ~self._whole(number, targets, plain, gathers=False)
        return np.asarray(np.where(padded, parts, packed), dtype=np.int64)

    def _whole(
        self,
        number: int,
        targets: IntArray,
        plain: BoolArray,
        gathers: bool,
    ) -> BoolArray:
        """Where the blocks of a group follow each other in memory, so that nothing is packed."""
        plain = plain | (not self._exact)
        here, there = self.table.ways[number], self.table.ways[targets]
        small = -(-self._shape // (here if gathers else there))
        before = np.ones((len(targets), len(self._shape)), dtype=np.int64)
        before[:, 1:] = np.cumprod(np.broadcast_to(small, before.shape), axis=1)[:, :-1]
        cut = np.argmax(here != there, axis=1)
        return np.asarray(plain & (before[np.arange(len(targets)), cut] == 1))

    def step(self, before: int, after: int, kind: int) -> ArrayStep:
        """The step between two states."""
        return KINDS[NUMBERED[kind]](self.table.state(before), self.table.state(after))
