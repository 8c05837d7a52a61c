"""The typer application and its commands."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption
from typer.main import get_command

from p2smt.cli import (
    calibrate_command,
    compare_command,
    cost_command,
    crossings_command,
    export_command,
    placements_command,
    programs_command,
    schema_command,
)
from p2smt.cli.arrays import redistribute_command
from p2smt.cli.codes import OK
from p2smt.cli.runs import run_command
from p2smt.cli.schedules import classics_command, convert_command
from p2smt.cli.solve import solve_command
from p2smt.cli.topology import topology_command
from p2smt.cli.verify import verify_command
from p2smt.cli.workload import estimate_command, plan_command
from p2smt.errors import InputError

USAGE_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class OneValueCommand(TyperCommand):
    """A command whose options of one value refuse a second; flags may be repeated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the base class does, which by itself would keep the last value without a word."""
        if not ctx.resilient_parsing:
            self._refuse_repetition(ctx, args)
        return list(super().parse_args(ctx, args))

    def _refuse_repetition(self, ctx: Any, args: list[str]) -> None:
        options = [p for p in self.params if isinstance(p, TyperOption) and _has_one_value(p)]
        collecting = self.make_parser(ctx)
        for option in options:
            every = copy(option)
            every.multiple = True
            every.add_to_parser(collecting, ctx)
        values, _, _ = collecting.parse_args(args=list(args))
        for option in options:
            given = values.get(option.name) or []
            if len(given) > 1:
                shown = " and ".join(_short(value) for value in given[:3])
                name = "/".join(sorted(option.opts, key=len, reverse=True))
                raise InputError(f"{name} {shown}", "takes one value", "give the option once")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, by their names alone, and options, each with its help."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                name = record[0].partition(" <")[0]
                records[parameter.param_type_name].append((name, record[1]))
        for kind, rows in records.items():
            if rows:
                with formatter.section(f"{kind.title()}s"):
                    formatter.write_dl(rows)


def _has_one_value(option: TyperOption) -> bool:
    return not (option.multiple or option.is_flag or option.count)


def _short(value: str) -> str:
    return repr(value if len(value) <= 60 else value[:58] + "..")


app = typer.Typer(
    name="p2smt",
    help="Find, prove and cost parallelism placements and reduction programs.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("plan")(plan_command.plan)
app.command("estimate")(estimate_command.estimate)
app.command("solve")(solve_command.solve)
app.command("placements")(placements_command.placements)
app.command("programs")(programs_command.programs)
app.command("compare")(compare_command.compare)
app.command("cost")(cost_command.cost)
app.command("crossings")(crossings_command.crossings)
app.command("run")(run_command.run)
app.command("redistribute")(redistribute_command.redistribute)
app.command("verify")(verify_command.verify)
app.command("convert")(convert_command.convert)
app.command("export")(export_command.export)
app.command("classics")(classics_command.classics)
app.command("calibrate")(calibrate_command.calibrate)
app.add_typer(topology_command.app, name="topology")
app.command("schema")(schema_command.schema)
for _typer in (app, topology_command.app):
    for _command in _typer.registered_commands:
        _command.cls = OneValueCommand


_ALONE = frozenset(command.name for command in app.registered_commands)


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
    (Ctrl-C); 143 terminated (SIGTERM).  After either the best found is still written; another
    signal, a second or more later, ends at once.
    """


def call(arguments: list[str]) -> int:
    """Run a command; returns its exit code, or raises what it raised."""
    named = arguments[0] if arguments and arguments[0] in _ALONE else None
    code = _commands(named)(arguments, prog_name="p2smt", standalone_mode=False)
    return code if isinstance(code, int) else OK


@cache
def _commands(named: str | None) -> Any:
    """The command of that name with its options, or all: putting one together takes its time."""
    if named is None:
        return get_command(app)
    alone = copy(app)
    alone.registered_commands = [one for one in app.registered_commands if one.name == named]
    alone.registered_groups = []
    return get_command(alone)


def usage(error: Exception) -> str:
    """What is wrong with the arguments, and where to look."""
    message = getattr(error, "format_message", error.__str__)().rstrip(". ")
    path = getattr(getattr(error, "ctx", None), "command_path", "p2smt")
    return f"{message}; see {path} --help"
