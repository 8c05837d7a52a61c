"""Time of the steps of a redistribution: all groups at once, priced like every other collective."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import groups_model, step_model
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.cost.loads.level_use import Footprint, LevelUse, message_footprint
from p2smt.cost.step_time import StepCostModel, StepTime
from p2smt.errors import InputError
from p2smt.parallelism.placement import FloatArray, IntArray
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import ArrayStep, StepKind
from p2smt.result import ROUNDING

_OPERATIONS: dict[StepKind, Operation] = {
    StepKind.ALL_GATHER: Collective.ALL_GATHER,
    StepKind.ALL_TO_ALL: RequestKind.ALL_TO_ALL,
    StepKind.REDUCE_SCATTER: Collective.REDUCE_SCATTER,
    StepKind.ALL_REDUCE: Collective.ALL_REDUCE,
}


class StepPrices:
    """Prices of the steps of one frame on a topology; what steps share is found once.

    A collective's price depends on its kind, the set of moved digits, the order of devices and the
    payload; members of a group are in the order of mesh positions.

    ``all_proved``: of every permute priced until now no choice of senders is faster than the one
    that was priced, so far as latency goes.  ``least``: permutes have the price that no choice
    beats, whether one has it or not.

    Raises:
        InputError: the topology lacks a device of the mesh.
    """

    def __init__(self, topology: Topology, frame: Frame, *, least: bool = False) -> None:
        _check_devices(topology, frame)
        self.topology, self.frame, self._least = topology, frame, least
        self._models: dict[tuple[StepKind, tuple[int, ...], int], StepCostModel] = {}
        self._blocks = BlockNumbers(frame)
        self._loads = None
        if counts_suffice(topology):
            self._loads = PermuteLoads(topology, self._blocks.devices)
        self._sends: dict[object, StepCostModel] = {}
        self._choice = SenderChoice(topology, self._blocks.devices)
        self._chosen: dict[tuple[bytes, bytes, int], Senders] = {}
        self.all_proved = True

    @cached_property
    def one_permute_suffices(self) -> bool:
        """Whether two permutes in a row are never cheaper than one that does what both do."""
        return one_suffices(self.topology)

    def collective(
        self, kind: StepKind, digits: tuple[int, ...], payload_bytes: float, order: int = 0
    ) -> StepTime:
        """Time of a collective over the groups of these (ascending) digits."""
        key = (kind, digits, order)
        found = self._models.get(key)
        if found is None:
            groups = self.frame.groups(digits, order)
            found = self._models[key] = groups_model(self.topology, [groups], _OPERATIONS[kind])
        return found.time(payload_bytes)

    def permute(self, before: ArrayState, after: ArrayState) -> StepTime:
        """Time of a permute, by the fastest choice of senders known."""
        payload = self.frame.local_bytes(before)
        if self._choice.matters:
            chosen = self._senders(before, after)
            return replace(chosen.time, seconds=chosen.least_s) if self._least else chosen.time
        if self._loads is None:
            return self.explicit_send_model(before, after).time(payload)
        blocks, held = self._blocks.count(before), self._blocks.of(before)
        loads = self._loads.loads(held, self._blocks.of(after)[None, :], blocks)
        return self._counted_send(loads[0]).time(payload)

    def permutes(self, before: ArrayState, afters: Sequence[ArrayState]) -> FloatArray:
        """Seconds of permutes from one state to each of several."""
        if self._loads is None or self._choice.matters or not afters:
            return np.array([self.permute(before, after).seconds for after in afters])
        blocks, held = self._blocks.count(before), self._blocks.of(before)
        loads = self._loads.loads(held, self._blocks.of_many(afters), blocks)
        rows = loads.reshape(len(loads), -1)
        kinds, where = np.unique(rows, axis=0, return_inverse=True)
        payload = self.frame.local_bytes(before)
        models = (self._counted_send(kind.reshape(2, -1)) for kind in kinds)
        return np.array([model.time(payload).seconds for model in models])[where.ravel()]

    def _counted_send(self, loads: FloatArray) -> StepCostModel:
        key = loads.tobytes()
        found = self._sends.get(key)
        if found is None:
            footprint = counted_footprint(self.topology, loads)
            found = self._sends[key] = step_model(self.topology, footprint, RequestKind.SEND)
        return found

    def _senders(self, before: ArrayState, after: ArrayState) -> Senders:
        """The senders where others than the nearest may be faster."""
        held, taken = self._blocks.of(before), self._blocks.of(after)
        payload = self.frame.local_bytes(before)
        key = (held.tobytes(), taken.tobytes(), payload)
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = self._choice.fastest(held, taken, payload)
            self.all_proved &= found.time.seconds <= found.least_s * (1 + ROUNDING)
        return found

    def explicit_send_model(self, before: ArrayState, after: ArrayState) -> StepCostModel:
        """What the messages of a permute cost, found message by message."""
        source, target = self.messages(before, after)
        apart = source != target
        footprint = explicit_send(self.topology, source[apart], target[apart])
        found = self._sends.get(footprint)
        if found is None:
            found = self._sends[footprint] = step_model(self.topology, footprint, RequestKind.SEND)
        return found

    def messages(self, before: ArrayState, after: ArrayState) -> tuple[IntArray, IntArray]:
        """Who sends to whom in a permute: devices, a message to each (some send to themselves).

        Receivers are ascending.
        """
        devices = self._blocks.devices
        if self._choice.matters:
            return self._senders(before, after).sources, devices
        held, taken = self._blocks.of(before), self._blocks.of(after)
        return nearest_sources(self.topology, devices, held, taken), devices

    def step(self, step: ArrayStep) -> StepTime:
        """Time of any step; a slice takes none."""
        if step.kind is StepKind.PERMUTE:
            return self.permute(step.before, step.after)
        if step.kind is StepKind.SLICE:
            silent = (0.0,) * len(self.topology.levels)
            return StepTime(0.0, 0.0, "none", "", None, 0.0, 0.0, silent)
        return self.collective(
            step.kind, step.moved, payload_bytes(self.frame, step), step.before.order
        )


def _check_devices(topology: Topology, frame: Frame) -> None:
    lacking = sorted(set(frame.orders[0]) - topology.places)
    if lacking:
        given = f"a mesh on device {lacking[0]}"
        rule = f"{topology.name} has {topology.installed} devices, and this is none of them"
        raise InputError(given, rule, "give a mesh of its devices, or more of the topology")


def payload_bytes(frame: Frame, step: ArrayStep) -> int:
    """What the cost model takes for a step: :func:`moved_bytes` of the largest local arrays."""
    before, after = frame.local_bytes(step.before), frame.local_bytes(step.after)
    return moved_bytes(step.kind, frame.ways(step.moved), before, after)


def moved_bytes(kind: StepKind, ways: int, before: int, after: int) -> int:
    """What the cost model takes for a step of groups of so many ways; a slice: 0.

    An all-gather's output, a permute's block, else the input.  Of uneven chunks the largest counts
    for each member: a group takes as long as its busiest, and one without elements of its own
    receives all the others'.
    """
    match kind:
        case StepKind.SLICE:
            return 0
        case StepKind.ALL_GATHER:
            return max(after, ways * before)
        case StepKind.REDUCE_SCATTER:
            return max(before, ways * after)
        case StepKind.ALL_TO_ALL:
            return max(before, after)
        case StepKind.PERMUTE | StepKind.ALL_REDUCE:
            return before


# Which block, and which part of its contributions, each device has in a state: as a number.


class BlockNumbers:
    """Numbers of blocks in the states of a frame, by device.

    ``devices`` are those of the frame, ascending; arrays by device have their order.  States of
    the same local shape and partial digits number the blocks alike.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame, self._sizes = frame, frame.sizes
        self.devices = np.array(sorted(frame.orders[0]), dtype=np.int64)
        places = frame.coordinates()
        self._places = [places[np.argsort(np.array(order))] for order in frame.orders]

    def count(self, state: ArrayState) -> int:
        """How many blocks, with their contributions, there are."""
        return self.frame.ways([*(d for dim in state.dims for d in dim), *state.partial])

    def of(self, state: ArrayState) -> IntArray:
        """The number that each device has."""
        return np.asarray(self._places[state.order] @ np.array(self._weights(state)))

    def of_many(self, states: Sequence[ArrayState]) -> IntArray:
        """The same for several states, a row for each."""
        weights = np.array([self._weights(state) for state in states])
        found = np.empty((len(states), len(self.devices)), dtype=np.int64)
        orders = np.array([state.order for state in states])
        for order, places in enumerate(self._places):
            rows = orders == order
            found[rows] = weights[rows] @ places.T
        return found

    def _weights(self, state: ArrayState) -> list[int]:
        """What each digit's value counts."""
        found, weight = [0] * len(self._sizes), 1
        for digits in (state.partial, *reversed(state.dims)):
            for digit in reversed(digits):
                found[digit] = weight
                weight *= self._sizes[digit]
        return found


