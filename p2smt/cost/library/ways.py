"""Prices of what a library can run, and its choice among it.

A step takes what its call costs, the latencies of its steps and the transfer over the worst link:

    T = call + sum of steps x hop + w,    w = max over links of load x n / rate

The rate of a link is its nominal bandwidth, times the measured part of it that the algorithm
reaches, times what the protocol leaves of it.  Where an algorithm pipelines (trees, reduction by
switches), chunks follow each other through stages of A seconds each.  Where c of them pass before
all links are busy, that adds sqrt(4 c w A), the time to fill the pipeline with the best size of
chunks; at most A for each chunk that the library has in flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from p2smt.cluster.library import model
from p2smt.cluster.library.model import (
    ONE_SWITCH,
    POINT_TO_POINT,
    AddedAlgorithm,
    Library,
    LibraryAlgorithm,
    LibraryRun,
    ProtocolRate,
    family_of,
)
from p2smt.cluster.link import MPI_ALGORITHMS
from p2smt.cluster.topology import Algorithm, Link, LinkKind, Topology
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
from p2smt.cost.library.channels import GroupShape, generation_of
from p2smt.cost.library.mpi import mpi_rules
from p2smt.cost.library.tuner import LibraryChoice, LibraryWay, chooser
from p2smt.cost.loads.level_use import Along, Footprint, LevelUse, Profile
from p2smt.cost.step_time import PricedWays, StepCostModel, Way
from p2smt.errors import InputError

_CHAIN = 3
"""Nodes up to which each has at most one child in a tree (NVIDIA/nccl, src/graph/trees.cc)."""


def library_model(topology: Topology, footprint: Footprint, operation: Operation) -> StepCostModel:
    """The ways in which a topology's library runs an operation, and its choice."""
    choice = library_choice(topology, footprint, operation)
    library = topology.known_library
    sent = library.sent_for(operation)

    def priced(index: int) -> Way:
        way = carried(topology, footprint, sent, choice.ways[index])
        return _way(topology, library, footprint, operation, way)

    ways = PricedWays(len(choice.ways), priced)
    return StepCostModel(ways, None if topology.best else choice)


def library_choice(topology: Topology, footprint: Footprint, operation: Operation) -> LibraryChoice:
    """The library's choice; an algorithm from outside runs only where its rule says so."""
    library, shape = topology.known_library, group_shape(topology, footprint)
    runs = library.runs_of(operation.value)
    named = _named(topology, operation, runs)
    if not any(isinstance(run.algorithm, AddedAlgorithm) for run in runs):
        return _shared_choice(library, operation.value, shape, named)

    def fits(algorithm: LibraryAlgorithm | None) -> bool:
        added = isinstance(algorithm, AddedAlgorithm)
        return not added or rule_of_way(topology, footprint, operation, algorithm) is not None

    return chooser(library, operation.value, shape, named, fits)


def _named(
    topology: Topology, operation: Operation, runs: Sequence[LibraryRun]
) -> tuple[Algorithm, ...] | None:
    """The algorithms that an operation is to run by; of an exchange those alone that it has."""
    if isinstance(operation, Collective):
        return topology.named_for(operation)
    own = [run.algorithm for run in runs]
    named = topology.algorithms if topology.restricted else ()
    return tuple(algorithm for algorithm in named if algorithm in own) or None


@lru_cache(maxsize=4096)
def _shared_choice(
    library: Library, operation: str, shape: GroupShape, allowed: tuple[Algorithm, ...] | None
) -> LibraryChoice:
    """A choice rests on nominal rates alone, so many topologies share it."""
    return chooser(library, operation, shape, allowed)


def least_call_s(topology: Topology) -> float:
    """The least seconds that a collective of the topology's library costs, whatever it sends."""
    library = topology.known_library
    names = [collective.value for collective in Collective]
    return min(_call_s(topology, library, name, nodes=1) for name in names)


def carried(
    topology: Topology, footprint: Footprint, operation: Operation, way: LibraryWay
) -> LibraryWay:
    """The way, or a ring with its protocol where the links or the groups do not allow it."""
    named = way.algorithm
    if not isinstance(named, Algorithm) or can_carry(topology, footprint, operation, named):
        return way
    return LibraryWay(Algorithm.RING, way.protocol)


