"""Brute-force price of one step under a library, from its data and the load of every link.

Written from the rules of docs/cost-model.md alone: no code of the cost model is used, only types
and the library's data.  A group is a list in communicator order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from p2smt.cluster.library.model import Library
from p2smt.cluster.topology import Algorithm, Link, LinkKind, Topology
from p2smt.collectives.names import Collective, RequestKind
from tests.oracles.loads import (
    Group,
    Loads,
    Operation,
    Way,
    by_node,
    device_ports,
    entity,
    meeting_level,
    messages,
    nodes_of,
    send_loads,
    sibling_draws,
    sibling_loads,
    sibling_send_draws,
    switch_loads,
    walk,
)

IN_SWITCHES = (Algorithm.NVLS, Algorithm.NVLS_TREE)
PIPELINED = (Algorithm.TREE, *IN_SWITCHES)
FAMILY = {
    Algorithm.RING: "ring",
    Algorithm.TREE: "tree",
    Algorithm.NVLS: "nvls",
    Algorithm.NVLS_TREE: "nvls",
    Algorithm.PAT: "pat",
}


def price(
    topology: Topology,
    library: Library,
    groups: Sequence[Group],
    operation: Operation,
    algorithm: Algorithm | None,
    protocol: str,
    payload: float,
) -> float:
    """Seconds of one call of all groups at once; ``algorithm`` None: from peer to peer."""
    orders = [walk(topology, group, library.joins_nodes) for group in groups]
    if operation is RequestKind.SEND:  # goes from rank to rank, whatever a ring would do
        orders = [list(group) for group in groups]
    several = any(len(by_node(topology, group)) > 1 for group in groups)
    call = dict(library.calls)[operation.value]
    call += dict(library.calls_on).get(topology.levels[-1].link.fabric, 0.0)
    call = dict(topology.calls).get(operation.value, call)
    if several:
        outside = [level for j, level in enumerate(topology.levels) if not _inside(topology, j)]
        joining = outside[-1].link.fabric
        across = dict(library.calls_across)
        call += across.get(joining, across.get("network", 0.0))
    call *= topology.call_factor
    hops = [
        _hop(topology, library, groups, operation, algorithm, protocol, j)
        for j in _levels(topology)
    ]
    sent = carried_by(library, operation)
    steps = [_steps(topology, order, sent, algorithm) for order in orders]
    latency = max(_latency(one, hops, operation) for one in steps)
    wire = max(level_seconds(topology, library, orders, operation, algorithm, protocol, payload))
    crossed = {j for one in steps for j, count in one.items() if count}
    stage = sum(
        max((hops[j] for j in crossed if inside is _inside(topology, j)), default=0.0)
        for inside in (False, True)
    )
    fill = 0.0
    if (
        algorithm in PIPELINED and stage
    ):  # chunks that are waited for, and stages of those in flight
        chunks = _waited_for(topology, groups)
        flying = library.in_flight * max(1.0, chunks / 2)
        fill = min(math.sqrt(4 * chunks * wire * stage), flying * stage)
    return call + latency + wire + fill


def _waited_for(topology: Topology, groups: Sequence[Group]) -> int:
    """Chunks before a pipeline's links are busy: two a round, but of one member per node one for
    each round but the first."""
    nodes = [by_node(topology, group) for group in groups]
    rounds = math.ceil(math.log2(max(map(len, nodes))))
    if any(len(members) > 1 for one in nodes for members in one):
        return 2 * max(1, rounds)
    return max(0, rounds - 1)


def carried_by(library: Library, operation: Operation) -> Operation:
    """The operation whose messages a library sends for this one."""
    return next((sent for asked, sent in library.sent_as if asked is operation), operation)


def _levels(topology: Topology) -> range:
    return range(len(topology.levels))


def _inside(topology: Topology, level: int) -> bool:
    """Whether a level is inside a node."""
    nodes = nodes_of(topology)
    return nodes is None or level > nodes


# Latency ----------------------------------------------------------------------------------


def _hop(
    topology: Topology,
    library: Library,
    groups: Sequence[Group],
    operation: Operation,
    algorithm: Algorithm | None,
    protocol: str,
    level: int,
) -> float:
    link = topology.levels[level].link
    family = "p2p" if algorithm is None else FAMILY.get(algorithm, "p2p")
    alone = all(len(members) == 1 for group in groups for members in by_node(topology, group))
    if alone and family == "ring" and not _inside(topology, level):
        family = "tree"  # nothing inside a node to hide the network's latency behind
    measured, pace, more = dict(link.hops), 1.0, 0.0
    if family == "nvls" and _inside(topology, level):
        local = max(len(members) for group in groups for members in by_node(topology, group))
        more = library.switch_member * max(0, local - 8)
    spans = any(len(by_node(topology, group)) > 1 for group in groups)
    if algorithm is Algorithm.RING and spans and _inside(topology, level):
        pace = library.ring_pace  # of the network, through which every part passes in turn
    for name in (f"{operation.value}-{protocol}", f"{family}-{protocol}", protocol, "any"):
        if name in measured:
            return pace * measured[name] + more
    outside = link.network or not _inside(topology, level)
    known = dict(library.hops)
    for place in (link.fabric, "network" if outside else "inside"):
        for kind in (family, "p2p", "ring"):
            if (place, kind, protocol) in known:
                return pace * known[place, kind, protocol] + more
    return more


def _latency(steps: Counter[int], hops: Sequence[float], operation: Operation) -> float:
    if operation is RequestKind.SEND:  # messages are alone: the slowest counts
        return max((hops[j] for j in steps), default=0.0)
    return sum(count * hops[j] for j, count in steps.items())


def _steps(
    topology: Topology, order: Group, operation: Operation, algorithm: Algorithm | None
) -> Counter[int]:
    """Steps whose latency is paid, by level, of one group in the order of its ring."""
    passes = 2 if operation is Collective.ALL_REDUCE else 1
    meets = Counter(meeting_level(topology, a, b) for a, b in pairwise(order))
    if not meets or operation is RequestKind.SEND:
        return meets
    doubled = _doublings(topology, order)
    nodes = [sorted(members) for members in by_node(topology, order)]
    inner = [meeting_level(topology, a, b) for node in nodes for a, b in pairwise(node)]
    match algorithm:
        case None:
            return _batches(topology, order)
        case Algorithm.RING:
            found = meets
        case Algorithm.TREE:
            edges = {j: math.ceil(n / len(nodes)) for j, n in Counter(inner).items()}
            found = Counter({j: n for j, n in doubled.items() if not _inside(topology, j)} | edges)
        case Algorithm.NVLS | Algorithm.NVLS_TREE:
            between = {j: n for j, n in doubled.items() if not _inside(topology, j)}
            found = Counter(between | _once(inner))
        case Algorithm.PAT | Algorithm.HALVING_DOUBLING:
            found = doubled
        case Algorithm.DIRECT:
            found = Counter({min(meets): 1})
        case Algorithm.SCATTER_GATHER:
            return meets + Counter({min(meets): 1})
        case Algorithm.BINOMIAL:
            return _binomial(topology, order)
        case _:
            raise NotImplementedError(algorithm)
    return Counter({j: passes * n for j, n in found.items()})


def _once(inner: Sequence[int]) -> dict[int, int]:
    return {min(inner): 1} if inner else {}


def _doublings(topology: Topology, group: Group) -> Counter[int]:
    counts = [1, *(len({entity(topology, j, d) for d in group}) for j in _levels(topology))]
    return Counter({j: math.ceil(math.log2(b / a)) for j, (a, b) in enumerate(pairwise(counts))})


def _batches(topology: Topology, group: Group) -> Counter[int]:
    """Peers of a member (on average) that meet it at each level, eight at once; Gloo's all."""
    p, found = len(group), Counter[int]()
    inside = [p, *(p / len({entity(topology, j, d) for d in group}) for j in _levels(topology))]
    for j, (outer, inner) in enumerate(pairwise(inside)):
        at_once = p if topology.library_name == "gloo" else 8
        found[j] = math.ceil((outer - inner) / at_once)
    return found


