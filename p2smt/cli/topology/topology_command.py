"""`p2smt topology list | show | check | fabric | import | detect | export`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o
from p2smt.cli.topology.detect_command import detect
from p2smt.cli.topology.export_command import export_topology
from p2smt.cli.topology.fabric_command import fabric
from p2smt.cli.topology.import_command import import_files

app = typer.Typer(help="Presets and topology files, and making them of what other tools print.")
app.command("import")(import_files)
app.command("detect")(detect)
app.command("export")(export_topology)
app.command("fabric")(fabric)
Spec = Annotated[
    str, typer.Argument(metavar="NAME[:N]|FILE", help="Preset, preset:NODES, or a YAML file.")
]


@app.command("list")
def list_presets(json: o.JsonOption = False) -> int:
    """The presets, each with its levels; and the fabrics."""
    from p2smt.cli.output import print_json
    from p2smt.cluster.file import load_topology, preset_names
    from p2smt.fabric.file import FAMILIES, fabric_names, preset_wiring
    from p2smt.report.outputs.lists import TopologyListOutput
    from p2smt.report.tables import show
    from p2smt.report.topologies import preset_table, wiring_table

    if json:
        print_json(TopologyListOutput(presets=preset_names(), fabrics=fabric_names()))
        return 0
    show(preset_table([load_topology(name) for name in preset_names()]))
    typer.echo()
    show(wiring_table([preset_wiring(name) for name in fabric_names()], FAMILIES))
    return 0


@app.command("show")
def show_one(spec: Spec, json: o.JsonOption = False) -> int:
    """One topology: levels, links, protocols and sources."""
    from p2smt.cli import given
    from p2smt.cli.output import print_json
    from p2smt.cluster.file import dump_topology
    from p2smt.report.outputs.lists import TopologyShowOutput
    from p2smt.report.tables import show
    from p2smt.report.topologies import topology_tables

    topology = given.topology_of(spec)
    if json:
        print_json(TopologyShowOutput(topology=dump_topology(topology), devices=topology.installed))
    else:
        show(topology_tables(topology))
    return 0


@app.command("check")
def check(spec: Spec, json: o.JsonOption = False) -> int:
    """Whether a topology file is well formed, and its library can run as it says."""
    from p2smt.cli import given
    from p2smt.cli.output import print_json
    from p2smt.report.outputs.lists import TopologyCheckOutput
    from p2smt.report.text import one_line
    from p2smt.report.topologies import extent

    topology = given.topology_of(spec)
    if json:
        print_json(
            TopologyCheckOutput(verdict="valid", name=topology.name, devices=topology.installed)
        )
    else:
        typer.echo(f"valid: {one_line(topology.name)}, {extent(topology)}")
    return 0
