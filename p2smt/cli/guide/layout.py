"""The help of a command: its options under headings, and its examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from p2smt.cli.guide.commands import command_lines, emphasized, text_width
from p2smt.cli.guide.examples import EXAMPLES
from p2smt.cli.guide.headings import HEADINGS

ARGUMENTS, OTHER = "Arguments", "Options"
_WORDS = re.compile(r"(?:'[^']*'|[^\s'])+")
_NAME_WIDTH = 28
"""Of the column of names, at most: the text of a longer one stands below it."""
Rows = list[tuple[str, str]]


def write_parameters(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:
    """Arguments, by their names alone, and options under their headings, each with its help."""
    found: dict[str, Rows] = {name: [] for name in (ARGUMENTS, *HEADINGS, OTHER)}
    for one in parameters:
        record = one.get_help_record(ctx)
        if record is not None:
            option = one.param_type_name == "option"
            under = (getattr(one, "rich_help_panel", None) or OTHER) if option else ARGUMENTS
            found[under].append((record[0].partition(" <")[0], record[1]))
    width = min(max(len(name) for rows in found.values() for name, _ in rows), _NAME_WIDTH)
    for name, rows in found.items():
        write_rows(name, [(first.ljust(width), text) for first, text in rows], formatter)


def write_rows(name: str, rows: Rows, formatter: Any) -> None:
    """Rows of names and texts under a heading, if there are any."""
    if rows:
        with formatter.section(emphasized(name)):
            formatter.write_dl(rows)


def write_examples(command_path: str, formatter: Any) -> None:
    """The examples of a command, each as it is typed; a long one over several lines."""
    examples = EXAMPLES.get(command_path.partition(" ")[2], ())
    if not examples:
        return
    formatter.write_paragraph()
    formatter.write(f"{emphasized('Examples')}:\n")
    for example in examples:
        lines = [*_broken(example, text_width() - 8)]
        formatter.write("".join(f"{line}\n" for line in command_lines(lines)))


def _broken(command: str, width: int) -> Iterator[str]:
    """Its words in lines of at most so many characters, none of them cut."""
    line = ""
    for word in _WORDS.findall(command):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip()
    yield line