def _binomial(topology: Topology, group: Group) -> Counter[int]:
    found, reached = Counter[int](), 1
    while reached < len(group):
        pairs = list(zip(group[:reached], group[reached:], strict=False))
        found[min(meeting_level(topology, a, b) for a, b in pairs)] += 1
        reached += len(pairs)
    return found


# Transfer ---------------------------------------------------------------------------------


def level_seconds(
    topology: Topology,
    library: Library,
    orders: Sequence[Group],
    operation: Operation,
    algorithm: Algorithm | None,
    protocol: str,
    payload: float,
) -> list[float]:
    """Seconds that the worst link of each level transfers."""
    found = []
    for j, level in enumerate(topology.levels):
        load, draw = _loads(topology, j, orders, carried_by(library, operation), algorithm)
        part = _part(level.link, operation, algorithm)
        part = min(part, _most(topology, library, j, orders, operation, algorithm))
        rule = dict(library.protocols)[protocol]
        if algorithm is Algorithm.TREE and j == nodes_of(topology):
            part *= rule.two_children if _two_children(topology, library, orders) else 1.0
        rate = max(p.bandwidth_bytes_per_s for p in level.link.pieces) * part * rule.efficiency
        each = level.link.device_bandwidth_bytes_per_s or math.inf
        each *= part * rule.efficiency
        if j == len(topology.levels) - 1:
            most = dict(rule.caps).get(level.link.fabric, math.inf)
            if level.link.kind is LinkKind.SWITCH:  # a device's one link
                rate = min(rate, most)
            else:
                each = min(each, most)
        found.append(max(payload * load / rate, payload * draw / each))
    return found


