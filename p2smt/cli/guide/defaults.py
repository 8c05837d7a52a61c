"""Defaults of options: from ``p2smt.toml``, and from the environment.

The file is the nearest one upwards from the working folder, no further than the root of its
repository (where ``.git`` is).  A table by a command's name (``[plan]``, ``[topology.import]``) is
for that command, ``[defaults]`` for every command that has such an option.  An option that is
given comes first, then ``P2SMT_TOPOLOGY``, then the command's table, then ``[defaults]``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2smt.cli.guide.commands import COMMANDS
from p2smt.cli.guide.headings import HEADINGS
from p2smt.errors import InputError, did_you_mean

NAME = "p2smt.toml"
TOPOLOGY = "P2SMT_TOPOLOGY"
GENERAL = "defaults"
INNER = {"topology": ("import", "detect", "export", "fabric", "list", "show", "check")}
"""Commands of groups, whose tables are such as ``[topology.import]``."""
_NEVER = """
    --output --out --svg --code --plot --trace --certificate --note --latex --json --csv
    --journal --scheduler --engine --processes --workers --force --no-config --help
"""
NEVER = frozenset(_NEVER.split())
"""What the command line alone says: where answers go, where a search runs, and --force."""
INSTEAD = {
    "topology": ("levels", "factors", "fabric"),
    "fabric": ("topology",),
    "library": ("nominal",),
    "nominal": ("library",),
}
"""A default gives way to options that are given in its place."""
ANSWERED = frozenset(("cost", "compare", "verify", "convert", "export", "order", "run"))
"""Where these are given files, what is asked stands in them: general defaults do not reach it."""


@dataclass(frozen=True, slots=True)
class Default:
    """A value for an option that is not given, in words, and where it is from."""

    words: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class GivenWords:
    """What a command line says by itself: its options by their names, and whether arguments."""

    options: frozenset[str]
    has_arguments: bool

    def leaves(self, name: str) -> bool:
        """Whether an option may have a default."""
        return self.options.isdisjoint((name, *INSTEAD.get(name, ())))


def config_file(folder: Path) -> Path | None:
    """The nearest file from this folder upwards, if there is one."""
    for here in (folder, *folder.parents):
        if (here / NAME).is_file():
            return here / NAME
        if (here / ".git").exists():
            return None
    return None


def defaults_for(
    path: str, options: Mapping[str, Any], given: Callable[[], GivenWords]
) -> list[Default]:
    """The defaults that a command takes, each option once.

    Args:
        path: the command, such as ``plan`` or ``topology import``.
        options: its options by their long names (``--global-batch``).
        given: what the command line says by itself; called where there are any defaults.

    Raises:
        InputError: the file is none, or has what no command takes.
    """
    file, topology = config_file(Path.cwd()), os.environ.get(TOPOLOGY)
    if file is None and not topology:
        return []
    shown = "" if file is None else os.path.relpath(file)
    tables = {} if file is None else _tables(_read(file), path, options, shown)
    return list(_chosen(path, options, given(), tables, topology, shown))


def _chosen(
    path: str,
    options: Mapping[str, Any],
    said: GivenWords,
    tables: Mapping[str, Mapping[str, Any]],
    topology: str | None,
    file: str,
) -> Iterator[Default]:
    """The first default of each option that the command has and the command line leaves open."""
    general = not (path in ANSWERED and said.has_arguments)
    sources: list[tuple[str, Mapping[str, Any]]]
    sources = [(f"${TOPOLOGY}", {"--topology": topology} if topology and general else {})]
    sources += [(_shown(file, name), tables.get(name, {})) for name in (path, GENERAL)]
    taken: set[str] = set()
    for source, table in sources if general else sources[:-1]:
        for key, value in table.items():
            one = options.get(key)
            if one is not None and key not in taken and said.leaves(one.name):
                taken.add(key)
                yield Default(_words(one, key, value, source), source)


def _shown(file: str, name: str) -> str:
    """A table of the file, as people read it."""
    return f"{file} [{name.replace(' ', '.')}]"


def _read(file: Path) -> dict[str, Any]:
    import tomllib

    from p2smt.files.yaml_text import read_text

    try:
        return tomllib.loads(read_text(str(file), "configuration"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(str(file), f"is no TOML ({error})", "mend it, or --no-config") from None


def _tables(
    data: Mapping[str, Any], path: str, options: Mapping[str, Any], file: str
) -> dict[str, dict[str, Any]]:
    """The tables by command, their keys as the options are written; every name is known."""
    found: dict[str, dict[str, Any]] = {}
    for name, table in data.items():
        if not isinstance(table, dict):
            rule = "stands in no table"
            raise InputError(f"{file}: {name[:60]}", rule, f"write it under [{GENERAL}] or [plan]")
        if name not in COMMANDS and name != GENERAL:
            remedy = did_you_mean(name, [*COMMANDS, GENERAL]) or "p2smt --help lists commands"
            raise InputError(f"{file}: [{name[:60]}]", "is no command", remedy)
        inner = {key: one for key, one in table.items() if isinstance(one, dict)}
        for key in inner.keys() - set(INNER.get(name, ())):
            remedy = did_you_mean(key, INNER.get(name, ())) or "write the option's value"
            raise InputError(f"{file}: [{name}.{key[:60]}]", "is no command", remedy)
        found |= {f"{name} {key}": one for key, one in inner.items()}
        found[name] = {key: one for key, one in table.items() if key not in inner}
    every = {option for heading in HEADINGS.values() for option in heading}
    return {
        name: _keys(
            table, options if name == path else every, f"{file}: [{name.replace(' ', '.')}]"
        )
        for name, table in found.items()
    }


def _keys(table: Mapping[str, Any], names: Collection[str], given: str) -> dict[str, Any]:
    """A table by options as they are written on the command line."""
    keys = {f"--{key.replace('_', '-')}": value for key, value in table.items()}
    for key in keys:
        shown = f"{given[:200]} {key[2:60]}"
        if key in NEVER:
            raise InputError(shown, "is never a default", "give it on the command line")
        if key not in names:
            near = did_you_mean(key, {*names} - NEVER).replace("'--", "'")
            raise InputError(shown, "is no option there", near or "see its --help")
    return keys


def _words(one: Any, key: str, value: object, source: str) -> tuple[str, ...]:
    """A default as words of a command line.

    Raises:
        InputError: the option takes no such value.
    """
    given = f"{source} {key[2:]}"
    if one.is_flag:
        if isinstance(value, bool):
            return (key,) if value else ()
        raise InputError(given, "is neither true nor false", "write true, or drop it")
    values: Sequence[object] = value if isinstance(value, list) and one.multiple else [value]
    if not all(isinstance(x, str | int | float) and not isinstance(x, bool) for x in values):
        rule = "is neither a text nor a number" + " nor a list of them" * one.multiple
        raise InputError(given, rule, "write it as on the command line, in quotes")
    return tuple(f"{key}={x}" for x in values)


def told(taken: Sequence[Default]) -> str:
    """The defaults in a line, by where they are from."""
    by_source: dict[str, list[str]] = {}
    for one in taken:
        by_source.setdefault(one.source, []).extend(one.words)
    return "; ".join(f"{' '.join(words)} ({source})" for source, words in by_source.items())
