"""Two answers side by side: the gain first, then what differs; at most 20 lines of 80 columns."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len

from p2smt.report.outputs.answers import CompareAnswersOutput, ComparedAnswer
from p2smt.report.text import printable
from p2smt.report.training.run_words import short_strategy
from p2smt.report.what_if_rows import COLUMNS, fitted, gain_words, shortened
from p2smt.training.strategy import parse_strategy
from p2smt.units import format_gigabytes, format_time, format_time_range

if TYPE_CHECKING:
    from p2smt.api.saved_answers import ComparedAnswers, SavedAnswer

_LINES = 20
_WIDEST_LABEL = 30
_MOST_CHOSEN = 3
"""Lines of the answer itself."""
_Row = tuple[str, str, str]
"""What it is, in the first answer, and in the second."""


def answers_lines(found: ComparedAnswers) -> list[str]:
    """The gain, how sure it is, and both answers part by part."""
    first, second = found.first, found.second
    names = _names(first.path, second.path)
    alike = ", ".join(text for name, text in first.asked.items() if name not in found.unlike)
    head = [
        f"gain {_gain(found)} in {_gained(first)}: {names[1]} instead of {names[0]}",
        *_caveat(found),
        f"both: {printable(alike)}" if alike else "they have nothing in common",
        "",
    ]
    above = [("", *names), *_unlike(found), *_chosen(first, second), *_times(first, second)]
    below = [*_below(first, second)]
    left = _LINES - len(head) - len(above) - len(below)
    rows = [*above, *_parts(first, second, left), *below]
    width = min(max(len(label) for label, *_ in rows) + 1, _WIDEST_LABEL)
    return [*(shortened(line, COLUMNS) for line in head), *(_columns(row, width) for row in rows)]


def _unlike(found: ComparedAnswers) -> Iterator[_Row]:
    for name in found.unlike:
        one, other = (answer.asked.get(name, "none") for answer in (found.first, found.second))
        yield name, one, other


def _times(first: SavedAnswer, second: SavedAnswer) -> Iterator[_Row]:
    yield "time", format_time(first.seconds), format_time(second.seconds)
    yield "range", _ends(first), _ends(second)


def _below(first: SavedAnswer, second: SavedAnswer) -> Iterator[_Row]:
    one, other = (format_gigabytes(each.memory_bytes) for each in (first, second))
    yield "memory a device", one, other
    if first.status or second.status:
        yield "status", first.status or _UNSAID, second.status or _UNSAID


_UNSAID = "not said"
_FOLDED = (COLUMNS - _WIDEST_LABEL) // 2


def _gain(found: ComparedAnswers) -> str:
    ends = found.gain_range
    return gain_words((found.gain, *(ends or (found.gain, found.gain))))


def _gained(one: SavedAnswer) -> str:
    return "tokens/s" if one.work > 1 else "speed"


def _caveat(found: ComparedAnswers) -> Iterator[str]:
    if found.gain_range is None:
        yield "how sure: not known, as a file has no range"
    elif found.gain and not found.sure:
        yield "how sure: it may not show, as the ranges overlap"
    if found.unlike:
        yield f"they do not ask alike: {', '.join(found.unlike)} differ"


def _names(first: str, second: str) -> tuple[str, str]:
    """Names of files, with folders only where they are needed to tell them apart."""
    short = os.path.basename(first), os.path.basename(second)
    both = short if short[0] != short[1] else (first, second)
    one, other = (_tail(printable(name), 24) for name in both)
    return one, other


def _tail(text: str, width: int) -> str:
    return text if cell_len(text) <= width else ".." + text[2 - width :]


def _chosen(first: SavedAnswer, second: SavedAnswer) -> Iterator[_Row]:
    lines = [_folded(_words(one)) for one in (first, second)]
    label = "run" if first.work > 1 else "answer"
    for at, (one, other) in enumerate(zip_longest(*lines, fillvalue="")):
        yield "" if at else label, one, other


def _words(one: SavedAnswer) -> str:
    return short_strategy(parse_strategy(one.chosen)) if one.work > 1 else one.chosen


def _folded(text: str) -> list[str]:
    blanks = printable(text).replace(",", ", ")  # where a line may end
    lines = textwrap.wrap(blanks, _FOLDED, break_on_hyphens=False)
    lines = [line.replace(", ", ",") for line in lines]
    return lines if len(lines) <= _MOST_CHOSEN else [*lines[: _MOST_CHOSEN - 1], ".."]


def _ends(one: SavedAnswer) -> str:
    return "none" if one.range_s is None else format_time_range(*one.range_s, one.seconds)


def _parts(one: SavedAnswer, other: SavedAnswer, most: int) -> Iterator[_Row]:
    """The parts that differ most, in their order, and the sum of the others."""
    first, second = one.parts, other.parts
    every = dict.fromkeys([*first, *second])
    names = [name for name in every if first.get(name) or second.get(name)]
    apart = sorted(names, key=lambda name: -abs(first.get(name, 0.0) - second.get(name, 0.0)))
    shown = set(names if len(names) <= most else apart[: most - 1])
    for name in names:
        if name in shown:
            yield f"  {name}", _time(one, name), _time(other, name)
    if rest := [name for name in names if name not in shown]:
        here, there = (sum(each.get(name, 0.0) for name in rest) for each in (first, second))
        yield f"  {len(rest)} others", format_time(here), format_time(there)


def _time(one: SavedAnswer, name: str) -> str:
    asked = name in one.parts or one.work > 1
    return format_time(one.parts.get(name, 0.0)) if asked else "none"


def _columns(row: _Row, width: int) -> str:
    cell = (COLUMNS - width - 2) // 2
    label, one, other = row
    cells = (fitted(label, width), fitted(one, cell), shortened(printable(other), cell))
    return " ".join(cells).rstrip()


def answers_data(found: ComparedAnswers) -> CompareAnswersOutput:
    """The same as data."""
    ends = found.gain_range
    return CompareAnswersOutput(
        kind=found.first.kind.value.split()[1],
        gain=found.gain,
        gain_range=None if ends is None else list(ends),
        sure=found.sure,
        unlike=list(found.unlike),
        first=_data(found.first),
        second=_data(found.second),
    )


def _data(one: SavedAnswer) -> ComparedAnswer:
    return ComparedAnswer(
        path=one.path,
        asked=one.asked,
        answer=one.chosen,
        seconds=one.seconds,
        range_s=None if one.range_s is None else list(one.range_s),
        parts=one.parts,
        memory_bytes=one.memory_bytes,
        status=one.status or None,
    )