def _most(
    topology: Topology,
    library: Library,
    level: int,
    orders: Sequence[Group],
    operation: Operation,
    algorithm: Algorithm | None,
) -> float:
    """The part of its cards' rate that a node sends at most: of an exchange, and by NVLS trees."""
    link = topology.levels[level].link
    if level != nodes_of(topology) or operation.value in dict(link.efficiency):
        return math.inf
    under = math.prod(topology.sizes[level + 1 :])
    local = max(len(members) for order in orders for members in by_node(topology, order))
    cards = max(1, min(link.ports, math.ceil(link.ports * local / under)))
    rate = cards * max(piece.bandwidth_bytes_per_s for piece in link.pieces)
    if algorithm is Algorithm.NVLS_TREE and "nvls-tree" not in dict(link.efficiency):
        return library.handover_rate / rate
    exchange = algorithm is None and operation is RequestKind.ALL_TO_ALL
    return library.exchange_rate * local / rate if exchange else math.inf


def _two_children(topology: Topology, library: Library, orders: Sequence[Group]) -> bool:
    """Whether two children of a tree send into one card: over more than three nodes some may.

    They do where devices share cards; known of some generations alone.
    """
    nodes, node = max(len(by_node(topology, one)) for one in orders), nodes_of(topology)
    formula = library.formula
    if formula is None or node is None or nodes <= 3:
        return False
    inner = next((v.link.fabric for v in topology.levels[node + 1 :] if v.link.fabric), "")
    hardware = dict(formula.hardware)
    generation = hardware.get(inner, hardware[formula.inside]).generation
    shared = math.prod(topology.sizes[node + 1 :]) >= 2 * topology.levels[node].link.ports
    return shared and generation in formula.search.plain_tree


def _part(link: Link, operation: Operation, algorithm: Algorithm | None) -> float:
    names = [operation.value, *([] if algorithm is None else [algorithm.value])]
    if algorithm is Algorithm.NVLS_TREE:  # between nodes a tree, inside them the switches
        names.append("tree" if link.network else "nvls")
    known = dict(link.efficiency)
    return next((known[name] for name in (*names, "any") if name in known), 1.0)


