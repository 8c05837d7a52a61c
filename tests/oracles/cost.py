"""Brute-force cost of one step, from the load of every link, device by device.

Written from the rules of the design alone; imports types only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from p2smt.cluster.topology import Algorithm, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from tests.oracles.loads import (
    CHAINS,
    GROUP_RULES,
    Group,
    Operation,
    Way,
    binomial_rounds,
    distances,
    entity,
    meeting_level,
    messages,
    send_loads,
    sibling_draws,
    sibling_loads,
    sibling_send_draws,
    switch_loads,
    walk,
    whole_torus,
)

__all__ = ["applies", "best_seconds", "level_seconds", "step_seconds", "walk"]


def entities(topology: Topology, group: Group) -> list[int]:
    """Number of entities of each level that a group has members in."""
    return [len({entity(topology, j, d) for d in group}) for j in range(len(topology.levels))]


def latency_steps(topology: Topology, group: Group, operation: Operation, way: Way) -> Counter[int]:
    """Message latencies that are paid, by level."""
    if len(group) < 2:
        return Counter()
    passes = 2 if operation is Collective.ALL_REDUCE else 1
    meets = Counter(meeting_level(topology, a, b) for a, b in pairwise(group))
    outermost = min(meeting_level(topology, group[0], b) for b in group[1:])
    match way:
        case Algorithm.RING:  # an edge of the chain for each of the p - 1 steps
            return Counter({j: passes * n for j, n in meets.items()})
        case "pairwise":  # whatever the order of the members
            return Counter(meeting_level(topology, a, b) for a, b in pairwise(sorted(group)))
        case Algorithm.TREE:
            counts = [1, *entities(topology, group)]
            splits = [b / a for a, b in pairwise(counts)]
            return Counter({j: passes * math.ceil(math.log2(s)) for j, s in enumerate(splits)})
        case Algorithm.HALVING_DOUBLING:
            rounds = Counter(
                meeting_level(topology, group[0], group[d]) for d in distances(len(group))
            )
            return Counter({j: passes * n for j, n in rounds.items()})
        case Algorithm.BINOMIAL:  # a round pays for its message that goes the furthest out
            return Counter(
                min(meeting_level(topology, a, b) for a, b in pairs)
                for pairs in binomial_rounds(group)
            )
        case Algorithm.SCATTER_GATHER:
            return meets + Counter({outermost: 1})
        case Algorithm.TORUS:  # each phase waits for its longest ring
            lengths = [length for length in topology.levels[outermost].link.torus if length > 1]
            return Counter({outermost: passes * len(lengths) * (max(lengths) - 1)})
        case Algorithm.IN_SWITCH:
            return Counter({outermost: 2})
        case Algorithm.ONE_SHOT:
            return Counter({outermost: 1})
        case _:
            return Counter({outermost: passes})


def even(topology: Topology, groups: Sequence[Group]) -> bool:
    """Whether all groups have as many members in each entity that they touch, in one run each."""
    for j in range(len(topology.levels)):
        inside = [Counter(entity(topology, j, d) for d in group).values() for group in groups]
        if len({count for counts in inside for count in counts}) > 1:
            return False
        for group in groups:
            spots = [entity(topology, j, d) for d in group]
            if 1 + sum(a != b for a, b in pairwise(spots)) > len(set(spots)):
                return False
    return True


def applies(topology: Topology, groups: Sequence[Group], operation: Operation, way: Way) -> bool:
    """Whether the links and the groups' shapes allow a way to run an operation."""
    if way == "send":
        return True
    alike = len({len(group) for group in groups}) == 1  # else only what groups say on their own
    if not alike and way not in (Algorithm.RING, Algorithm.TREE, Algorithm.IN_SWITCH):
        return False
    known = (way, operation) in GROUP_RULES
    if not known and messages(topology, groups[0], operation, way) is None:
        return False
    spans = [entities(topology, group) for group in groups]
    carrying = {
        level.link.kind
        for j, level in enumerate(topology.levels)
        for span in spans
        if (span[j] > 1 if level.link.kind is LinkKind.SWITCH else span[j] > ([1, *span])[j])
    }
    match way:
        case Algorithm.RING | "pairwise":
            return True
        case Algorithm.TORUS:
            return all(whole_torus(topology, group) is not None for group in groups)
        case Algorithm.DIRECT if operation in CHAINS and not even(topology, groups):
            return False
        case Algorithm.DIRECT | Algorithm.ONE_SHOT | "at-once":
            return carrying <= {LinkKind.SWITCH, LinkKind.FULL_MESH}
        case Algorithm.HALVING_DOUBLING:
            powers = all(n & (n - 1) == 0 for span in spans for n in span)
            return powers and even(topology, groups) and carrying <= {LinkKind.SWITCH}
        case Algorithm.BINOMIAL | Algorithm.SCATTER_GATHER:
            return even(topology, groups) and carrying <= {LinkKind.SWITCH}
        case Algorithm.TREE:
            return carrying <= {LinkKind.SWITCH}
    met = {meeting_level(topology, a, b) for g in groups for a in g for b in g if a != b}
    if len(met) != 1 or not carrying <= {LinkKind.SWITCH}:
        return False
    return 0 < topology.levels[min(met)].link.in_switch_members <= min(map(len, groups))


