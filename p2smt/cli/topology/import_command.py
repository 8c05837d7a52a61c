"""`p2smt topology import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from p2smt.cli import options as o

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology


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
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the topology here.")
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """A topology from what a scheduler, a cloud or a node prints.

    FILEs are Slurm's topology.conf or topology.yaml, scontrol show topology, kubectl get nodes -o
    json, Google's physicalHost lists, and files of a node; the first that tell of the network and
    one of a node are put together.  Without -o the topology is printed.
    """
    from p2smt.cli import restrictions
    from p2smt.cli.output import note, print_json
    from p2smt.files.write import write_atomically
    from p2smt.interop.clusters.read import ImportOptions, import_text, read_clusters
    from p2smt.interop.clusters.uplinks import parse_uplinks
    from p2smt.report.import_data import import_data

    restrictions.writable(output)
    asked = ImportOptions(
        node=node,
        rates=parse_uplinks(uplink or (), oversubscription or ()),
        labels=labels,
        topology_name=topology_name,
        only=_hosts(hosts),
        name=_name(output),
    )
    found, lost = read_clusters(files or [], asked)
    text = import_text(found)
    if output is not None:
        write_atomically(output, text)
    if json:
        print_json(import_data(found, lost))
        return 0
    for sentence in lost:
        note(sentence)
    if output is None:
        typer.echo(text, nl=False)
    else:
        _show(found, output)
    return 0


def _hosts(spec: str | None) -> tuple[str, ...] | None:
    """The hosts in a file, or of a host list if there is no such file."""
    import os

    from p2smt.cluster.nodes.hostlist import parse_hostlist
    from p2smt.interop.launchers.host_file import read_hosts

    if spec is None:
        return None
    if os.path.exists(spec) or os.sep in spec:
        return read_hosts(spec)
    return parse_hostlist(spec)


def _name(output: str | None) -> str:
    """The name of a topology by that of its file; empty without one."""
    import os

    return "" if output is None else os.path.basename(output).partition(".")[0]


def _show(found: Topology, output: str) -> None:
    """What was written, in a line."""
    from p2smt.report.import_data import import_line
    from p2smt.report.text import printable

    typer.echo(f"{import_line(found)}, written to {printable(output)}")
