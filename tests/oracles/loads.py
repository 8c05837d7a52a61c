"""Every message of a step between two devices, over every link that it loads.

Written from the rules of the design alone; imports types only.  A message that meets at a
level is one whose ends first differ there.  Switch levels from the meeting level inwards load
the uplink of each end's entity; other levels carry only what meets at them, hop by hop.  A
group's traffic out of (into) an entity is spread over the ports of its members inside; a
send uses its own device's ports.

A group is a list in the order in which a library walks through it (:func:`walk`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, permutations
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


def nodes_of(topology: Topology) -> int | None:
    """The level whose entities are nodes; None: all is one node."""
    told = any(level.link.fabric for level in topology.levels)
    found = [j for j, level in enumerate(topology.levels) if level.link.network]
    return max(found, default=None) if told else 0 if len(topology.levels) > 1 else None


def by_node(topology: Topology, group: Group) -> list[list[int]]:
    """The members of each node, in their order; nodes by first appearance."""
    level, found = nodes_of(topology), defaultdict[int, list[int]](list)
    for device in group:
        found[0 if level is None else entity(topology, level, device)].append(device)
    return list(found.values())


def walk(topology: Topology, group: Group, joins_nodes: bool) -> list[int]:
    """The order in which a library's ring visits a group that is given in communicator order."""
    if not joins_nodes:
        return list(group)
    return [device for members in by_node(topology, group) for device in sorted(members)]


# Trees ------------------------------------------------------------------------------------


def binary_tree(nodes: int) -> list[tuple[int, int]]:
    """(parent, child) pairs: the root is 0, its child the largest power of two below ``nodes``."""
    found, power = [], 1
    while 2 * power < nodes:
        power *= 2
    todo = [(power, power)] if nodes > 1 else []
    found += [(0, power)] if nodes > 1 else []
    while todo:
        at, reach = todo.pop()
        for side in (-1, 1):
            step = reach // 2
            while step and at + side * step >= nodes:
                step //= 2
            if step:
                found.append((at, at + side * step))
                todo.append((at + side * step, step))
    return found


def two_trees(nodes: int) -> list[tuple[int, int]]:
    """The edges of both trees: the second mirrors the first, or for an odd number shifts it."""
    first = binary_tree(nodes)
    if nodes % 2:
        return first + [((a + 1) % nodes, (b + 1) % nodes) for a, b in first]
    return first + [(nodes - 1 - a, nodes - 1 - b) for a, b in first]


def tree_messages(topology: Topology, group: Group) -> Messages:
    """An all-reduce by two trees over nodes; in nodes of several, each member heads a chain."""
    nodes = by_node(topology, group)
    one_way: Messages = []
    if len(nodes) == 1:
        one_way = [(a, b, 1.0) for a, b in pairwise(group)]
    else:
        for members in nodes:  # the chain that starts at each of them in turn
            q = len(members)
            for head in range(q):
                chain = [*members[head:], *members[:head]]
                one_way += [(a, b, 1 / q) for a, b in pairwise(chain)]
    for parent, child in two_trees(len(nodes)):
        ends = [(a, b) for a in nodes[parent] for b in nodes[child]]
        one_way += [(a, b, 0.5 / len(ends)) for a, b in ends]
    return one_way + [(b, a, amount) for a, b, amount in one_way]


# Tori -------------------------------------------------------------------------------------


