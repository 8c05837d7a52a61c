"""The typer application and its commands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from p2smt.cli.codes import OK
from p2smt.cli.command.as_given import OfTexts
from p2smt.cli.command.load import COMMANDS, GROUP, command_of
from p2smt.cli.command.one_value import OneValueCommand

USAGE_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class _Root(OfTexts, TyperGroup):
    """``p2smt``, with a command."""


def _show_version(wanted: bool) -> None:
    if wanted:
        from p2smt import __version__

        typer.echo(f"p2smt {__version__}")
        raise typer.Exit


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
    (Ctrl-C); 143 terminated (SIGTERM).  After either the best found is still written; another
    signal, a second or more later, ends at once.
    """


def app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """The application with these commands."""
    found = typer.Typer(
        name="p2smt",
        cls=_Root,
        help="Find, prove and cost parallelism placements and reduction programs.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    found.callback()(_main)
    for name in names:
        if name == GROUP:
            found.add_typer(_topology(), name=name)
        else:
            found.command(name, cls=OneValueCommand)(command_of(name))
    return found


def _topology() -> typer.Typer:
    from p2smt.cli.topology import topology_command

    for command in topology_command.app.registered_commands:
        command.cls = OneValueCommand
    return topology_command.app


def call(arguments: list[str]) -> int:
    """Run a command; returns its exit code, or raises what it raised."""
    named = arguments[0] if arguments and arguments[0] in COMMANDS else None
    code = _commands(named)(arguments, prog_name="p2smt", standalone_mode=False)
    return code if isinstance(code, int) else OK


@cache
def _commands(named: str | None) -> Any:
    """The command of that name with its options, or all: putting one together takes its time."""
    return get_command(app(COMMANDS if named is None else (named,)))


def usage(error: Exception) -> str:
    """What is wrong with the arguments, and where to look."""
    message = getattr(error, "format_message", error.__str__)().rstrip(". ")
    path = getattr(getattr(error, "ctx", None), "command_path", "p2smt")
    return f"{message}; see {path} --help"
