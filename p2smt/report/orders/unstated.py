"""What is said of an answer where uplinks have no stated bandwidth, or cannot block."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from p2smt.cluster.nodes.blocking import blocking_levels, unstated_levels

NON_BLOCKING = (
    "no uplink of a switch can block here: every order of the hosts is optimal in bandwidth"
)

if TYPE_CHECKING:
    from p2smt.search.comparison.compare import Comparison


def no_time_line(levels: Sequence[str]) -> str:
    """Why times are not told, where nobody stated the bandwidth of these levels."""
    return f"the bandwidth of {' and '.join(levels)} uplinks is not stated, so no time is told"


def unstated_lines(found: Comparison) -> Iterator[str]:
    """That times cannot be told, and from which oversubscription the order matters; nothing where
    every bandwidth is stated."""
    assumed = unstated_levels(found.problem.topology)
    if not assumed:
        return
    yield no_time_line(assumed)
    yield (
        "on a non-blocking tree every order is optimal in bandwidth: no uplink is then the "
        "bottleneck of any"
    )
    every = [one.figures.matters_from for one in found.orders]
    least = min((one for one in every if one is not None), default=math.inf)
    if math.isinf(least):
        yield "no order here uses these uplinks"
    else:
        yield f"from an oversubscription of {least:.3g} on, uplinks slow one of these orders down"
    remedy = f"--uplink {assumed[-1]}=400GB/s or --oversubscription {assumed[-1]}=4"
    yield f"to state it, give {remedy} to topology import"


def non_blocking_lines(found: Comparison) -> Iterator[str]:
    """That orders do not differ in bandwidth, where each uplink carries all that its hosts send."""
    topology = found.problem.topology
    if topology.hosts is None or topology.node_level < 1 or not found.times_known:
        return
    if not blocking_levels(topology):
        yield NON_BLOCKING


def network_lines(found: Comparison) -> Iterator[str]:
    """Both, as notes."""
    yield from unstated_lines(found)
    yield from non_blocking_lines(found)
