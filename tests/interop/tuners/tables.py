"""Tables of nccl-tests whose times are p2smt's predictions, of no GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from p2smt.cluster.file import load_topology
from p2smt.collectives.names import Collective
from p2smt.interop.tuners.choices import Comm
from p2smt.interop.tuners.regions import CommScene, members_of

HEAD = (
    "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 134217728 step: 2(factor) warmup iters: 5 "
    "iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices"
)
SIZES = tuple(1 << k for k in range(20, 28))


def tables() -> dict[str, str]:
    """An all-reduce on four nodes of eight H100: the library's own choice, a ring with LL128."""
    topology = load_topology("gcp-a3-mega:4")
    scene = CommScene.of(topology, members_of(topology, Comm(4, 8)), Collective.ALL_REDUCE)
    return {
        "own.txt": _table(lambda size: scene.seconds(scene.own(size), size)),
        "ring-ll128.txt": _table(lambda size: scene.seconds(("ring", "ll128"), size)),
    }


def _table(seconds: Callable[[int], float]) -> str:
    devices = [
        f"#  Rank {rank:2d} Group  0 Pid {100 + rank} on  node{rank // 8} device {rank % 8:2d} "
        f"[0x0{rank % 8}] NVIDIA H100 80GB HBM3"
        for rank in range(32)
    ]
    return (
        "\n".join((f"# all_reduce_perf\n{HEAD}", *devices, "#", *map(_row(seconds), SIZES))) + "\n"
    )


def _row(seconds: Callable[[int], float]) -> Callable[[int], str]:
    def row(size: int) -> str:
        us = seconds(size) * 1e6
        busbw = size / us / 1e3 * 2 * 31 / 32
        figures = f"{us:.1f} {size / us / 1e3:.2f} {busbw:.2f} 0"
        return f"{size} {size // 4} float sum -1 {figures} {figures}"

    return row


_CLUSTER = """name: cluster
library: {library}
levels:
  - {{name: node, size: {nodes}, link: {{kind: switch, latency: 5 us, bandwidth: 25 GB/s}}}}
  - {{name: rank, size: 8, link: {{kind: switch, latency: 1 us, bandwidth: 10 GB/s}}}}
"""


def mpi_cluster(folder: Path, to: str, nodes: int = 2, library: str = "") -> tuple[str, str]:
    """The option that names a cluster of so many nodes of 8 with the library that reads a format,
    or with that one."""
    name = library or ("openmpi-5" if to.startswith("ompi") else "mpich-5")
    file = folder / f"cluster-{name}-{nodes}.yaml"
    file.write_text(_CLUSTER.format(library=name, nodes=nodes))
    return "-t", str(file)