# What permutes load, for many of them at once, without a message being looked at.
# Nearest sources leave, for every uplink, as many messages as the takers below it lack holders.
# Where an entity has one port, or a port for each device, that count says all that the price needs.


_MOST_CELLS = 2**22
"""So many counts are kept at once."""


def counts_suffice(topology: Topology) -> bool:
    """Whether the number of messages over each uplink is all that a permute's price needs."""
    return all(
        level.link.kind is LinkKind.SWITCH
        and (level.link.ports == 1 or level.link.ports >= topology.devices_under(j))
        for j, level in enumerate(topology.levels)
    )


def one_suffices(topology: Topology) -> bool:
    """Whether no two permutes in a row are cheaper than the one that does what both do.

    Over no uplink has it more messages than both.  So it is true where counts suffice and no
    protocol's latency rises inwards, with one more condition, as two permutes may run by two
    protocols: if the first crosses an outer level and the second an inner one, the one permute by
    the second's protocol must not lose more at the outer level than the second pays at the inner.
    (Not at the innermost level: what crosses an outer one loads the devices' ports already.)
    """
    if not counts_suffice(topology):
        return False
    latency = _latencies(topology)
    return not quick_levels(topology) and not any(
        latency[outer].get(name, 0.0) > min(latency[outer].values()) + seconds
        for outer, inner in itertools.combinations(list(latency)[:-1], 2)
        for name, seconds in latency[inner].items()
    )


