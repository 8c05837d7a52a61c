"""Which parameter of a command each word of a command line belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_OPTION = "option"


@dataclass(frozen=True)
class PlacedWord:
    """A value on a command line, and the parameter that it is given to; None: it has none."""

    parameter: Any
    value: str


def found_command(words: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """The command that words begin with (a group, where it is still open), and what follows."""
    from p2smt.cli.app import command_named
    from p2smt.cli.guide.commands import COMMANDS

    if not words or words[0] not in COMMANDS:
        return None, words
    found, rest = command_named(words[0]), words[1:]
    while rest and rest[0] in getattr(found, "commands", {}):
        found, rest = found.commands[rest[0]], rest[1:]
    return found, rest


def places(command: Any, words: Sequence[str]) -> Iterator[PlacedWord]:
    """The values that words give, in their order; flags give none."""
    options = {name: one for one in command.params for name in one.opts if is_option(one)}
    arguments, rest = arguments_of(command), iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        one = options.get(name if equals else word)
        if one is None and not word.startswith("-"):
            yield PlacedWord(next(arguments, None), word)
        elif one is not None and takes_value(one):
            value = value if equals else next(rest, "")
            yield PlacedWord(one, value)


def arguments_of(command: Any) -> Iterator[Any]:
    """The parameter of each value without an option, the last one's for ever if it takes many."""
    for one in command.params:
        while not is_option(one):
            yield one
            if one.nargs != -1:
                break


def is_option(parameter: Any) -> bool:
    """Whether it is given by a name."""
    return bool(parameter.param_type_name == _OPTION)


def takes_value(parameter: Any) -> bool:
    """Whether an option is followed by a value."""
    return is_option(parameter) and not parameter.is_flag
