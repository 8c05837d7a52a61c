"""Hosts in a tree and what is inside a node, as a topology: the hull of the tree, and its uplinks.

A level is as large as the fullest of its switches needs.  The uplink of a switch is a link like
that of a node (fabric, latencies, efficiency), with a bandwidth of its own and one port.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from p2smt.cluster.allocation import as_known, blocking_levels
from p2smt.cluster.hosts import Hosts, Uplink
from p2smt.cluster.link import NETWORK, Link, LinkKind
from p2smt.cluster.topology import MAX_DEVICES, Level, Topology
from p2smt.errors import InputError, did_you_mean
from p2smt.interop.clusters.facts import InsideFacts, OutsideFacts
from p2smt.interop.clusters.switch_tree import HostTree, Path, listed
from p2smt.units import parse_bandwidth

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
            hull.entities[j][path]: _rate(tree, rates, tier, path, count, node_rate)
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


def _rate(
    tree: HostTree, rates: UplinkRates, tier: str, path: Path, nodes: int, node_rate: float
) -> float:
    """The uplink of an entity: as it is said beside the files, else as they tell it."""
    told = None if rates.states(tier) else tree.rates.get(path[-1])
    return rates.of(tier, nodes, node_rate) if told is None else told


def part_of(tree: HostTree, only: Sequence[str]) -> HostTree:
    """The tree with some of its hosts alone; levels stay, also those of one switch.

    Raises:
        InputError: it lacks one of them.
    """
    known = dict(zip(tree.hosts, tree.paths, strict=True))
    only = as_known(only, (*tree.hosts, *tree.left_out))
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
    return HostTree(tree.tiers, hosts, tuple(known[host] for host in hosts), {}, tree.rates)


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
    told = {j for path in tree.paths for j, name in enumerate(path) if name in tree.rates}
    return tuple(t for j, t in enumerate(tree.tiers) if not rates.states(t) and j not in told)


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


# Bandwidths of uplinks outside the nodes, which no source of switches states.
# ``--uplink leaf=400GB/s`` is that of each leaf's uplink, ``--oversubscription leaf=4`` makes it a
# quarter of what the nodes under that leaf can send together.  Without either a level is taken as
# non-blocking, and marked as assumed.


_TIMES = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(?::1)?")


@dataclass(frozen=True, slots=True)
class UplinkRates:
    """What is said of uplinks by level: B/s of each, or how often their nodes can fill them."""

    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    oversubscription: Mapping[str, float] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether anything is said."""
        return bool(self.bytes_per_s or self.oversubscription)

    def check(self, levels: Sequence[str], node: str) -> None:
        """Refuses levels that are none of these; the last is that of nodes.

        Raises:
            InputError: a level is unknown, or the node's is to be oversubscribed.
        """
        known = (*levels, node)
        for option, names in (
            ("uplink", self.bytes_per_s),
            ("oversubscription", self.oversubscription),
        ):
            if others := [name for name in names if name not in known]:
                rule = (
                    f"the levels are {', '.join(known)}" if levels else f"the only level is {node}"
                )
                remedy = did_you_mean(others[0], known) or "name one of them"
                raise InputError(f"--{option} {others[0][:40]}", rule, remedy)
        if node in self.oversubscription:
            rule = "is of switches: nodes are what it is counted in"
            raise InputError(f"oversubscription of {node}", rule, f"give --uplink {node}=RATE")

    def of(self, level: str, nodes: int, node_rate: float) -> float:
        """The rate in B/s of the uplink of an entity of a level that has so many nodes under it."""
        if level in self.bytes_per_s:
            return self.bytes_per_s[level]
        return max(1.0, float(round(nodes * node_rate / self.oversubscription.get(level, 1.0))))

    def states(self, level: str) -> bool:
        """Whether anything is said of a level."""
        return level in self.bytes_per_s or level in self.oversubscription


def parse_uplinks(uplink: Sequence[str], oversubscription: Sequence[str]) -> UplinkRates:
    """The rates in texts such as ``leaf=400GB/s`` and ``leaf=4``; several stand with commas.

    Raises:
        InputError: a text is malformed, or a level is named twice.
    """
    rates = _by_level(uplink, "uplink", "leaf=400GB/s")
    times = _by_level(oversubscription, "oversubscription", "leaf=4")
    if both := set(rates).intersection(times):
        rule = "has an uplink and an oversubscription"
        raise InputError(f"level {min(both)[:40]!r}", rule, "keep one of the two")
    return UplinkRates(
        {level: parse_bandwidth(text, f"uplink of {level[:40]}") for level, text in rates.items()},
        {level: _times(text, level) for level, text in times.items()},
    )


def _by_level(texts: Sequence[str], what: str, example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in [part for text in texts for part in text.split(",")]:
        level, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not level or not value:
            raise InputError(
                f"--{what} {part[:60]!r}", "is LEVEL=VALUE", f"write --{what} {example}"
            )
        if level in found:
            raise InputError(f"--{what} {level[:40]!r}", "is given twice", "keep one of them")
        found[level] = value
    return found


def _times(text: str, level: str) -> float:
    """A number such as 4, 1.5 or 4:1."""
    found = _TIMES.fullmatch(text)
    if found is None or not float(found[1]):
        given = f"oversubscription of {level[:40]} {text[:40]!r}"
        raise InputError(given, "must be a number above 0", "write leaf=4")
    return float(found[1])
