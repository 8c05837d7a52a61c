"""By size, what a library chooses for a communicator, and where another way should gain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from p2smt.cluster.allocation import check_stated
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective, Operation
from p2smt.cost.accuracy import PricedStep, PriceRange, outermost_crossed, price_range
from p2smt.cost.library.tuner import LibraryChoice, LibraryWay
from p2smt.cost.library.ways import carried, library_choice, library_model
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.cost.step_time import StepCostModel
from p2smt.errors import InputError
from p2smt.interop.tuners.choices import LARGEST_BYTES, Comm

SMALLEST, LARGEST = 2**8, 2**34
"""Sizes between which boundaries are sought; beyond them what holds at the end holds on."""
Pair = tuple[str, str]

OPERATIONS = {
    "broadcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
    "allgather": Collective.ALL_GATHER,
    "reducescatter": Collective.REDUCE_SCATTER,
    "allreduce": Collective.ALL_REDUCE,
}


@dataclass(frozen=True, slots=True)
class Region:
    """Sizes, both ends included, for which one thing holds."""

    first: int
    last: int
    found: Pair


def regions(at: Callable[[int], Pair]) -> tuple[Region, ...]:
    """Where what holds of a size changes, to the byte: between powers of two by bisection."""
    sizes = [2**k for k in range(SMALLEST.bit_length() - 1, LARGEST.bit_length())]
    starts, found = [0], [at(sizes[0])]
    for low, high in pairwise(sizes):
        start = low
        while (end := at(high)) != found[-1]:
            below, above = start, high
            while above - below > 1:
                middle = (below + above) // 2
                below, above = (middle, above) if at(middle) == found[-1] else (below, middle)
            start = above
            starts.append(above)
            found.append(at(above))
            if found[-1] == end and above == high:
                break
    ends = [start - 1 for start in starts[1:]] + [LARGEST_BYTES]
    return tuple(map(Region, starts, ends, found))


@dataclass(frozen=True, slots=True)
class CommMember:
    """A communicator and its devices."""

    comm: Comm
    devices: tuple[int, ...]


def members_of(topology: Topology, comm: Comm) -> CommMember:
    """A communicator on the first nodes of a cluster, on the first devices of each.

    Raises:
        InputError: the cluster has fewer nodes, or its nodes fewer devices.
    """
    per_node = topology.devices_under(topology.node_level)
    nodes = topology.devices // per_node
    if comm.nodes > nodes or comm.per_node > per_node:
        rule = f"does not fit {topology.name}, which has {nodes} nodes of {per_node} devices"
        raise InputError(f"--comms {comm}", rule, "give a smaller one, or a larger topology")
    rows = [node * per_node + i for node in range(comm.nodes) for i in range(comm.per_node)]
    return CommMember(comm, tuple(rows))


@dataclass(frozen=True, slots=True)
class CommScene:
    """One collective of one communicator, with all that prices it; ``able``: the ways it can run.

    Ways are named by their place in ``choice.ways``.
    """

    topology: Topology
    operation: Operation
    choice: LibraryChoice
    model: StepCostModel
    able: tuple[int, ...]
    level: int
    local: int

    @staticmethod
    def of(topology: Topology, member: CommMember, operation: Operation) -> CommScene:
        """That of a communicator alone on the cluster.

        Raises:
            InputError: nobody stated the bandwidth of a level that it crosses.
        """
        groups = np.array([member.devices], dtype=np.int64)
        level = outermost_crossed(topology, groups) or 0
        check_stated(topology, topology.names[level:])
        footprint = explicit_footprint(topology, groups, topology.known_library.joins_nodes)
        choice = library_choice(topology, footprint, operation)
        able = [
            i
            for i, way in enumerate(choice.ways)
            if carried(topology, footprint, operation, way) == way
        ]
        model = library_model(topology, footprint, operation)
        local = member.comm.per_node
        return CommScene(topology, operation, choice, model, tuple(able), level, local)

    def own(self, size: int) -> Pair:
        """What the library takes."""
        return pair_of(self.choice.ways[self.choice.pick(size)])

    def seconds(self, pair: Pair, size: int) -> float:
        """The predicted time of a pair that the library has for it."""
        names = [pair_of(way) for way in self.choice.ways]
        return self.model.ways[names.index(pair)].seconds(size)

    def gaining(self, size: int, margin: float | None, among: Collection[int]) -> int:
        """The fastest of these ways where it gains more than the margin, else the library's own.

        margin: a part of the library's own time; None: the ranges of both prices tell them apart.
        """
        own = self.choice.pick(size)
        best = min((*among, own), key=lambda i: self.model.ways[i].seconds(size))
        mine, other = self._range(own, size), self._range(best, size)
        if margin is None:
            gains = other.clearly_below(mine)
        else:
            gains = other.seconds < mine.seconds * (1 - margin)
        return best if gains else own

    def _range(self, index: int, size: int) -> PriceRange:
        seconds = self.model.ways[index].seconds(size)
        step = PricedStep(self.operation.value, size, seconds, self.level, self.local)
        return price_range(self.topology, step)


def pair_of(way: LibraryWay) -> Pair:
    """A way in the words of these files."""
    name = "ring" if way.algorithm is None else way.algorithm.value.replace("-", "_")
    return name, way.protocol


def own_regions(topology: Topology, member: CommMember, collective: str) -> Sequence[Region]:
    """What the library is predicted to take, by size."""
    return regions(CommScene.of(topology, member, OPERATIONS[collective]).own)


def gaining_regions(
    topology: Topology, member: CommMember, collective: str, margin: float | None
) -> Sequence[Region]:
    """The same where nothing is predicted to gain more than the margin, else what gains most."""
    scene = CommScene.of(topology, member, OPERATIONS[collective])
    ways = scene.choice.ways
    return regions(lambda size: pair_of(ways[scene.gaining(size, margin, scene.able)]))