def _piece(link: Link, name: str, operation: Operation) -> Piece:
    own = [pieces for collective, pieces in link.measured if collective is operation]
    pieces = own[0] if own else link.pieces
    return next((piece for piece in pieces if piece.name == name), pieces[0])


def _protocols(topology: Topology, groups: Sequence[Group], operation: Operation) -> set[str]:
    found = set()
    for j, level in enumerate(topology.levels):
        if any(entities(topology, group)[j] > 1 for group in groups):
            own = [pieces for collective, pieces in level.link.measured if collective is operation]
            found |= {piece.name for piece in (own[0] if own else level.link.pieces)}
    return found


def _latency(
    topology: Topology, group: Group, operation: Operation, way: Way, pieces: Sequence[Piece]
) -> float:
    if way == "send":  # every message is alone: the slowest counts
        ends = pairwise(group)
        return max((pieces[meeting_level(topology, *e)].latency_s for e in ends), default=0.0)
    steps = latency_steps(topology, group, operation, way)
    return sum(n * pieces[j].latency_s for j, n in steps.items())


def step_seconds(
    topology: Topology,
    groups: Sequence[Group],
    operation: Operation,
    way: Way,
    payload: float,
) -> float:
    """Time of one step in one way, with the protocol that is best for it.

    ``send`` goes from each member of a group to the next one, without wrap-around.
    """
    times = []
    for name in _protocols(topology, groups, operation) or {""}:
        pieces = [_piece(level.link, name, operation) for level in topology.levels]
        wire = max(level_seconds(topology, groups, operation, way, name, payload))
        latency = max(_latency(topology, g, operation, way, pieces) for g in groups)
        times.append(_total(operation, way, wire, latency))
    return min(times)


def level_seconds(
    topology: Topology,
    groups: Sequence[Group],
    operation: Operation,
    way: Way,
    protocol: str,
    payload: float,
) -> list[float]:
    """Seconds that the worst link of each level transfers in one step."""
    sent = [m for group in groups for m in messages(topology, group, operation, way) or []]
    loads = []
    for j, level in enumerate(topology.levels):
        if level.link.kind is not LinkKind.SWITCH:
            if way == "send":
                draws = sibling_send_draws(topology, j, sent)
            else:
                draws = sibling_draws(topology, j, groups, operation, way)
            loads.append((sibling_loads(topology, j, groups, operation, way), draws))
        elif way == "send":
            loads.append(send_loads(topology, j, sent))
        else:
            loads.append(switch_loads(topology, j, groups, operation, way))
    worst = [(max(a.values(), default=0), max(b.values(), default=0)) for a, b in loads]
    found = []
    for (load, draw), level in zip(worst, topology.levels, strict=True):
        bandwidth = _piece(level.link, protocol, operation).bandwidth_bytes_per_s
        cap = level.link.device_bandwidth_bytes_per_s or math.inf
        found.append(max(payload * load / bandwidth, payload * draw / cap))
    return found


def _total(operation: Operation, way: Way, wire: float, latency: float) -> float:
    if way is not Algorithm.TREE:
        return wire + latency
    passes = 2 if operation is Collective.ALL_REDUCE else 1
    w, a = wire / passes, latency / passes
    return passes * (w + 2 * a + math.sqrt(8 * w * a))


def best_seconds(
    topology: Topology, groups: Sequence[Group], operation: Operation, payload: float
) -> tuple[float, set[Way]]:
    """The least time over all ways that the topology and the groups allow, and those ways."""
    ways: list[Way]
    if operation is RequestKind.SEND:
        ways = ["send"]
    elif operation is RequestKind.ALL_TO_ALL:
        ways = ["at-once"] if applies(topology, groups, operation, "at-once") else ["pairwise"]
    else:
        fixed = [a for collective, a in topology.overrides if collective is operation]
        offered = fixed or topology.algorithms
        ways = [a for a in offered if applies(topology, groups, operation, a)]
    ways = ways or [Algorithm.RING]
    times = {way: step_seconds(topology, groups, operation, way, payload) for way in ways}
    return min(times.values()), set(ways)
