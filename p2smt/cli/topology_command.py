"""`p2smt topology list | show | check`."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import options as o

app = typer.Typer(help="Presets and topology files.", no_args_is_help=True)
Spec = Annotated[str, typer.Argument(help="Preset, preset:NODES, or a YAML file.")]


@app.command("list")
def list_presets(json: o.JsonOption = False) -> int:
    """The presets, each with its levels."""
    from p2smt.report.tables import console, table
    from p2smt.topology_file import load_topology, preset_names

    presets = [load_topology(name) for name in preset_names()]
    if json:
        o.print_json({"presets": [preset.name for preset in presets]})
        return 0
    rows = [
        [
            preset.name,
            ", ".join(f"{level.name} {level.size}" for level in preset.levels),
            preset.description.split(". ")[0],
        ]
        for preset in presets
    ]
    console().print(table("presets", ["name", "levels", "what"], rows))
    return 0


@app.command("show")
def show(spec: Spec, json: o.JsonOption = False) -> int:
    """One topology: levels, links, protocols and sources."""
    from p2smt.report.tables import console, topology_tables
    from p2smt.topology_file import dump_topology, load_topology

    topology = load_topology(spec)
    if json:
        o.print_json({"topology": dump_topology(topology), "devices": topology.devices})
        return 0
    screen = console()
    screen.print(topology_tables(topology))
    for source in topology.sources:
        screen.print(f"source: {source}")
    return 0


@app.command("check")
def check(spec: Spec, json: o.JsonOption = False) -> int:
    """Whether a topology file is well formed."""
    from p2smt.topology_file import load_topology

    topology = load_topology(spec)
    if json:
        o.print_json({"verdict": "valid", "name": topology.name, "devices": topology.devices})
    else:
        levels = ", ".join(f"{level.name} {level.size}" for level in topology.levels)
        typer.echo(f"valid: {topology.name}, {topology.devices} devices ({levels})")
    return 0
