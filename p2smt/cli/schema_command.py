"""`p2smt schema`."""

from __future__ import annotations

import json as json_module

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, argument, opened


@opened
def schema(
    *,
    name: Text = argument("NAME", "Which to print; without: lists them."),
    shown: o.ShownOptions,
) -> int:
    """The JSON Schema of a file that is read, or of what a command prints with --json."""
    from p2smt.cli.output import tell_tables
    from p2smt.report.outputs.catalogue import listed, schema_of
    from p2smt.report.outputs.lists import ListedSchema, SchemaOutput
    from p2smt.report.screens.list_screens import schemas_screen
    from p2smt.report.tables import table

    if name is not None:
        typer.echo(json_module.dumps(schema_of(name), indent=None if shown.json else 2))
        return 0
    tell_tables(
        shown.json,
        lambda: SchemaOutput(schemas=[ListedSchema(name=k, of=v) for k, v in listed().items()]),
        lambda: (
            (table("schemas", ["name", "of"], listed().items()),)
            if shown.details
            else schemas_screen(listed())
        ),
        details=shown.details,
    )
    return 0
