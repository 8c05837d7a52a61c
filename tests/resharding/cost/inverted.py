"""Clusters on which a level has more latency than one outside it."""

from __future__ import annotations

import itertools
import math
from random import Random

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology

LATENCIES_S, BANDWIDTHS = (0.5e-6, 1e-6, 5e-6, 20e-6), (5e9, 25e9, 100e9)


def inverted(shuffle: Random, sizes: tuple[int, ...]) -> Topology:
    """Switches of these sizes, outermost first, with one port or one for each device."""
    latencies = [shuffle.choice(LATENCIES_S) for _ in sizes]
    while all(outer >= inner for outer, inner in itertools.combinations(latencies, 2)):
        latencies = [shuffle.choice(LATENCIES_S) for _ in sizes]
    levels = []
    for j, (size, latency_s) in enumerate(zip(sizes, latencies, strict=True)):
        piece = Piece("simple", latency_s, shuffle.choice(BANDWIDTHS))
        ports = shuffle.choice([1, 1, 1, math.prod(sizes[j + 1 :])])
        levels.append(Level(f"l{j}", size, Link(LinkKind.SWITCH, (piece,), ports=ports)))
    return Topology("inverted", tuple(levels), algorithms=(Algorithm.RING,))
