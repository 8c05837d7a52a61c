"""The typer application and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from p2smt.cli import (
    calibrate_command,
    classics_command,
    convert_command,
    cost_command,
    placements_command,
    programs_command,
    run_command,
    schema_command,
    solve_command,
    topology_command,
    verify_command,
)
from p2smt.cli.codes import OK

USAGE_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)

app = typer.Typer(
    name="p2smt",
    help="Find, prove and cost parallelism placements and reduction programs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("solve")(solve_command.solve)
app.command("placements")(placements_command.placements)
app.command("programs")(programs_command.programs)
app.command("cost")(cost_command.cost)
app.command("run")(run_command.run)
app.command("verify")(verify_command.verify)
app.command("convert")(convert_command.convert)
app.command("classics")(classics_command.classics)
app.command("calibrate")(calibrate_command.calibrate)
app.add_typer(topology_command.app, name="topology")
app.command("schema")(schema_command.schema)


def _show_version(wanted: bool) -> None:
    if wanted:
        from p2smt import __version__

        typer.echo(f"p2smt {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Find, prove and cost parallelism placements and reduction programs.

    Results go to stdout, progress and errors to stderr.  Exit codes: 0 optimal, complete or
    verified; 1 refuted; 2 bad input; 3 not settled (a limit was reached); 4 infeasible;
    5 a backend is missing; 6 execution failed; 70 an error of p2smt itself; 130 interrupted
    (Ctrl-C); 143 terminated (SIGTERM).  After either the best found is still written; a second
    signal ends at once.
    """


def call(arguments: list[str]) -> int:
    """Run a command; returns its exit code, or raises what it raised."""
    code = app(arguments, prog_name="p2smt", standalone_mode=False)
    return code if isinstance(code, int) else OK


def usage(error: Exception) -> str:
    """What is wrong with the arguments, and where to look."""
    message = getattr(error, "format_message", error.__str__)().rstrip(". ")
    path = getattr(getattr(error, "ctx", None), "command_path", "p2smt")
    return f"{message}; see {path} --help"
