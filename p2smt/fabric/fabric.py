"""A fabric: logical edges between ranks, and the capacities that they load.

Switches are contracted: an edge goes from rank to rank, and names the capacities on its way, such
as the port by which it leaves and the one by which it arrives.  Two ways between the same ranks
are two edges.  Switches neither store nor copy nor reduce.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from p2smt.errors import InputError
from p2smt.units import exact_bandwidth

MAX_RANKS = 1024
MAX_EDGES = 2**20
MAX_RATIO = 1000
"""Of the largest bandwidth to the unit, if nobody names one: beyond it schedules have no end."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What edges share: together they carry ``bandwidth`` chunks in a round, in units."""

    name: str
    bandwidth: Fraction

    def __post_init__(self) -> None:
        if self.bandwidth.numerator <= 0:
            rule = "must be positive"
            raise InputError(f"bandwidth {self.bandwidth} of {self.name[:60]}", rule)


@dataclass(frozen=True, slots=True, order=True)
class FabricEdge:
    """A way from one rank to another; ``loads`` are numbers of capacities, ascending."""

    source: int
    target: int
    loads: tuple[int, ...]


def edge_key(edge: FabricEdge) -> tuple[int, int, tuple[int, ...]]:
    """What edges are sorted by."""
    return edge.source, edge.target, edge.loads


@dataclass(frozen=True, slots=True)
class Fabric:
    """Ranks 0, 1, .., the capacities and the edges between the ranks, sorted.

    ``unit``: bytes per second of one unit of bandwidth, exactly; None where no bandwidth has a
    unit of its own.  ``symmetries``: where some that the fabric is said to have take its ranks.
    """

    name: str
    ranks: int
    capacities: tuple[Capacity, ...]
    edges: tuple[FabricEdge, ...]
    unit: Fraction | None = None
    description: str = ""
    sources: tuple[str, ...] = ()
    symmetries: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        check_size(self.ranks, len(self.edges))
        keys = [edge_key(edge) for edge in self.edges]
        if any(a > b for a, b in pairwise(keys)):
            raise InputError(f"edges of fabric {self.name[:60]}", "must be sorted")
        for edge in self.edges:
            self._check_edge(edge)

    def _check_edge(self, edge: FabricEdge) -> None:
        a, b, ranks, loads = edge.source, edge.target, self.ranks, edge.loads
        if a == b or not (0 <= a < ranks and 0 <= b < ranks):
            rule = f"must join two of the ranks 0 to {self.ranks - 1}"
            raise InputError(f"edge from {edge.source} to {edge.target}", rule)
        ascending = len(loads) == 1 or list(loads) == sorted(set(loads))
        inside = loads and loads[0] >= 0 and loads[-1] < len(self.capacities)
        if not (ascending and inside):
            rule = f"must be numbers of the {len(self.capacities)} capacities, ascending"
            raise InputError(f"loads {list(edge.loads)[:8]} of an edge", rule)

    @property
    def edge_rows(self) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
        """Source, target and loaded capacities of each edge, as problems have them."""
        return tuple(edge_key(edge) for edge in self.edges)

    @property
    def bandwidths(self) -> tuple[Fraction, ...]:
        """Of each capacity."""
        return tuple(capacity.bandwidth for capacity in self.capacities)

    def reversed(self) -> Fabric:
        """The fabric with every edge turned round, which loads the same capacities."""
        turned = sorted([FabricEdge(e.target, e.source, e.loads) for e in self.edges], key=edge_key)
        return replace(self, edges=tuple(turned))

    def reached(self, start: int, *, back: bool = False) -> frozenset[int]:
        """The ranks to which data of one can come (``back``: whose data can come to it).

        It is one of them.
        """
        after: list[list[int]] = [[] for _ in range(self.ranks)]
        for edge in self.edges:
            if back:
                after[edge.target].append(edge.source)
            else:
                after[edge.source].append(edge.target)
        known, frontier = {start}, [start]
        for rank in frontier:
            if len(known) == self.ranks:
                break
            frontier += sorted(set(after[rank]) - known)
            known.update(after[rank])
        return frozenset(known)

    def check_connected(self) -> None:
        """Refuse a fabric in which some rank cannot reach another.

        Raises:
            InputError: naming two such ranks.
        """
        for back, word in ((False, "to"), (True, "from")):
            if cut_off := set(range(self.ranks)) - self.reached(0, back=back):
                rule = f"has no way {word} rank {min(cut_off)}"
                remedy = "add a link, or leave the rank out"
                raise InputError(f"rank 0 of fabric {self.name[:60]}", rule, remedy)


def check_size(ranks: int, edges: int) -> None:
    """Refuse a fabric that is too large, which can be known before it is made.

    Raises:
        InputError: no ranks, or too many, or too many edges.
    """
    if not 1 <= ranks <= MAX_RANKS:
        remedy = "name fewer nodes" if ranks else ""
        raise InputError(f"{ranks} ranks", f"a fabric has 1 to {MAX_RANKS}", remedy)
    if edges > MAX_EDGES:
        rule = f"a fabric has at most {MAX_EDGES}"
        raise InputError(f"{edges} edges", rule, "name fewer nodes")


def unit_of(bandwidths: Iterable[Fraction], asked: Fraction | None = None) -> Fraction:
    """The unit of bandwidths in bytes per second: the one asked for, else the greatest common one.

    Raises:
        InputError: they are so uneven that the greatest common unit is no use.
    """
    if asked is not None:
        return asked
    every = sorted(set(bandwidths))
    common = math.lcm(*(b.denominator for b in every))
    unit = Fraction(math.gcd(*(int(b * common) for b in every)), common)
    if every[-1] / unit > MAX_RATIO:
        least, most = (exact_bandwidth(float(one)) for one in (every[0], every[-1]))
        given = f"bandwidths from {least} to {most}"
        rule = f"have no common unit that the largest holds at most {MAX_RATIO} times"
        raise InputError(given, rule, "name one with --unit, such as --unit 25GB/s")
    return unit
