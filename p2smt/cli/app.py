"""The typer application and its commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from p2smt.cli.codes import OK
from p2smt.cli.guide.commands import COMMANDS, PURPOSE, SUMMARIES, root_help, text_width
from p2smt.cli.guide.csv_rows import ROWS
from p2smt.cli.guide.defaults import GivenWords, defaults_for
from p2smt.cli.guide.headings import heading_of, write_examples, write_parameters, write_rows
from p2smt.cli.output import note_beside, set_command, take_defaults, take_table, tell_beside
from p2smt.errors import InputError

# Parameters whose values are the texts that were given.
# typer has pydantic make texts of texts, and loads it for that: of a command that reads no file it
# would be the better part.  What a text means, p2smt reads by itself (:mod:`p2smt.cli.given`).


class _AsGiven:
    """A parameter of text, of a list of texts, or a flag."""

    required: bool
    callback: Any

    def process_value(self, ctx: Any, value: Any) -> Any:
        """What was given; typer says what is wrong where something is missing."""
        base: Any = super()
        if value is None and not self.required:
            value = () if self._takes_many() else None
        elif isinstance(value, list | tuple) and value:
            value = list(value)
        elif not isinstance(value, str | bool):
            return base.process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback else value

    def _takes_many(self) -> bool:
        return getattr(self, "multiple", False) or getattr(self, "nargs", 1) == -1


class _GivenOption(_AsGiven, TyperOption):
    """An option."""


class _GivenArgument(_AsGiven, TyperArgument):
    """An argument."""


def as_given(parameter: Any) -> Any:
    """The same parameter, whose value is what was given."""
    kind = _GivenOption if isinstance(parameter, TyperOption) else _GivenArgument
    found: Any = kind.__new__(kind)
    vars(found).update(vars(parameter))
    return found


class OfTexts:
    """A command all of whose parameters are texts, lists of texts, or flags."""

    def __init__(self, *arguments: Any, params: Any = None, **more: Any) -> None:
        base: Any = super()
        base.__init__(*arguments, params=[as_given(one) for one in params or ()], **more)
        self._help: Any = None

    def get_help_option(self, ctx: Any) -> Any:
        """``--help``: always the same object, since the parser compares them."""
        base: Any = super()
        if self._help is None and (found := base.get_help_option(ctx)) is not None:
            self._help = as_given(found)
            self._help.rich_help_panel = heading_of("", "--help")
        return self._help

    def get_help(self, ctx: Any) -> str:
        """The help, as wide as the terminal allows."""
        formatter = ctx.formatter_class(width=text_width())
        base: Any = super()
        base.format_help(ctx, formatter)
        return str(formatter.getvalue()).rstrip("\n")


# The commands by name, each imported when it is called for: one call needs one of them.


GROUP = "topology"
"""The one that has commands of its own."""


def command_of(name: str) -> Callable[..., int]:
    """The function of a command.

    Raises:
        KeyError: there is none of this name.
    """
    match name:
        case "plan":
            from p2smt.cli.training.plan_command import plan

            return plan
        case "estimate":
            from p2smt.cli.training.estimate_command import estimate

            return estimate
        case "models":
            from p2smt.cli.guide.docs_command import models

            return models
        case "solve":
            from p2smt.cli.solve_command import solve

            return solve
        case "placements":
            from p2smt.cli.list_commands import placements

            return placements
        case "programs":
            from p2smt.cli.list_commands import programs

            return programs
        case "compare":
            from p2smt.cli.compare_command import compare

            return compare
        case "cost":
            from p2smt.cli.cost_command import cost

            return cost
        case "crossings":
            from p2smt.cli.crossings_command import crossings

            return crossings
        case "run":
            from p2smt.cli.run_command import run

            return run
        case "synthesize":
            from p2smt.cli.schedules.synthesize_command import synthesize

            return synthesize
        case "transfer":
            from p2smt.cli.transfers.transfer_command import transfer

            return transfer
        case "redistribute":
            from p2smt.cli.redistribute_command import redistribute

            return redistribute
        case "verify":
            from p2smt.cli.schedules.verify_command import verify

            return verify
        case "convert":
            from p2smt.cli.schedules.convert_command import convert

            return convert
        case "export":
            from p2smt.cli.export_command import export

            return export
        case "order":
            from p2smt.cli.export_command import order

            return order
        case "classics":
            from p2smt.cli.schedules.classics_command import classics

            return classics
        case "calibrate":
            from p2smt.cli.calibrate_command import calibrate

            return calibrate
        case "docs":
            from p2smt.cli.guide.docs_command import docs

            return docs
        case "report":
            from p2smt.cli.pages.report_command import report

            return report
        case "show":
            from p2smt.cli.pages.report_command import show

            return show
        case "schema":
            from p2smt.cli.guide.docs_command import schema

            return schema
        case _:
            raise KeyError(name)


USAGE_ERROR: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class _Root(OfTexts, TyperGroup):
    """``p2smt``, with a command."""

    def get_help(self, _ctx: Any) -> str:
        """The same page as without typer, whatever else is given."""
        return root_help()


class _Subcommands(OfTexts, TyperGroup):
    """A command that has commands of its own: its help has what each of them is, whole."""

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """The first line of each, which fits beside its name."""
        rows = [(name, str(one.help).partition("\n")[0]) for name, one in self.commands.items()]
        write_rows("Commands", rows, formatter)


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
    """Find, prove and cost parallelism placements and collective programs."""


def app(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """The application with these commands."""
    found = typer.Typer(
        name="p2smt",
        cls=_Root,
        help=PURPOSE,
        context_settings={"help_option_names": ["-h", "--help"]},
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    found.callback()(_main)
    for name in names:
        if name == GROUP:
            found.add_typer(_topology(), name=name, cls=_Subcommands, help=SUMMARIES[name])
        else:
            found.command(name, cls=OneValueCommand)(command_of(name))
    return found


def _topology() -> typer.Typer:
    """The application of the one group."""
    from p2smt.cli import topology_command

    for command in topology_command.app.registered_commands:
        command.cls = OneValueCommand
    return topology_command.app


def call(arguments: list[str]) -> int:
    """Run a command; returns its exit code, or raises what it raised."""
    from p2smt.cli.guide.progress import watched

    named = arguments[0] if arguments and arguments[0] in COMMANDS else None
    answered = False
    set_command(arguments)
    with watched(named, "--quiet" in arguments):
        try:
            code = _commands(named)(arguments, prog_name="p2smt", standalone_mode=False)
            answered = True
        finally:
            tell_beside(answered)
    return code if isinstance(code, int) else OK


@cache
def _commands(named: str | None) -> Any:
    """The command of that name with its options, or all: putting one together takes its time."""
    return get_command(app(COMMANDS if named is None else (named,)))


def command_named(name: str) -> Any:
    """A command of :data:`COMMANDS` with its options, or the group."""
    return _commands(name).commands[name]


def usage(error: Exception) -> str:
    """What is wrong with the arguments, and where to look."""
    return f"{_message(error)}; {_see(error)}"


def usage_parts(error: Exception) -> tuple[str, str, str]:
    """The same in parts: what was given, the rule, and the remedy."""
    rule, possible, options = _message(error).partition(" (Possible options: ")
    parameter = getattr(error, "param", None)
    named = max(parameter.opts, key=len) if parameter is not None else ""
    quoted = re.search(r"'(.+?)'|\(([^()]+)\)$", rule)
    given = getattr(error, "option_name", None) or named or (quoted and (quoted[1] or quoted[2]))
    near = f"{options.rstrip(')')} are near; " if possible else ""
    return str(given or "command line"), rule, near + _see(error)


def _message(error: Exception) -> str:
    message: str = getattr(error, "format_message", error.__str__)()
    return message.rstrip(". ")


def _see(error: Exception) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "p2smt")
    return f"see {path} --help"


# A command that takes each option once, and what the user's files say where one is not given.

NO_CONFIG, CSV, JSON, HELP = "--no-config", "--csv", "--json", ("-h", "--help")


def _as_json(ctx: Any, args: list[str]) -> list[str]:
    """The same words; a table is asked for as the JSON that it is made of."""
    table = ROWS.get(ctx.command_path.partition(" ")[2])
    if CSV not in args or table is None:
        return args
    if JSON in args:
        raise InputError(f"{CSV} and {JSON}", "an answer is printed once", "give one of them")
    take_table(table)
    return [JSON if one == CSV else one for one in args]


class OneValueCommand(OfTexts, TyperCommand):
    """A command whose options of one value refuse a second; flags may be repeated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As the base class does, which by itself would keep the last value without a word."""
        if not ctx.resilient_parsing:
            self._refuse_repetition(ctx, args)
            args = [*self._defaults(ctx, args), *_as_json(ctx, args)]
        rest = list(super().parse_args(ctx, args))
        self._tell_abbreviations(ctx.params)
        return rest

    def _defaults(self, ctx: Any, args: list[str]) -> list[str]:
        """Words for options that are not given, which are told beside the answer."""
        options = {
            max(one.opts, key=len): one for one in self.params if isinstance(one, TyperOption)
        }
        if NO_CONFIG not in options or NO_CONFIG in args or not set(args).isdisjoint(HELP):
            return []

        def given() -> GivenWords:
            values, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
            named = frozenset(one.name for one in options.values() if one.name in values)
            return GivenWords(named, bool(rest) or any(map(values.get, values.keys() - named)))

        taken = defaults_for(ctx.command_path.partition(" ")[2], options, given)
        take_defaults(taken)
        return [word for one in taken for word in one.words]

    def _tell_abbreviations(self, values: Mapping[str, Any]) -> None:
        """Say beside the answer what abbreviated values are read as."""
        from p2smt.cli.guide.abbreviations import abbreviations

        given = ((one.metavar or "", values.get(one.name or "")) for one in self.params)
        found = abbreviations(given)
        if found:
            note_beside(", ".join(f"{short} is {value}" for short, value in found.items()))

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
        """Arguments, and options under headings."""
        write_parameters(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples."""
        write_examples(ctx.command_path, formatter)


def _has_one_value(option: TyperOption) -> bool:
    return not (option.multiple or option.is_flag or option.count)


def _short(value: str) -> str:
    return repr(value if len(value) <= 60 else value[:58] + "..")
