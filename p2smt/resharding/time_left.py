"""Proved lower bounds on the time that is left from a state to the target.

An entity (a device, a node, a rack) lacks what its devices need of the target and none of them
holds; of partial values it holds those of which it has every contribution.  Each element that it
lacks depends on data outside it, so that at least one element comes in for each, over its uplinks.
Where no switch reduces, an element of which m entities hold contributions and which k need takes
m + k - 2 messages between them: so many come in, over all uplinks together.
A step brings in no more than it is priced for: so the bound is never above the price of a step
plus the bound after it, and never above the price of any plan.

Entities whose devices are no box of digit values (below) are left out; single devices never are.
"""

from __future__ import annotations

import itertools
import math
import operator
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import CALL_NAMES, Algorithm, Topology
from p2smt.cost.link_bounds import bare_links, entity_rates
from p2smt.parallelism.placement import BoolArray, FloatArray, IntArray
from p2smt.resharding.endpoints import Ends, Splits
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.types import Mesh


class LinkBound:
    """Seconds that every plan from a state to ``target`` takes at least, by the links and calls.

    ``rates``: by default what no step's price beats.
    """

    def __init__(
        self,
        topology: Topology,
        frame: Frame,
        target: ArrayState,
        rates: EntryRates | None = None,
    ) -> None:
        self._frame = frame
        found = rates or priced_rates(topology)
        self._levels = []
        for level, least_s in enumerate(found.least_s):
            boxes = boxes_of(topology, frame, found.into[level], level)
            if len(boxes.rate):
                taking = found.into[level] if found.relayed else boxes.rate
                sums = np.inf if found.reducing[level] else float(taking.sum())
                here = _Level(Overlaps(frame, target, boxes), least_s, boxes.rate, sums)
                self._levels.append(here)

    def seconds(self, state: ArrayState) -> float:
        """The bound from one state: never above what any step costs plus the bound after it."""
        wire, least = 0.0, 0.0
        for level in self._levels:
            missing = level.overlaps.missing(state)
            if missing.any():
                wire = max(wire, float((missing / level.rate).max()), level.reduction_s(state))
                least = max(least, level.least_s)
        return wire * self._frame.element.item_bytes + least


@dataclass(frozen=True, slots=True)
class _Level:
    """The entities of a level: what they lack, the least seconds of a step, and their rates.

    ``sums`` is the rate into all together, infinite where switches may reduce.
    """

    overlaps: Overlaps
    least_s: float
    rate: FloatArray
    sums: float

    def reduction_s(self, state: ArrayState) -> float:
        """Seconds for a byte an element: all entities together, for their messages."""
        return self.overlaps.entering(state) / self.sums


def physical_bound_s(topology: Topology, ends: Ends) -> float:
    """Seconds that no way to move the data beats, by the links alone."""
    return LinkBound(topology, ends.frame, ends.target, hardware_rates(topology)).seconds(
        ends.source
    )


# Which values of the mesh's digits the devices of an entity have, where these form a box.


FREE = -1


@dataclass(frozen=True, slots=True)
class Boxes:
    """Entities of one level whose devices have a box of digit values in every order of devices.

    ``fixed[order][e, digit]`` is the value that all devices of entity e have, or FREE: every value
    occurs, with every value of the other free digits.  ``rate`` is into each entity, bytes per
    second.  ``kept``: which of the level's entities with devices these are.
    """

    fixed: tuple[IntArray, ...]
    rate: FloatArray
    kept: BoolArray


def boxes_of(topology: Topology, frame: Frame, into: FloatArray, level: int) -> Boxes:
    """The boxes of a level; ``into`` are rates of all its entities."""
    devices = np.array(sorted(frame.orders[0]), dtype=np.int64)
    names, starts, count = np.unique(
        devices // topology.devices_under(level), return_index=True, return_counts=True
    )
    places, fixed = frame.coordinates(), []
    kept = np.ones(len(names), dtype=bool)
    for order in frame.orders:
        here, is_box = _fixed(frame, places[np.argsort(np.array(order))], starts, count)
        kept &= is_box
        fixed.append(here)
    kept &= into[names] > 0
    return Boxes(tuple(one[kept] for one in fixed), into[names[kept]], kept)


def _fixed(
    frame: Frame, places: IntArray, starts: IntArray, count: IntArray
) -> tuple[IntArray, BoolArray]:
    """Fixed values, and whether the entity's devices fill the box that these leave.

    They do if there are as many of them as in the box, since no two have the same values.
    """
    low = np.minimum.reduceat(places, starts, axis=0)
    high = np.maximum.reduceat(places, starts, axis=0)
    fixed = np.where(low == high, low, FREE)
    ways = np.where(low == high, 1, np.array(frame.sizes)).prod(axis=1)
    return fixed, np.asarray(ways == count)


# How much of what the devices of an entity need do they hold already, dimension by dimension.
# The devices of a box of digit values hold, and need, every combination of what they do in each
# dimension, because no digit shards two; so counts multiply.


_Key = tuple[int, tuple[int, ...], int]


