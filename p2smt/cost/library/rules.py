"""What an algorithm of a library loads and pays: inside nodes, and between them.

Most algorithms are the textbook's (:mod:`p2smt.cost.algorithms`).  The others, and what differs
here, after NCCL 2.30.7 (src/graph/tuning.cc, src/device): trees are chains inside a node, the
reduction by switches (NVLS) works inside a node and hands over to a tree between nodes, and
messages from peer to peer go to as many peers at once as the library has in flight.  Where links
cannot carry an algorithm, or groups do not have the shape that it needs, its messages go along a
ring.  What a program adds has rules of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from p2smt.cluster.library import model
from p2smt.cluster.library.model import POINT_TO_POINT, AddedAlgorithm
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective, Operation, RequestKind
from p2smt.cost.algorithms import (
    Rule,
    doublings,
    exchange_rule,
    fits_shape,
    outermost,
    rule_of,
    send_rule,
)
from p2smt.cost.loads.level_use import Along, Footprint, LevelUse, Profile

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


AlgorithmRule = Callable[[Operation, Footprint, int], LibraryRule | None]
"""From an operation, the groups of a step and the index of the node level (-1: one node) to what
the algorithm loads and pays; None: it cannot run that, and the library leaves it out."""


def register_algorithm(
    name: str, rule: AlgorithmRule, family: str = POINT_TO_POINT
) -> AddedAlgorithm:
    """Make an algorithm known by a name; the same rule may be added again.

    ``family`` says whose hops its steps cost (``FAMILIES``).

    Raises:
        InputError: the name is none, or belongs to another algorithm; there is no such family.
    """
    return model.register_algorithm(name, rule, family)


def added_rule(
    algorithm: AddedAlgorithm, operation: Operation, footprint: Footprint, node_level: int
) -> LibraryRule | None:
    """What an added algorithm loads and pays; None: it cannot run that.

    Raises:
        InputError: this process has registered no such algorithm.
    """
    rule: AlgorithmRule = model.added(algorithm)[0]
    return rule(operation, footprint, node_level)
