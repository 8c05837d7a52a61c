"""Reads the tables that nccl-tests prints, also cut, prefixed or trimmed ones.

A table starts at a line with the columns ``size`` and ``time``; the lines above it may name the
test and the devices.  A line of the table is one that starts with a whole number.  Everything
else is passed over.  A comment ``# meta: {"nodes": 2, "gpus": 16, "collective": "all_reduce"}``
says what a trimmed file no longer tells.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.elements import Timing, TimingTable, binary_in, check_times, hosts_of

MAX_ROWS = 100_000
MAX_LINE = 4096
MAX_COLUMNS = 64
_PREFIX = re.compile(r"\s*(?:\[\d{1,9},\d{1,9}\]<std(?:out|err)>:|\d{1,9}:(?=[\s#]))\s*")
_RANK = re.compile(
    r"#\s*Rank\s+(\d{1,9})(?:\s+Group\s+(\d{1,9}))?\s+Pid\s+\d{1,12}\s+on\s+(\S{1,255})\s+device\b"
)
_META = re.compile(r"#\s*meta:\s*(\{.*\})\s*")
_WHOLE = re.compile(r"[0-9][0-9_]{0,24}")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.([0-9]{1,9}))?(?:e([+-]?[0-9]{1,3}))?")
_WORDS = ("type", "redop", "root")
_FIGURES = ("time", "algbw", "busbw")


@dataclass(slots=True)
class _Reading:
    """What has been read: finished tables, the table under way, and what stands above the next.

    A title or device list counts for the next header only, so that a log line among the rows
    cannot end a table.
    """

    source: str
    tables: list[TimingTable] = field(default_factory=list)
    next_binary: str = ""
    next_hosts: tuple[int, ...] = ()
    next_devices: dict[int, str] = field(default_factory=dict)
    binary: str = ""
    hosts: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    start: int = 0
    timings: list[Timing] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    rows: int = 0

    def where(self, number: int) -> str:
        return f"{self.source}, line {number}"

    def begin(self, columns: tuple[str, ...], number: int) -> None:
        """Close the table under way and start one; what is not told anew stays."""
        self.finish()
        self.columns, self.start = columns, number
        self.binary = self.next_binary or self.binary
        self.hosts = hosts_of(self.next_devices) or self.next_hosts or self.hosts
        self.next_binary, self.next_hosts, self.next_devices = "", (), {}

    def finish(self) -> None:
        """Close the table under way."""
        if self.timings or self.wrong:
            where, timings = self.where(self.start), tuple(self.timings)
            self.tables.append(
                TimingTable(where, self.binary, self.hosts, timings, tuple(self.wrong))
            )
        self.columns, self.timings, self.wrong = (), [], []


def parse_text(text: str, source: str) -> list[TimingTable]:
    """The tables in what nccl-tests printed.

    Raises:
        InputError: a line of a table is cut or garbled, the unit is another, ranks ran in
            several groups, or there is no table.
    """
    reading = _Reading(source)
    for number, line in enumerate(text.split("\n"), 1):
        _read_line(reading, _PREFIX.sub("", line[:MAX_LINE], count=1).strip(), number)
    reading.finish()
    if not reading.tables:
        rule = "has no table of nccl-tests (a line with size and time, and rows under it)"
        raise InputError(source, rule, "give the output of a run such as all_reduce_perf")
    return reading.tables


def _read_line(reading: _Reading, line: str, number: int) -> None:
    words = line.lstrip("#").split() if len(line) < MAX_LINE else []
    if words[:1] == ["size"] and {"time", "cputime"} & set(words):
        _start_table(reading, words, number)
    elif reading.columns and line[:1] != "#" and _is_row(words):
        _read_row(reading, words, number)
    elif reading.columns and words[:1] == ["(B)"]:
        _check_units(reading, words, number)
    else:
        _read_remark(reading, line, number)


def _is_row(words: list[str]) -> bool:
    """A size, and a count or a time: no log line like "1 more process has sent help"."""
    numbers = (_WHOLE.fullmatch(word) or _NUMBER.fullmatch(word) for word in words[:2])
    return bool(words) and bool(_WHOLE.fullmatch(words[0])) and all(numbers)


def _read_remark(reading: _Reading, line: str, number: int) -> None:
    """A line outside the rows: a title, a device, or what does not matter."""
    if device := _RANK.match(line):
        _read_device(reading, device, number)
    elif meta := _META.fullmatch(line):
        _read_meta(reading, meta[1], number)
    elif (binary := binary_in(line)) and "concluded" not in line:
        reading.next_binary = binary


def _read_device(reading: _Reading, found: re.Match[str], number: int) -> None:
    if int(found[2] or 0):
        rule = "the ranks ran in several groups at once"
        raise InputError(reading.where(number), rule, "measure one group of all ranks")
    if len(reading.next_devices) < MAX_DEVICES:
        reading.next_devices[int(found[1])] = found[3]


def _read_meta(reading: _Reading, text: str, number: int) -> None:
    """A remark by whoever trimmed the file."""
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError):
        rule = "is not one JSON object"
        raise InputError(f"{reading.where(number)}: meta", rule, "correct that line") from None
    nodes, gpus, collective = (meta.get(key) for key in ("nodes", "gpus", "collective"))
    if isinstance(collective, str):
        reading.next_binary = binary_in(f"{collective[:30]}_perf")
    whole = type(nodes) is int and type(gpus) is int and 0 < nodes <= gpus <= MAX_DEVICES
    if whole and gpus % nodes == 0:
        reading.next_hosts = (gpus // nodes,) * nodes


def _start_table(reading: _Reading, words: list[str], number: int) -> None:
    if "cputime" in words:
        rule = "holds CPU times (option -C), not those of the collective"
        raise InputError(reading.where(number), rule, "measure without -C")
    if len(words) > MAX_COLUMNS:
        raise InputError(reading.where(number), f"more than {MAX_COLUMNS} columns", "remove it")
    reading.begin(tuple(words), number)


def _check_units(reading: _Reading, words: list[str], number: int) -> None:
    if "(us)" not in words or {"(s)", "(ms)", "(ns)"} & set(words):
        rule = f"times must be in (us), not {' '.join(words)[:60]}"
        raise InputError(reading.where(number), rule, "give the output as it was printed")


def _read_row(reading: _Reading, words: list[str], number: int) -> None:
    where = reading.where(number)
    reading.rows += 1
    if reading.rows > MAX_ROWS:
        raise InputError(where, f"more than {MAX_ROWS} rows", "split the file")
    cells = _aligned(reading.columns, words, where)
    size = int(words[0].replace("_", ""))
    wrong, found = False, []
    for cell in cells:
        wrong |= cell.get("#wrong", "0") not in ("0", "N/A") and _number(cell["#wrong"], where) > 0
        timing = _timing(cell, size, number, where)
        if size and timing.seconds:
            check_times(timing, where)
            found.append(timing)
    if wrong:
        reading.wrong.append(number)
    else:
        reading.timings += found


def _aligned(columns: tuple[str, ...], words: list[str], where: str) -> list[dict[str, str]]:
    """The cells of each time of a row, by column; a blank redop or root may be missing."""
    first = columns.index("time")
    if columns[-1] == "timestamp":  # a date and a time of day: two words
        columns, words = columns[:-1], words[:-2] if len(words) > len(columns) else words
    missing = len(columns) - len(words)
    words_missing = sum(name in _WORDS[1:] for name in columns[:first])
    if not 0 <= missing <= words_missing:
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


def _timing(cell: dict[str, str], size: int, number: int, where: str) -> Timing:
    if size >= 2**62:
        raise InputError(f"{where}: size {size:.3g}", "must be below 2^62 bytes")
    time, alg, bus = (_number(cell.get(name, "0"), where) for name in _FIGURES)
    both = "algbw" in cell and "busbw" in cell
    errors = [_half_digit(cell[name]) if both else 0.0 for name in _FIGURES[1:]]
    return Timing(number, size, time / 1e6, alg * both, bus * both, *errors)


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