def _way(
    topology: Topology,
    library: Library,
    footprint: Footprint,
    operation: Operation,
    way: LibraryWay,
) -> Way:
    node = topology.node_level
    rule = rule_of_way(topology, footprint, library.sent_for(operation), way.algorithm)
    if rule is None:
        given = f"library {library.name}: {way.algorithm} for {operation.value}"
        raise InputError(given, "the cost model has no such algorithm", "remove it from runs")
    hops = [_hop_s(topology, footprint, way, operation, j) for j in range(len(topology.levels))]
    by_level = [0.0] * len(hops)
    worst: tuple[float, int | None, float] = (0.0, None, 0.0)
    for use in footprint.uses:
        side = rule.of(use, topology)
        link, innermost = topology.levels[use.level].link, use.level == len(hops) - 1
        part = part_reached(topology, footprint, way, operation, use.level)
        protocol = library.protocol(way.protocol)
        load = side.load(use, link.kind)
        seconds = load / protocol_rate(link, protocol, part, innermost=innermost)
        most = device_rate(link, protocol, part, innermost=innermost)
        if most is not None:
            seconds = max(seconds, side.drawn(use, link.kind) / most)
        by_level[use.level] = seconds
        worst = max(worst, (seconds, use.level, load), key=lambda found: found[0])
    return Way(
        way.algorithm.value if way.algorithm else operation.value,
        way.protocol,
        0,
        max(_latency_s(steps, hops) for steps in rule.steps),
        *worst,
        tuple(by_level),
        _call_s(topology, library, operation.value, footprint.nodes),
        _stage_s(rule, hops, node) if rule.filling else 0.0,
        rule.filling,
        library.in_flight * under_way(rule),
    )


def rule_of_way(
    topology: Topology,
    footprint: Footprint,
    operation: Operation,
    algorithm: LibraryAlgorithm | None,
) -> LibraryRule | None:
    node = topology.node_level
    if isinstance(algorithm, AddedAlgorithm):
        known = not footprint.mixed  # its rule is of groups of one size
        return added_rule(algorithm, operation, footprint, node) if known else None
    if algorithm is None:
        return peers_rule(operation, footprint, topology.known_library.peers_at_once)
    return library_rule(algorithm, operation, footprint, node)


def _call_s(topology: Topology, library: Library, operation: str, nodes: int) -> float:
    own, across, factor = call_parts(topology, library, operation, nodes)
    return (own + across) * factor


def call_parts(
    topology: Topology, library: Library, operation: str, nodes: int
) -> tuple[float, float, float]:
    """What a call costs: of its operation, for spanning nodes, which no topology replaces, and how
    many times both."""
    fabric = topology.levels[-1].link.fabric
    stated = library.call_s(operation) + library.on_s(fabric)
    own = dict(topology.calls).get(operation, stated)
    several = nodes > 1
    across = library.across_s(topology.levels[topology.node_level].link.fabric) if several else 0.0
    return own, across, topology.call_factor


def _latency_s(steps: Profile, hops: list[float]) -> float:
    return sum(count * hop for count, hop in zip(steps, hops, strict=True))


def under_way(rule: LibraryRule) -> float:
    """How many times as many chunks as over one edge are under way in a pipeline of more rounds."""
    return max(1.0, rule.filling / DEEP)


def _stage_s(rule: LibraryRule, hops: list[float], node: int) -> float:
    """One hop between nodes and one inside, of those that are crossed."""
    crossed = {j for steps in rule.steps for j, count in enumerate(steps) if count}
    across = max((hops[j] for j in crossed if j <= node), default=0.0)
    return across + max((hops[j] for j in crossed if j > node), default=0.0)


def _hop_s(
    topology: Topology, footprint: Footprint, way: LibraryWay, operation: Operation, j: int
) -> float:
    pace, hop = paced_hop(topology, footprint, way, operation, j)
    return pace * hop


def paced_hop(
    topology: Topology, footprint: Footprint, way: LibraryWay, operation: Operation, j: int
) -> tuple[float, float]:
    """Seconds of one step at a level, as so many times those of a hop.

    With one member a node nothing hides the network's latency, and a ring's step between nodes
    costs what a tree's does (NCCL 2.30.7, src/graph/tuning.cc).  With more of them every part of a
    ring's payload passes the network in turn, whose pace its steps inside the nodes have.
    """
    family, across = family_of(way.algorithm), j <= topology.node_level
    ring, pace = way.algorithm is Algorithm.RING, 1.0
    if ring and across and footprint.local == 1:
        family = family_of(Algorithm.TREE)
    if ring and not across and footprint.nodes > 1:
        pace = topology.known_library.ring_pace
    further_s = 0.0 if across else _further_s(topology, footprint, way)
    return pace, hop_s(topology, j, way.protocol, family, operation.value) + further_s


def _further_s(topology: Topology, footprint: Footprint, way: LibraryWay) -> float:
    """What members of a node beyond those of one board add to a step through its switches."""
    if way.algorithm not in (Algorithm.NVLS, Algorithm.NVLS_TREE):
        return 0.0
    return topology.known_library.switch_member * max(0, footprint.local - ONE_SWITCH)


