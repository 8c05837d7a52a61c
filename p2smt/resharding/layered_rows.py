"""Seconds of every step that a plan may take, by kind, moved digits and bytes before."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.level_use import LevelUse, message_footprint, worst_link
from p2smt.cost.step_time import StepCostModel
from p2smt.errors import TooLarge
from p2smt.problems.redistribution import LevelCut, Move, MoveRow
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import Frame
from p2smt.resharding.step_prices import StepPrices, quick_levels
from p2smt.resharding.steps import MemoryLimit, StepKind

MAX_ROWS = 60_000

COLLECTIVES = {
    Move.GATHER: StepKind.ALL_GATHER,
    Move.ALL_TO_ALL: StepKind.ALL_TO_ALL,
    Move.REDUCE_SCATTER: StepKind.REDUCE_SCATTER,
    Move.ALL_REDUCE: StepKind.ALL_REDUCE,
}


class RowTable:
    """The rows of one question, in seconds; ``classes`` are the digits' classes."""

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

    def rows(self) -> list[MoveRow[float]]:
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

    def _of(self, move: Move) -> Iterator[MoveRow[float]]:
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
    ) -> Iterator[MoveRow[float]]:
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
                yield MoveRow(move, moved, sharding, bool(turned), packed, first, later, seconds)

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

    def borders(self) -> list[LevelCut[float]]:
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
                    found.append(LevelCut(digits, bool(turned), costs))
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


# Digits that the topology cannot tell apart.
# Each level of a topology of switches is alike in all its siblings.  Exchanging two digits inside a
# level, with no digit of another level between them, maps groups to groups of the same devices'
# kind in the same order, so no collective's price changes.


def sibling_levels(topology: Topology, frame: Frame, order: int) -> tuple[int, ...] | None:
    """For each digit the level between whose siblings it counts; None: they are not aligned.

    Aligned: the devices are the topology's, in the order of a mixed-radix number over the digits,
    each inside one level.
    """
    devices = np.array(frame.orders[order]).reshape(frame.sizes)
    if topology.hosts is not None or sorted(frame.orders[order]) != list(range(topology.devices)):
        return None
    found = []
    for digit, size in enumerate(frame.sizes):
        lines = np.moveaxis(devices, digit, 0).reshape(size, -1)
        stride = int(lines[1, 0] - lines[0, 0])
        linear = bool((lines == lines[0] + stride * np.arange(size)[:, None]).all())
        level = _level(topology, stride, size) if linear and stride > 0 else None
        if level is None:
            return None
        found.append(level)
    return tuple(found)


def _level(topology: Topology, stride: int, size: int) -> int | None:
    """The level in which steps of ``stride`` devices, ``size`` of them, lead to siblings."""
    for level in range(len(topology.levels)):
        under = topology.devices_under(level)
        above = under * topology.levels[level].size
        if stride % under == 0 and above % (stride * size) == 0:
            return level
    return None


def digit_classes(
    topology: Topology, frame: Frame, levels: Sequence[tuple[int, ...] | None]
) -> tuple[int, ...]:
    """For each digit the number of its class; ``levels``: of each order of devices."""
    keys: list[tuple[object, ...]] = []
    run = 0
    for digit in range(len(frame.digits)):
        own = [None if one is None else one[digit] for one in levels]
        known = [level for level in own if level is not None]
        before = [None if one is None or not digit else one[digit - 1] for one in levels]
        run += own != before
        alike = len(known) == len(own) and all(_alike(topology, level) for level in known)
        keys.append((frame.sizes[digit], run) if alike else (digit,))
    names = list(dict.fromkeys(keys))
    return tuple(names.index(key) for key in keys)


def _alike(topology: Topology, level: int) -> bool:
    """Whether the siblings of a level can be exchanged: no positions matter in it or outside."""
    if topology.levels[level].link.kind is not LinkKind.SWITCH:
        return False
    outside = [(j, topology.levels[j].link) for j in range(level)]
    return all(
        link.kind is LinkKind.SWITCH and not 1 < link.ports < topology.devices_under(j)
        for j, link in outside
    )


# What a permute costs at least, by how many digits it moves at each level.
# Let a permute move k digits that tell the entities of a level apart, and some further in.  Where
# it puts one of them in the place of another, some entity holds nothing that it needs.  Else each
# of them only changes places with digits further in: with a of them leaving and b joining, a + b >=
# k, the devices of an entity have a part 1 / max(size^a, size^b) of what they need.


def least_permute(
    topology: Topology, moved: Sequence[int] | None, size: int | None
) -> list[StepCostModel]:
    """Models of which the cheapest is no dearer than the permute.

    ``moved``: digits that change places, by level; None: not known.  ``size``: that of all digits;
    None: they differ.  Not for clusters with uplinks of their own.
    """
    if moved is None:
        levels = range(len(topology.levels))
        return [_model(topology, j, [1] * len(levels)) for j in levels]
    first = next(j for j, count in enumerate(moved) if count)
    crossing = [_crossing(topology, moved, j, size) for j in range(len(topology.levels))]
    meeting = range(first + 1) if quick_levels(topology) else (first,)
    return [_model(topology, j, crossing) for j in meeting]


def least_crossing(
    topology: Topology, level: int, crossing: int | None, size: int
) -> list[StepCostModel]:
    """Models of which the cheapest is no dearer than a permute over the border around ``level``.

    The crossing is that of :class:`p2smt.problems.redistribution.LevelCut`; None stands for two
    digits of the border that change places.  The messages may meet further out.
    """
    devices, link = topology.devices_under(level), topology.levels[level].link
    messages = devices if crossing is None else devices - devices // size**crossing
    use = LevelUse(level, ports=(((1, float(-(-messages // link.ports))),),), least_inside=1)
    return [
        step_model(topology, message_footprint(topology, 2, [first], (use,)), RequestKind.SEND)
        for first in range(level + 1)
    ]


def narrow(topology: Topology, level: int) -> bool:
    """Whether the devices of an entity of a level share ports."""
    link = topology.levels[level].link
    return link.kind is LinkKind.SWITCH and link.ports < topology.devices_under(level)


def _crossing(topology: Topology, moved: Sequence[int], level: int, size: int | None) -> int:
    """Messages that enter an entity of a level at least."""
    outside, inside = sum(moved[: level + 1]), sum(moved[level + 1 :])
    devices = topology.devices_under(level)
    if not outside:
        return 0
    if size is None:
        return 1
    held = devices // size ** -(-outside // 2) if inside else 0
    return max(1, devices - held)


def _model(topology: Topology, first: int, crossing: Sequence[int]) -> StepCostModel:
    """Messages that meet at level ``first``, so many of them over each uplink further in."""
    uses = []
    for j in range(first, len(topology.levels)):
        if not crossing[j]:
            continue
        link, under = topology.levels[j].link, topology.devices_under(j)
        if link.kind is LinkKind.SWITCH:
            load = under / link.ports if link.ports >= under else -(-crossing[j] // link.ports)
            uses.append(LevelUse(j, ports=(((1, float(load)),),), least_inside=1))
        elif j == first:
            uses.append(LevelUse(j, path=_one(topology, j), least_inside=1, closed_inside=1))
    footprint = message_footprint(topology, 2, [first], tuple(uses))
    return step_model(topology, footprint, RequestKind.SEND)


def _one(topology: Topology, level: int) -> float:
    """The least that one message puts on a link between siblings."""
    size = topology.levels[level].size
    first, one = np.zeros(1, dtype=np.int64), np.ones(1)
    loads = (worst_link(topology.levels[level], first, first + to, one) for to in range(1, size))
    return min(loads, default=math.inf)
