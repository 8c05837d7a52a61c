"""Seconds of every step that a plan may take, by kind, moved digits and bytes before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from p2smt.arrays.ends import Ends
from p2smt.arrays.memory import MemoryLimit
from p2smt.arrays.steps import StepKind
from p2smt.cost.redistribution.prices import StepPrices
from p2smt.cost.step_time import StepCostModel
from p2smt.errors import TooLarge
from p2smt.problems.redistribution import Move
from p2smt.search.redistribution.layered.classes import digit_classes, sibling_levels
from p2smt.search.redistribution.layered.permutes import least_crossing, least_permute, narrow

MAX_ROWS = 60_000

COLLECTIVES = {
    Move.GATHER: StepKind.ALL_GATHER,
    Move.ALL_TO_ALL: StepKind.ALL_TO_ALL,
    Move.REDUCE_SCATTER: StepKind.REDUCE_SCATTER,
    Move.ALL_REDUCE: StepKind.ALL_REDUCE,
}


@dataclass(frozen=True, slots=True)
class PricedRow:
    """A row of the encoding's table in seconds; the fields are those of ``MoveRow``."""

    move: Move
    moved: tuple[int, ...]
    sharding: tuple[int, ...]
    turned: bool
    packed: bool
    first: bool
    later: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class PricedBorder:
    """A border of the encoding in seconds; the fields are those of ``Border``."""

    digits: tuple[int, ...]
    turned: bool
    costs: tuple[tuple[int, tuple[int, ...], float], ...]


