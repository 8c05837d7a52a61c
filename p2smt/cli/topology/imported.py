"""What was imported, written and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology


def name_of(output: str | None) -> str:
    """The name of a topology by that of its file; empty without one."""
    import os

    return "" if output is None else os.path.basename(output).partition(".")[0]


def tell(found: Topology, lost: Sequence[str], output: str | None, json: bool) -> int:
    """Write a topology to its file, or print it, and say what was lost or filled in."""
    from p2smt.cli.output import note, print_json
    from p2smt.files.write import write_atomically
    from p2smt.interop.clusters.read import import_text
    from p2smt.report.topologies import import_data

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


def _show(found: Topology, output: str) -> None:
    """What was written, in a line."""
    from p2smt.report.text import printable
    from p2smt.report.topologies import extent

    typer.echo(f"{printable(extent(found))}, written to {printable(output)}")
