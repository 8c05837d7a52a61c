"""Every message of a step between two devices, over every link that it loads.

Written from the rules of the design alone; imports types only.  A message that meets at a
level is one whose ends first differ there.  Switch levels from the meeting level inwards load
the uplink of each end's entity; other levels carry only what meets at them, hop by hop.  A
group's traffic out of (into) an entity is spread over the ports of its members inside; a
send uses its own device's ports.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from p2smt.cluster.topology import Algorithm, Link, LinkKind, Topology
from p2smt.collectives.names import Collective, RequestKind

Operation = Collective | RequestKind
Group = Sequence[int]
Way = Algorithm | Literal["pairwise", "at-once", "send"]
Messages = list[tuple[int, int, float]]
Loads = defaultdict[object, float]

CHAINS = (Collective.REDUCE, Collective.BROADCAST)
GROUP_RULES: dict[tuple[Way, Operation], float] = {
    (Algorithm.TREE, Collective.ALL_REDUCE): 2.0,
    (Algorithm.TREE, Collective.REDUCE): 1.0,
    (Algorithm.TREE, Collective.BROADCAST): 1.0,
    (Algorithm.IN_SWITCH, Collective.ALL_REDUCE): 1.0,
}
"""Algorithms that are stated per entity: what crosses its uplink in each direction, per n."""


def entity(topology: Topology, level: int, device: int) -> int:
    return device // math.prod(topology.sizes[level + 1 :])


def meeting_level(topology: Topology, one: int, other: int) -> int:
    levels = range(len(topology.levels))
    return next(j for j in levels if entity(topology, j, one) != entity(topology, j, other))


# Messages ---------------------------------------------------------------------------------


def messages(group: Group, operation: Operation, way: Way) -> Messages | None:
    """(source, target, fraction of n) of one group; None: no such algorithm."""
    p, passes = len(group), 2 if operation is Collective.ALL_REDUCE else 1
    edges = list(pairwise(group))
    pairs = [(a, b) for a in group for b in group if a != b]
    wrap = [(group[-1], group[0])] if p > 1 else []
    match way:
        case "send":
            return [(a, b, 1.0) for a, b in edges]
        case "pairwise" | "at-once":
            return [(a, b, 1 / p) for a, b in pairs]
        case Algorithm.RING if operation is Collective.BROADCAST:
            return [(a, b, 1.0) for a, b in edges]
        case Algorithm.RING if operation is Collective.REDUCE:
            return [(b, a, 1.0) for a, b in edges]
        case Algorithm.RING:
            return [(a, b, passes * (p - 1) / p) for a, b in edges + wrap]
        case Algorithm.DIRECT if operation is Collective.BROADCAST:
            return [(group[0], b, 1.0) for b in group[1:]]
        case Algorithm.DIRECT if operation is Collective.REDUCE:
            return [(b, group[0], 1.0) for b in group[1:]]
        case Algorithm.DIRECT:
            return [(a, b, passes / p) for a, b in pairs]
        case Algorithm.ONE_SHOT if operation is Collective.ALL_REDUCE:
            return [(a, b, 1.0) for a, b in pairs]
        case Algorithm.HALVING_DOUBLING if operation not in CHAINS and p & (p - 1) == 0:
            return [m for d in distances(p) for m in _round(group, d, passes)]
        case Algorithm.BINOMIAL if operation in CHAINS:
            down = [(a, b, 1.0) for meetings in binomial_rounds(group) for a, b in meetings]
            return _towards(operation, down)
        case Algorithm.SCATTER_GATHER if operation in CHAINS:
            ring = [(a, b, (p - 1) / p) for a, b in edges + wrap]
            return ring + _towards(operation, [(group[0], b, 1 / p) for b in group[1:]])
    return None


def _towards(operation: Operation, down: Messages) -> Messages:
    """Messages from a broadcast's root, or the same ones back to a reduce's root."""
    return [(b, a, x) for a, b, x in down] if operation is Collective.REDUCE else down


def binomial_rounds(group: Group) -> list[list[tuple[int, int]]]:
    """Pairs per round: all who have the vector pass it on, the first one to the next without."""
    rounds, reached = [], 1
    while reached < len(group):
        rounds.append(list(zip(group[:reached], group[reached:], strict=False)))
        reached += len(rounds[-1])
    return rounds


def distances(p: int) -> list[int]:
    return [1 << bit for bit in reversed(range(p.bit_length() - 1))]


def _round(group: Group, distance: int, passes: int) -> Messages:
    p = len(group)
    return [(group[i], group[i ^ distance], passes * distance / p) for i in range(p)]


# Loads ------------------------------------------------------------------------------------


def device_ports(topology: Topology, level: int, device: int) -> list[int]:
    """The ports of an entity's uplink that belong to one of the devices under it."""
    ports, under = topology.levels[level].link.ports, topology.devices_under(level)
    at = device % under
    if ports <= under:
        return [at * ports // under]
    return list(range(at * ports // under, (at + 1) * ports // under))


def hops(link: Link, size: int, source: int, target: int) -> Iterator[object]:
    """The links between two siblings on the way from one to the other."""
    if link.kind is LinkKind.FULL_MESH:
        yield (source, target)
        return
    dims = link.torus if link.kind is LinkKind.TORUS else (size,)
    at, to = _coordinates(dims, source), _coordinates(dims, target)
    for d, length in enumerate(dims):
        ahead = (to[d] - at[d]) % length
        step = 1 if ahead <= length - ahead else -1
        while at[d] != to[d]:
            yield (tuple(at), d, step)
            at[d] = (at[d] + step) % length


def _coordinates(dims: Sequence[int], index: int) -> list[int]:
    found: list[int] = []
    for length in reversed(dims):
        index, digit = divmod(index, length)
        found.insert(0, digit)
    return found


def sibling_loads(topology: Topology, level: int, sent: Messages) -> Loads:
    """Load of each link between siblings, per payload byte."""
    size, loads = topology.levels[level].size, Loads(float)
    for a, b, amount in sent:
        if meeting_level(topology, a, b) == level:
            x, y = entity(topology, level, a), entity(topology, level, b)
            for hop in hops(topology.levels[level].link, size, x % size, y % size):
                loads[(x // size, hop)] += amount
    return loads


def crossings(
    topology: Topology, level: int, group: Group, operation: Operation, way: Way
) -> dict[tuple[int, str], float]:
    """What one group sends (receives) over the uplink of each entity, per payload byte."""
    found = defaultdict[tuple[int, str], float](float)
    if (way, operation) in GROUP_RULES:
        places = {entity(topology, level, d) for d in group}
        both = [(place, direction) for place in places for direction in ("out", "in")]
        return dict.fromkeys(both, GROUP_RULES[way, operation]) if len(places) > 1 else {}
    for a, b, amount in messages(group, operation, way) or []:
        if meeting_level(topology, a, b) <= level:
            found[entity(topology, level, a), "out"] += amount
            found[entity(topology, level, b), "in"] += amount
    return found


def switch_loads(
    topology: Topology, level: int, groups: Sequence[Group], operation: Operation, way: Way
) -> tuple[Loads, Loads]:
    """Load of each port and draw of each device, by direction, per payload byte."""
    ports, draws = Loads(float), Loads(float)
    for group in groups:
        for (place, direction), amount in crossings(topology, level, group, operation, way).items():
            inside = [d for d in group if entity(topology, level, d) == place]
            reached = {port for d in inside for port in device_ports(topology, level, d)}
            for port in reached:
                ports[place, port, direction] += amount / len(reached)
            for device in inside:
                draws[device, direction] += amount / len(inside)
    return ports, draws


def sibling_draws(
    topology: Topology, level: int, groups: Sequence[Group], operation: Operation, way: Way
) -> Loads:
    """What each device sends (receives) over a level that is no switch, inside it alone."""
    draws, size = Loads(float), topology.levels[level].size
    for group in groups:
        if len({entity(topology, level, d) // size for d in group}) > 1:
            continue
        for (place, direction), amount in crossings(topology, level, group, operation, way).items():
            inside = [d for d in group if entity(topology, level, d) == place]
            for device in inside:
                draws[device, direction] += amount / len(inside)
    return draws


def sibling_send_draws(topology: Topology, level: int, sent: Messages) -> Loads:
    """As :func:`sibling_draws`, where each message is that of its own two devices."""
    draws = Loads(float)
    for a, b, amount in sent:
        if meeting_level(topology, a, b) == level:
            draws[a, "out"] += amount
            draws[b, "in"] += amount
    return draws


def send_loads(topology: Topology, level: int, sent: Messages) -> tuple[Loads, Loads]:
    """As :func:`switch_loads`, where each message uses the ports of its own two devices."""
    ports, draws = Loads(float), Loads(float)
    for a, b, amount in sent:
        if meeting_level(topology, a, b) <= level:
            for device, direction in ((a, "out"), (b, "in")):
                reached = device_ports(topology, level, device)
                for port in reached:
                    key = (entity(topology, level, device), port, direction)
                    ports[key] += amount / len(reached)
                draws[device, direction] += amount
    return ports, draws