class Overlaps:
    """Elements that the entities of one level need of a target and do not hold, by state."""

    def __init__(self, frame: Frame, target: ArrayState, boxes: Boxes) -> None:
        self._frame, self._target, self._boxes = frame, target, boxes
        self._held: dict[_Key, FloatArray] = {}
        self._partial: dict[tuple[tuple[int, ...], int], FloatArray] = {}
        self._spread: dict[tuple[tuple[int, ...], int], float] = {}
        self._alike = bool(boxes.kept.all()) and all(map(_same_fixed, boxes.fixed))
        self._needed = self._both(target)

    def missing(self, state: ArrayState) -> FloatArray:
        """Elements that each entity lacks; contributions to the target's partial values count."""
        return self._needed - self._both(state)

    def entering(self, state: ArrayState) -> float:
        """Elements that come into all entities together while so many digits are partial.

        An element whose contributions m entities have, each its own, and k need: m - 1 messages
        at least until the first has all, and one into each of the other k - 1 after that.  0 where
        an entity has all contributions, or entities are left out or differ in some order.
        """
        key = (state.partial, state.order)
        found = self._spread.get(key)
        if found is None:
            found = self._spread[key] = self._entering(*key)
        return found

    def _entering(self, partial: tuple[int, ...], order: int) -> float:
        if not self._alike:
            return 0.0
        fixed, target = self._boxes.fixed[order] != FREE, self._target.partial
        apart = self._frame.ways([d for d in partial if fixed[0, d] and d not in target])
        every = math.prod(self._frame.shape) * self._frame.ways(target)
        return every * (apart - 2) + float(self._needed.sum()) if apart > 1 else 0.0

    def _both(self, state: ArrayState) -> FloatArray:
        """Elements that each entity needs and holds."""
        key = (state.partial, state.order)
        found = self._partial.get(key)
        if found is None:
            found = self._partial[key] = self._contributions(state)
        for dim, digits in enumerate(state.dims):
            found = found * self._along(dim, digits, state.order)
        return found

    def _contributions(self, state: ArrayState) -> FloatArray:
        """Partial values of the target that an entity has whole, for each element that it has."""
        held = self._boxes.fixed[state.order]
        needed = self._boxes.fixed[self._target.order]
        found = np.ones(len(held))
        for digit in state.partial:
            have, want, size = held[:, digit], needed[:, digit], self._frame.digits[digit].size
            if digit not in self._target.partial:
                found *= have == FREE
            else:
                both = np.where((have == FREE) & (want == FREE), size, 1)
                found *= np.where((have == want) | (have == FREE) | (want == FREE), both, 0)
        return found

    def _along(self, dim: int, digits: tuple[int, ...], order: int) -> FloatArray:
        """Indices of a dimension that each entity needs and holds."""
        key = (dim, digits, order)
        found = self._held.get(key)
        if found is None:
            held, needed = self._boxes.fixed[order], self._boxes.fixed[self._target.order]
            chunks = index_blocks(self._frame, dim, digits)
            wanted = index_blocks(self._frame, dim, self._target.dims[dim])
            found = common_indices(chunks, wanted, held, needed)
            self._held[key] = found
        return found


def _same_fixed(fixed: IntArray) -> bool:
    """Whether the same digits are fixed in every entity."""
    is_fixed = fixed != FREE
    return bool((is_fixed == is_fixed[:1]).all())


@dataclass(frozen=True, slots=True)
class IndexBlocks:
    """A dimension cut by digits: where each block starts and ends, and each digit's value in it."""

    start: IntArray
    end: IntArray
    digits: tuple[int, ...]
    values: IntArray