def whole_torus(topology: Topology, group: Group) -> int | None:
    """The level whose siblings, joined as a torus, a group has one member each of; else None."""
    for j, level in enumerate(topology.levels):
        spots = {entity(topology, j, device) for device in group}
        sets = {spot // level.size for spot in spots}
        if level.link.kind is LinkKind.TORUS and len(group) == len(spots) == level.size > 1:
            return j if len(sets) == 1 else None
    return None


def torus_phases(topology: Topology, group: Group) -> list[Messages]:
    """One pass of the rotated programs: what all of them send in each phase, to neighbours alone.

    Program r has an equal part of the vector, and scatters what it has along dimension r + phase:
    by a ring in each direction, or by the one link between two.
    """
    level = whole_torus(topology, group)
    assert level is not None
    size, phases = topology.levels[level].size, list[Messages]()
    dims = topology.levels[level].link.torus
    at = {tuple(_coordinates(dims, entity(topology, level, d) % size)): d for d in group}
    turning = [d for d, length in enumerate(dims) if length > 1]
    for phase in range(len(turning)):
        phases.append([])
        for first in range(len(turning)):
            order = turning[first:] + turning[:first]
            held = 1 / len(turning) / math.prod(dims[d] for d in order[:phase])
            d, length = order[phase], dims[order[phase]]
            for spot, device in at.items():
                ends = {(*spot[:d], (spot[d] + way) % length, *spot[d + 1 :]) for way in (1, -1)}
                each = held / length * (length - 1) / len(ends)
                phases[-1] += [(device, at[end], each) for end in ends]
    return phases


def torus_loads(topology: Topology, level: int, groups: Sequence[Group], passes: int) -> Loads:
    """Of each set of siblings what the worst link carries in each phase, added up."""
    found = Loads(float)
    here = [group for group in groups if whole_torus(topology, group) == level]
    for at in range(sum(length > 1 for length in topology.levels[level].link.torus)):
        sent = [m for group in here for m in torus_phases(topology, group)[at]]
        worst = Loads(float)
        for link, amount in routed(topology, level, sent).items():
            assert isinstance(link, tuple)
            worst[link[0]] = max(worst[link[0]], amount)
        for parent, amount in worst.items():
            found[parent] += passes * amount
    return found


# Messages ---------------------------------------------------------------------------------


def messages(topology: Topology, group: Group, operation: Operation, way: Way) -> Messages | None:
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
        case Algorithm.TREE if operation is Collective.ALL_REDUCE:
            return tree_messages(topology, group)
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
        case Algorithm.TORUS if (
            operation not in CHAINS and whole_torus(topology, group) is not None
        ):
            every = [m for phase in torus_phases(topology, group) for m in phase]
            return [(a, b, passes * amount) for a, b, amount in every]
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


def sibling_loads(
    topology: Topology, level: int, groups: Sequence[Group], operation: Operation, way: Way
) -> Loads:
    """Load of each link between siblings, per payload byte."""
    if way is Algorithm.TORUS:
        passes = 2 if operation is Collective.ALL_REDUCE else 1
        return torus_loads(topology, level, groups, passes)
    loads = Loads(float)
    for group in groups:
        sent = messages(topology, group, operation, way) or []
        if way is Algorithm.RING and operation in CHAINS:
            closed = messages(topology, group, Collective.ALL_GATHER, way) or []
            back = operation is Collective.REDUCE
            turned = [(b, a, 1.0) if back else (a, b, 1.0) for a, b, _ in closed]
        else:
            turned = sent
        here = [m for m in sent if meeting_level(topology, *m[:2]) == level]
        if not here:
            continue
        kind = topology.levels[level].link.kind
        if way in (Algorithm.RING, Algorithm.TREE) and kind is LinkKind.FULL_MESH:
            found = all_orders(topology, level, turned)
        elif way is Algorithm.RING and passes_each_once(topology, level, group):
            found = all_cycles(topology, level, group, turned[0][2])
        else:
            found = routed(topology, level, here)
        for link, amount in found.items():
            loads[link] += amount
    return loads


def routed(topology: Topology, level: int, sent: Messages) -> Loads:
    """Every message that meets at a level, by the shortest way."""
    size, loads = topology.levels[level].size, Loads(float)
    for a, b, amount in sent:
        if meeting_level(topology, a, b) == level:
            x, y = entity(topology, level, a), entity(topology, level, b)
            for hop in hops(topology.levels[level].link, size, x % size, y % size):
                loads[(x // size, hop)] += amount
    return loads


@cache
def orders(count: int) -> list[tuple[int, ...]]:
    """Orders of so many, among which each one is followed by each other equally often."""
    if count in (2, 3, 5, 7):  # multiply and add modulo a prime
        both = [(a, b) for a in range(1, count) for b in range(count)]
        return [tuple((a * i + b) % count for i in range(count)) for a, b in both]
    return list(permutations(range(count)))


def all_orders(topology: Topology, level: int, sent: Messages) -> Loads:
    """A mesh: a ring for every order of the siblings, each with the same part of the payload.

    A chain lacks one edge of the ring, which in each order falls on another link: away from the
    root the links carry what the ring's do.
    """
    size, loads = topology.levels[level].size, Loads(float)
    ends = [(entity(topology, level, a), entity(topology, level, b), x) for a, b, x in sent]
    ends = [(a, b, x) for a, b, x in ends if a != b and a // size == b // size]
    for parent in {a // size for a, _, _ in ends}:
        here = [(a, b, x) for a, b, x in ends if a // size == parent]
        spots = sorted({end for a, b, _ in here for end in (a, b)})
        for order in orders(len(spots)):
            other = {spot: spots[order[i]] for i, spot in enumerate(spots)}
            for a, b, amount in here:
                loads[(parent, (other[a] % size, other[b] % size))] += amount / len(
                    orders(len(spots))
                )
    return loads


def passes_each_once(topology: Topology, level: int, group: Group) -> bool:
    """Whether a ring goes round all siblings of one set, no switch between them, and no others."""
    link, size = topology.levels[level].link, topology.levels[level].size
    spots = [entity(topology, level, device) for device in group]
    turns = sum(a != b for a, b in zip(spots, [*spots[1:], spots[0]], strict=True))
    whole = len(set(spots)) == turns == size and len({spot // size for spot in spots}) == 1
    return whole and link.kind in (LinkKind.RING, LinkKind.TORUS)


def all_cycles(topology: Topology, level: int, group: Group, amount: float) -> Loads:
    """The rings that go side by side: two in each dimension longer than 2, or just one or two."""
    one = topology.levels[level]
    dims = one.link.torus or (one.size,)
    rings = 1 if one.size == 2 else max(2, 2 * sum(length > 2 for length in dims))
    parent = entity(topology, level, group[0]) // one.size
    loads = Loads(float)
    for at in range(one.size):
        for d, length in enumerate(dims):
            for step in (1, -1)[: min(length - 1, 2)]:
                key = (parent, (tuple(_coordinates(dims, at)), d, step))
                loads[key] = amount / rings
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
    for a, b, amount in messages(topology, group, operation, way) or []:
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