def hop_s(topology: Topology, j: int, protocol: str, family: str, *kinds: str) -> float:
    """Seconds of one step at a level by a protocol: measured, or else what the library says.

    ``kinds``: other names that a measured one may be listed under; they go before the ``family``.
    """
    link = topology.levels[j].link
    measured = link.hop_of(protocol, *kinds, family)
    if measured is not None:
        return measured
    across, library = j <= topology.node_level, topology.known_library
    return library.hop_s(link.fabric, family, protocol, across=across)


def protocol_rate(link: Link, protocol: ProtocolRate, part: float, *, innermost: bool) -> float:
    """Bytes per second of a port (a link) of whose bandwidth so much is reached, by a protocol.

    A device has one link to a switch, so what caps a device caps that.
    """
    rate = link.nominal_bytes_per_s * part * protocol.efficiency
    return min(rate, _cap(link, protocol, innermost)) if link.kind is LinkKind.SWITCH else rate


def device_rate(
    link: Link, protocol: ProtocolRate, part: float, *, innermost: bool
) -> float | None:
    """The same of all that one device sends over a level; None: no more caps it than its links.

    Flags are sent beside the data (LL, LL128), so a protocol takes its part of this too.
    """
    draw = link.device_bandwidth_bytes_per_s
    rate = math.inf if draw is None else draw * part * protocol.efficiency
    if link.kind is not LinkKind.SWITCH:
        rate = min(rate, _cap(link, protocol, innermost))
    return rate if math.isfinite(rate) else None


def _cap(link: Link, protocol: ProtocolRate, innermost: bool) -> float:
    cap = dict(protocol.caps).get(link.fabric)
    return math.inf if cap is None or not innermost else cap


def part_reached(
    topology: Topology, footprint: Footprint, way: LibraryWay, operation: Operation, level: int
) -> float:
    """The part of a level's bandwidth that an operation reaches, its algorithm, or its parts.

    Measured; and where a node's cards could carry more than the library sends over them, that.
    """
    link = topology.levels[level].link
    names = [operation.value, *([way.algorithm.value] if way.algorithm else ())]
    if way.algorithm is Algorithm.NVLS_TREE:
        names.append((Algorithm.TREE if link.network else Algorithm.NVLS).value)
    part = link.efficiency_of(*names)
    if level == topology.node_level and way.algorithm is Algorithm.TREE:
        return part * _tree_part(topology, footprint, way.protocol)
    if level != topology.node_level or names[-1 if way.algorithm is None else 1] in dict(
        link.efficiency
    ):
        return part
    cards, rate = _cards(topology, footprint.local)
    return min(part, _most_sent(topology.known_library, footprint, way, operation) / cards / rate)


def _tree_part(topology: Topology, footprint: Footprint, protocol: str) -> float:
    """The part of the network's rate that a protocol leaves trees over these nodes.

    Of up to three nodes none has two children in a tree.  Of more, both send into one card where
    devices share cards; measured of the generations whose trees are plain alone.
    """
    library = topology.known_library
    part = library.protocol(protocol).two_children
    if part == 1 or library.formula is None or footprint.nodes <= _CHAIN:
        return 1.0
    shape = group_shape(topology, footprint)
    measured = generation_of(library.formula, shape) in library.formula.search.plain_tree
    return part if shape.card_devices > 1 and measured else 1.0


def _most_sent(
    library: Library, footprint: Footprint, way: LibraryWay, operation: Operation
) -> float:
    """Bytes per second that leave a node at most, whatever its cards carry."""
    if way.algorithm is Algorithm.NVLS_TREE:
        return library.handover_rate
    exchange = way.algorithm is None and operation is RequestKind.ALL_TO_ALL
    return library.exchange_rate * footprint.local if exchange else math.inf


# What a library's rule of choice sees of a group: nominal rates of hardware, and how it lies.


def group_shape(topology: Topology, footprint: Footprint) -> GroupShape:
    """The shape of a footprint's groups, the largest where they differ."""
    node = topology.node_level
    inner = [level.link for level in topology.levels[node + 1 :]]
    cards, card_rate = _cards(topology, footprint.local)
    return GroupShape(
        footprint.members,
        footprint.nodes,
        footprint.local,
        next((link.fabric for link in inner if link.fabric), ""),
        topology.levels[node].link.fabric if node >= 0 else "",
        _nominal_device_rate(topology, footprint),
        cards * card_rate,
        cards,
        _reduced_in_switches(topology, footprint),
        _devices_of_card(topology),
        topology.cpu,
    )


