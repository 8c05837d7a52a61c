"""The typer application and its commands."""

from __future__ import annotations

import typer

from p2smt.cli import (
    cost_command,
    placements_command,
    programs_command,
    schema_command,
    solve_command,
    topology_command,
    verify_command,
)

USAGE_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)

app = typer.Typer(
    name="p2smt",
    help="Find, prove and cost parallelism placements and reduction programs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("solve")(solve_command.solve)
app.command("placements")(placements_command.placements)
app.command("programs")(programs_command.programs)
app.command("cost")(cost_command.cost)
app.command("verify")(verify_command.verify)
app.add_typer(topology_command.app, name="topology")
app.command("schema")(schema_command.schema)


@app.callback()
def _version() -> None:
    """Find, prove and cost parallelism placements and reduction programs.

    Results go to stdout, progress and errors to stderr.  Exit codes: 0 optimal, complete or
    verified; 1 refuted; 2 bad input; 3 not settled (a limit was reached); 4 infeasible;
    5 a backend is missing; 130 interrupted.
    """
