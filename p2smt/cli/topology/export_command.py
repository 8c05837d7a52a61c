"""`p2smt topology export`."""

from __future__ import annotations

from typing import Annotated

import typer

NAMES = ("astra-sim",)


def export_topology(
    spec: Annotated[
        str, typer.Argument(metavar="NAME[:N]|FILE", help="Preset, preset:NODES, or a YAML file.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="NAME", help=f"{', '.join(NAMES)}.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Default: stdout.")
    ] = None,
) -> int:
    """A topology as another tool takes it: a network file of ASTRA-sim.

    What the file cannot say is named on stderr.
    """
    from p2smt.cli import given, restrictions
    from p2smt.cli.output import note
    from p2smt.errors import InputError
    from p2smt.files.write import same_file, write_atomically
    from p2smt.interop.clusters.astra_sim import astra_sim_text

    if to not in NAMES:
        raise InputError(f"--to {to[:40]!r}", f"must be one of {', '.join(NAMES)}")
    restrictions.writable(output)
    if output is not None and same_file(output, spec):
        raise InputError(f"output {output[:200]!r}", "is the file that is read", "name another")
    made = astra_sim_text(given.topology_of(spec))
    if output is None:
        typer.echo(made.text, nl=False)
    else:
        write_atomically(output, made.text)
    for sentence in made.lost:
        note(sentence)
    return 0
