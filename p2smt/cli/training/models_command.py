"""`p2smt models`."""

from __future__ import annotations

import typer

from p2smt.cli import option_groups as o
from p2smt.cli.parameters import Text, argument, opened


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
