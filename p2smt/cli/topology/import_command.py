"""`p2smt topology import`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.topology.node_options import FabricOption, GpuOption, NicOption


def import_files(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE..", help="What Slurm, kubectl, .. print.")
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="What a node is: a preset, or a topology file."),
    ] = None,
    uplink: Annotated[
        list[str] | None,
        typer.Option(metavar="LEVEL=RATE", help="Of each uplink, such as leaf=400GB/s."),
    ] = None,
    oversubscription: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEVEL=N",
            help="Such as leaf=4: an uplink has a quarter of the rate of all nodes under it.",
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option("--hosts", metavar="FILE|LIST", help="Only these, such as n[1-64]."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|KEY,..",
            help="Of kubectl: keys of the labels, outermost first, or topograph, aws, gcp, oci, "
            "coreweave; default: those that the nodes have.",
        ),
    ] = None,
    topology_name: Annotated[
        str | None,
        typer.Option("--topology-name", metavar="NAME", help="Of several in a topology.yaml."),
    ] = None,
    gpu: GpuOption = None,
    nic: NicOption = None,
    fabric: FabricOption = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the topology here.")
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """A topology from what a scheduler, a cloud or a node prints.

    FILEs are Slurm's topology.conf or topology.yaml, scontrol show topology, kubectl get nodes -o
    json, Google's physicalHost lists; of a node nvidia-smi topo -m, NCCL's topology XML, rocm-smi
    --showtopo, what nccl-tests prints; of a whole network ASTRA-sim's.  One of the network and one
    of a node are put together.  Without -o the topology is printed.
    """
    from p2smt.cli import restrictions
    from p2smt.cli.topology.imported import name_of, tell
    from p2smt.cli.topology.node_options import told_of
    from p2smt.cluster.hostlist import hosts_named
    from p2smt.interop.clusters.combine import ImportOptions
    from p2smt.interop.clusters.levels import parse_uplinks
    from p2smt.interop.clusters.read import read_clusters

    restrictions.writable(output)
    _check_output(output, files or [])
    asked = ImportOptions(
        node=node,
        rates=parse_uplinks(uplink or (), oversubscription or ()),
        labels=labels,
        topology_name=topology_name,
        only=None if hosts is None else hosts_named(hosts),
        name=name_of(output),
        told=told_of(gpu, nic, fabric),
    )
    found, lost = read_clusters(files or [], asked)
    return tell(found, lost, output, json)


def _check_output(output: str | None, files: list[str]) -> None:
    """That the topology does not replace what it is made of."""
    from p2smt.errors import InputError
    from p2smt.files.write import same_file

    if output is not None and any(same_file(output, file) for file in files):
        rule = "is a file that is read"
        raise InputError(f"output {output[:200]!r}", rule, "name another: it is kept")
