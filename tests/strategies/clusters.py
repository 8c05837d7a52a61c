"""Clusters of switches, level by level from the outermost."""

from __future__ import annotations

from typing import Any

from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology


def switch(rate_bytes_per_s: float, latency_s: float = 1e-6, **options: Any) -> Link:
    """A switch with one piece of cost."""
    return Link(LinkKind.SWITCH, (Piece("simple", latency_s, rate_bytes_per_s),), **options)


def switches(
    *levels: tuple[str, int, float] | tuple[str, int, float, str],
    latency_s: float = 1e-6,
    **options: Any,
) -> Topology:
    """Levels as name, size, bytes per second and, where it matters, fabric."""
    made = (
        Level(name, size, switch(rate, latency_s, fabric="".join(fabric)))
        for name, size, rate, *fabric in levels
    )
    return Topology("made", tuple(made), **options)
