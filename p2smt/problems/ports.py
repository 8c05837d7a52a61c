"""Edges through switches, as ports: what leaves by some ports arrives by others.

In a fabric of ports an edge loads the port by which it leaves its source and the one by which it
arrives, and every two ranks behind a switch have an edge: n ranks have n (n - 1).  Encodings that
count what leaves and what arrives by each of the 2 n ports need no variable for an edge.

Which edges are a switch is told from their loads alone.  A capacity belongs to the sources of the
edges that load it if these have fewer sources than targets, to the targets if they have more, and
else to both.  Edges that share what belongs to both, and with it a source and what belongs to it,
or a target and what belongs to that, are together.  They are a switch if each port by which they
leave is joined once to each by which they arrive, but for *blocks*: ports that leave and ports that
arrive of which none are joined, such as those of one rank or of one node, and no port is in two.
Every edge of other ones, and of those that have as many ports, is a link: it has one port, by which
it leaves and arrives.

As many messages as leave a switch by its ports must arrive.  They can be paired, which takes that
no block has more of both together than there are messages: each is in it once at most.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from p2smt.problems.schedule import EdgeRow, ScheduleSymmetry

PortKey = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A rank, the capacities that belong to it, and those that belong to both ends."""
PortBlock = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PortSwitch:
    """Ports by which messages leave (``out``) and arrive (``into``), and the blocks of these."""

    out: tuple[int, ...]
    into: tuple[int, ...]
    blocks: tuple[PortBlock, ...]


@dataclass(frozen=True, slots=True)
class EdgePorts:
    """The ports of some edges: those of links first, then those of switches.

    ``leaves`` and ``arrives`` lead from every edge to its ports, ``joined`` back.  ``sources`` and
    ``targets`` are the ranks of every port, None at a switch; ``loads`` the capacities that each
    message loads that passes it, together those of its edge.
    """

    leaves: tuple[int, ...]
    arrives: tuple[int, ...]
    sources: tuple[int | None, ...]
    targets: tuple[int | None, ...]
    loads: tuple[tuple[int, ...], ...]
    switches: tuple[PortSwitch, ...]
    joined: Mapping[tuple[int, int], int]

    def __len__(self) -> int:
        return len(self.loads)

    def image(self, symmetry: ScheduleSymmetry) -> tuple[int, ...] | None:
        """Where a symmetry takes the ports; None: it takes the edges of one to several."""
        ways = (self.arrives, self.leaves) if symmetry.reverses else (self.leaves, self.arrives)
        found: dict[int, int] = {}
        for ports, moved in zip((self.leaves, self.arrives), ways, strict=True):
            for port, e in zip(ports, symmetry.edges, strict=True):
                if found.setdefault(port, moved[e]) != moved[e]:
                    return None
        return tuple(found[port] for port in range(len(self)))

    def most(self, *, copied: bool) -> tuple[int, ...]:
        """Of every port how many messages of a chunk can pass it in a step.

        Where it is copied each rank gets one, and else each rank sends one.
        """
        many, ends = Counter(self.arrives), self.sources
        if copied:
            many, ends = Counter(self.leaves), self.targets
        return tuple(many[port] if end is None else 1 for port, end in enumerate(ends))

    def edges(self, passing: NDArray[np.int64]) -> list[int]:
        """Edges for messages of which so many pass each port, as many from a switch as to it.

        No block may have more of both than pass its switch.
        """
        (at,) = passing.nonzero()
        counts = dict(zip(at.tolist(), passing[at].tolist(), strict=True))
        passed = [(port, port) for port in counts if (port, port) in self.joined]
        for one in self.switches:
            passed += paired(one, counts)
        return sorted(self.joined[pair] for pair in passed)

    @property
    def leaving(self) -> Mapping[int, list[int]]:
        """By rank the ports by which messages leave it."""
        return _by_rank(self.sources)

    @property
    def arriving(self) -> Mapping[int, list[int]]:
        """By rank the ports by which messages arrive at it."""
        return _by_rank(self.targets)

    def of_one_rank(self, block: PortBlock) -> bool:
        """Whether all ports of a block are those of one rank."""
        out, into = block
        return len({self.sources[p] for p in out} | {self.targets[p] for p in into}) == 1


def _by_rank(ends: Sequence[int | None]) -> Mapping[int, list[int]]:
    """The ports by the rank at their end; those of no rank are left out."""
    found = defaultdict(list)
    for port, rank in enumerate(ends):
        if rank is not None:
            found[rank].append(port)
    return found


def kept_ports(edges: Sequence[EdgeRow], symmetries: Sequence[ScheduleSymmetry]) -> EdgePorts:
    """The ports of the edges; all are links, if a symmetry takes the edges of a port to several."""
    found = edge_ports(tuple(edges))
    if any(found.image(one) is None for one in symmetries):
        return _numbered(edges, [])
    return found


@lru_cache(maxsize=4)
def edge_ports(edges: tuple[EdgeRow, ...]) -> EdgePorts:
    """The ports of the edges: of switches, where these have fewer ports than edges, and links."""
    ends = _port_keys(edges)
    return _numbered(edges, [one for one in _together(ends) if _is_switch(one, ends)])


