"""`p2smt schema`."""

from __future__ import annotations

import json as json_module
from typing import Annotated

import typer

from p2smt.cli import options as o


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which to print; without: lists them.")
    ] = None,
    json: o.JsonOption = False,
) -> int:
    """The JSON Schema of a file that is read, or of what a command prints with --json."""
    from p2smt.cli.output import print_json
    from p2smt.report.outputs.catalogue import listed, schema_of
    from p2smt.report.outputs.lists import ListedSchema, SchemaOutput
    from p2smt.report.tables import show, table

    if name is not None:
        typer.echo(json_module.dumps(schema_of(name), indent=None if json else 2))
    elif json:
        every = [ListedSchema(name=key, of=what) for key, what in listed().items()]
        print_json(SchemaOutput(schemas=every))
    else:
        rows = [[key, what] for key, what in listed().items()]
        show(table("schemas", ["name", "of"], rows))
    return 0
