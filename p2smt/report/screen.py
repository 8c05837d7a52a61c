"""The first screen of an answer: at most 20 lines of 80 columns, whatever the answer.

A screen is made of blocks, each with a label and lines; where there are more lines than fit, those
of the least weight are left out.  All else is behind ``--details``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells, set_cell_size

from p2smt.report.text import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

LINES, COLUMNS = 20, 80
MUST = 10
"""The weight of what stays whatever else there is."""
_LABEL = 9
_UNIT = r"(?:[num]?s|[kKMGT]?i?B(?:/s)?|%)"
_NUMBER = r"(?<!\S)[0-9]{1,3}(?:,[0-9]{3})+(?![0-9]),?\s*"
_PIECE = re.compile(rf"{_NUMBER}|(?:[0-9][0-9.]* (?={_UNIT}(?:[\s,;:)]|$)))?[^\s,]*,?\s*")
_MORE = " .."


@dataclass(frozen=True, slots=True)
class ScreenBlock:
    """Texts under a label, each on lines of its own, at most ``most`` lines of it all.

    ``weight``: what stays longest has most.  ``instead``: the one text that is shown where there
    is no room for them, a line each; empty: as many of their lines as there is room for.
    """

    label: str
    texts: tuple[str, ...]
    weight: float
    most: int = 3
    instead: str = ""

    @property
    def lines(self) -> list[str]:
        """Its lines."""
        texts = (part for text in self.texts for part in text.split("\n"))
        rows = [wrapped(text, COLUMNS - _LABEL) for text in texts]
        if self.instead:
            rows = [[_cut(row[0]) if row[1:] else row[0]] for row in rows]
        lines = [line for row in rows for line in row]
        if len(lines) > self.most:
            lines = [*lines[: self.most - 1], _cut(lines[self.most - 1])]
        heads = [self.label, *[""] * len(lines)]
        return [f"{head:{_LABEL}}{line}" for head, line in zip(heads, lines, strict=False)]


def _cut(line: str) -> str:
    most = COLUMNS - _LABEL - len(_MORE)
    return (set_cell_size(line, most) if cell_len(line) > most else line).rstrip(" ,;") + _MORE


def wrapped(text: str, width: int) -> list[str]:
    """A text on lines of a width, broken after a blank or a comma; a longer word anywhere.

    Nothing is broken between a number and its unit.  Wide characters take two columns.
    """
    lines = [""]
    for piece in _PIECE.findall(printable(text)):
        if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
        if cell_len(lines[-1].rstrip()) > width:
            lines[-1:] = chop_cells(lines[-1].rstrip(), width)
            lines[-1] += " " * piece.endswith(" ")
    return [line.rstrip() for line in lines]


def screen(blocks: Iterable[ScreenBlock], lines: int = LINES) -> list[str]:
    """The lines of blocks; where there are more, lines of the least weight go, the last first."""
    kept = [block for block in blocks if block.texts]
    while sum(len(one.lines) for one in kept) > lines:
        at = min(range(len(kept)), key=lambda i: (kept[i].weight, -i))
        if kept[at].instead:
            kept[at] = replace(kept[at], texts=(kept[at].instead,), instead="")
        elif len(kept[at].lines) > 1:
            kept[at] = replace(kept[at], most=len(kept[at].lines) - 1)
        else:
            del kept[at]
    return [line for one in kept for line in one.lines]


def indented(text: str, blanks: int) -> str:
    """A text of a block, on lines that all begin with so many blanks."""
    return "\n".join(" " * blanks + line for line in wrapped(text, COLUMNS - _LABEL - blanks))


def room(below: Sequence[str], head: Sequence[str] = ()) -> int:
    """The lines that others leave, at least one."""
    return max(1, LINES - len(head) - len(full_width(below)))


def plan_words(file: str | None) -> str:
    """What comes after an answer: to export the ``file`` that it is in, or to write one."""
    return f"export {printable(file)}" if file else "-o PLAN, export PLAN"


def full_width(texts: Iterable[str]) -> list[str]:
    """Texts without a label on lines of their own."""
    return [line for text in texts for part in text.split("\n") for line in wrapped(part, COLUMNS)]


def fitted(lines: Sequence[str], lines_most: int = LINES, what: str = "lines") -> list[str]:
    """So many lines at most; where there are more, the last says how many ``what`` are left out."""
    if len(lines) <= lines_most:
        return [*lines]
    kept = lines_most - 1
    return [*lines[:kept], f".. {len(lines) - kept} more {what}: --details"]


def composed(
    head: Iterable[str], body: RenderableType, below: Iterable[str] = (), what: str = "lines"
) -> list[str]:
    """The verdict, then tables as far as they fit, then what stays below them."""
    from p2smt.report.tables import table_lines  # what has no table loads no console

    first, last = full_width(head), full_width(below)
    return [*first, *fitted(table_lines(body, COLUMNS), room(last, first), what), *last]


def names_block(label: str, names: Sequence[str], lines: int = 2, weight: int = 5) -> ScreenBlock:
    """As many of the names as so many lines hold, and how many there are more."""
    text = ""
    for kept in range(len(names), 0, -1):
        more = f" ({len(names) - kept} more: --details)" if kept < len(names) else ""
        text = ", ".join(names[:kept]) + more
        if len(wrapped(text, COLUMNS - _LABEL)) <= lines:
            break
    return ScreenBlock(label, (text,) if names else (), weight, lines)