def _loads(
    topology: Topology,
    level: int,
    orders: Sequence[Group],
    operation: Operation,
    algorithm: Algorithm | None,
) -> tuple[float, float]:
    """Load of the worst link and draw of the worst device at a level, per payload byte."""
    sibling = topology.levels[level].link.kind is not LinkKind.SWITCH
    if algorithm in IN_SWITCHES and _inside(topology, level) and not sibling:
        both = _through_switches(topology, level, orders, operation)
    elif operation is RequestKind.SEND:
        sent = [m for order in orders for m in messages(topology, order, operation, "send") or []]
        if sibling:
            loads = sibling_loads(topology, level, orders, operation, "send")
            both = loads, sibling_send_draws(topology, level, sent)
        else:
            both = send_loads(topology, level, sent)
    else:
        way: Way = algorithm or "pairwise"
        if algorithm is Algorithm.NVLS_TREE:
            way = Algorithm.TREE
        if algorithm is Algorithm.PAT:  # others meet than pair by pair, as much leaves an entity
            way = "pairwise"
        if sibling:
            both = (
                sibling_loads(topology, level, orders, operation, way),
                sibling_draws(topology, level, orders, operation, way),
            )
        else:
            both = switch_loads(topology, level, orders, operation, way)
    return max(both[0].values(), default=0.0), max(both[1].values(), default=0.0)


def _through_switches(
    topology: Topology, level: int, orders: Sequence[Group], operation: Operation
) -> tuple[Loads, Loads]:
    """Each member hands the switch its payload once; an all-reduce also spreads the result."""
    ports, draws = Loads(float), Loads(float)
    most = max(len(node) for order in orders for node in by_node(topology, order))
    moved = 1 + 1 / most if operation is Collective.ALL_REDUCE else 1.0
    for order in orders:
        for place in {entity(topology, level, d) for d in order}:
            inside = [d for d in order if entity(topology, level, d) == place]
            if len(inside) == len(order):
                continue
            reached = {port for d in inside for port in device_ports(topology, level, d)}
            for port in reached:
                ports[place, port] += len(inside) * moved / len(reached)
            for device in inside:
                draws[device] += moved
    return ports, draws


def can_carry(
    topology: Topology, orders: Sequence[Group], operation: Operation, algorithm: Algorithm
) -> bool:
    """Whether links and groups allow an algorithm; otherwise a ring runs."""
    siblings = {
        j
        for order in orders
        for a, b in pairwise(sorted(order))
        if topology.levels[j := meeting_level(topology, a, b)].link.kind is not LinkKind.SWITCH
    }
    alike = len({len(order) for order in orders}) == 1
    even = alike and _even(topology, orders)
    match algorithm:
        case Algorithm.RING:
            return True
        case Algorithm.PAT | Algorithm.DIRECT if not alike:
            return False
        case Algorithm.TREE:
            return all(_inside(topology, j) for j in siblings)
        case Algorithm.NVLS_TREE | Algorithm.NVLS | Algorithm.PAT:
            return not siblings
        case Algorithm.BINOMIAL | Algorithm.SCATTER_GATHER:
            return even and not siblings
        case Algorithm.DIRECT:
            meshes = {topology.levels[j].link.kind for j in siblings} <= {LinkKind.FULL_MESH}
            return meshes or operation is Collective.ALL_REDUCE
    raise NotImplementedError(algorithm)


def _even(topology: Topology, orders: Sequence[Group]) -> bool:
    for j in _levels(topology):
        spots = [[entity(topology, j, d) for d in order] for order in orders]
        if len({n for one in spots for n in Counter(one).values()}) > 1:
            return False
        if any(1 + sum(a != b for a, b in pairwise(one)) > len(set(one)) for one in spots):
            return False
    return True
