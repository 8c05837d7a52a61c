"""Reads the tables that nccl-tests prints, also cut, prefixed or trimmed ones.

A table starts at a line with the columns ``size`` and ``time``, or, where that was cut off, at a
row that has the columns of nccl-tests; the lines above it may name the test and the devices.  A
line of the table is one that starts with a whole number.  Everything else is passed over.  A
comment ``# meta: {"nodes": 2, "gpus": 16, "collective": "all_reduce"}`` says what a trimmed file
no longer tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.files.json_text import loads
from p2smt.interop.nccl_tests.devices import DeviceList, unprefixed
from p2smt.interop.nccl_tests.elements import RankCount, Timing, TimingTable, test_in, test_named
from p2smt.interop.nccl_tests.parse_row import (
    COLUMNS,
    implied_columns,
    is_row,
    looks_cut_off,
    parse_row,
)

MAX_ROWS = 100_000
MAX_LINE = 4096
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
        if self.above:
            self.test, self.said = self.above.test or self.test, self.above.said
        self.above = _Above()

    def finish(self) -> None:
        """Close the table under way.

        Raises:
            InputError: it has no row.
        """
        if "algbw" in self.columns and not (self.timings or self.wrong or self.data_type):
            rule = "has no row under it: the table is cut off"
            raise InputError(f"{self.where(self.start)}: heading", rule, "remove it, or run again")
        if self.timings or self.wrong:
            where, rows = self.where(self.start), (tuple(self.timings), tuple(self.wrong))
            self.tables.append(TimingTable(where, self.test, self.said, *rows, self.carried))
        self.columns, self.timings, self.wrong = (), [], []


def parse_text(text: str, source: str) -> list[TimingTable]:
    """The tables in what nccl-tests printed.

    Raises:
        InputError: a line of a table is cut or garbled, the unit is another, ranks ran in
            several groups, or there is no table.
    """
    reading = _Reading(source)
    for number, line in enumerate(text.split("\n"), 1):
        _read_line(reading, unprefixed(line[:MAX_LINE]), number)
    if not reading.columns and reading.cut:
        rule = f"no heading names its columns, and they are not {' '.join(COLUMNS)}"
        remedy = "give the rows of one run as they were printed, with their heading"
        raise InputError(reading.where(reading.cut), rule, remedy)
    reading.finish()
    if not reading.tables:
        rule = "has no table of nccl-tests (a line with size and time, and rows under it)"
        raise InputError(source, rule, "give the output of a run such as all_reduce_perf")
    return reading.tables


def _read_line(reading: _Reading, line: str, number: int) -> None:
    words = line.lstrip("#").split() if len(line) < MAX_LINE else []
    if words[:1] == ["size"] and {"time", "cputime"} & set(words):
        _start_table(reading, words, number)
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