class RowTable:
    """The rows of one question; ``classes`` are the digits' classes."""

    def __init__(self, ends: Ends, prices: StepPrices, memory: MemoryLimit) -> None:
        self.ends, self.prices, self.memory = ends, prices, memory
        frame = self.frame = ends.frame
        orders = range(len(frame.orders))
        self.levels = [sibling_levels(prices.topology, frame, order) for order in orders]
        self.classes = digit_classes(prices.topology, frame, self.levels)
        self._members = [
            [q for q, one in enumerate(self.classes) if one == name]
            for name in sorted(set(self.classes))
        ]
        self.sizes = tuple(sorted(set(frame.sizes)))
        self._whole = math.prod(frame.shape) * frame.element.item_bytes
        self._permutes: dict[tuple[tuple[int, ...], int], list[StepCostModel]] = {}

    def rows(self) -> list[PricedRow]:
        """All rows that keep to the cap.

        Raises:
            TooLarge: there are too many.
        """
        moves = [Move.SLICE, Move.GATHER, Move.ALL_TO_ALL, Move.PERMUTE]
        moves += [Move.REDUCE_SCATTER, Move.ALL_REDUCE] if self.ends.source.partial else []
        moves += [Move.TURN] if self._turns else []
        counts = math.prod(len(members) + 1 for members in self._members)
        if counts * len(moves) * len(self.frame.digits) > MAX_ROWS:
            rule = f"leads to {counts} kinds of groups, too many for the solver"
            given = f"a mesh of {len(self.frame.digits)} prime factors"
            raise TooLarge(given, rule, "choose a mesh along the levels of the topology")
        return [row for move in moves for row in self._of(move)]

    @property
    def _turns(self) -> bool:
        return len(self.frame.orders) > 1

    def _of(self, move: Move) -> Iterator[PricedRow]:
        for moved in product(*(range(len(members) + 1) for members in self._members)):
            if not any(moved) and move is not Move.TURN:
                continue
            by_size = self._by_size(moved)
            for sharding in product(*(range(self.frame.sizes.count(s) + 1) for s in self.sizes)):
                if not self._exists(move, by_size, sharding):
                    continue
                for turned in range(1 if move is Move.TURN else len(self.frame.orders)):
                    yield from self._row(move, moved, by_size, sharding, turned)

    def _by_size(self, moved: Sequence[int]) -> tuple[int, ...]:
        pairs = list(zip(self._members, moved, strict=True))
        return tuple(
            sum(n for members, n in pairs if self.frame.sizes[members[0]] == size)
            for size in self.sizes
        )

    def _exists(self, move: Move, moved: Sequence[int], sharding: Sequence[int]) -> bool:
        """Whether there are as many digits to move: sharding, replicated or partial ones."""
        if move.permutes:
            return True
        counts = [self.frame.sizes.count(size) for size in self.sizes]
        if move in (Move.GATHER, Move.ALL_TO_ALL):
            return all(m <= n for m, n in zip(moved, sharding, strict=True))
        return all(m + n <= c for m, n, c in zip(moved, sharding, counts, strict=True))

    def _row(
        self,
        move: Move,
        moved: tuple[int, ...],
        by_size: Sequence[int],
        sharding: tuple[int, ...],
        turned: int,
    ) -> Iterator[PricedRow]:
        ways = math.prod(size**n for size, n in zip(self.sizes, by_size, strict=True))
        before, rest = divmod(
            self._whole, math.prod(size**n for size, n in zip(self.sizes, sharding, strict=True))
        )
        after = before
        if move is Move.GATHER:
            after = before * ways
        elif move in (Move.SLICE, Move.REDUCE_SCATTER):
            after, more = divmod(before, ways)
            rest += more
        if rest:
            return
        seconds = None
        for packed in (False, True) if self._packs(move) else (False,):
            first, later = self._allowed(move, packed, before, after)
            if first or later:
                if seconds is None:
                    seconds = self._seconds(move, moved, before, after, turned)
                yield PricedRow(move, moved, sharding, bool(turned), packed, first, later, seconds)

    def _packs(self, move: Move) -> bool:
        return self.memory.of_steps and move in (Move.GATHER, Move.REDUCE_SCATTER)

    def _allowed(self, move: Move, packed: bool, before: int, after: int) -> tuple[bool, bool]:
        """Whether a step keeps to the cap as the first one, and as another one."""
        limit = self.memory.limit_bytes
        if not self.memory.of_steps:
            fits = max(before, after) <= limit
            return fits, fits
        pack = max(before, after) if packed or move is Move.ALL_TO_ALL else 0
        needed = before + (0 if move is Move.ALL_REDUCE else after) + pack
        kept = self.frame.local_bytes(self.ends.source) if self.memory.keep_source else 0
        at_first = kept if move is Move.ALL_REDUCE else 0
        return needed + at_first <= limit, needed + kept <= limit

    def _seconds(
        self, move: Move, moved: tuple[int, ...], before: int, after: int, turned: int
    ) -> float:
        if move in (Move.SLICE, Move.TURN):
            return 0.0
        if move is Move.PERMUTE:
            models = self._permute(moved, turned)
            return min((model.time(before).seconds for model in models), default=0.0)
        digits = sorted(
            q for members, n in zip(self._members, moved, strict=True) for q in members[:n]
        )
        payload = after if move is Move.GATHER else before
        return self.prices.collective(COLLECTIVES[move], tuple(digits), payload, turned).seconds

    def _permute(self, moved: tuple[int, ...], turned: int) -> list[StepCostModel]:
        """What a permute of so many digits of each class costs at least; nothing: not known."""
        found = self._permutes.get((moved, turned))
        if found is None:
            topology = self.prices.topology
            size = self.sizes[0] if len(self.sizes) == 1 else None
            found = []
            if topology.hosts is None:
                found = least_permute(topology, self._at_levels(moved, turned), size)
            self._permutes[moved, turned] = found
        return found

    def borders(self) -> list[PricedBorder]:
        """Borders around entities whose devices share ports, if the digits have one size."""
        topology = self.prices.topology
        found = []
        for turned, levels in enumerate(self.levels):
            if levels is None or len(self.sizes) > 1:
                continue
            for level in (j for j in range(len(topology.levels)) if narrow(topology, j)):
                digits = tuple(q for q, own in enumerate(levels) if own <= level)
                costs = tuple(self._crossings(level))
                if digits:
                    found.append(PricedBorder(digits, bool(turned), costs))
        return found

    def _crossings(self, level: int) -> Iterator[tuple[int, tuple[int, ...], float]]:
        """Seconds of every crossing with every number of sharding digits."""
        digits, size = len(self.frame.digits), self.sizes[0]
        for crossing in range(digits + 2):
            told = None if crossing > digits else crossing
            models = least_crossing(self.prices.topology, level, told, size) if crossing else []
            for sharding in range(digits + 1):
                before = self._whole // size**sharding
                seconds = min((model.time(before).seconds for model in models), default=0.0)
                yield crossing, (sharding,), seconds

    def _at_levels(self, moved: tuple[int, ...], turned: int) -> list[int] | None:
        levels = self.levels[turned]
        if levels is None:
            return None
        found = [0] * len(self.prices.topology.levels)
        for members, count in zip(self._members, moved, strict=True):
            found[levels[members[0]]] += count
        return found