def _port_keys(edges: Sequence[EdgeRow]) -> list[tuple[PortKey, PortKey]]:
    """By what each edge leaves and arrives, were it one of a switch."""
    sources: dict[int, set[int]] = defaultdict(set)
    targets: dict[int, set[int]] = defaultdict(set)
    for source, target, loads in edges:
        for k in loads:
            sources[k].add(source)
            targets[k].add(target)
    more = {k: len(targets[k]) - len(sources[k]) for k in sources}
    found = []
    for source, target, loads in edges:
        both = tuple(k for k in loads if more[k] == 0)
        out, into = (tuple(k for k in loads if more[k] * sign > 0) for sign in (1, -1))
        found.append(((source, out, both), (target, into, both)))
    return found


def _together(ends: Sequence[tuple[PortKey, PortKey]]) -> list[list[int]]:
    """Edges that have ports in common, and those that have some in common with these."""
    leaving, arriving = defaultdict(list), defaultdict(list)
    for e, (out, into) in enumerate(ends):
        leaving[out].append(e)
        arriving[into].append(e)
    found, seen = [], set[int]()
    for start in range(len(ends)):
        if start in seen:
            continue
        seen.add(start)
        one, done = [start], set[tuple[int, PortKey]]()
        for e in one:
            for side, by in enumerate((leaving, arriving)):
                port = ends[e][side]
                if (side, port) not in done:
                    done.add((side, port))
                    one += [other for other in by[port] if other not in seen]
                    seen.update(by[port])
        found.append(sorted(one))
    return found


def _is_switch(edges: Sequence[int], ends: Sequence[tuple[PortKey, PortKey]]) -> bool:
    """Whether all of its ports are joined but for blocks, and it has fewer ports than edges."""
    joined = {ends[e] for e in edges}
    out, into = (sorted({ends[e][side] for e in edges}) for side in (0, 1))
    if len(joined) < len(edges) or len(out) + len(into) >= len(edges):
        return False
    barred = {row for row in _barred(out, into, joined).values() if row}
    return max(Counter(port for row in barred for port in row).values(), default=1) == 1


def _barred(
    out: Sequence[PortKey], into: Sequence[PortKey], joined: set[tuple[PortKey, PortKey]]
) -> dict[PortKey, tuple[PortKey, ...]]:
    """Of each port that leaves those that it is not joined to."""
    return {a: tuple(b for b in into if (a, b) not in joined) for a in out}


def _numbered(edges: Sequence[EdgeRow], found: Sequence[Sequence[int]]) -> EdgePorts:
    """The ports, where these edges are switches, each its own, and all others links."""
    inside = {e for one in found for e in one}
    links = [e for e in range(len(edges)) if e not in inside]
    leaves = dict(zip(links, range(len(links)), strict=True))
    arrives, ends, switches = dict(leaves), _port_keys(edges), []
    rows: list[tuple[int | None, int | None, tuple[int, ...]]] = [edges[e] for e in links]
    for one in found:
        switch, at, to = _switch_from(len(rows), {ends[e] for e in one})
        rows += [(source, None, (*own, *both)) for source, own, both in at]
        rows += [(None, target, own) for target, own, _ in to]
        leaves |= {e: at[ends[e][0]] for e in one}
        arrives |= {e: to[ends[e][1]] for e in one}
        switches.append(switch)
    every = range(len(edges))
    return EdgePorts(
        *(tuple(leaves[e] for e in every), tuple(arrives[e] for e in every)),
        *(tuple(row[0] for row in rows), tuple(row[1] for row in rows)),
        *(tuple(row[2] for row in rows), tuple(switches)),
        {(leaves[e], arrives[e]): e for e in every},
    )


def _switch_from(
    first: int, joined: set[tuple[PortKey, PortKey]]
) -> tuple[PortSwitch, dict[PortKey, int], dict[PortKey, int]]:
    """A switch of ports numbered from ``first`` on; those that leave and that arrive, by key."""
    out, into = (sorted({pair[side] for pair in joined}) for side in (0, 1))
    at = {port: n for n, port in enumerate(out, first)}
    to = {port: n for n, port in enumerate(into, first + len(out))}
    groups: dict[tuple[PortKey, ...], list[int]] = defaultdict(list)
    for port, row in _barred(out, into, joined).items():
        if row:
            groups[row].append(at[port])
    blocks = tuple((tuple(own), tuple(to[b] for b in row)) for row, own in groups.items())
    return PortSwitch(tuple(at.values()), tuple(to.values()), blocks), at, to


# Which port that leaves a message that arrives left by.


def paired(switch: PortSwitch, counts: Mapping[int, int]) -> list[tuple[int, int]]:
    """Ports that leave and arrive, joined, each as often as ``counts`` says.

    As many must leave as arrive, and no block have more of both than these.  Then the block with
    the most left, of both, gives or takes one, and of the others that with the most does the
    other: so it stays true of what is left.
    """
    out = [port for port in switch.out if port in counts for _ in range(counts[port])]
    into = [port for port in switch.into if port in counts for _ in range(counts[port])]
    if not out:
        return []
    block = {port: n for n, one in enumerate(switch.blocks) for ports in one for port in ports}
    own = {port: block.get(port, -port - 1) for port in (*out, *into)}
    plain = list(zip(out, into, strict=True))
    if all(own[a] != own[b] for a, b in plain):
        return plain
    left = Counter(own[port] for port in (*out, *into))
    found = []
    while out:
        most = max(left, key=left.__getitem__)
        gives = any(own[port] == most for port in out)
        near, far = (out, into) if gives else (into, out)
        one = next(port for port in near if own[port] == most)
        other = max((p for p in far if own[p] != most), key=lambda p: left[own[p]])
        near.remove(one)
        far.remove(other)
        left -= Counter((most, own[other]))
        found.append((one, other) if gives else (other, one))
    return found
