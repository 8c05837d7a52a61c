"""Reads the tables that nccl-tests prints, also cut, prefixed or trimmed ones.

A table starts at a line with the columns ``size`` and ``time``, or, where that was cut off, at a
row that has the columns of nccl-tests; the lines above it may name the test and the devices.  A
line of the table is one that starts with a whole number.  Everything else is passed over.  A
comment ``# meta: {"nodes": 2, "gpus": 16, "collective": "all_reduce"}`` says what a trimmed file
no longer tells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.files.json_text import loads
from p2smt.files.text_kind import seems
from p2smt.interop.nccl_tests.elements import (
    DeviceList,
    RankCount,
    Timing,
    TimingTable,
    check_times,
    is_data_type,
    parts_of,
    ran_alone,
    ran_in,
    test_in,
    test_named,
)
from p2smt.interop.nccl_tests.log_lines import MAX_LINE, plain_lines

MAX_ROWS = 100_000
MAX_COLUMNS = 64
_META = re.compile(r"#\s*meta:\s*(\{.*\})\s*")


@dataclass(slots=True)
class _Above:
    """What stands above a table."""

    test: str = ""
    devices: DeviceList = field(default_factory=DeviceList)
    meta: RankCount | None = None

    @property
    def said(self) -> tuple[RankCount, ...]:
        return (*((self.meta,) if self.meta else ()), *self.devices.said())

    def __bool__(self) -> bool:
        return bool(self.test or self.meta or self.devices.hosts)


@dataclass(slots=True)
class _Reading:
    """What has been read: finished tables, the table under way, and what stands above the next.

    A title or device list counts for the next heading only, so that a log line among the rows
    cannot end a table; rows without a heading end where something is said anew.
    """

    source: str
    tables: list[TimingTable] = field(default_factory=list)
    above: _Above = field(default_factory=_Above)
    test: str = ""
    said: tuple[RankCount, ...] = ()
    carried: bool = False
    columns: tuple[str, ...] = ()
    implied: bool = False
    data_type: str = ""
    start: int = 0
    timings: list[Timing] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    rows: int = 0
    cut: int = 0

    def where(self, number: int) -> str:
        return f"{self.source}, line {number}"

    def begin(self, columns: tuple[str, ...], number: int, implied: bool) -> None:
        """Close the table under way and start one; what is not told anew stays."""
        self.finish()
        self.columns, self.start, self.implied, self.data_type = columns, number, implied, ""
        self.carried = bool(self.tables) and not self.above
        self.above.devices.check_together()
        if self.above:
            self.test, self.said = self.above.test or self.test, self.above.said
        self.above = _Above()

    def finish(self) -> None:
        """Close the table under way.

        Raises:
            InputError: it has no row.
        """
        if "algbw" in self.columns and not (self.timings or self.wrong or self.data_type):
            raise self._without_rows()
        if self.timings or self.wrong:
            where, rows = self.where(self.start), (tuple(self.timings), tuple(self.wrong))
            self.tables.append(TimingTable(where, self.test, self.said, *rows, self.carried))
        self.columns, self.timings, self.wrong = (), [], []

    def _without_rows(self) -> InputError:
        given = f"{self.where(self.start)}: heading"
        if any(one.ranks == 1 for one in self.said):
            return ran_alone(f"{given} of one rank without a row")
        rule = "has no row under it: the table is cut off, or several processes wrote at once"
        remedy = "remove it, or run again; processes that each call themselves rank 0 need MPI=1"
        return InputError(given, rule, f"{remedy} where nccl-tests is built")


def parse_text(text: str, source: str) -> list[TimingTable]:
    """The tables in what nccl-tests printed.

    Raises:
        InputError: a line of a table is cut or garbled, the unit is another, ranks ran in
            several groups, or there is no table.
    """
    reading = _Reading(source)
    for number, line in enumerate(plain_lines(text), 1):
        _read_line(reading, line, number)
    if not reading.columns and reading.cut:
        rule = f"no heading names its columns, and they are not {' '.join(COLUMNS)}"
        remedy = "give the rows of one run as they were printed, with their heading"
        raise InputError(reading.where(reading.cut), rule, remedy)
    reading.finish()
    if not reading.tables:
        table = "no table of nccl-tests (a line with size and time, and rows under it)"
        rule = f"{seems(text)}, and has {table}"
        if reading.rows:
            rule = "has rows without bytes or time alone, which tell nothing"
        remedy = "give the output of a run such as all_reduce_perf"
        if text.lstrip().startswith("|"):
            remedy = "head the columns of this table size and time (us), as all_reduce_perf does"
        raise InputError(source, rule, remedy)
    ran = ran_in(text)
    return [replace(table, ran=ran) for table in reading.tables]


def _read_line(reading: _Reading, line: str, number: int) -> None:
    words = line.lstrip("#").split() if len(line) < MAX_LINE else []
    names = [word.partition("(")[0] for word in words]  # size(B) of AWS's nccom-test
    if names[:1] == ["size"] and {"time", "cputime"} & set(names):
        if units := [word for word in words if word.startswith("time(")]:
            _check_units(reading, [unit.removeprefix("time") for unit in units], number)
        _start_table(reading, names, number)
    elif line[:1] != "#" and _begins(reading, words):
        reading.begin(implied_columns(words), number, implied=True)
        _read_row(reading, words, number)
    elif reading.columns and line[:1] != "#" and is_row(words):
        _read_row(reading, words, number)
    elif reading.columns and words[:1] == ["(B)"]:
        _check_units(reading, words, number)
    else:
        _read_remark(reading, line, number)
        if not reading.columns and not reading.cut and looks_cut_off(words):
            reading.cut = number


def _begins(reading: _Reading, words: list[str]) -> bool:
    """Whether a row without a heading starts a table."""
    fresh = not reading.columns or (reading.implied and bool(reading.above))
    return fresh and bool(implied_columns(words))


def _read_remark(reading: _Reading, line: str, number: int) -> None:
    """A line outside the rows: a title, a device, or what does not matter."""
    where = reading.where(number)
    if reading.above.devices.take(line, where):
        return
    if meta := _META.fullmatch(line):
        _read_meta(reading.above, meta[1], where)
    elif (test := test_in(line)) and "concluded" not in line:
        reading.above.test = test


def _read_meta(above: _Above, text: str, where: str) -> None:
    """A remark by whoever trimmed the file."""
    try:
        meta = loads(text)
    except (ValueError, RecursionError):
        rule = "is not one JSON object"
        raise InputError(f"{where}: meta", rule, "correct that line") from None
    if isinstance(meta.get("collective"), str):
        above.test = test_named(meta["collective"], where)
    nodes, gpus = (_whole(meta, key, where) for key in ("nodes", "gpus"))
    if gpus is None:
        return
    if nodes is not None and gpus % nodes:
        rule = f"cannot be spread evenly over {nodes} nodes"
        raise InputError(f"{where}: {gpus} gpus", rule, "correct that line")
    above.meta = RankCount(where, "its meta line", gpus, nodes and gpus // nodes)


def _whole(meta: Mapping[str, Any], key: str, where: str) -> int | None:
    """A whole number of a remark; None: it has none."""
    value = meta.get(key)
    if value is None:
        return None
    if type(value) is not int or not 0 < value <= MAX_DEVICES:
        rule = f"must be one whole number up to {MAX_DEVICES}: a table has one number of {key}"
        shown = repr(value)[:40] if isinstance(value, str | int | float) else type(value).__name__
        raise InputError(f"{where}: {key} {shown}", rule, f"split the file by {key}")
    return value


def _start_table(reading: _Reading, words: list[str], number: int) -> None:
    if "cputime" in words:
        rule = "holds CPU times (option -C), not those of the collective"
        raise InputError(reading.where(number), rule, "measure without -C")
    if len(words) > MAX_COLUMNS:
        raise InputError(reading.where(number), f"more than {MAX_COLUMNS} columns", "remove it")
    reading.begin(tuple(words), number, implied=False)


def _check_units(reading: _Reading, words: list[str], number: int) -> None:
    if "(us)" not in words or {"(s)", "(ms)", "(ns)"} & set(words):
        rule = f"times must be in (us), not {' '.join(words)[:60]}"
        raise InputError(reading.where(number), rule, "give the output as it was printed")


def _read_row(reading: _Reading, words: list[str], number: int) -> None:
    where = reading.where(number)
    reading.rows += 1
    if reading.rows > MAX_ROWS:
        raise InputError(where, f"more than {MAX_ROWS} rows", "split the file")
    found = parse_row(reading.columns, words, where, number)
    reading.data_type = reading.data_type or found.data_type
    if found.data_type != reading.data_type:
        raise InputError(
            f"{where}: type {found.data_type}",
            f"the table has {reading.data_type} above",
            "split it by type",
        )
    if found.wrong:
        reading.wrong.append(number)
    else:
        reading.timings += found.timings


# One row of a table as nccl-tests prints it: its cells, and the times in them.


COLUMNS = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
_WHOLE = re.compile(r"[0-9][0-9_]{0,24}")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.([0-9]{1,9}))?(?:e([+-]?[0-9]{1,3}))?")
_ROOT = re.compile(r"-?[0-9]{1,9}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,30}")
_ERROR = re.compile(r"[0-9]e-[0-9]{2}|0e\+00")  # old versions: the largest error, not a count
_FIGURES = ("time", "algbw", "busbw")
_MSCCLPP = COLUMNS[5:]  # of mscclpp-test, whose collectives leave out one of both times
_HALF = len(_MSCCLPP)
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
    if missing == _HALF and columns[2:] == _MSCCLPP * 2:
        columns, missing = columns[:-_HALF], 0
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
