"""Plain factors as a cluster: switches all the way, and rings whose numbers are symbols."""

from __future__ import annotations

import math
from collections.abc import Sequence

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.cost.scene import Scene
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Hierarchy

_SYMBOL = Piece("", 1.0, 1.0)
"""One second a message and a byte: nothing but ratios within a link is read from it."""


def factor_scene(
    factors: Sequence[int], ports: Sequence[int], algorithm: Algorithm = Algorithm.RING
) -> Scene:
    """One reduction over all devices of a cluster with these factors, outermost first.

    ports: of an entity of each level; their number divides that of the devices below, or the
        other way round.

    Raises:
        InputError: a factor below 2, or ports that do not fit.
    """
    if min(factors, default=0) < 2:
        remedy = "leave ones out" if 1 in factors else "give some such as 4,8"
        raise InputError(f"factors {list(factors)}", "must be at least 2 each", remedy)
    if len(ports) != len(factors):
        rule = f"are for {len(ports)} levels, and there are {len(factors)}"
        raise InputError(f"ports {list(ports)}", rule, "give a number for each, such as 8,1")
    names = [name for name, _ in Hierarchy.plain(factors).aliases[1:]]
    levels = tuple(
        Level(name, size, Link(LinkKind.SWITCH, (_SYMBOL,), ports=count))
        for name, size, count in zip(names, factors, ports, strict=True)
    )
    topology = Topology(f"factors-{math.prod(factors)}", levels, algorithms=(algorithm,))
    return Scene.of(topology, Placement((tuple(factors),)), [0])