def _reduced_in_switches(topology: Topology, footprint: Footprint) -> bool:
    """Whether every level that the groups cross inside a node has switches that reduce."""
    inner = [use.level for use in footprint.uses if use.level > topology.node_level]
    return bool(inner) and all(topology.levels[j].link.in_switch_members > 0 for j in inner)


def _cards(topology: Topology, local: int) -> tuple[int, float]:
    """The network cards that so many members of a node reach, and the rate of each."""
    node = topology.node_level
    if node < 0:
        return 1, 0.0
    link, under = topology.levels[node].link, topology.devices_under(node)
    reached = max(1, min(link.ports, -(-link.ports * local // under)))
    return reached, link.nominal_bytes_per_s


def _devices_of_card(topology: Topology) -> int:
    """How many devices of a whole node share a card."""
    node = topology.node_level
    if node < 0:
        return 1
    return max(1, topology.devices_under(node) // topology.levels[node].link.ports)


def _nominal_device_rate(topology: Topology, footprint: Footprint) -> float:
    """Nominal rate of one device's links inside its node, in one direction, those of every level
    that the group crosses; where the levels' fabrics differ, of the slowest."""
    inner = range(topology.node_level + 1, len(topology.levels))
    if not inner:
        return _cards(topology, 1)[1]
    crossed = [j for j in inner if _spread(footprint, j) > 1] or [inner[-1]]
    levels = topology.levels
    last = crossed[-1]
    crossed = [j for j in crossed if j == last or not levels[j].groups_those(levels[j + 1])]
    rates = [_device_rate_of(topology, footprint, j) for j in crossed]
    fabrics = {topology.levels[j].link.fabric for j in crossed}
    return sum(rates) if len(fabrics) == 1 else min(rates)


def _spread(footprint: Footprint, j: int) -> float:
    """How many ways a group spreads at a level."""
    return max(p[j] / (p[j - 1] if j else 1) for p in footprint.profiles)


def _device_rate_of(topology: Topology, footprint: Footprint, j: int) -> float:
    """A device's part of a level inside the node.

    Devices that several levels join have links to each other, not to switches, of which a group has
    those to its own members.
    """
    link, size = topology.levels[j].link, topology.levels[j].full_size
    among = max(1.0, _spread(footprint, j) - 1)
    if link.kind is LinkKind.FULL_MESH:
        return link.nominal_bytes_per_s * among
    if link.device_bandwidth_bytes_per_s is not None:
        return link.device_bandwidth_bytes_per_s
    rate = link.nominal_bytes_per_s * link.ports / topology.devices_under(j)
    several = j > topology.node_level + 1 and not topology.levels[j - 1].groups_those(
        topology.levels[j]
    )
    direct = several and j == len(topology.levels) - 1
    return rate * among / max(1, size - 1) if direct and link.fabric else rate


# What an algorithm of a library loads and pays: inside nodes, and between them.
# Most algorithms are the textbook's (:mod:`p2smt.cost.algorithms`).  The others, and what differs
# here, after NCCL 2.30.7 (src/graph/tuning.cc, src/device): trees are chains inside a node, the
# reduction by switches (NVLS) works inside a node and hands over to a tree between nodes, and
# messages from peer to peer go to as many peers at once as the library has in flight.  Where links
# cannot carry an algorithm, or groups do not have the shape that it needs, its messages go along a
# ring.  What a program adds has rules of its own.


_PIPELINED = (Algorithm.TREE, Algorithm.NVLS, Algorithm.NVLS_TREE)
DEEP = 2
"""What a pipeline waits for in each round of doubling: the ends of two trees (Sanders et al.)."""


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
    inside, across = _rules(algorithm, operation, footprint, node_level)
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
    rounds = (footprint.nodes - 1).bit_length()
    return DEEP * max(1, rounds) if footprint.local > 1 else max(0, rounds - 1)


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
    algorithm: Algorithm, operation: Operation, footprint: Footprint, node_level: int
) -> tuple[Rule | None, Rule | None]:
    if algorithm in MPI_ALGORITHMS:
        return mpi_rules(algorithm, operation, footprint, node_level)
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
    """A step through the switch inside for each pass, and a tree's rounds between nodes.

    Of an all-reduce the switch is waited for twice: who reduces a part, until all have scattered
    theirs, and all for the result (NCCL, src/device/all_reduce.h).
    """
    found = [passes * count for count in doublings(profile)]
    inside, before = node_level + 1, (1, *profile)
    crossed = [j for j in range(inside, len(profile)) if profile[j] > before[j]]
    for j in range(inside, len(profile)):
        found[j] = passes * int(j == crossed[0]) if crossed else 0
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
