"""Hypothesis strategies for small clusters with every kind of link, and placements on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective
from p2smt.parallelism.placement import Placement

MAX_DEVICES = 36
_TWO_AXES = "1x1 2x1 1x2 2x2 3x1 1x3 4x1 2x3 3x2 1x5 6x1"
_THREE_AXES = "1x1x1 2x1x2 1x2x1 2x2x1 1x2x3 2x1x1 1x1x4"
_COLUMNS = [
    [tuple(map(int, column.split("x"))) for column in text.split()]
    for text in (_TWO_AXES, _TWO_AXES, _THREE_AXES)
]
"""Columns of a matrix (a level's split over the axes); two axes are drawn more often."""

LIBRARY_KEYS = st.sampled_from([Collective.REDUCE, Collective.BROADCAST, *Collective])


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, a placement on it, and the axes that a request reduces."""

    topology: Topology
    placement: Placement
    axes: tuple[int, ...]


@st.composite
def pieces(draw: st.DrawFn) -> tuple[Piece, ...]:
    """One or two protocols; latencies may be zero, and larger inside than outside."""
    names = draw(st.sampled_from([("simple",), ("simple", "ll"), ("ll",)]))
    latency = st.sampled_from([0.0, 1.0, 3.0, 10.0])
    bandwidth = st.sampled_from([1.0, 4.0, 9.0, 50.0])
    return tuple(Piece(name, draw(latency), draw(bandwidth)) for name in names)


@st.composite
def links(draw: st.DrawFn, size: int, under: int) -> Link:
    """A link for a level of this size with so many devices under each entity."""
    kind = draw(st.sampled_from([LinkKind.SWITCH, LinkKind.SWITCH, *LinkKind]))
    measured = ((draw(st.sampled_from(Collective)), draw(pieces())),) if draw(st.booleans()) else ()
    cap = draw(st.sampled_from([None, None, 1.0, 5.0]))
    if kind is not LinkKind.SWITCH:
        dims = draw(st.sampled_from(_factorings(size))) if kind is LinkKind.TORUS else ()
        found = Link(kind, draw(pieces()), torus=dims, measured=measured)
        return replace(found, device_bandwidth_bytes_per_s=cap)
    ports = [p for p in range(1, under + 1) if under % p == 0]
    return Link(
        kind,
        draw(pieces()),
        ports=draw(st.sampled_from([1, *ports, 2 * under])),
        device_bandwidth_bytes_per_s=cap,
        in_switch_members=draw(st.sampled_from([0, 2, 3, 5])),
        measured=measured,
    )


def _factorings(size: int) -> list[tuple[int, ...]]:
    pairs = [(a, size // a) for a in range(1, size + 1) if size % a == 0]
    return [(size,), *pairs, *((a, 1, b) for a, b in pairs)]


@st.composite
def placements(draw: st.DrawFn, devices: int = MAX_DEVICES) -> Placement:
    """A matrix of two or three axes and two or three levels of sizes 1 to 6."""
    choices = draw(st.sampled_from(_COLUMNS))
    columns: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(2, 3))):
        left = devices // math.prod(math.prod(column) for column in columns)
        columns.append(draw(st.sampled_from([c for c in choices if math.prod(c) <= left])))
    return Placement(tuple(zip(*columns, strict=True)))


@st.composite
def topologies(draw: st.DrawFn, sizes: tuple[int, ...]) -> Topology:
    """A cluster with these level sizes, some of the algorithms, and perhaps a library's own."""
    nodes = draw(st.sampled_from([None, *range(-1, len(sizes))]))
    fabrics = ["" if nodes is None else "efa" if j <= nodes else "pcie" for j in range(len(sizes))]
    found = [draw(links(size, math.prod(sizes[j + 1 :]))) for j, size in enumerate(sizes)]
    levels = tuple(
        Level(f"l{j}", size, replace(link, fabric=fabric))
        for j, (size, link, fabric) in enumerate(zip(sizes, found, fabrics, strict=True))
    )
    chosen = draw(st.sets(st.sampled_from(Algorithm), min_size=1))
    some = draw(st.sampled_from([tuple(Algorithm), tuple(sorted(chosen, key=str))]))
    library = draw(st.just({}) | st.dictionaries(LIBRARY_KEYS, st.sampled_from(Algorithm)))
    return Topology("random", levels, algorithms=some, overrides=tuple(library.items()))


@st.composite
def cases(draw: st.DrawFn, devices: int = MAX_DEVICES) -> Case:
    """A cluster, a placement on it, and at least one axis that is reduced."""
    placement = draw(placements(devices))
    axes = draw(st.sets(st.integers(0, len(placement.matrix) - 1), min_size=1))
    return Case(draw(topologies(placement.level_sizes)), placement, tuple(sorted(axes)))
