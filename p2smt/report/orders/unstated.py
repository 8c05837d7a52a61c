"""What is said of an answer where nobody stated the bandwidth of some uplinks."""

from __future__ import annotations

import math
from collections.abc import Iterator

from p2smt.search.comparison.compare import Comparison


def unstated_lines(found: Comparison) -> Iterator[str]:
    """That times cannot be told, and from which oversubscription the order matters; nothing where
    every bandwidth is stated."""
    hosts = found.problem.topology.hosts
    assumed = hosts.assumed if hosts is not None else ()
    if not assumed:
        return
    names = " and ".join(assumed)
    yield f"the bandwidth of {names} uplinks is not stated, so no time is told"
    yield (
        "on a non-blocking tree every order is optimal in bandwidth: no uplink is then the "
        "bottleneck of any"
    )
    every = [one.figures.matters_from for one in found.orders]
    least = min((one for one in every if one is not None), default=math.inf)
    if math.isinf(least):
        yield "no order here uses these uplinks"
    else:
        yield f"the order matters from an oversubscription of {least:.3g} on"
    remedy = f"--uplink {assumed[-1]}=400GB/s or --oversubscription {assumed[-1]}=4"
    yield f"to state it, give {remedy} to topology import"
