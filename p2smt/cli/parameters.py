"""Parameters of commands: how one is declared, and how groups of them become a command's own.

A group is a frozen dataclass whose fields are options and whose methods say what they mean
together.  A command takes groups and single parameters; :func:`opened` makes of it what typer
reads, each option in the place where the command has its group.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from p2smt.cli.guide.csv_rows import ROWS
from p2smt.cli.guide.headings import heading_of

Text = str | None
"""An option as given; None: it is not given."""
Texts = list[str] | None
"""The same of one that may be repeated."""
Command = Callable[..., int]
_REQUIRED = object()


def option(metavar: str | None, help: str, *names: str, default: object = None) -> Any:
    """A parameter that is an option, called as the parameter is, and by these names.

    A name with two dashes takes the place of the parameter's.
    """
    return _declared(typer.Option, metavar, help, names, default)


def flag(help: str, *names: str) -> Any:
    """An option without a value."""
    return option(None, help, *names, default=False)


def required(metavar: str, help: str) -> Any:
    """An option that must be given."""
    return option(metavar, help, default=_REQUIRED)


def argument(metavar: str, help: str, *, needed: bool = False) -> Any:
    """A parameter that is known by its place."""
    return _declared(typer.Argument, metavar, help, (), _REQUIRED if needed else None)


def _declared(
    kind: Callable[..., Any], metavar: str | None, help: str, names: tuple[str, ...], default: Any
) -> Any:
    shown = {"kind": kind, "metavar": metavar, "help": help, "names": names}
    return field(default=MISSING if default is _REQUIRED else default, metadata=shown)


@dataclass(frozen=True)
class _Part:
    names: tuple[str, ...] = ()
    metavar: str | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)


def part(*names: str, metavar: str | None = None, **defaults: str) -> Any:
    """Of a group, in a command: these options alone, or all with other words or defaults.

    Those that a command leaves out keep the values that the group has for them.
    """
    return _Part(names, metavar, defaults)


CSV = "Print the table of the answer as CSV."
_BESIDE = {
    "quiet": "No line on stderr that says how far it is.",
    "no_config": "No defaults from p2smt.toml and $P2SMT_TOPOLOGY.",
}


def opened(command: Command) -> Command:
    """The command whose parameters are the single options of its groups.

    Beside them it has ``--quiet`` and ``--no-config``, with a table also ``--csv``, which are
    looked for before the command runs (``app.call``, ``app.OneValueCommand``).
    """
    hints, given = get_type_hints(command), inspect.signature(command).parameters
    opens = {name: hints[name] for name in given if is_dataclass(hints[name])}
    of = command.__name__.replace("_", " ")
    inside: dict[str, list[inspect.Parameter]] = {
        name: [*_of_group(of, opens[name], one.default)]
        if name in opens
        else [_parameter(of, name, hints[name], one.default)]
        for name, one in given.items()
    }
    shown = {"csv": CSV, **_BESIDE} if of in ROWS else _BESIDE
    beside = [_parameter(of, name, bool, flag(words)) for name, words in shown.items()]
    signature = inspect.Signature([*(one for group in inside.values() for one in group), *beside])

    @wraps(command)
    def called(**values: Any) -> int:
        bound = signature.bind(**values)
        bound.apply_defaults()
        texts = {name: {p.name: bound.arguments[p.name] for p in inside[name]} for name in given}
        made = {name: opens[name](**texts[name]) for name in opens}
        return command(**{name: made.get(name, texts[name].get(name)) for name in given})

    vars(called)["__signature__"] = signature
    called.__annotations__ = {name: one.annotation for name, one in signature.parameters.items()}
    return called


def _of_group(command: str, group: Any, given: object) -> Iterator[inspect.Parameter]:
    """The options of a group that a command has, with the defaults that it gives them."""
    known, hints = {one.name: one for one in fields(group)}, get_type_hints(group)
    chosen = given if isinstance(given, _Part) else _Part()
    for name in chosen.names or known:
        one = _parameter(command, name, hints[name], known[name], chosen.metavar)
        yield one.replace(default=chosen.defaults.get(name, one.default))


def _parameter(
    command: str, name: str, kind: Any, declared: Field[Any], metavar: str | None = None
) -> inspect.Parameter:
    shown = dict(declared.metadata)
    make, names = shown.pop("kind"), shown.pop("names")
    if make is typer.Option and not any(one.startswith("--") for one in names):
        names = (f"--{name.replace('_', '-')}", *names)
    if make is typer.Option:
        long = next(one for one in names if one.startswith("--"))
        shown["rich_help_panel"] = heading_of(command, long)
    shown["metavar"] = metavar or shown["metavar"]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if declared.default is MISSING else declared.default,
        annotation=Annotated[kind, make(*names, **shown)],
    )
