"""Fabrics and level hierarchies as graphs of ranks and switches, whole or with failures.

A fabric's edges are ways over capacities.  Each capacity that edges share is two vertices, with an
arc between them that has its bandwidth; so every way in the graph from a rank to the next is an
edge of the fabric, and what cannot be drawn so is refused.  Of a level hierarchy the graph is made
without its edges, which are the square of its ranks (the rule: :mod:`p2smt.fabric.fabric_file`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

from p2smt.cluster.link import LinkKind
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric, FabricEdge
from p2smt.fabric.fabric_file import adjacent, digits, port_rate
from p2smt.fabric.symmetries import FabricSymmetry, fabric_symmetries
from p2smt.synthesis.certificate.forest import (
    END,
    Moves,
    NetworkArc,
    Orbits,
    TreeNetwork,
    arc_images,
    first_of,
    join,
    orbits_of,
)

MAX_FOREST_RANKS = 1024


@dataclass(frozen=True)
class ForestGround:
    """Where trees grow: a network, and symmetries that keep ``root`` (None: there is none).

    ``capacities``: of the arcs that are some of a fabric.
    """

    network: TreeNetwork
    symmetries: tuple[Moves, ...]
    root: int | None
    capacities: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def orbits(self) -> Orbits:
        """What symmetries make of each other."""
        return orbits_of(self.network, self.symmetries, self.root)

    @property
    def roots(self) -> tuple[int, ...]:
        """The ranks whose data goes to all."""
        return tuple(range(self.network.ranks)) if self.root is None else (self.root,)

    def reversed(self) -> ForestGround:
        """The same with every arc turned round."""
        return replace(self, network=self.network.reversed())


# What has failed.


@dataclass(frozen=True, slots=True)
class Failure:
    """A ``link`` between two ranks, or a network ``card`` by its number over all nodes."""

    what: str
    ends: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.what} {'-'.join(map(str, self.ends))}"


def failures_of(texts: Iterable[str]) -> tuple[Failure, ...]:
    """Failures written like ``link 0-4`` and ``card 3``, with commas between several.

    Raises:
        InputError: one does not read.
    """
    found = []
    for one in (part.strip() for text in texts for part in text.split(",")):
        read = re.fullmatch(r"(link) (\d{1,7})-(\d{1,7})|(card) (\d{1,7})", one, re.ASCII)
        if read is None:
            remedy = "such as 'link 0-4' or 'card 3'"
            raise InputError(f"--without {one[:40]!r}", "must be a link or a card", remedy)
        words = [word for word in read.groups() if word is not None]
        found.append(Failure(words[0], tuple(sorted(map(int, words[1:])))))
    return tuple(dict.fromkeys(found))


def _check_known(failed: Sequence[Failure], known: Iterable[Failure | None], name: str) -> None:
    there = set(known)
    for one in failed:
        if one not in there:
            own = [other.ends for other in there if other is not None and other.what == one.what]
            has = f"has {len(own)} {one.what}s" if own else f"has no {one.what}s"
            remedy = ""
            if own:
                remedy = f"such as {Failure(one.what, min(own))}"
            rule = f"is not there: {name[:60]} {has}"
            raise InputError(f"--without {str(one)!r}", rule, remedy)


def check_joined(net: TreeNetwork, root: int | None) -> None:
    """Refuse a network of which failures cut off ranks, and a root that is none of them.

    Raises:
        InputError: naming them.
    """
    if root is not None and root >= net.ranks:
        rule = f"the ranks are 0 to {net.ranks - 1}"
        raise InputError(f"root {root}", rule, "name one of them")
    if net.ranks < 2:
        raise InputError(f"fabric {net.name[:60]} of one rank", "sends nothing", "take two or more")
    reached = [_reached(turned) for turned in (net, net.reversed())]
    groups = [[rank for rank in range(net.ranks) if rank not in one] for one in reached]
    off = max(groups, key=len)
    if 2 * len(off) > net.ranks:  # rank 0 is of the smaller part
        off = [rank for rank in range(net.ranks) if rank not in off]
    if off:
        many = f"{', '.join(map(str, off[:8]))}{' ..' if len(off) > 8 else ''}"
        given = f"{'rank' if len(off) == 1 else 'ranks'} {many} of {net.name[:60]}"
        remedy = "leave a link, or take a fabric without them"
        raise InputError(given, "cut off from the others by what is left out", remedy)


def _reached(net: TreeNetwork) -> set[int]:
    known, frontier = {0}, [0]
    for vertex in frontier:
        for arc in net.around[vertex]:
            tail, head, _ = net.arcs[arc]
            if tail == vertex and head not in known:
                known.add(head)
                frontier.append(head)
    return known


# The graph in the making.


@dataclass(slots=True)
class _Making:
    """Vertices by key, the ranks first, and arcs."""

    names: list[str]
    numbers: dict[Hashable, int] = field(default_factory=dict)
    arcs: list[NetworkArc] = field(default_factory=list)

    def vertex(self, key: Hashable, name: str) -> int:
        """The number of a vertex, which is made where it is new."""
        if key not in self.numbers:
            self.numbers[key] = len(self.names)
            self.names.append(name)
        return self.numbers[key]

    def arc(self, tail: int, head: int, bandwidth: Fraction | None = None) -> None:
        """An arc; None: without a limit of its own."""
        self.arcs.append((tail, head, bandwidth))

    def done(self, name: str, ranks: int, measured: bool, failed: Sequence[Failure]) -> TreeNetwork:
        """The network."""
        without = tuple(map(str, failed))
        return TreeNetwork(name, ranks, measured, without, tuple(self.names), tuple(self.arcs))


# Of a fabric.


def ground_of_fabric(fabric: Fabric, root: int | None, failed: Sequence[Failure]) -> ForestGround:
    """The network of a fabric without what has failed, with the symmetries that are left.

    Raises:
        InputError: a failure is of nothing that is there, it cuts ranks off, or capacities are
            shared in another way than by links, switches and cards.
    """
    left = _without(fabric, failed)
    drawn = _Drawing(left, failed)
    check_joined(drawn.network, root)
    drawn.check()
    fixed = () if root is None else (root,)
    found = [drawn.moves(one) for one in fabric_symmetries(left, fixed=fixed)]
    kept = [one for one in found if arc_images(drawn.network, one) is not None]
    return ForestGround(drawn.network, tuple(kept), root, drawn.capacities)


def _without(fabric: Fabric, failed: Sequence[Failure]) -> Fabric:
    if not failed:
        return fabric
    names = _failing(fabric)
    _check_known(failed, names.values(), fabric.name)
    gone = {k for k, name in names.items() if name in failed}
    edges = tuple(edge for edge in fabric.edges if gone.isdisjoint(edge.loads))
    return replace(fabric, edges=edges, symmetries=())


def _failing(fabric: Fabric) -> dict[int, Failure]:
    """By capacity what fails with it."""
    found, cards = dict[int, Failure](), dict[str, int]()
    wires = _wires(fabric)
    for edge in fabric.edges:
        if edge.loads[0] in wires:
            ends = tuple(sorted((edge.source, edge.target)))
            found[edge.loads[0]] = Failure("link", ends)
    for k, one in enumerate(fabric.capacities):
        if named := re.fullmatch(r"(node \d+ card \d+) (?:out|in)", one.name):
            found[k] = Failure("card", (cards.setdefault(named[1], len(cards)),))
    return found


def _wires(fabric: Fabric) -> set[int]:
    """The capacities that just one edge loads, which loads nothing else."""
    users = Counter(k for edge in fabric.edges for k in edge.loads)
    alone = {edge.loads[0] for edge in fabric.edges if len(edge.loads) == 1}
    return {k for k in alone if users[k] == 1}


class _Drawing:
    """The graph that the edges of a fabric make; bandwidths in bytes per second, if it has a unit.

    On the way of an edge come the capacities that fewer ranks feed first, so ports inside before
    cards.  Where several lead to the same several, they meet in a vertex between.
    """

    def __init__(self, fabric: Fabric, failed: Sequence[Failure]) -> None:
        self.fabric, self.making = fabric, _Making([f"rank {r}" for r in range(fabric.ranks)])
        self._wires, self.capacities = _wires(fabric), dict[int, int]()
        feeding: list[set[int]] = [set() for _ in fabric.capacities]
        users = Counter(k for edge in fabric.edges for k in edge.loads)
        for edge in fabric.edges:
            for k in edge.loads:
                feeding[k].add(edge.source)
        self._order = [(len(ranks), -users[k], k) for k, ranks in enumerate(feeding)]
        self._draw()
        self.network = self.making.done(fabric.name, fabric.ranks, fabric.unit is not None, failed)

    def _way(self, edge: FabricEdge) -> list[int]:
        return sorted(edge.loads, key=lambda k: self._order[k])

    def _draw(self) -> None:
        first, last = set[tuple[int, int]](), set[tuple[int, int]]()
        after: dict[int, set[int]] = defaultdict(set)
        for edge in self.fabric.edges:
            way = self._way(edge)
            if way[0] in self._wires:
                self._arc(edge.source, edge.target, way[0])
                continue
            first.add((edge.source, way[0]))
            last.add((way[-1], edge.target))
            for a, b in pairwise(way):
                after[a].add(b)
        for k in sorted({k for _, k in first} | {k for k, _ in last} | set(after)):
            self._arc(*self._ends(k), k)
        for rank, k in sorted(first):
            self.making.arc(rank, self._ends(k)[0])
        for k, rank in sorted(last):
            self.making.arc(self._ends(k)[1], rank)
        self._join({k: frozenset(these) for k, these in after.items()})

    def _join(self, after: Mapping[int, frozenset[int]]) -> None:
        several = Counter(after.values())
        for k, these in sorted(after.items()):
            if several[these] == 1 or len(these) == 1:
                for b in sorted(these):
                    self.making.arc(self._ends(k)[1], self._ends(b)[0])
                continue
            new = these not in self.making.numbers
            meeting = self.making.vertex(these, f"before {self.fabric.capacities[min(these)].name}")
            self.making.arc(self._ends(k)[1], meeting)
            for b in sorted(these) if new else ():
                self.making.arc(meeting, self._ends(b)[0])

    def _ends(self, k: int) -> tuple[int, int]:
        name = self.fabric.capacities[k].name
        return self.making.vertex((k, 0), name), self.making.vertex((k, 1), name + END)

    def _arc(self, tail: int, head: int, k: int) -> None:
        self.capacities[len(self.making.arcs)] = k
        self.making.arc(tail, head, self.fabric.capacities[k].bandwidth * (self.fabric.unit or 1))

    def check(self) -> None:
        """Refuse a fabric that has no edge for some way in the graph.

        Raises:
            InputError: it is so.
        """
        known = {(e.source, e.target, e.loads) for e in self.fabric.edges}
        numbers = {number: key for key, number in self.making.numbers.items()}
        for rank in range(self.fabric.ranks):
            ways: list[tuple[int, tuple[int, ...]]] = [(rank, ())]
            for at, loads in ways:
                for arc in self.network.around[at]:
                    tail, head, _ = self.network.arcs[arc]
                    if tail != at or (head < self.fabric.ranks and head == rank):
                        continue
                    key = numbers.get(head)
                    more = (key[0],) if isinstance(key, tuple) and key[1] == 0 else ()
                    if head >= self.fabric.ranks:
                        ways.append((head, (*loads, *more)))
                    elif loads and (rank, head, tuple(sorted(loads))) not in known:
                        given = f"what edges of {self.fabric.name[:60]} share"
                        rule = "is not by links, switches and cards alone"
                        raise InputError(given, rule, "draw it with links, switches and network")

    def moves(self, one: FabricSymmetry) -> Moves:
        """Where a symmetry of the fabric takes the vertices; it is to be checked."""
        image = dict[int, int]()
        for edge, to in zip(self.fabric.edges, one.edges, strict=True):
            image.update(zip(self._way(edge), self._way(self.fabric.edges[to]), strict=False))
        found = dict(enumerate(one.ranks))
        for key, number in self.making.numbers.items():
            if isinstance(key, tuple):
                there: Hashable = (image.get(key[0], key[0]), key[1])
            else:
                there = frozenset(image.get(k, k) for k in key)  # type: ignore[attr-defined]
            found[number] = self.making.numbers.get(there, -1)
        return {a: b for a, b in found.items() if a != b}


# Of a level hierarchy.


_Key = tuple[Any, ...]
"""Of a vertex: level, devices of a run there, kind, and the first devices of its runs."""


def ground_of_levels(
    topology: Topology, root: int | None, failed: Sequence[Failure]
) -> ForestGround:
    """The network of a hierarchy's devices, on the nominal bandwidths, without what has failed.

    Hosts need not fill the levels, and uplinks need not be equal.  Ranks are the devices that are
    there, in their order.

    Raises:
        InputError: too many devices, ports that are more outside than inside, a failure of nothing
            that is there, or one that cuts ranks off.
    """
    if topology.installed > MAX_FOREST_RANKS:
        given = f"{topology.installed} devices of {topology.name[:60]}"
        rule = f"forests are of at most {MAX_FOREST_RANKS}"
        raise InputError(given, rule, "name fewer nodes, or --use")
    drawn = _Hierarchy(topology, frozenset(failed))
    _check_known(failed, drawn.known, topology.name)
    net = drawn.making.done(topology.name, topology.installed, True, failed)
    check_joined(net, root)
    return ForestGround(net, tuple(drawn.symmetries(net, root)), root)


@dataclass(frozen=True, slots=True)
class _Run:
    """Devices one after the other, and what leads out of them and into them."""

    first: int
    end: int
    out: tuple[int, ...]
    into: tuple[int, ...]


class _Hierarchy:
    """Ports, switches and links of all levels, from the innermost out; ``known``: what can fail."""

    def __init__(self, topology: Topology, failed: frozenset[Failure]) -> None:
        self.topology, self.failed = topology, failed
        self.places = sorted(topology.places)
        self.making = _Making([f"rank {rank}" for rank in range(len(self.places))])
        self.known: set[Failure] = set()
        self.widths: set[int] = set()
        runs = [_Run(d, d + 1, (n,), (n,)) for n, d in enumerate(self.places)]
        for level in reversed(range(len(topology.levels))):
            if topology.levels[level].link.kind is LinkKind.SWITCH:
                runs = self._switch(level, runs)
            else:
                self._links(level, runs)

    def _switch(self, level: int, runs: Sequence[_Run]) -> list[_Run]:
        """Every run of devices that shares a port gets it; siblings meet in a switch."""
        topology = self.topology
        link, under = topology.levels[level].link, topology.devices_under(level)
        width, several = max(1, under // link.ports), max(1, link.ports // under)
        self.widths.add(width)
        if any(run.end - run.first > width for run in runs):
            given = f"level {topology.levels[level].name} of {topology.name[:60]}"
            rule = "has more ports than a level inside it, so who takes which is lost"
            raise InputError(given, rule, "give the inner level as many ports")
        parts = topology.uplink_parts(level)
        made: list[_Run] = []
        for first, inner in _gathered(runs, width):
            entity, number = first // under, first // width
            rate = port_rate(link) * several * Fraction(parts[entity] if parts else 1)
            one = _Run(
                *(first, first + width),
                self._port(
                    (level, width, "out", first), [v for run in inner for v in run.out], rate
                ),
                self._port(
                    (level, width, "in", first), [v for run in inner for v in run.into], rate
                ),
            )
            name = Failure("card", (number,))
            if level == topology.node_level:
                self.known.add(name)
            if level != topology.node_level or name not in self.failed:
                made.append(one)
        span = under * topology.levels[level].size
        plain = all(one.link.kind is LinkKind.SWITCH for one in topology.levels[level + 1 :])
        for first, ports in _gathered(made, span):
            if plain:
                self._meet(level, span, first, ports)
            else:
                self._cross(ports, under)
        return made

    def _port(self, key: _Key, inner: Sequence[int], rate: Fraction) -> tuple[int]:
        """The port's far end from inside; what several feed first meets at its near end."""
        level, width, way, first = key[:4]
        name = f"{self.topology.levels[level].name} port {first // width} {way}"
        end = self.making.vertex(key, name)
        if len(inner) == 1:
            self._arc(inner[0], end, rate, way)
            return (end,)
        near = self.making.vertex((level, width, f"near {way}", first), f"{name} (shared)")
        for vertex in inner:
            self._arc(vertex, near, None, way)
        self._arc(near, end, rate, way)
        return (end,)

    def _arc(self, inner: int, outer: int, rate: Fraction | None, way: str) -> None:
        ends = (inner, outer) if way == "out" else (outer, inner)
        self.making.arc(*ends, rate)

    def _meet(self, level: int, span: int, first: int, ports: Sequence[_Run]) -> None:
        name = f"{self.topology.levels[level].name} switch over device {first}"
        switch = self.making.vertex((level, span, "switch", first), name)
        for port in ports:
            self.making.arc(port.out[0], switch)
            self.making.arc(switch, port.into[0])

    def _cross(self, ports: Sequence[_Run], under: int) -> None:
        """Ports of different entities are joined one by one: inside there are other ways."""
        for a in ports:
            for b in ports:
                if a.first // under != b.first // under:
                    self.making.arc(a.out[0], b.into[0])

    def _links(self, level: int, runs: Sequence[_Run]) -> None:
        """Links between entities that are neighbours."""
        under, size = self.topology.devices_under(level), self.topology.levels[level].size
        rate = port_rate(self.topology.levels[level].link)
        entities = dict(_gathered(runs, under))
        for a, out in entities.items():
            for b, into in entities.items():
                x, y = a // under, b // under
                if x // size != y // size or x == y:
                    continue
                if not adjacent(self.topology, level, x % size, y % size):
                    continue
                name = Failure("link", tuple(sorted((x, y))))
                if under == 1:
                    self.known.add(name)
                if under > 1 or name not in self.failed:
                    self._link((level, under), (a, b), rate, out, into)

    def _link(
        self,
        at: tuple[int, int],
        ends: tuple[int, int],
        rate: Fraction,
        out: Sequence[_Run],
        into: Sequence[_Run],
    ) -> None:
        tails = [vertex for run in out for vertex in run.out]
        heads = [vertex for run in into for vertex in run.into]
        if len(tails) == len(heads) == 1:
            self.making.arc(tails[0], heads[0], rate)
            return
        name = f"{self.topology.levels[at[0]].name} link from device {ends[0]} to {ends[1]}"
        near = self.making.vertex((*at, "near", *ends), name)
        end = self.making.vertex((*at, "end", *ends), name + END)
        self.making.arc(near, end, rate)
        for vertex in tails:
            self.making.arc(vertex, near)
        for vertex in heads:
            self.making.arc(end, vertex)

    # Symmetries: siblings trade places, or all of them go round; those that hold are kept.

    def symmetries(self, net: TreeNetwork, root: int | None) -> Iterator[Moves]:
        """Those that keep arcs and ``root``; each joins something that was apart before."""
        joined, at = list(range(len(net.vertices))), _Touching(self.making.numbers, self.places)
        for level, one in enumerate(self.topology.levels):
            under = self.topology.devices_under(level)
            span = under * one.size
            for parent in range(0, self.topology.devices, span):
                for pairs in self._trades(level, parent, under, one.size):
                    first, second = (at.rank(device) for device in pairs[0])
                    if first is None or second is None:
                        continue
                    if first_of(joined, first) == first_of(joined, second):
                        continue
                    moves = at.moves(pairs, under)
                    if moves is None or arc_images(net, moves) is None or root in moves:
                        continue
                    for a, b in moves.items():
                        join(joined, a, b)
                    yield moves

    def _trades(
        self, level: int, parent: int, under: int, size: int
    ) -> Iterator[list[tuple[int, int]]]:
        """Pairs of devices that are first of blocks of ``under``: from where to where."""
        link = self.topology.levels[level].link
        if link.kind in (LinkKind.SWITCH, LinkKind.FULL_MESH):
            for width in sorted({max(under, one) for one in self.widths} | {under}):
                each = width // under
                starts = range(parent, parent + size * under - width + 1, width)
                for n, a in enumerate(starts):
                    for b in starts[n + 1 :]:
                        there = [(a + i * under, b + i * under) for i in range(each)]
                        yield there + [(b, a) for a, b in there]
            return
        dims = link.torus or (size,)
        for d, length in enumerate(dims):
            stride = prod(dims[d + 1 :])
            turned = []
            for place in range(size):
                digit = digits(place, dims)[d]
                to = place + ((digit + 1) % length - digit) * stride
                turned.append((parent + place * under, parent + to * under))
            yield turned


