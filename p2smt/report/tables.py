"""Plain tables, and the one way to stdout for what people read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from p2smt.result import known_bound
from p2smt.units import format_time, plain

_PIPE_WIDTH = 10_000
_BLANKS = re.compile(r"(?<![ \t])[ \t]+((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
_GAP = 2
"""Blanks between two columns."""


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], least: Sequence[str] = ()
) -> Group:
    """A plain table; columns whose heading starts with ">" are right-aligned.

    Where it is too wide for the screen, columns with the headings ``least`` (the first first) are
    left out, which a line says; where that does not do, cells are wrapped between words, those of a
    right-aligned column nowhere; and where that does not do, further columns follow below.
    """
    body = _Body(tuple(columns), tuple(map(tuple, rows)), tuple(least))
    return Group(Text(title, style="italic"), body)  # a table folds its own title


def table_lines(made: RenderableType, width: int) -> list[str]:
    """The lines of a table, or of several, on a screen of this width."""
    screen = Console(width=width, color_system=None, highlight=False, markup=False, emoji=False)
    with screen.capture() as captured:
        screen.print(made)
    return [line.rstrip() for line in captured.get().splitlines()]


@dataclass(frozen=True, slots=True)
class _Body:
    """Headings and cells, laid out for the width of the screen that shows them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    least: tuple[str, ...]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        width, gone = options.max_width, list[str]()
        kept = [*range(len(self.columns))]
        for heading in self.least:
            if sum(map(self._whole, kept)) + _GAP * (len(kept) - 1) <= width:
                break
            gone += [heading for at in kept if self._heading(at) == heading]
            kept = [at for at in kept if self._heading(at) != heading]
        for n, band in enumerate(self._bands(kept, width)):
            yield from ("",) * (n > 0)
            yield self._drawn(band, width)
        if gone:
            yield f"left out: {', '.join(gone)} (--details)"

    def _heading(self, at: int) -> str:
        return self.columns[at].lstrip(">")

    def _cells(self, at: int) -> Iterator[str]:
        return (row[at] for row in self.rows if at < len(row))

    def _whole(self, at: int) -> int:
        """The width of a column whose cells are lines."""
        return max(map(cell_len, (self._heading(at), *self._cells(at))))

    def _word(self, at: int) -> int:
        """The widest word of a column; a number and its unit are one."""
        one = self.columns[at].startswith(">")
        words = (word for text in self._cells(at) for word in ([text] if one else text.split()))
        return max(map(cell_len, (*self._heading(at).split(), *words)), default=0)

    def _least_width(self, columns: Sequence[int]) -> int:
        """What these columns take where each cell is wrapped between all its words."""
        return sum(map(self._word, columns)) + _GAP * (len(columns) - 1)

    def _bands(self, columns: Sequence[int], width: int) -> Iterator[list[int]]:
        """The columns by what fits side by side; each band has the first one, where it fits."""
        first, *others = columns
        band = [first]
        for at in others:
            if self._least_width([*band, at]) > width:
                beside = self._least_width([first, at]) <= width
                if band != [first] or not beside:
                    yield band
                band = [first] * beside
            band.append(at)
        yield band

    def _drawn(self, band: Sequence[int], width: int) -> Table:
        heads = any(self._heading(at) for at in band)
        made = Table(box=None, pad_edge=False, header_style="bold", show_header=heads)
        for at, cells in zip(band, self._widths(band, width), strict=True):
            right = self.columns[at].startswith(">")
            made.add_column(
                self._heading(at),
                justify="right" if right else "left",
                overflow="fold",
                width=cells,
            )
        for row in self.rows:
            made.add_row(*(row[at] if at < len(row) else "" for at in band))
        return made

    def _widths(self, band: Sequence[int], width: int) -> Iterator[int]:
        """Columns as wide as their texts, the widest no wider than lets all fit."""
        ends = [(self._word(at), self._whole(at)) for at in band]
        room = width - _GAP * (len(band) - 1)
        most = max(whole for _, whole in ends)
        while most and sum(max(word, min(whole, most)) for word, whole in ends) > room:
            most -= 1
        yield from (max(word, min(whole, most)) for word, whole in ends)


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
