"""`p2smt topology detect`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.topology.node_options import FabricOption, GpuOption, NicOption


def detect(
    gpu: GpuOption = None,
    nic: NicOption = None,
    fabric: FabricOption = None,
    uplink: Annotated[
        list[str] | None,
        typer.Option(metavar="LEVEL=RATE", help="Of a node, such as node=400GB/s in all."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the topology here.")
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """A topology from what this machine tells of itself.

    Asks nvidia-smi (or rocm-smi) for GPUs and what joins them, the kernel for network cards,
    $NCCL_TOPO_FILE for PCIe, and $SLURM_JOB_NODELIST for the hosts of the job, which are taken to
    be like this one.
    """
    import os

    from p2smt.cli import restrictions
    from p2smt.cli.topology.imported import name_of, tell
    from p2smt.cli.topology.node_options import told_of
    from p2smt.interop.clusters.combine import ImportOptions, combined
    from p2smt.interop.clusters.levels import parse_uplinks
    from p2smt.interop.clusters.nodes.topo_matrix import facts_of_machine

    restrictions.writable(output)
    told = told_of(gpu, nic, fabric)
    asked = ImportOptions(rates=parse_uplinks(uplink or (), ()), name=name_of(output), told=told)
    found, lost = combined(facts_of_machine(os.environ, told), asked)
    return tell(found, lost, output, json)
