"""Which bandwidths give the paper's ratio of 448.5 exactly, in its likely case.

    python -m experiments.placement_448x.model.exact

writes ``exact.json``.  The case: axes 4 and 16 on 4 nodes of 16, the first reduced, wholly inside
a node against wholly across nodes.  In the bandwidth limit the ratio is 16 x B_inside / B_card.
"""

from __future__ import annotations

from typing import Any

from experiments.placement_448x.model.solving import KIND
from experiments.placement_448x.model.study import paper_bytes
from experiments.placement_448x.model.systems import system
from experiments.placement_448x.store import HERE, computed_header, rounded
from experiments.testbed.written.results import write
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement

RESULTS = HERE / "exact.json"
INSIDE, ACROSS = Placement(((1, 4), (4, 4))), Placement(((4, 1), (1, 16)))
PAPER = 448.5
NAMES = {"effective": "paper-gcp-a100-4", "nominal": "gcp-a2-highgpu-16g-4"}


def ratio(topology: Topology) -> float:
    """Time of the single all-reduce across nodes over that inside a node, by rings."""
    rings, payload = topology.running((Algorithm.RING,)), paper_bytes(topology)
    across, inside = (
        Scene.of(rings, placement, (0,)).fixed_time(KIND, payload).seconds
        for placement in (ACROSS, INSIDE)
    )
    return across / inside


def card_factor(topology: Topology) -> float:
    """The factor on the bandwidth of a node's card that gives the paper's ratio (bisection)."""
    low, high = 1e-3, 1e3
    while high / low > 1 + 1e-12:
        middle = (low * high) ** 0.5
        too_fast = ratio(topology.with_bandwidth_factor(0, middle)) < PAPER
        low, high = (low, middle) if too_fast else (middle, high)
    return low


def result(name: str) -> dict[str, Any]:
    """The ratio of a system, and the bandwidths that would give the paper's."""
    topology = system(name).topology()
    card, inside = (level.link.bandwidth_bytes_per_s for level in topology.levels)
    wanted = card_factor(topology) * card
    return {
        "system": name,
        "payload_bytes": paper_bytes(topology),
        "card_bytes_per_s": card,
        "inside_bytes_per_s": inside,
        "ratio": rounded(ratio(topology), 6),
        "bandwidth_limit": rounded(topology.sizes[1] * inside / card, 6),
        "card_for_paper_bytes_per_s": rounded(wanted, 5),
        "bandwidth_ratio_for_paper": rounded(inside / wanted, 5),
    }


def main() -> None:
    """Write the ratios."""
    write(
        RESULTS,
        {
            "header": computed_header(0),
            "paper": PAPER,
            "matrices": {"inside": INSIDE.matrix, "across": ACROSS.matrix},
            "bandwidth_ratio_in_the_limit": PAPER / 16,
            **{way: result(name) for way, name in NAMES.items()},
        },
    )


if __name__ == "__main__":
    main()
