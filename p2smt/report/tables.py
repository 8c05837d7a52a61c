"""Plain tables, and the one way to stdout for what people read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from p2smt.result import known_bound
from p2smt.units import format_time, plain

_PIPE_WIDTH = 10_000
_BLANKS = re.compile(r"(?<![ \t])[ \t]+((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Group:
    """A plain table; columns whose heading starts with ">" are right-aligned."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for column in columns:
        right = column.startswith(">")
        made.add_column(column.lstrip(">"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return Group(Text(title, style="italic"), made)  # a table folds its own title


def times_title(chunks: Iterable[int]) -> str:
    """What the times of a table of requests and their steps are, given the requests' chunks."""
    several = ", or per chunk" if max(chunks, default=1) > 1 else ""
    return f"requests: time per iteration; steps: time of one execution{several}"


def letters(n: int) -> str:
    """A, B, .., Z, AA, AB, ..: short names for what has long texts."""
    return (letters(n // 26 - 1) if n >= 26 else "") + chr(ord("A") + n % 26)


def gap(value: float, bound: float) -> str:
    """How far a value lies above a bound, in percent; a tick of a solver's is none."""
    if value <= 0 or bound >= value * (1 - 1e-8):
        return "0 %"
    percent = 100 * (value - bound) / value
    return f"{plain(percent)} %" if percent >= 0.001 else "under 0.001 %"


def bound_text(name: str, bound_s: float, value_s: float) -> str:
    """A bound on a time by its name, with the gap to it; "none" where none is known."""
    if known_bound(bound_s, value_s) is None:
        return f"{name} bound none"
    return f"{name} bound {format_time(bound_s)} (gap {gap(value_s, bound_s)})"


def console(stderr: bool = False) -> Console:
    """The console that all output goes through; a pipe gets lines that are not folded."""
    made = Console(stderr=stderr, highlight=False, soft_wrap=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = _PIPE_WIDTH
    return made


def show(*parts: RenderableType) -> None:
    """Print to stdout, without blanks at the ends of lines."""
    screen = console()
    with screen.capture() as captured:
        screen.print(*parts, sep="\n")
    sys.stdout.write(_BLANKS.sub(r"\1", captured.get()))
