"""A rule of choice made of estimated times, as NCCL and RCCL have it; the numbers are data.

The library estimates for each algorithm and protocol

    time = latency x plateau + bytes / (bandwidth x correction)

and runs the least; the first of equal ones.  Source: NVIDIA/nccl and ROCm/rccl,
src/graph/tuning.cc, ``ncclTopoTuneModel`` and ``ncclTopoGetAlgoTime``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import (
    Operation,
    Rule,
    doublings,
    exchange_rule,
    fits_shape,
    outermost,
    rule_of,
    send_rule,
)
from p2smt.cost.loads.level_use import Along, Footprint, LevelUse, Profile

Triple = tuple[float, float, float]
"""For groups on one node, on two, and on more."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the library takes a fabric for.

    ``row`` names its row of ``hops``; ``generation`` that of the devices it joins; ``known`` is
    the part of its nominal bandwidth that the library counts with, and ``latency_s`` what its
    driver adds to a hop.  ``one_order``: all channels pass the devices in one order, so that a
    chain's first hop hides the others.
    """

    row: str
    generation: str = ""
    known: float = 1.0
    latency_s: float = 0.0
    one_order: bool = True


@dataclass(frozen=True, slots=True)
class Scaling:
    """One refinement of an algorithm's bus bandwidth: times ``factor``, then at most ``cap``.

    ``protocol`` empty: all; ``operations`` empty: all.  ``nodes``: ``one``, ``several``, ``two``
    (at most two), ``many`` (more than two) or ``any``.  ``alone``: with one rank per node (True),
    with more (False).  ``cap`` names a table of :attr:`Formula.caps`, per channel if
    ``per_channel``.
    """

    algorithm: Algorithm
    protocol: str = ""
    operations: tuple[str, ...] = ()
    nodes: str = "any"
    alone: bool | None = None
    factor: float = 1.0
    cap: str = ""
    per_channel: bool = False

    def holds(self, protocol: str, operation: str, nodes: int, local: int) -> bool:
        """Whether it applies to this protocol and operation on such a group."""
        counts = {"any": True, "one": nodes == 1, "several": nodes > 1}
        counts |= {"two": nodes <= 2, "many": nodes > 2}
        return (
            self.protocol in ("", protocol)
            and (not self.operations or operation in self.operations)
            and counts[self.nodes]
            and self.alone in (None, local == 1)
        )


@dataclass(frozen=True, slots=True)
class Correction:
    """Factors of an algorithm's bandwidth by size: from 64 bytes on, doubling; 1 beyond them.

    ``generations`` empty: all.  ``several``: on more than one node only.
    """

    algorithm: Algorithm
    protocol: str
    factors: tuple[float, ...]
    generations: tuple[str, ...] = ()
    several: bool = False


@dataclass(frozen=True, slots=True)
class Plateau:
    """A ring's all-reduce with the simple protocol across nodes costs more latency from a size on.

    The size is ``bytes_per_rank`` times the ranks plus ``bytes_per_channel_and_rank`` times ranks
    and channels; ``factors`` of the latency are by generation.
    """

    factors: tuple[tuple[str, float], ...]
    bytes_per_rank: float = 0.0
    bytes_per_channel_and_rank: float = 0.0


@dataclass(frozen=True, slots=True)
class Nvls:
    """How the reduction by NVSwitch is estimated.

    ``of_bus``: as a part ``efficiency`` of what the devices' links carry (NCCL from 2.28 on, where
    an all-reduce counts twice and the first channel is not counted); otherwise the algorithm's
    bandwidth is ``ratio`` of the channels' (NCCL 2.19 to 2.27).
    """

    of_bus: bool
    efficiency: tuple[tuple[str, float], ...] = ()
    ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class Search:
    """Bandwidths per channel that the library tries, in bytes per second, largest first.

    By generation; none: one channel takes all.  ``twice_from``: a channel of at least so much is
    split in two; ``not_twice``: generations where only from twice that on, or for few channels.
    """

    inside: tuple[tuple[str, tuple[float, ...]], ...] = ()
    outside: tuple[tuple[str, tuple[float, ...]], ...] = ()
    twice_from: float = float("inf")
    not_twice: tuple[str, ...] = ()
    channels: int = 32


@dataclass(frozen=True, slots=True)
class Formula:
    """The constants of the estimate; times in seconds, rates in bytes per second.

    ``base`` and ``hops`` are by algorithm and protocol, hops also by row of ``hardware``.
    ``inside`` and ``outside`` are the fabrics assumed where a link does not say its own.
    ``overhead_s`` is the least of a step inside a node when a ring spans several, three times that
    for the simple protocol; ``ll_inside`` multiplies such a step of LL.  ``rounds_by_node``: the
    ring of an all-reduce passes between nodes 2N times, not 2(N - 1).  ``alone_as_tree``: with one
    rank per node hops across are those of a tree.  PAT takes ``pat_per_rank_s`` for each rank and
    ``pat_hop_part`` of a hop for each doubling.  ``most_bus`` limits every bus bandwidth.
    The latency that a network's driver reports is added to a hop, twice for the simple protocol,
    which flushes; with ``driver_replaces`` it stands for the hop (NCCL before 2.18).
    """

    hardware: tuple[tuple[str, Hardware], ...]
    inside: str
    outside: str
    base: tuple[tuple[tuple[Algorithm, str], float], ...]
    hops: tuple[tuple[tuple[str, Algorithm, str], float], ...]
    scalings: tuple[Scaling, ...] = ()
    caps: tuple[tuple[str, tuple[tuple[str, Triple], ...]], ...] = ()
    search: Search = Search()
    corrections: tuple[Correction, ...] = ()
    plateau: Plateau | None = None
    nvls: Nvls | None = None
    overhead_s: float = 0.0
    ll_inside: float = 1.0
    rounds_by_node: bool = False
    alone_as_tree: bool = False
    pat_per_rank_s: float = 0.0
    pat_hop_part: float = 0.0
    most_bus: tuple[tuple[str, float], ...] = ()
    driver_replaces: bool = False

    def hardware_of(self, fabric: str, *, across: bool) -> Hardware:
        """What a fabric is taken for; one that is not listed, for the usual one of its place."""
        known = dict(self.hardware)
        return known.get(fabric) or known[self.outside if across else self.inside]


# What an algorithm of a library loads and pays: inside nodes, and between them.
# Most algorithms are the textbook's (:mod:`p2smt.cost.algorithms`).  The others, and what differs
# here, after NCCL 2.30.7 (src/graph/tuning.cc, src/device): trees are chains inside a node, the
# reduction by switches (NVLS) works inside a node and hands over to a tree between nodes, and
# messages from peer to peer go to as many peers at once as the library has in flight.  Where links
# cannot carry an algorithm, or groups do not have the shape that it needs, its messages go along a
# ring.


_PIPELINED = (Algorithm.TREE, Algorithm.NVLS, Algorithm.NVLS_TREE)
DEEP = 2
"""What a pipeline of several stages waits for: the ends of two trees (Sanders et al.)."""


@dataclass(frozen=True, slots=True)
class LibraryRule:
    """One algorithm on groups of one shape: ``inside`` a node and ``across`` nodes.

    ``steps`` holds the latencies paid per level, for each shape that a group has; in a pipeline a
    chunk passes one stage of each kind of link before the next follows, and ``filling`` chunks pass
    before its links are busy (0: no pipeline, or none to fill).
    """

    inside: Rule
    across: Rule
    steps: tuple[Profile, ...]
    filling: int

    def of(self, use: LevelUse, topology: Topology) -> Rule:
        """What loads a level."""
        return self.across if use.level <= topology.node_level else self.inside


def library_rule(
    algorithm: Algorithm, operation: Operation, footprint: Footprint, node_level: int
) -> LibraryRule | None:
    """The rule of an algorithm; None if it has none."""
    inside, across = _rules(algorithm, operation, footprint)
    if inside is None or across is None:
        return None
    steps = tuple(_steps(algorithm, operation, across, footprint, node_level))
    return LibraryRule(inside, across, steps, _filling(algorithm, footprint))


def _filling(algorithm: Algorithm, footprint: Footprint) -> int:
    """Chunks that a pipeline waits for before its links are busy; see :class:`LibraryRule`.

    Trees over one member per node have no chain inside.  With one round all links are busy from
    the start: of two nodes each sends the other half of the vector, and then the result of a half.
    """
    if algorithm not in _PIPELINED:
        return 0
    if footprint.local > 1:
        return DEEP
    return min(DEEP, max(0, (footprint.nodes - 1).bit_length() - 1))


def peers_rule(operation: Operation, footprint: Footprint, at_once: int) -> LibraryRule:
    """Messages from peer to peer, to so many peers at once (0: to all)."""
    rule = _peers(operation, footprint.members)
    steps = tuple(_peer_steps(footprint, operation, at_once))
    return LibraryRule(rule, rule, steps, filling=0)


def can_carry(
    topology: Topology, footprint: Footprint, operation: Operation, algorithm: Algorithm
) -> bool:
    """Whether links and groups allow an algorithm, as far as its price is known.

    Where links cannot carry an algorithm its load is infinite: trees (but not inside a node),
    halving and the rooted algorithms need switches.
    """
    rule = library_rule(algorithm, operation, footprint, topology.node_level)
    return (
        rule is not None
        and fits_shape(algorithm, operation, footprint)
        and all(
            math.isfinite(rule.of(use, topology).load(use, topology.levels[use.level].link.kind))
            for use in footprint.uses
        )
    )


def _rules(
    algorithm: Algorithm, operation: Operation, footprint: Footprint
) -> tuple[Rule | None, Rule | None]:
    if not isinstance(operation, Collective):
        return None, None
    match algorithm:
        case Algorithm.NVLS | Algorithm.NVLS_TREE:
            inside = _in_switch(operation, footprint.local)
            return inside, _along_trees() if algorithm is Algorithm.NVLS_TREE else inside
        case Algorithm.PAT:
            found = rule_of(Algorithm.HALVING_DOUBLING, operation, footprint.members)
            return found, found
    found = rule_of(algorithm, operation, footprint.members)
    return found, found


def _in_switch(operation: Collective, local: int) -> Rule:
    """The switch reads every member's payload once and hands each its part of the result.

    An all-reduce writes the result to all: n(1 + 1/p) leave a member, and reach it.
    """
    moved = 1 + 1 / local if operation is Collective.ALL_REDUCE else 1.0
    return Rule(lambda q: q * moved, lambda _: math.inf, lambda profile: outermost(profile, 1))


def _along_trees() -> Rule:
    return Rule(lambda _: 1.0, lambda _: math.inf, doublings, along=Along.TREE)


def _peers(operation: Operation, members: int) -> Rule:
    """Every member to every other, or of a send to the next one; :func:`_peer_steps` has more."""
    if operation is RequestKind.SEND:
        return send_rule()
    return exchange_rule(members, lambda profile: profile)


def _peer_steps(footprint: Footprint, operation: Operation, at_once: int) -> list[Profile]:
    """A send pays its level once; an exchange once for each batch of peers that meet at a level."""
    if operation is RequestKind.SEND:
        return [outermost(profile, 1) for profile in footprint.profiles]
    found = []
    for profile in footprint.profiles:
        inside = [footprint.members / entities for entities in (1, *profile)]
        peers = [outer - inner for outer, inner in pairwise(inside)]
        found.append(tuple(math.ceil(count / (at_once or footprint.members)) for count in peers))
    return found


def _steps(
    algorithm: Algorithm,
    operation: Operation,
    rule: Rule,
    footprint: Footprint,
    node_level: int,
) -> list[Profile]:
    passes = 2 if operation is Collective.ALL_REDUCE else 1
    match algorithm:
        case Algorithm.TREE:
            return [_tree_steps(p, node_level, passes) for p in footprint.profiles]
        case Algorithm.NVLS | Algorithm.NVLS_TREE:
            return [_switch_steps(p, node_level, passes) for p in footprint.profiles]
    return rule.latencies(footprint)


def _tree_steps(profile: Profile, node_level: int, passes: int) -> Profile:
    """Rounds of doubling between nodes, the edges of a node's chain inside."""
    before, found = (1, *profile), list(doublings(profile))
    nodes = before[node_level + 1]
    for j in range(node_level + 1, len(profile)):
        found[j] = math.ceil((profile[j] - before[j]) / nodes)
    return tuple(passes * count for count in found)


def _switch_steps(profile: Profile, node_level: int, passes: int) -> Profile:
    """One step through the switch inside, and a tree's rounds between nodes."""
    found = [passes * count for count in doublings(profile)]
    inside, before = node_level + 1, (1, *profile)
    crossed = [j for j in range(inside, len(profile)) if profile[j] > before[j]]
    for j in range(inside, len(profile)):
        found[j] = int(j == crossed[0]) if crossed else 0
    return tuple(found)