def quick_levels(topology: Topology) -> tuple[frozenset[int], ...]:
    """Sets of levels of at most so much latency that lack a level further in than one of them.

    There are none where no protocol's latency rises inwards: then messages that meet at an outer
    level anyway pay nothing for meeting at inner ones, too.
    """
    latency, found = _latencies(topology), []
    for name in {name: None for of_level in latency.values() for name in of_level}:
        seconds = {j: of.get(name, next(iter(of.values()))) for j, of in latency.items()}
        for limit in sorted(set(seconds.values()))[:-1]:
            quick = frozenset(j for j in seconds if seconds[j] <= limit)
            if any(j > min(quick) for j in seconds if j not in quick):
                found.append(quick)
    return tuple(dict.fromkeys(found))


def _latencies(topology: Topology) -> dict[int, dict[str, float]]:
    """Seconds, by level and protocol, of messages that meet at a level, without their bytes."""
    found = {}
    for j, level in enumerate(topology.levels):
        if level.size > 1:
            footprint = message_footprint(topology, 2, [j], ())
            model = step_model(topology, footprint, RequestKind.SEND)
            found[j] = {way.protocol: way.seconds(0.0) for way in model.ways}
    return found


@dataclass(frozen=True, slots=True)
class _Uplinks:
    """The uplinks of a level; ``entity`` numbers those that have devices, in their order.

    ``starts`` is where each begins among the devices, ``slowness`` what a message takes there as a
    multiple of the level's own uplink; ``share``: the part of a message that each port carries,
    and ``alone``: whether each device has a port of its own.
    """

    entity: IntArray
    starts: IntArray
    slowness: FloatArray
    share: float
    alone: bool

    @staticmethod
    def of(topology: Topology, devices: IntArray, j: int) -> _Uplinks:
        """Those of a level over these ascending devices."""
        under, ports = topology.devices_under(j), topology.levels[j].link.ports
        names, starts, entity = np.unique(devices // under, return_index=True, return_inverse=True)
        parts = topology.uplink_parts(j)
        slowness = np.ones(len(names)) if parts is None else 1 / np.array(parts)[names]
        alone = ports >= under
        return _Uplinks(entity, starts, slowness, under / ports if alone else 1.0, alone)

    def load(self, leaving: IntArray) -> FloatArray:
        """The worst port's load, for each permute: ``leaving`` are messages by entity."""
        most = np.minimum(leaving, 1) if self.alone else leaving
        return np.asarray(self.share * (most * self.slowness).max(axis=1), dtype=np.float64)


class PermuteLoads:
    """Loads of permutes among ascending devices of a topology whose counts suffice."""

    def __init__(self, topology: Topology, devices: IntArray) -> None:
        self._uplinks = [_Uplinks.of(topology, devices, j) for j in range(len(topology.levels))]

    def loads(self, held: IntArray, taken: IntArray, blocks: int) -> FloatArray:
        """Per permute and level the worst port's load in messages, and whether messages meet there.

        ``held``: the block of each device; ``taken``: those that they get, a row for each permute;
        ``blocks``: how many blocks there are.  Shape (permutes, 2, levels).
        """
        chunk = max(1, _MOST_CELLS // (len(held) * max(1, min(blocks, len(held)))))
        parts = [
            self._loads(held, taken[start : start + chunk], blocks)
            for start in range(0, len(taken), chunk)
        ]
        return np.concatenate(parts)

    def _loads(self, held: IntArray, taken: IntArray, blocks: int) -> FloatArray:
        found = np.zeros((len(taken), 2, len(self._uplinks)))
        outside = np.zeros(len(taken), dtype=np.int64)
        for j, uplinks in enumerate(self._uplinks):
            leaving = _leaving(uplinks, held, taken, blocks)
            total = leaving.sum(axis=1)
            found[:, 0, j] = uplinks.load(leaving)
            found[:, 1, j] = total > outside
            outside = total
        return found


def counted_footprint(topology: Topology, loads: FloatArray) -> Footprint:
    """The footprint of a permute with these loads: shape (2, levels)."""
    levels = range(len(topology.levels))
    uses = tuple(
        LevelUse(j, ports=(((1, float(loads[0, j])),),), least_inside=1)
        for j in levels
        if loads[0, j]
    )
    return message_footprint(topology, 2, [j for j in levels if loads[1, j]], uses)


def _leaving(uplinks: _Uplinks, held: IntArray, taken: IntArray, blocks: int) -> IntArray:
    """Messages out of each entity, which are as many as those into it: (permutes, entities)."""
    if len(uplinks.starts) == len(held):
        return np.asarray(held != taken, dtype=np.int64)
    if blocks == len(held):
        return _single_leaving(uplinks, held, taken)
    entities = len(uplinks.starts)
    if len(taken) == 1 and entities * blocks > 16 * len(held):
        return _sparse_leaving(uplinks, held, taken[0], blocks)
    holders = np.bincount(uplinks.entity * blocks + held, minlength=entities * blocks)
    rows = np.arange(len(taken))[:, None] * entities + uplinks.entity
    takers = np.bincount((rows * blocks + taken).ravel(), minlength=len(taken) * holders.size)
    lacking = takers.reshape(len(taken), entities, blocks) - holders.reshape(entities, blocks)
    return np.asarray(np.maximum(lacking, 0).sum(axis=2), dtype=np.int64)


def _single_leaving(uplinks: _Uplinks, held: IntArray, taken: IntArray) -> IntArray:
    """The same where each block has one holder."""
    holder = np.empty_like(held)
    holder[held] = uplinks.entity
    apart = holder[taken] != uplinks.entity
    return np.asarray(np.add.reduceat(apart, uplinks.starts, axis=1, dtype=np.int64))


def _sparse_leaving(uplinks: _Uplinks, held: IntArray, taken: IntArray, blocks: int) -> IntArray:
    """The same for one permute, with counts of the (entity, block) pairs that there are."""
    base = uplinks.entity * blocks
    keys, where = np.unique(np.concatenate([base + held, base + taken]), return_inverse=True)
    takers = np.bincount(where[len(held) :], minlength=len(keys))
    lacking = np.maximum(takers - np.bincount(where[: len(held)], minlength=len(keys)), 0)
    found = np.bincount(keys // blocks, weights=lacking, minlength=len(uplinks.starts))
    return found.astype(np.int64)[None, :]


# Which holder sends a block, where a level has more latency than one outside it.
# The nearest holders load every uplink least.  They pay the latency of the levels at which they and
# their takers part, and there others may be faster.  So besides the nearest those are priced whose
# messages meet only at levels of at most so much latency, for every such limit; the fastest send.
#
# What any choice takes is bounded by limits, too: within one, messages pay no less latency, and
# over the uplinks of a level go no fewer than the fewest that may.  Where that bound is the time of
# the choice, no other is faster.


@dataclass(frozen=True, slots=True)
class Senders:
    """Who sends to each device, how long that takes, and what any choice takes at least."""

    sources: IntArray
    time: StepTime
    least_s: float


class SenderChoice:
    """The choice among these (ascending) devices of a topology."""

    def __init__(self, topology: Topology, devices: IntArray) -> None:
        self._topology, self._devices = topology, devices
        self._limits = quick_levels(topology)
        counted = counts_suffice(topology) and not topology.library and topology.hosts is None
        self._loads = PermuteLoads(topology, devices) if counted else None

    @property
    def matters(self) -> bool:
        """Whether others than the nearest holders may be faster, for their latency."""
        return bool(self._limits)

    def fastest(self, held: IntArray, taken: IntArray, payload_bytes: int) -> Senders:
        """The senders of the blocks ``held`` to those who take them."""
        nearest = nearest_sources(self._topology, self._devices, held, taken)
        best, time = nearest, self._time(nearest, payload_bytes)
        least_s = time.seconds
        met = set(self._met(nearest).tolist())
        for at in self._limits:
            if met <= at:
                continue  # the nearest are within the limit, and load the least
            sources = self._within(held, taken, at, self._busy())
            if sources is not None:
                other = self._time(sources, payload_bytes)
                best, time = (best, time) if time.seconds <= other.seconds else (sources, other)
                least_s = min(least_s, self._least_s(held, taken, at, sources, payload_bytes))
        return Senders(best, time, least_s)

    def _within(
        self, held: IntArray, taken: IntArray, at: frozenset[int], weights: FloatArray
    ) -> IntArray | None:
        """The sources of least weight whose messages meet at these levels only."""
        allowed = [*(j in at for j in range(len(weights))), True]
        weighed = np.where(allowed, np.append(weights, 0.0), np.inf)
        return sources_meeting(self._topology, self._devices, held, taken, weighed)

    def _busy(self) -> FloatArray:
        """How long a message keeps the uplinks of all levels busy, by where it meets."""
        levels = self._topology.levels
        each = [
            self._topology.devices_under(j) / (level.link.ports * level.link.bandwidth_bytes_per_s)
            for j, level in enumerate(levels)
        ]
        return np.cumsum(each[::-1])[::-1]

    def _met(self, sources: IntArray) -> IntArray:
        """The levels at which some message meets."""
        found = np.unique(meeting_levels(self._topology, sources, self._devices))
        return found[found < len(self._topology.levels)]

    def _time(self, sources: IntArray, payload_bytes: int) -> StepTime:
        apart = sources != self._devices
        footprint = explicit_send(self._topology, sources[apart], self._devices[apart])
        return step_model(self._topology, footprint, RequestKind.SEND).time(payload_bytes)

    def _least_s(
        self,
        held: IntArray,
        taken: IntArray,
        at: frozenset[int],
        found: IntArray,
        payload_bytes: int,
    ) -> float:
        """What every choice within a limit takes at least, of which one was ``found``."""
        if self._loads is None:
            return 0.0
        loads = self._loads.loads(held, taken[None, :], int(held.max()) + 1)[0]
        for j in range(len(self._topology.levels)):
            loads[0, j] = max(loads[0, j], self._fewest(held, taken, at, j))
        loads[1] = 0.0
        loads[1, self._met(found)] = 1.0
        footprint = counted_footprint(self._topology, loads)
        model = step_model(self._topology, footprint, RequestKind.SEND)
        return model.time(payload_bytes).seconds

    def _fewest(self, held: IntArray, taken: IntArray, at: frozenset[int], level: int) -> float:
        """The load of a level's busiest port, if the fewest messages are spread evenly."""
        levels = len(self._topology.levels)
        crossing = (np.arange(levels) <= level).astype(float)
        sources = self._within(held, taken, at, crossing)
        assert sources is not None
        under, ports = self._topology.devices_under(level), self._topology.levels[level].link.ports
        messages = int((sources // under != self._devices // under).sum())
        if ports >= under:
            return under / ports * min(messages, 1)
        return -(-messages // len(np.unique(self._devices // under)))


# Who sends a block to whom, where it has as many holders as takers: the nearest first.
# Entities are laminar: matching inside the innermost ones first leaves, for every uplink at once,
# no more messages than its takers lack holders, the least that any choice can leave.  It is no
# choice that pays the least latency, where that of a level is more than that of one outside it:
# then a holder further away may answer sooner.


def nearest_sources(
    topology: Topology, devices: IntArray, held: IntArray, taken: IntArray
) -> IntArray:
    """The device that sends to each of these devices, which are ascending.

    ``held[i]`` and ``taken[i]`` number the block that ``devices[i]`` has, and the one it gets;
    each block has as many holders as takers.
    """
    source = np.full(len(held), -1, dtype=np.int64)
    sending, taking = np.arange(len(held)), np.arange(len(held))
    widths = [topology.devices_under(j) for j in reversed(range(len(topology.levels)))]
    for under in [*widths, topology.devices]:
        entity = devices // under
        count = int(entity[-1]) + 1
        givers = _numbered(held[sending] * count + entity[sending])
        takers = _numbered(taken[taking] * count + entity[taking])
        _, first, second = np.intersect1d(givers, takers, assume_unique=True, return_indices=True)
        source[taking[second]] = sending[first]
        sending, taking = np.delete(sending, first), np.delete(taking, second)
        if not len(sending):
            break
    return np.asarray(devices[source], dtype=np.int64)


def _numbered(key: IntArray) -> IntArray:
    """A number for each (key, how often it came before): no two are equal."""
    order = np.argsort(key, kind="stable")
    places = np.arange(len(key))
    fresh = np.diff(key[order], prepend=-1) != 0
    before = np.empty_like(places)
    before[order] = places - np.maximum.accumulate(np.where(fresh, places, 0))
    return np.asarray(key * (len(key) + 1) + before, dtype=np.int64)


def sources_meeting(
    topology: Topology, devices: IntArray, held: IntArray, taken: IntArray, weights: FloatArray
) -> IntArray | None:
    """The sources that weigh least together; None: there are none that may send.

    ``weights[j]`` is that of a message between siblings of level j, infinite where none may meet
    there; the last one that of a device to itself.  The rest is that of :func:`nearest_sources`.
    """
    from scipy.optimize import linear_sum_assignment  # not loaded where the nearest send

    source = np.empty(len(held), dtype=np.int64)
    for block in np.unique(held):
        holders, takers = np.flatnonzero(held == block), np.flatnonzero(taken == block)
        meeting = meeting_levels(topology, devices[takers][:, None], devices[holders][None, :])
        try:
            rows, columns = linear_sum_assignment(weights[meeting])
        except ValueError:  # no choice has a finite weight
            return None
        source[takers[rows]] = holders[columns]
    return np.asarray(devices[source], dtype=np.int64)


def meeting_levels(topology: Topology, one: IntArray, other: IntArray) -> IntArray:
    """The level at whose siblings two devices part; the number of levels: they are the same."""
    found = np.full(np.broadcast_shapes(one.shape, other.shape), len(topology.levels))
    for j in reversed(range(len(topology.levels))):
        under = topology.devices_under(j)
        found[one // under != other // under] = j
    return found
