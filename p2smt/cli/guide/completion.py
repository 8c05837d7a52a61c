"""Words that a shell may complete: commands, options, and names that p2smt knows.

A shell asks by a script of :mod:`p2smt.cli.guide.commands`; nothing of this is loaded otherwise.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from p2smt.cli.guide.commands import SUMMARIES
from p2smt.cli.guide.places import (
    arguments_of,
    found_command,
    is_option,
    places,
    takes_value,
)

Candidate = tuple[str, str]
"""A word, and what it means."""
ValuesSoFar = Mapping[str, str]
"""Values of the command line so far, by the name of their parameter; the last of several."""


def complete(shell: str) -> int:
    """Print the words that may stand at the end of $COMP_LINE, a line each."""
    typed = typed_words(os.environ.get("COMP_LINE", ""))
    cut = _kept_by_bash(typed) if shell == "bash" else 0
    for word, meaning in candidates(typed.before, typed.last, quoted=typed.quoted):
        described = word.replace(":", "\\:") + (f":{meaning}" if meaning else "")
        sys.stdout.write((word[cut:] if shell == "bash" else described) + "\n")
    return 0


@dataclass(frozen=True)
class TypedWords:
    """A line as far as it is typed: words before the last, the last, whether a quote is open."""

    before: Sequence[str]
    last: str
    quoted: bool


def typed_words(line: str) -> TypedWords:
    """The words of a line whose last one may be unfinished, without the name of the program."""
    for quote in ("", "'", '"'):
        try:
            words = shlex.split(line + quote + ("" if quote else "\0"))
        except ValueError:
            continue
        if not quote:
            words[-1] = words[-1].removesuffix("\0")
        return TypedWords(words[1:-1], words[-1] if len(words) > 1 else "", bool(quote))
    return TypedWords((), "", False)


def _kept_by_bash(typed: TypedWords) -> int:
    """Characters of the last word that bash takes for words before it, such as ``--use=``."""
    breaks = os.environ.get("COMP_WORDBREAKS", "=:@")
    ends = (at for at, one in enumerate(typed.last, 1) if one in breaks)
    return 0 if typed.quoted else max(ends, default=0)


def candidates(before: Sequence[str], last: str, *, quoted: bool = False) -> list[Candidate]:
    """What may stand in the place of ``last``, after the words before it.

    ``quoted``: the word is in quotes, so that it may have spaces.
    """
    command, rest = found_command(before)
    if command is None:
        pairs: Iterable[Candidate] = () if before else SUMMARIES.items()
        return _starting(last, pairs)
    if hasattr(command, "commands"):
        named = {name: str(one.help).partition("\n")[0] for name, one in command.commands.items()}
        return _starting(last, () if rest else named.items())
    given = {one.parameter.name: one.value for one in places(command, rest) if one.parameter}
    found = _of_command(command, rest, last, given)
    return [one for one in _starting(last, found) if quoted or " " not in one[0]]


def _of_command(
    command: Any, rest: Sequence[str], last: str, given: ValuesSoFar
) -> Iterator[Candidate]:
    """Values of the parameter that comes next, or options."""
    options = {name: one for one in command.params for name in one.opts if is_option(one)}
    waiting = options.get(rest[-1]) if rest else None
    name, equals, value = last.partition("=")
    if waiting is not None and takes_value(waiting):
        yield from values(command.name, waiting.name, last, given)
    elif equals and name in options:
        for one, meaning in values(command.name, options[name].name, value, given):
            yield f"{name}={one}", meaning
    elif last.startswith("-"):
        yield from _options(command, given)
    else:
        filled = sum(not is_option(one.parameter) for one in places(command, rest) if one.parameter)
        for one in islice(arguments_of(command), filled, filled + 1):
            yield from values(command.name, one.name, last, given)


def _options(command: Any, given: ValuesSoFar) -> Iterator[Candidate]:
    """The long names of options that may still be given."""
    for one in command.params:
        if is_option(one) and (one.name not in given or one.multiple):
            long = next(name for name in one.opts if name.startswith("--"))
            yield long, str(one.help).partition(";")[0]
    yield "--help", "Show the help."


def _starting(start: str, found: Iterable[Candidate]) -> list[Candidate]:
    return [one for one in found if one[0].startswith(start)]


# Names that are known, by the parameter that takes them.


def values(command: str, parameter: str, text: str, given: ValuesSoFar) -> Iterator[Candidate]:
    """What p2smt knows that such a parameter may be; files are for the shell to find."""
    named = _NAMES.get(f"{command} {parameter}", _NAMES.get(parameter))
    if named is not None:
        yield from ((name, "") for name in named())
    elif (pattern := _OF_LEVELS.get(parameter)) is not None:
        start = text[: text.rfind(" ") + 1] if " " in pattern else ""
        for level in _levels(given):
            yield start + level + pattern.strip(), ""


def _levels(given: ValuesSoFar) -> Sequence[str]:
    """The levels of the topology that the line has so far; none, where it has none."""
    from p2smt.cluster.file import load_topology
    from p2smt.errors import InputError

    try:
        return load_topology(given["topology"]).names if "topology" in given else ()
    except InputError:
        return ()


def _presets() -> Sequence[str]:
    from p2smt.cluster.file import preset_names

    return preset_names()


def _fabrics() -> Sequence[str]:
    from p2smt.fabric.fabric_file import fabric_names

    return fabric_names()


def _models() -> Sequence[str]:
    from p2smt.training.model_names import model_names

    return model_names()


def _libraries() -> Sequence[str]:
    from p2smt.cluster.library.registry import library_names

    return library_names()


def _efficiencies() -> Sequence[str]:
    from p2smt.training.efficiencies.efficiency_files import efficiency_names

    return efficiency_names()


def _pages() -> Sequence[str]:
    from p2smt.cli.guide.docs_command import pages

    return tuple(pages())


_NAMES: Mapping[str, Callable[[], Sequence[str]]] = MappingProxyType(
    {
        "topology": _presets,
        "spec": _presets,
        "node": _presets,
        "fabric": _fabrics,
        "model": _models,
        "library": _libraries,
        "efficiency": _efficiencies,
        "docs page": _pages,
        "models name": _models,
    }
)
_OF_LEVELS: Mapping[str, str] = MappingProxyType(
    {"use": "=", "max_steps_at": "=", "uplink": "=", "require": " ", "forbid": " "}
)
"""How a level is written in the values of a parameter: before ``=``, or as the last word."""
