"""A communication library as a value: its algorithms, protocols, costs and rule of choice.

A topology names hardware, a library what runs on it.  Choosing and pricing are two things: the
library's own rule (``formula``, ``ladders``) says which algorithm and protocol run; ``calls``,
``hops`` and ``protocols`` are what the cost model prices that with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from p2smt.cluster.link import NETWORK
from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Collective
from p2smt.cost.algorithms import Operation
from p2smt.cost.library.formula import Formula
from p2smt.cost.library.outside import (
    POINT_TO_POINT,
    AddedAlgorithm,
    LibraryAlgorithm,
    added_family,
)

INSIDE, ACROSS = "inside", "network"
"""Names of the hops that hold for fabrics without hops of their own."""
_FAMILY = {
    Algorithm.TREE: "tree",
    Algorithm.NVLS: "nvls",
    Algorithm.NVLS_TREE: "nvls",
    Algorithm.PAT: "pat",
    Algorithm.RING: "ring",
}


def family_of(algorithm: LibraryAlgorithm | None) -> str:
    """The family that lists an algorithm's hops; None: point to point."""
    if isinstance(algorithm, AddedAlgorithm):
        return added_family(algorithm)
    return POINT_TO_POINT if algorithm is None else _FAMILY.get(algorithm, POINT_TO_POINT)


def hop_families(family: str) -> tuple[str, ...]:
    """Whose hops a family has: its own, else those of messages from peer to peer, or a ring's."""
    return (family, POINT_TO_POINT, "ring")


class NodeCount(Enum):
    """How many nodes a group spans."""

    ONE = "one"
    SEVERAL = "several"
    ANY = "any"

    def holds(self, nodes: int) -> bool:
        """Whether it is so for a group that spans so many."""
        return self is NodeCount.ANY or (self is NodeCount.ONE) == (nodes == 1)


@dataclass(frozen=True, slots=True)
class ProtocolRate:
    """What a protocol makes of a link: a part of its bandwidth, at most so much per device.

    ``caps`` holds bytes per second by fabric.
    """

    name: str
    efficiency: float = 1.0
    caps: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class LibraryRun:
    """One algorithm (None: messages from peer to peer) for an operation, and when it can run.

    ``in_switch``: only where a node's switch reduces; ``one_rank_per_node``: only then;
    ``least_in_node``, ``most_in_node``: only with at least and at most so many members in one node
    (0: any number).
    """

    algorithm: LibraryAlgorithm | None
    protocols: tuple[str, ...]
    nodes: NodeCount = NodeCount.ANY
    least_members: int = 2
    one_rank_per_node: bool = False
    in_switch: bool = False
    most_in_node: int = 0
    least_in_node: int = 0

    def fits_node(self, local: int) -> bool:
        """Whether it can run with so many members in a node."""
        return self.least_in_node <= local <= (self.most_in_node or local)


@dataclass(frozen=True, slots=True)
class Rung:
    """Up to so many bytes (infinite: any more) this algorithm with this protocol."""

    up_to_bytes: float
    algorithm: LibraryAlgorithm | None
    protocol: str


@dataclass(frozen=True, slots=True)
class Ladder:
    """A choice by size for one operation, where it applies; it goes before the formula.

    ``members`` 0: any number of them.  ``fabrics`` empty: whatever is inside a node.  With
    ``per_peer`` a rung's size is that of the part that goes to one peer.
    """

    operation: str
    rungs: tuple[Rung, ...]
    nodes: NodeCount = NodeCount.ANY
    members: int = 0
    fabrics: tuple[str, ...] = ()
    per_peer: bool = False


@dataclass(frozen=True, slots=True)
class Library:
    """A communication library.

    ``joins_nodes``: rings and trees take ranks node by node, nodes by first appearance; otherwise
    in the order of the communicator.  ``calls`` is the cost of a call in seconds by operation,
    ``calls_across`` what a call of any operation costs more whose groups span several nodes, by the
    fabric that joins them, or ``network``.  ``hops`` are seconds per step by (fabric, family,
    protocol); a fabric without any has those of ``inside`` or ``network``.  ``in_flight`` is the
    number of chunks that a pipeline has under way at most (infinite: any number), ``ring_pace`` how
    many times as much a ring's step inside a node costs where the ring spans nodes,
    ``peers_at_once`` to how many peers a member sends at once in an exchange (0: to all).  ``runs``
    lists by operation what can run, the first being the one that runs where nothing else is said:
    by a ladder, or by the formula's least time.  ``sent_as`` names the collectives that the library
    carries out by another one, whose messages are sent.
    """

    name: str
    vendor: str
    description: str
    sources: tuple[str, ...]
    joins_nodes: bool
    calls: tuple[tuple[str, float], ...]
    protocols: tuple[ProtocolRate, ...]
    runs: tuple[tuple[str, tuple[LibraryRun, ...]], ...]
    hops: tuple[tuple[tuple[str, str, str], float], ...] = ()
    calls_across: tuple[tuple[str, float], ...] = ()
    ladders: tuple[Ladder, ...] = ()
    formula: Formula | None = None
    sent_as: tuple[tuple[Collective, Collective], ...] = ()
    in_flight: float = math.inf
    ring_pace: float = 1.0
    peers_at_once: int = 0

    def call_s(self, operation: str) -> float:
        """Seconds that one call costs inside a node, apart from its hops and its bytes."""
        return dict(self.calls).get(operation, 0.0)

    def across_s(self, fabric: str) -> float:
        """Seconds that one call costs more whose groups span nodes that a fabric joins."""
        across = dict(self.calls_across)
        return across.get(fabric, across.get(ACROSS, 0.0))

    def sent_for(self, operation: Operation) -> Operation:
        """The operation whose messages are sent for this one."""
        found = dict(self.sent_as)
        return found.get(operation, operation) if isinstance(operation, Collective) else operation

    def protocol(self, name: str) -> ProtocolRate:
        """The protocol of that name; one that the library does not know takes nothing away."""
        known = {protocol.name: protocol for protocol in self.protocols}
        return known.get(name, ProtocolRate(name))

    def hop_s(self, fabric: str, family: str, protocol: str, *, across: bool) -> float:
        """Seconds of one step over a link; ``across``: it joins nodes (where no fabric says).

        A family without hops of its own has those of messages from peer to peer, then a ring's.
        """
        hops = dict(self.hops)
        general = ACROSS if across or fabric in NETWORK else INSIDE
        for place in (fabric, general):
            for kind in hop_families(family):
                if (place, kind, protocol) in hops:
                    return hops[place, kind, protocol]
        return 0.0

    def runs_of(self, operation: str) -> tuple[LibraryRun, ...]:
        """What can run an operation."""
        return dict(self.runs).get(operation, ())

    @property
    def fixed(self) -> bool:
        """Whether there is one algorithm for each operation: nothing to choose."""
        return all(len(runs) == 1 for _, runs in self.runs)

    def run_by(self, algorithm: Algorithm) -> tuple[str, ...]:
        """The operations that an algorithm alone runs, by their own messages."""
        other = {collective.value for collective, _ in self.sent_as}
        return tuple(
            name
            for name, runs in self.runs
            if name not in other and {run.algorithm for run in runs} == {algorithm}
        )

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """Every algorithm of this package that runs something, in the order of the enum."""
        found = {run.algorithm for _, runs in self.runs for run in runs}
        return tuple(algorithm for algorithm in Algorithm if algorithm in found)
