"""`p2smt topology list | show | check | fabric | import | detect | export`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from p2smt.cli import given
from p2smt.cli import option_groups as o
from p2smt.cli.output import note, print_json, tell, tell_tables, writable
from p2smt.cli.parameters import Text, Texts, argument, opened, option, required
from p2smt.errors import InputError

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology
    from p2smt.interop.clusters.nodes.node_facts import Told

SPEC = argument("NAME[:N]|FILE", o.SPEC_HELP, needed=True)
OUTPUT = option("FILE", "Write the topology here.", "-o")
EXPORTS = ("astra-sim",)
_PORTS = re.compile(r"\s*([0-9]{1,5})\s*x\s*(.*)", re.S)
app = typer.Typer(help="Presets and topology files, and making them of what other tools print.")


@dataclass(frozen=True)
class NodeOptions:
    """What files of nodes leave open."""

    gpu: Text = option("MODEL", "The GPUs of a node, such as h100 or a100-pcie.")
    nic: Text = option(
        "[Nx]RATE",
        "Network card ports of a node, such as 8x400Gb/s; without a number, as the files say.",
    )
    nic_fabric: Text = option("NAME", "What they speak: infiniband, roce, ..")

    def told(self) -> Told:
        """What the options say.

        Raises:
            InputError: one is malformed, or names what is not known.
        """
        from p2smt.cluster.link import NETWORK
        from p2smt.errors import did_you_mean
        from p2smt.interop.clusters.nodes.gpu_models import gpu_model
        from p2smt.interop.clusters.nodes.node_facts import MAX_CARDS, Told
        from p2smt.units import parse_bandwidth, parse_count

        gpu, nic, fabric = self.gpu, self.nic, self.nic_fabric
        if fabric is not None and fabric not in NETWORK:
            remedy = did_you_mean(fabric, NETWORK) or f"name one of {', '.join(NETWORK)}"
            raise InputError(f"--nic-fabric {fabric[:40]!r}", "is no network", remedy)
        counted = _PORTS.fullmatch(nic or "")
        rate = counted[2] if counted else nic
        ports = parse_count(counted[1], "--nic: ports", MAX_CARDS) if counted else None
        return Told(
            gpu_model(gpu).name if gpu is not None else "",
            ports,
            None if rate is None else parse_bandwidth(rate, "--nic"),
            fabric or "",
        )


@app.command("import")
@opened
def import_files(
    *,
    files: Texts = argument("FILE..", "What Slurm, kubectl, .. print."),
    node: Text = option("NAME|FILE", "What a node is: a preset, or a topology file."),
    uplink: Texts = option("LEVEL=RATE", "Of each uplink, such as leaf=400GB/s."),
    oversubscription: Texts = option(
        "LEVEL=N", "Such as leaf=4: an uplink has a quarter of the rate of all nodes under it."
    ),
    hosts: Text = option("FILE|LIST", "Only these, such as n[1-64]."),
    labels: Text = option(
        "NAME|KEY,..",
        "Of kubectl: keys of the labels, outermost first, or topograph, aws, gcp, oci, coreweave; "
        "default: those that the nodes have.",
    ),
    topology_name: Text = option("NAME", "Of several in a topology.yaml."),
    of_node: NodeOptions,
    output: Text = OUTPUT,
    json: bool = o.JSON,
) -> int:
    """A topology from what a scheduler, a cloud or a node prints.

    FILEs are Slurm's topology.conf or topology.yaml, scontrol show topology, kubectl get nodes -o
    json, Google's physicalHost lists; of a node nvidia-smi topo -m, NCCL's topology XML, rocm-smi
    --showtopo, what nccl-tests prints; of a whole network ASTRA-sim's.  One of the network and one
    of a node are put together.  Without -o the topology is printed.
    """
    from p2smt.cluster.hostlist import hosts_named
    from p2smt.interop.clusters.combine import ImportOptions
    from p2smt.interop.clusters.levels import parse_uplinks
    from p2smt.interop.clusters.read import read_clusters

    _check_output(output, files or [], "is a file that is read", "name another: it is kept")
    asked = ImportOptions(
        node=node,
        rates=parse_uplinks(uplink or (), oversubscription or ()),
        labels=labels,
        topology_name=topology_name,
        only=None if hosts is None else hosts_named(hosts),
        name=_name_of(output),
        told=of_node.told(),
    )
    return _tell(*read_clusters(files or [], asked), output, json)


@app.command("detect")
@opened
def detect(
    *,
    node: NodeOptions,
    uplink: Texts = option("LEVEL=RATE", "Of a node, such as node=400GB/s in all."),
    output: Text = OUTPUT,
    json: bool = o.JSON,
) -> int:
    """A topology from what this machine tells of itself.

    Asks nvidia-smi (or rocm-smi) for GPUs and what joins them, the kernel for network cards,
    $NCCL_TOPO_FILE for PCIe, and $SLURM_JOB_NODELIST for the hosts of the job, which are taken to
    be like this one.
    """
    from p2smt.interop.clusters.combine import ImportOptions, combined
    from p2smt.interop.clusters.levels import parse_uplinks
    from p2smt.interop.clusters.nodes.topo_matrix import facts_of_machine

    writable(output)
    told = node.told()
    asked = ImportOptions(rates=parse_uplinks(uplink or (), ()), name=_name_of(output), told=told)
    return _tell(*combined(facts_of_machine(os.environ, told), asked), output, json)


def _check_output(output: Text, read: Sequence[str], rule: str, remedy: str) -> None:
    """That a file could be written there, and does not replace what it is made of."""
    from p2smt.files.write import same_file

    writable(output)
    if output is not None and any(same_file(output, file) for file in read):
        raise InputError(f"output {output[:200]!r}", rule, remedy)


def _name_of(output: Text) -> str:
    """The name of a topology by that of its file; empty without one."""
    return "" if output is None else os.path.basename(output).partition(".")[0]


def _tell(found: Topology, lost: Sequence[str], output: Text, json: bool) -> int:
    """Write a topology to its file, or print it, and say what was lost or filled in."""
    from p2smt.files.write import write_atomically
    from p2smt.interop.clusters.read import import_text
    from p2smt.report.text import printable
    from p2smt.report.topologies import extent, import_data

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
        typer.echo(f"{printable(extent(found))}, written to {printable(output)}")
    return 0


@app.command("export")
@opened
def export_topology(
    *,
    spec: str = SPEC,
    to: str = required("NAME", f"{', '.join(EXPORTS)}."),
    output: Text = option("FILE", "Default: stdout.", "-o"),
) -> int:
    """A topology as another tool takes it: ASTRA-sim's file.

    What the file cannot say is named on stderr.
    """
    from p2smt.files.write import write_atomically
    from p2smt.interop.clusters.astra_sim import astra_sim_text

    if to not in EXPORTS:
        raise InputError(f"--to {to[:40]!r}", f"must be one of {', '.join(EXPORTS)}")
    _check_output(output, [spec], "is the file that is read", "name another")
    made = astra_sim_text(given.topology_of(spec))
    if output is None:
        typer.echo(made.text, nl=False)
    else:
        write_atomically(output, made.text)
    for sentence in made.lost:
        note(sentence)
    return 0


@app.command("fabric")
@opened
def fabric(
    *,
    spec: str = argument(
        "NAME[:N]|FILE",
        "Such as dgx1, dgx1:2, ring:8, torus:4x4, cube:3, mesh:4, a level preset, or a file: YAML, "
        "a topology of msccl-tools, what nvidia-smi topo -m printed.",
        needed=True,
    ),
    rates: o.FabricOptions,
    shown: o.ShownOptions,
) -> int:
    """One fabric: who can send to whom, and what they share."""
    from p2smt.report.topologies import fabric_data, fabric_screen, fabric_tables

    found = rates.fabric(spec)
    tell_tables(
        shown.json,
        lambda: fabric_data(found),
        lambda: (fabric_tables(found),) if shown.details else fabric_screen(found),
        details=shown.details,
    )
    return 0


@app.command("list")
@opened
def topology_list(*, shown: o.ShownOptions) -> int:
    """The presets, each with its levels; and the fabrics."""
    from p2smt.cluster.file import preset_names, profiles
    from p2smt.fabric.fabric_file import FAMILIES, fabric_names
    from p2smt.report.outputs.lists import TopologyListOutput
    from p2smt.report.screens.list_screens import topologies_screen
    from p2smt.report.topologies import list_tables

    presets, fabrics = preset_names(), fabric_names()
    differing = [one for name in presets for one in profiles(name)]
    names = [name for name, _, _ in differing]
    tell_tables(
        shown.json,
        lambda: TopologyListOutput(presets=presets, profiles=names, fabrics=fabrics),
        lambda: (
            list_tables(differing)
            if shown.details
            else topologies_screen(presets, names, fabrics, FAMILIES)
        ),
        details=shown.details,
    )
    return 0


@app.command("show")
@opened
def show_one(*, spec: str = SPEC, shown: o.ShownOptions) -> int:
    """One topology: levels, links, protocols and sources."""
    from p2smt.cluster.file import dump_topology
    from p2smt.report.outputs.lists import TopologyShowOutput
    from p2smt.report.topologies import topology_screen, topology_tables

    found = given.topology_of(spec)
    tell_tables(
        shown.json,
        lambda: TopologyShowOutput(topology=dump_topology(found), devices=found.installed),
        lambda: (topology_tables(found),) if shown.details else topology_screen(found),
        details=shown.details,
    )
    return 0


@app.command("check")
@opened
def check(*, spec: str = SPEC, json: bool = o.JSON) -> int:
    """Whether a topology file is well formed and can be run."""
    from p2smt.report.outputs.lists import TopologyCheckOutput
    from p2smt.report.text import one_line
    from p2smt.report.topologies import extent

    found = given.topology_of(spec)
    tell(
        json,
        lambda: TopologyCheckOutput(verdict="valid", name=found.name, devices=found.installed),
        lambda: [f"valid: {one_line(found.name)}, {extent(found)}"],
    )
    return 0
