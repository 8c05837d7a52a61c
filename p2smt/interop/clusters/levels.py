"""Hosts in a tree and what is inside a node, as a topology: the hull of the tree, and its uplinks.

A level is as large as the fullest of its switches needs.  The uplink of a switch is a link like
that of a node (fabric, latencies, efficiency), with a bandwidth of its own and one port.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.link import NETWORK, Link, LinkKind
from p2smt.cluster.nodes.blocking import blocking_levels
from p2smt.cluster.nodes.hosts import Hosts, Uplink
from p2smt.cluster.topology import MAX_DEVICES, Level, Topology
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.interop.clusters.facts import InsideFacts, OutsideFacts
from p2smt.interop.clusters.tree import HostTree, Path, listed
from p2smt.interop.clusters.uplinks import UplinkRates

_JOB_ALONE = "name the hosts of your job alone: --hosts FILE"


@dataclass(frozen=True, slots=True)
class Placed:
    """The hosts of a tree in its hull: how large levels are, and which entity each path leads to.

    ``sizes`` are those of the levels down to the nodes'; ``entities[j]`` has the path and number of
    each entity of level j, ``slots[i]`` is the place of the host i of the tree.
    """

    sizes: tuple[int, ...]
    entities: tuple[dict[Path, int], ...]
    slots: tuple[int, ...]


def placed(tree: HostTree) -> Placed:
    """The hull of a tree; whatever is under one switch is numbered in the order of the tree."""
    depth = len(tree.tiers)
    digits: dict[Path, int] = {}
    count: Counter[Path] = Counter()
    for path in dict.fromkeys(tree.paths):
        for j in range(depth):
            if path[: j + 1] not in digits:
                digits[path[: j + 1]] = count[path[:j]]
                count[path[:j]] += 1
    hosts = Counter(tree.paths)
    widest = [
        1 + max(digit for path, digit in digits.items() if len(path) == j + 1) for j in range(depth)
    ]
    sizes = (*widest, max(hosts.values()))
    entities = tuple[dict[Path, int], ...]({} for _ in range(depth))
    for path in digits:
        above = entities[len(path) - 2][path[:-1]] if len(path) > 1 else 0
        entities[len(path) - 1][path] = above * sizes[len(path) - 1] + digits[path]
    used: Counter[Path] = Counter()
    slots = []
    for path in tree.paths:
        first = entities[-1][path] * sizes[-1] if depth else 0
        slots.append(first + used[path])
        used[path] += 1
    return Placed(sizes, entities, tuple(slots))


def cluster_of(
    tree: HostTree,
    inside: InsideFacts,
    rates: UplinkRates,
    base: Topology,
    only: Sequence[str] | None = None,
) -> tuple[Topology, tuple[str, ...]]:
    """The topology of hosts, with ``base``'s name and library; and what was filled in.

    ``only``: these hosts alone.  How many nodes an uplink serves is counted before.

    Raises:
        InputError: the hull is too large, a rate names no level, the node has no network, or the
            tree lacks a host.
    """
    node = inside.levels[0]
    rates.check(tree.tiers, node.name)
    _check_node(inside, rates)
    part = tree if only is None else part_of(tree, only)
    hull = placed(part)
    _check_size(part, hull, inside)
    node = replace(node, size=hull.sizes[-1], link=node_link(node, rates))
    node_rate = node.link.ports * node.link.nominal_bytes_per_s
    levels, uplinks = [], []
    for j, tier in enumerate(tree.tiers):
        under = _hosts_under(tree, j)
        by_entity = {
            hull.entities[j][path]: rates.of(tier, count, node_rate)
            for path, count in under.items()
            if path in hull.entities[j]
        }
        most = max(by_entity.values())
        levels.append(Level(tier, hull.sizes[j], _uplink(node.link, most)))
        uplinks += [
            Uplink(j, entity, rate) for entity, rate in sorted(by_entity.items()) if rate != most
        ]
    hosts = _hosts(part, hull, tuple(uplinks), _assumed(tree, rates))
    found = replace(base, levels=(*levels, node, *inside.levels[1:]), hosts=hosts)
    return found, tuple(_filled_in(found, hosts))


def part_of(tree: HostTree, only: Sequence[str]) -> HostTree:
    """The tree with some of its hosts alone; levels stay, also those of one switch.

    Raises:
        InputError: it lacks one of them.
    """
    known = dict(zip(tree.hosts, tree.paths, strict=True))
    for host in only:
        if host in tree.left_out:
            over = tree.left_out[host]
            where = f"under {' and '.join(name[:80] for name in over[:4])}" if over else "nowhere"
            rule = f"is {where} in the files"
            raise InputError(f"host {host[:80]!r}", rule, "place it under one switch")
        if host not in known:
            remedy = did_you_mean(host, tree.hosts) or f"it has {listed(tree.hosts)}"
            raise InputError(f"host {host[:80]!r}", "is in none of the files", remedy)
    chosen = set(only)
    hosts = tuple(host for host in tree.hosts if host in chosen)
    return HostTree(tree.tiers, hosts, tuple(known[host] for host in hosts), {})


def _check_node(inside: InsideFacts, rates: UplinkRates) -> None:
    node = inside.levels[0]
    if not inside.link_known and not rates.states(node.name):
        rule = "the files do not tell how fast the network cards of a node are"
        remedy = f"give --nic 8x400Gb/s, or --uplink {node.name}=400GB/s"
        raise InputError(f"level {node.name}", rule, remedy)
    if node.link.fabric not in NETWORK:
        rule = f"its link is no network: none of {', '.join(NETWORK)}"
        raise InputError(f"level {node.name}", rule, "write fabric: infiniband in its file")


def check_count(facts: OutsideFacts, inside: InsideFacts) -> None:
    """Whether a topology has places for so many hosts, before a tree is made of them.

    Raises:
        InputError: it has not.
    """
    each = math.prod(level.size for level in inside.levels)
    count = len(set(facts.loose).union(*(holder.hosts for holder in facts.holders)))
    if count * each > MAX_DEVICES:
        rule = f"are more than {MAX_DEVICES} devices"
        raise InputError(f"{count} hosts of {each} devices", rule, _JOB_ALONE)


def _check_size(tree: HostTree, hull: Placed, inside: InsideFacts) -> None:
    each = math.prod(level.size for level in inside.levels)
    if math.prod(hull.sizes) * each > MAX_DEVICES:
        shape = " x ".join(
            f"{size} {name}"
            for size, name in zip(hull.sizes, (*tree.tiers, inside.levels[0].name), strict=True)
        )
        given = f"{len(tree.hosts)} hosts of {each} devices"
        rule = (
            f"need places for {shape} as the fullest switches are, more than {MAX_DEVICES} devices"
        )
        raise InputError(given, rule, _JOB_ALONE)


def node_link(node: Level, rates: UplinkRates) -> Link:
    """The link of a node with the rate that is given for it, which its ports share."""
    rate = rates.bytes_per_s.get(node.name)
    if rate is None:
        return node.link
    return _scaled(node.link, rate / node.link.ports / node.link.nominal_bytes_per_s)


def _uplink(node: Link, rate: float) -> Link:
    """The link of a switch: as that of nodes, of one port and another rate."""
    bare = replace(
        node,
        kind=LinkKind.SWITCH,
        ports=1,
        torus=(),
        device_bandwidth_bytes_per_s=None,
        in_switch_members=0,
        measured=(),
    )
    return _scaled(bare, rate / node.nominal_bytes_per_s)


def _scaled(link: Link, factor: float) -> Link:
    """A link whose pieces have so many times the bandwidth, to the nearest B/s."""
    pieces = tuple(
        replace(piece, bandwidth_bytes_per_s=max(1.0, round(piece.bandwidth_bytes_per_s * factor)))
        for piece in link.pieces
    )
    return replace(link, pieces=pieces)


def _hosts_under(tree: HostTree, level: int) -> Counter[Path]:
    """How many hosts each entity of a level has."""
    found: Counter[Path] = Counter()
    for path, count in Counter(tree.paths).items():
        found[path[: level + 1]] += count
    return found


def _hosts(
    tree: HostTree, hull: Placed, uplinks: tuple[Uplink, ...], assumed: tuple[str, ...]
) -> Hosts:
    order = sorted(range(len(tree.hosts)), key=hull.slots.__getitem__)
    switches = []
    for j, entities in enumerate(hull.entities):
        names = [""] * math.prod(hull.sizes[: j + 1])
        for path, entity in entities.items():
            names[entity] = path[-1]
        switches.append(tuple(names))
    return Hosts(
        tuple(tree.hosts[i] for i in order),
        tuple(hull.slots[i] for i in order),
        tuple(switches),
        uplinks,
        assumed,
        tuple(tree.left_out),
    )


def _assumed(tree: HostTree, rates: UplinkRates) -> tuple[str, ...]:
    return tuple(tier for tier in tree.tiers if not rates.states(tier))


def _filled_in(topology: Topology, hosts: Hosts) -> list[str]:
    """Sentences on bandwidths that nobody stated, and on trees that do not block."""
    found = []
    if hosts.assumed:
        last = hosts.assumed[-1]
        found.append(
            f"no source states the bandwidth of {listed(hosts.assumed)}: taken as that of all "
            f"nodes under it together, so that every order of the hosts is as good; give --uplink "
            f"{last}=400GB/s or --oversubscription {last}=4"
        )
    elif topology.node_level and not blocking_levels(topology):
        found.append(
            "no uplink is slower than the nodes under it together: every order of the hosts is "
            "optimal in bandwidth"
        )
    return found
