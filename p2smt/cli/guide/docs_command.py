"""What comes with the program: `p2smt docs`, `p2smt schema`, `p2smt models`."""

from __future__ import annotations

import json as json_module
import sys
from importlib import resources
from typing import TYPE_CHECKING

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, argument, opened
from p2smt.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ENDING = ".md"


@opened
def docs(*, page: Text = argument("PAGE", "Which to show; without: lists them.")) -> int:
    """The pages of the documentation: listed, or one of them as Markdown.

    On a terminal a page opens in $PAGER.
    """
    from p2smt.report.tables import show, table

    found = pages()
    if page is None:
        rows = [(name, title_of(file)) for name, file in found.items()]
        show(table("pages", ["name", "title"], rows))
        return 0
    name = page.removeprefix("docs/").removesuffix(ENDING)
    if name not in found:
        remedy = did_you_mean(name, list(found)) or "p2smt docs lists them"
        raise InputError(f"page {page[:60]!r}", "is no page of the documentation", remedy)
    text = found[name].read_text(encoding="utf-8")
    if sys.stdout.isatty():
        from pydoc import pager

        pager(text)
    else:
        typer.echo(text, nl=False)
    return 0


def pages() -> dict[str, Traversable]:
    """The pages by name, such as ``planning`` or ``launchers/trainers``.

    Raises:
        InputError: this installation came without them.
    """
    found = dict(sorted(_below(resources.files("p2smt") / "docs", "")))
    if not found:
        rule = "are not part of this installation"
        raise InputError("the pages", rule, "install p2smt from its wheel")
    return found


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for one in folder.iterdir() if folder.is_dir() else ():
        if one.is_dir():
            found += _below(one, f"{prefix}{one.name}/")
        elif one.name.endswith(ENDING):
            found.append((prefix + one.name.removesuffix(ENDING), one))
    return found


def title_of(page: Traversable) -> str:
    """The first heading of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ") for line in lines if line.startswith("# ")), "")


# `p2smt schema`.


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


# `p2smt models`.


@opened
def models(
    *,
    name: Text = argument("NAME", "Which to print, as a model file; without: lists them."),
    shown: o.ShownOptions,
) -> int:
    """The models that are known by name, with their parameters; what plan and estimate take."""
    from p2smt.cli.output import tell_tables
    from p2smt.report.screens.list_screens import models_screen
    from p2smt.report.training.model_list import model_tables, models_data, one_model_data
    from p2smt.training.model_names import known_as, model_text

    if name is not None and not shown.json:
        typer.echo(model_text(known_as(name)), nl=False)
        return 0
    if name is not None:
        tell_tables(True, lambda: one_model_data(known_as(name)), tuple)
        return 0
    tell_tables(
        shown.json,
        models_data,
        lambda: model_tables() if shown.details else models_screen(models_data().models),
        details=shown.details,
    )
    return 0
