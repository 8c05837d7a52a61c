"""JSON or text on stdout, notes beside it, and whether a file could be written."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from p2smt.cli.guide.defaults import Default
    from p2smt.report.outputs.shape import Output

MAX_COMMAND = 4096
"""Characters of a command that is kept in an answer."""


def print_json(output: Output) -> None:
    """Print exactly one JSON object, or its table; numbers that JSON lacks are null."""
    from p2smt.report.outputs.shape import printed

    data = printed(output)
    if _RUNNING.table:
        from p2smt.cli.guide.csv_rows import csv_text

        typer.echo(csv_text(data, _RUNNING.table), nl=False)
        return
    if _RUNNING.defaults:
        data["defaults"] = [
            {"words": [*one.words], "source": one.source} for one in _RUNNING.defaults
        ]
    typer.echo(json.dumps(data, allow_nan=False))
    _RUNNING.has_printed = True


def tell(as_json: bool, data: Callable[[], Output], lines: Callable[[], Iterable[str]]) -> None:
    """Print one JSON object, or lines; only what is printed is made."""
    if as_json:
        print_json(data())
    else:
        for line in lines():
            typer.echo(line)


def tell_tables(
    as_json: bool,
    data: Callable[[], Output],
    tables: Callable[[], Iterable[RenderableType]],
    lines: Iterable[str] = (),
    *,
    details: bool = True,
) -> None:
    """Print one JSON object, or tables and lines after them; only what is printed is made.

    Without ``details`` as much of the tables is printed as a first screen has room for.
    """
    from p2smt.report.tables import show

    if as_json:
        print_json(data())
        return
    made, below = tuple(tables()), [*lines]
    if made and not details:
        from p2smt.report.screen import COLUMNS, fitted, room
        from p2smt.report.tables import table_lines

        shown = [line for one in made for line in table_lines(one, COLUMNS)]
        below = [*fitted(shown, room(below)), *below]
    elif made:
        show(*made)
    for line in below:
        typer.echo(line)


def note(text: str, most: int | None = None) -> None:
    """One line beside the answer, on stderr, of at most so many characters."""
    from p2smt.report.text import MAX_MESSAGE, one_line

    typer.echo(f"note: {one_line(text, most or MAX_MESSAGE)}", err=True)


_SHOWN = ("--json", "--csv", "--details")
_ASIDE = (
    *("-o", "--output", "--svg", "--seed", "--workers", "--time-limit"),
    *("--processes", "--engine", "--scheduler", "--journal", "--budget"),
)
"""Options with a value that say nothing of what is asked; plan files have the limits apart."""


@dataclass(slots=True)
class _Running:
    """The command that runs: its arguments and the defaults that it takes, notes that wait for its
    answer, whether it is out.
    """

    arguments: list[str] = field(default_factory=list)
    defaults: Sequence[Default] = ()
    table: Sequence[str] = ()
    beside: list[str] = field(default_factory=list)
    has_printed: bool = False


_RUNNING = _Running()
"""A process runs one command at a time."""


def set_command(arguments: Sequence[str]) -> None:
    """The arguments of the command that begins."""
    _RUNNING.arguments, _RUNNING.has_printed = [*arguments], False
    _RUNNING.defaults, _RUNNING.table = (), ()


def take_table(keys: Sequence[str]) -> None:
    """Of the answer the table under the first of these keys is printed, as CSV."""
    _RUNNING.table = keys


def take_defaults(taken: Sequence[Default]) -> None:
    """The defaults that the command takes: said at once, and kept in its answer."""
    from p2smt.cli.guide.defaults import told

    _RUNNING.defaults = taken
    if taken:
        note(f"defaults: {told(taken)}; --no-config takes none")


def is_default(name: str) -> bool:
    """Whether an option that the command has was not given, but is a default."""
    words = (word for one in _RUNNING.defaults for word in one.words)
    return any(word.partition("=")[0] == name for word in words)


def has_printed() -> bool:
    """Whether the command that runs has printed its one JSON object."""
    return _RUNNING.has_printed


def command_line() -> str:
    """What is asked, defaults too, as a shell takes it: without where it is written, how it is
    shown, and how the search is spread, which change no answer.  Empty: no command runs, or it is
    too long.
    """
    words = [*_RUNNING.arguments, *(word for one in _RUNNING.defaults for word in one.words)]
    words += ["--no-config"] if _RUNNING.defaults else []
    found = shlex.join(["p2smt", *_asked(words)]) if _RUNNING.arguments else ""
    return found if len(found) <= MAX_COMMAND else ""


def _asked(arguments: Sequence[str]) -> Iterator[str]:
    waiting = iter(arguments)
    for one in waiting:
        if one in _ASIDE:
            next(waiting, None)
        elif one not in _SHOWN and one.partition("=")[0] not in _ASIDE:
            yield one


def note_beside(text: str) -> None:
    """A note that comes after an answer, and not with an error instead."""
    _RUNNING.beside.append(text)


def tell_beside(answered: bool) -> None:
    """Print the notes that wait, if there was an answer; none waits any more."""
    for text in _RUNNING.beside if answered else ():
        note(text)
    _RUNNING.beside.clear()


def writable(path: str | None) -> None:
    """Raise InputError early if a file could not be written there."""
    from p2smt.errors import InputError

    if path is None:
        return
    given, target = f"output {path[:200]!r}", Path(os.path.realpath(path.replace("\0", "/")))
    if not path or path.endswith(os.sep) or "\0" in path or not target.parent.is_dir():
        folder = target if path.endswith(os.sep) else target.parent
        remedy = "give another path"
        if path.strip(os.sep) and "\0" not in path and not folder.exists():
            remedy = "make the folder, or give another path"
        raise InputError(given, "is not a file in an existing folder", remedy)
    if target.exists() and not target.is_file():
        raise InputError(given, "exists and is not a regular file", "give another path")
    if not os.access(target.parent, os.W_OK):
        raise InputError(given, "is in a folder that cannot be written", "give another path")
