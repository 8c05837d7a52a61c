"""The public function `import_topology`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from p2smt.cluster.topology import Topology
from p2smt.interop.clusters.combine import ImportOptions
from p2smt.interop.clusters.levels import parse_uplinks
from p2smt.interop.clusters.read import read_clusters

StrPath = str | os.PathLike[str]


def import_topology(
    files: StrPath | Sequence[StrPath],
    *,
    node: str | None = None,
    uplink: Mapping[str, str] | None = None,
    oversubscription: Mapping[str, float] | None = None,
    hosts: Sequence[str] | None = None,
    labels: str | None = None,
    topology_name: str | None = None,
) -> tuple[Topology, tuple[str, ...]]:
    """The topology in files of a scheduler, a cloud or a node; and what was lost or filled in.

    Args:
        files: such as Slurm's topology.conf, or that and what ``nvidia-smi topo -m`` prints.
        node: a preset or a topology file whose nodes those of the cluster are.
        uplink: the rate of each uplink of a level, such as ``{"leaf": "400GB/s"}``.
        oversubscription: how often the nodes under a switch can fill its uplink, by level.
        hosts: these alone.
        labels: of Kubernetes nodes, a preset of keys or keys with commas between them.
        topology_name: which of the topologies of a topology.yaml.

    Raises:
        InputError: a file is malformed or of no known format, or they do not tell of one cluster.
    """
    given = [files] if isinstance(files, str | os.PathLike) else files
    rates = parse_uplinks(
        [f"{level}={rate}" for level, rate in (uplink or {}).items()],
        [f"{level}={times:.6f}" for level, times in (oversubscription or {}).items()],
    )
    options = ImportOptions(
        node=node, rates=rates, labels=labels, topology_name=topology_name, only=hosts
    )
    return read_clusters([os.fspath(path) for path in given], options)
