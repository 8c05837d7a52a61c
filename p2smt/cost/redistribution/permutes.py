"""What permutes load, for many of them at once, without a message being looked at.

Nearest sources leave, for every uplink, as many messages as the takers below it lack holders
(:mod:`p2smt.cost.loads.sources`).  Where an entity has one port, or a port for each device, that
count says all that the price needs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.loads.level_use import Footprint, LevelUse, message_footprint
from p2smt.cost.loads.routing import FloatArray
from p2smt.parallelism.placement import IntArray

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
