"""Small questions, and the clusters they are asked on."""

from __future__ import annotations

from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import Topology
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh


def cluster(nodes: int, gpus: int, gpu_latency: str = "2 us") -> Topology:
    """Nodes joined by slow links, each with fast ones inside."""
    return parse_topology(
        f"""
name: cluster
library: none
algorithms: [ring]
levels:
  - {{name: node, size: {nodes}, link: {{kind: switch, bandwidth: 10 GB/s, latency: 10 us}}}}
  - {{name: gpu, size: {gpus}, link: {{kind: switch, bandwidth: 100 GB/s, latency: {gpu_latency}}}}}
""",
        "cluster",
    )


def array(
    mesh: str,
    shape: tuple[int, ...],
    layout: str,
    *,
    devices: tuple[int, ...] | None = None,
    uneven: Uneven = Uneven.REFUSE,
    element: ElementType = ElementType.F32,
) -> ArrayType:
    """A type by texts."""
    made = parse_mesh(mesh, devices)
    return ArrayType(made, shape, element, parse_layout(layout, made), uneven)