class _Touching:
    """The vertices that have to do with each device, to move them with it."""

    def __init__(self, numbers: Mapping[Hashable, int], places: Sequence[int]) -> None:
        self._numbers = numbers
        self._ranks = {device: rank for rank, device in enumerate(places)}
        self._keys: dict[int, list[_Key]] = defaultdict(list)
        for key in numbers:
            if isinstance(key, tuple):
                for device in set(key[3:]):
                    self._keys[device].append(key)

    def rank(self, device: int) -> int | None:
        """The rank that a device is; None: it is not there."""
        return self._ranks.get(device)

    def moves(self, pairs: Sequence[tuple[int, int]], block: int) -> Moves | None:
        """Where blocks of devices go, with what belongs to them; None: it is not there."""
        to = {a + i: b + i for a, b in pairs for i in range(block)}
        found: dict[int, int] = {}
        for device, image in to.items():
            if (device in self._ranks) != (image in self._ranks):
                return None
            if device in self._ranks:
                found[self._ranks[device]] = self._ranks[image]
            for key in self._keys[device]:
                level, width, kind, *runs = key
                there = (level, width, kind, *(to.get(d, d) // width * width for d in runs))
                if there not in self._numbers:
                    return None
                found[self._numbers[key]] = self._numbers[there]
        return {a: b for a, b in found.items() if a != b}


def _gathered(runs: Iterable[_Run], width: int) -> Iterator[tuple[int, list[_Run]]]:
    """The runs of devices inside of each run of ``width``, with its first device."""
    found: dict[int, list[_Run]] = defaultdict(list)
    for run in runs:
        found[run.first // width * width].append(run)
    yield from found.items()
