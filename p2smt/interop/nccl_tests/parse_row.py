"""One row of a table as nccl-tests prints it: its cells, and the times in them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.interop.nccl_tests.elements import Timing, check_times, is_data_type, parts_of

COLUMNS = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
_WHOLE = re.compile(r"[0-9][0-9_]{0,24}")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.([0-9]{1,9}))?(?:e([+-]?[0-9]{1,3}))?")
_ROOT = re.compile(r"-?[0-9]{1,9}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,30}")
_ERROR = re.compile(r"[0-9]e-[0-9]{2}|0e\+00")  # old versions: the largest error, not a count
_FIGURES = ("time", "algbw", "busbw")
_UNTYPED = "unknown"


@dataclass(frozen=True, slots=True)
class TimedRow:
    """The times of a row, its data type, and whether any result was wrong."""

    timings: tuple[Timing, ...]
    data_type: str
    wrong: bool


def is_row(words: list[str]) -> bool:
    """A size, and a count or a time: no log line like "1 more process has sent help"."""
    numbers = (_WHOLE.fullmatch(word) or _NUMBER.fullmatch(word) for word in words[:2])
    return bool(words) and bool(_WHOLE.fullmatch(words[0])) and all(numbers)


def implied_columns(words: list[str]) -> tuple[str, ...]:
    """The columns of a row that stands without a heading; none if it is not plainly a row.

    A root, which old versions lack, is there if the rest is times of four columns each.
    """
    whole = len(words) > 7 and all(_WHOLE.fullmatch(word) for word in words[:2])
    if not whole or not is_data_type(words[2]):
        return ()
    head = COLUMNS[:5] if (len(words) - 5) % 4 == 0 else COLUMNS[:4]
    sides, rest = divmod(len(words) - len(head), 4)
    if rest or sides not in (1, 2) or not all(_NUMBER.fullmatch(w) for w in words[len(head) :][:3]):
        return ()
    old = _ERROR.fullmatch(words[len(head) + 3])
    return (*head, *(*COLUMNS[5:8], "error" if old else COLUMNS[8]) * sides)


def looks_cut_off(words: list[str]) -> bool:
    """Whether a line is a row of some table, if not one of nccl-tests: numbers about a type."""
    return len(words) > 7 and bool(_WHOLE.fullmatch(words[0])) and any(map(is_data_type, words))


def parse_row(columns: tuple[str, ...], words: list[str], where: str, number: int) -> TimedRow:
    """The times of a row; one without bytes or time is left out.

    Raises:
        InputError: the row does not fill its columns, or they hold something else.
    """
    cells = _aligned(columns, words, where)
    size = int(words[0].replace("_", ""))
    if size >= 2**62:
        raise InputError(f"{where}: size {size:.3g}", "must be below 2^62 bytes")
    data_type = _data_type(columns, words, where)
    parts = _parts(columns, words, size, data_type)
    wrong, found = False, []
    for cell in cells:
        wrong |= cell.get("#wrong", "0") not in ("0", "N/A") and _number(cell["#wrong"], where) > 0
        timing = _timing(cell, size, number, where, parts)
        if size and timing.seconds:
            check_times(timing, where)
            found.append(timing)
    return TimedRow(tuple(found), data_type, wrong)


def _aligned(columns: tuple[str, ...], words: list[str], where: str) -> list[dict[str, str]]:
    """The cells of each time of a row, by column; a blank redop or root may be missing."""
    first = columns.index("time")
    if columns[-1] == "timestamp":  # a date and a time of day: two words
        columns, words = columns[:-1], words[:-2] if len(words) > len(columns) else words
    missing = len(columns) - len(words)
    if missing and missing != _blanks(columns[:first], words):
        raise InputError(
            f"{where}: {len(words)} columns",
            f"the table has {len(columns)}: {' '.join(columns)[:80]}",
            "complete or remove that line",
        )
    cells: list[dict[str, str]] = []
    for name, word in zip(columns[first:], words[first - missing :], strict=True):
        if name == "time":
            cells.append({})
        cells[-1][name] = word
    return cells


def _blanks(head: tuple[str, ...], words: list[str]) -> int:
    """How many of redop and root are blank in a row."""
    blank = 0
    for name, shape in (("redop", _WORD), ("root", _ROOT)):
        if name in head:
            at = head.index(name) - blank
            blank += not (at < len(words) and shape.fullmatch(words[at]))
    return blank


def _data_type(columns: tuple[str, ...], words: list[str], where: str) -> str:
    if "type" not in columns:
        return _UNTYPED
    word = words[columns.index("type")]
    if not word[:1].isalpha():
        raise InputError(f"{where}: type {word[:40]!r}", "is no data type", "correct that line")
    return word


def _parts(columns: tuple[str, ...], words: list[str], size: int, data_type: str) -> int:
    if columns[1] != "count" or not _WHOLE.fullmatch(words[1]):
        return 0
    return parts_of(size, int(words[1].replace("_", "")), data_type)


def _timing(cell: dict[str, str], size: int, number: int, where: str, parts: int) -> Timing:
    time, alg, bus = (_number(cell.get(name, "0"), where) for name in _FIGURES)
    both = "algbw" in cell and "busbw" in cell
    if not both:
        return Timing(number, size, time / 1e6, parts=parts)
    errors = (_half_digit(cell["algbw"]), _half_digit(cell["busbw"]))
    return Timing(number, size, time / 1e6, alg, bus, errors[0], errors[1], parts)


def _number(text: str, where: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 <= value < 1e12:
        raise InputError(f"{where}: {text[:40]!r}", "is not a number", "correct that line")
    return value


def _half_digit(text: str) -> float:
    """Half a unit of a number's last digit."""
    found = _NUMBER.fullmatch(text)
    assert found is not None  # read by _number before
    return 0.5 * 10.0 ** (int(found[2] or 0) - len(found[1] or ""))
