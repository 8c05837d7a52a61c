"""The clusters of the study, and the prices on them."""

from __future__ import annotations

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.cluster.trimmed import parse_uses, trimmed

NOMINAL, LIBRARY = "nominal", "library"
"""Nominal links, no cost per call, the cheapest algorithm; and the preset's library."""
MOST_PER_NODE = 8


def cluster_of(preset: str, devices: int) -> str:
    """At most eight devices a node, on at least two nodes: ``azure-ndv4:2 gpu=3``."""
    each = max(n for n in range(1, MOST_PER_NODE + 1) if devices % n == 0 and devices > n)
    use = f" gpu={each}" if each < MOST_PER_NODE else ""
    return f"{preset}:{devices // each}{use}"


def topology_of(cluster: str, prices: str) -> Topology:
    """The topology of such a text."""
    spec, _, use = cluster.partition(" ")
    found = load_topology(spec)
    if use:
        found = trimmed(found, parse_uses([use]))
    return found.nominal() if prices == NOMINAL else found