def index_blocks(frame: Frame, dim: int, digits: tuple[int, ...]) -> IndexBlocks:
    """IndexBlocks of chunks, each the first of as many equal ones as there are, rounded up."""
    start, end = np.zeros(1, dtype=np.int64), np.array([frame.shape[dim]])
    for digit in digits:
        size = frame.digits[digit].size
        each = -(-(end - start) // size)
        starts = np.minimum(start[:, None] + np.arange(size) * each[:, None], end[:, None])
        end = np.minimum(starts + each[:, None], end[:, None]).ravel()
        start = starts.ravel()
    sizes = [frame.digits[digit].size for digit in digits]
    values = np.indices(sizes, dtype=np.int64).reshape(len(sizes), len(start)).T
    return IndexBlocks(start, end, digits, values)


def common_indices(
    one: IndexBlocks, other: IndexBlocks, held: IntArray, needed: IntArray
) -> FloatArray:
    """Indices that each entity has by ``one``, of what it has by ``other``.

    ``held`` and ``needed``: the values of all digits, or FREE, that its devices have by each.
    """
    if not (held[:, one.digits] == FREE).any() and not (needed[:, other.digits] == FREE).any():
        return _single_common(one, other, held, needed)
    cuts = np.unique(np.concatenate([one.start, other.start, one.end[-1:]]))
    both = _has(one, held, cuts[:-1]) & _has(other, needed, cuts[:-1])
    return np.asarray(both @ np.diff(cuts).astype(np.float64))


def _single_common(
    one: IndexBlocks, other: IndexBlocks, held: IntArray, needed: IntArray
) -> FloatArray:
    """The same where each entity has one block by each."""
    first, second = _block(one, held), _block(other, needed)
    start = np.maximum(one.start[first], other.start[second])
    end = np.minimum(one.end[first], other.end[second])
    return np.asarray(np.maximum(end - start, 0), dtype=np.float64)


def _block(chunks: IndexBlocks, fixed: IntArray) -> IntArray:
    """The block with these values of its digits."""
    found = np.zeros(len(fixed), dtype=np.int64)
    for place, digit in enumerate(chunks.digits):
        found = found * (chunks.values[-1, place] + 1) + fixed[:, digit]
    return found


def _has(chunks: IndexBlocks, fixed: IntArray, indices: IntArray) -> BoolArray:
    """Whether each entity has each of these indices: shape (entities, indices)."""
    block = np.searchsorted(chunks.start, indices, side="right") - 1
    found = np.ones((len(fixed), len(indices)), dtype=bool)
    for place, digit in enumerate(chunks.digits):
        here = fixed[:, digit, None]
        found &= (here == FREE) | (here == chunks.values[block, place])
    return found


# At best how fast data come into the entities of each level, and what the first byte costs.


@dataclass(frozen=True, slots=True)
class EntryRates:
    """Bytes per second into each entity of each level, and the least seconds of a step by level.

    ``into[j][e]``: whatever comes into entity e of level j, comes over its uplinks or, at a ring,
    torus or full mesh, over the links from its siblings or the uplinks of what encloses it.
    ``least_s[j]``: any step of which a message leaves an entity of level j costs so much beside
    the time of its bytes.  ``reducing[j]``: switches there or further out reduce what passes.
    ``relayed``: data may pass devices that have no part in the array.
    """

    into: tuple[FloatArray, ...]
    least_s: tuple[float, ...]
    reducing: tuple[bool, ...]
    relayed: bool = False


def priced_rates(topology: Topology) -> EntryRates:
    """Rates that no step's price beats."""
    if not topology.library:
        return EntryRates(entity_rates(topology), _least_hops(topology), _reducing(topology))
    links = bare_links(topology, least=0.0)
    return EntryRates(entity_rates(links), _least_calls(topology), _reducing(links))


def hardware_rates(topology: Topology) -> EntryRates:
    """Rates that the links alone allow: nothing but bytes."""
    links = bare_links(topology)
    nothing = (0.0,) * len(topology.levels)
    return EntryRates(entity_rates(links), nothing, _reducing(links), relayed=True)


def _reducing(topology: Topology) -> tuple[bool, ...]:
    """By level; the algorithm must be one of the topology's."""
    known = Algorithm.IN_SWITCH in topology.known_algorithms
    here = (known and level.link.in_switch_members > 0 for level in topology.levels)
    return tuple(itertools.accumulate(here, operator.or_))


def _least_hops(topology: Topology) -> tuple[float, ...]:
    """A message that leaves an entity pays a hop there or further out, where levels have any."""
    found, least = [], np.inf
    for level in topology.levels:
        if level.size > 1:
            least = min(least, level.link.latency_s)
        found.append(0.0 if np.isinf(least) else least)
    return tuple(found)


def _least_calls(topology: Topology) -> tuple[float, ...]:
    """The cheapest call of the library, between nodes where the level joins them."""
    library, node = topology.known_library, topology.node_level
    measured = dict(topology.calls)
    on_s = library.on_s(topology.levels[-1].link.fabric)
    call_s = min(measured.get(name, library.call_s(name) + on_s) for name in CALL_NAMES)
    across = library.across_s(topology.levels[node].link.fabric) if node >= 0 else 0.0
    return tuple(
        (call_s + (across if j <= node else 0.0)) * topology.call_factor
        for j in range(len(topology.levels))
    )


# Where a cluster's levels cut the axes of a mesh.


def level_splits(topology: Topology, mesh: Mesh) -> Splits:
    """Per axis its factors at the levels, outermost first, those of 1 left out.

    Of a mesh whose devices a placement matrix gave these are the matrix's rows.  A level cuts an
    axis after its least part that alone says, of the axis, under which entity a device is.
    """
    devices = mesh.device_array()
    widths = [topology.devices_under(level) for level in range(len(topology.levels))]
    return tuple(_factors(devices, axis, widths) for axis in range(len(mesh.axes)))


def _factors(devices: IntArray, axis: int, widths: list[int]) -> tuple[int, ...]:
    before, found = 1, []
    for width in widths:
        part = _least_part(np.moveaxis(devices // width, axis, 0))
        if part > before:
            found.append(part // before)
            before = part
    return tuple(found) or (1,)


def _least_part(entities: IntArray) -> int:
    """The least divisor k of the first axis such that its k blocks have one entity each.

    Such divisors are closed under gcd, and one of an entity is one of every entity around it, so
    that each divides those of the levels further in.
    """
    size = len(entities)
    for part in range(1, size + 1):
        if size % part == 0:
            blocks = entities.reshape(part, size // part, *entities.shape[1:])
            if (blocks == blocks[:, :1]).all():
                return part
    return size
