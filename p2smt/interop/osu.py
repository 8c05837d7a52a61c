"""Reads what the collective tests of the OSU micro-benchmarks print (versions 3 to 7).

A title (``# OSU MPI Allreduce Latency Test v7.3``) names the test, a line ``# Size  Avg
Latency(us) ..`` the columns; with ``-f`` least, most and iterations follow, with ``-c`` a word on
the results, with ``-z`` percentiles.  Times are microseconds, each rank's mean over the
iterations, and ``Avg`` is their mean over the ranks: a rank that leaves early, as most do in a
broadcast, makes it shorter than the collective, and ``Max`` is the slowest rank's.  The latter is
taken where it stands.

What *size* means (c/mpi/collective/blocking/osu_*.c): the buffer of an all-reduce, reduce and
broadcast, and of a reduce-scatter the whole input; of an all-gather what one rank contributes, and
of an all-to-all what it sends to one other, so that the whole vector has ``ranks`` times as much.
No line tells ranks or hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.files.text_kind import seems
from p2smt.interop.nccl_tests.calibration_files import Benchmark, RankedTable, count_unfit, text_of
from p2smt.interop.nccl_tests.elements import Timing, TimingTable
from p2smt.interop.nccl_tests.log_lines import MAX_LINE, without_marks

MAX_ROWS = 100_000
TESTS: dict[str, Operation] = {
    "allreduce": Collective.ALL_REDUCE,
    "allgather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reduce_scatter_block": Collective.REDUCE_SCATTER,
    "reduce": Collective.REDUCE,
    "broadcast": Collective.BROADCAST,
    "all-to-all personalized exchange": RequestKind.ALL_TO_ALL,
}
"""The test as its title names it, and what it measures."""
PER_RANK: tuple[Operation, ...] = (Collective.ALL_GATHER, RequestKind.ALL_TO_ALL)
"""Where a size is one rank's part of the whole vector."""
_TITLE = re.compile(r"#\s*OSU\s+\S+\s+(.{1,80}?)(?:\s+Latency)?\s+Test\b.{0,40}")
_HEADING = re.compile(r"#\s*Size\s+(\S.*)")
_MARK = re.compile(r"#\s*OSU\s+MPI")
_STARTS = re.compile(r"#\s*(?:OSU\s|Size\s)")
_GAP = re.compile(r"\s{2,}")
_SIZE = re.compile(r"[0-9]{1,19}")
_TIME = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
AVERAGE, SLOWEST = "avg", "max"


@dataclass(slots=True)
class _OsuTable:
    """A table under way: where its heading stands, what ran, its columns and its rows."""

    where: str
    operation: Operation
    columns: tuple[str, ...]
    timings: list[Timing]
    wrong: list[int]


def is_osu(text: str) -> bool:
    """Whether one of the tests printed it."""
    return _MARK.search(text) is not None


def parse_osu(text: str, source: str) -> list[tuple[Operation, TimingTable]]:
    """The tables in what the tests printed, sizes as they stand there, and what each measured.

    Raises:
        InputError: a line of a table is cut or garbled, a test is none of a collective that the
            model has, or there is no table.
    """
    found: list[_OsuTable] = []
    title = ""
    for number, line in enumerate(_lines(text), 1):
        where = f"{source}, line {number}"
        if named := _TITLE.fullmatch(line):
            title = named[1]
        elif heading := _HEADING.fullmatch(line):
            found.append(_begun(title, heading[1], where))
        elif found and title and _SIZE.fullmatch(line.partition(" ")[0]):
            _take(found[-1], line.split(), number, where)
    if not any(table.timings or table.wrong for table in found):
        rule = f"{seems(text)}, and has no table of a collective test of the OSU benchmarks"
        raise InputError(source, rule, "give the output of a run such as osu_allreduce -f")
    return [(table.operation, _finished(table)) for table in found]


def _lines(text: str) -> Iterator[str]:
    lines = [line[:MAX_LINE].replace("\t", " ").strip() for line in text.split("\n")]
    return (line.strip() for line in without_marks(lines, _STARTS))


def _begun(title: str, heading: str, where: str) -> _OsuTable:
    """A table with the columns that its heading names."""
    if not title:
        rule = "has no title above it that names the test"
        raise InputError(f"{where}: heading", rule, "keep the line # OSU MPI .. Latency Test")
    operation = TESTS.get(title.removesuffix(" Latency").lower())
    if operation is None:
        rule = f"is no blocking collective that is modelled; those are {', '.join(TESTS)}"
        raise InputError(f"{where}: test {title[:40]!r}", rule, "leave its table out")
    columns = tuple(map(_column, _GAP.split(heading)))
    if columns[0] != AVERAGE:
        rule = "must begin with an average latency in microseconds"
        raise InputError(f"{where}: columns {heading[:60]!r}", rule, "give the output as printed")
    return _OsuTable(where, operation, columns, [], [])


def _column(text: str) -> str:
    """A column in short: ``Avg Latency(us)``, ``Avg Lat(us)`` and ``Latency (us)`` are one."""
    word, unit = text.lower().split("(")[0].split(), text.lower().endswith("(us)")
    if unit and word[-1:] in (["latency"], ["lat"]):
        return word[0] if len(word) > 1 else AVERAGE
    return text.lower()


def _take(table: _OsuTable, words: list[str], number: int, where: str) -> None:
    """Read a row; one without bytes or time tells nothing."""
    if len(words) != len(table.columns) + 1:
        rule = f"the table has {len(table.columns) + 1}: size {' '.join(table.columns)[:60]}"
        raise InputError(f"{where}: {len(words)} columns", rule, "complete or remove that line")
    if len(table.timings) >= MAX_ROWS:
        raise InputError(where, f"more than {MAX_ROWS} rows", "split the file")
    cells = dict(zip(table.columns, words[1:], strict=True))
    if cells.get("validation", "Pass") != "Pass":
        table.wrong.append(number)
        return
    time = cells[SLOWEST if SLOWEST in cells else AVERAGE]
    if not _TIME.fullmatch(time):
        raise InputError(f"{where}: {time[:40]!r}", "is not a time", "correct that line")
    size, seconds = int(words[0]), float(time) / 1e6
    if size >= 2**62:
        raise InputError(f"{where}: size {words[0]}", "must be below 2^62 bytes")
    if size and seconds:
        table.timings.append(Timing(number, size, seconds))


def _finished(table: _OsuTable) -> TimingTable:
    slowest = SLOWEST in table.columns
    which = "times of the slowest rank" if slowest else "mean times of all ranks: add -f"
    return TimingTable(table.where, "", (), tuple(table.timings), tuple(table.wrong), ran=(which,))


PROGRAM = "OSU micro-benchmarks"


def read_osu(
    path: str, operation: Operation | None = None, ranks: int | None = None
) -> list[RankedTable]:
    """The tables of a file, of those of ``operation`` alone where it is given.

    Raises:
        InputError: the file cannot be read, is malformed, or the number of ranks is not given:
            no line of it tells that.
    """
    found = parse_osu(text_of(path, PROGRAM), path)
    if operation is not None and all(what is not operation for what, _ in found):
        said = ", ".join(dict.fromkeys(what.value for what, _ in found))
        given = f"--collective {operation.value}, and {path} has {said}"
        raise InputError(given, "contradict each other", "drop --collective")
    return [_ranked(table, what, ranks) for what, table in found if operation in (None, what)]


def _ranked(table: TimingTable, operation: Operation, ranks: int | None) -> RankedTable:
    """The table with whole vectors as sizes."""
    if ranks is None:
        rule = "does not tell the number of ranks, as no table of these benchmarks does"
        raise InputError(table.where, rule, "name it with --ranks")
    if not 2 <= ranks <= MAX_DEVICES:
        raise count_unfit(table, ranks)
    times = tuple(
        _whole(timing, operation, ranks)
        for timing in table.timings
        if _moves(timing, operation, ranks)
    )
    return RankedTable(replace(table, timings=times), operation, ranks, None)


def _whole(timing: Timing, operation: Operation, ranks: int) -> Timing:
    return replace(timing, size_bytes=timing.size_bytes * (ranks if operation in PER_RANK else 1))


def _moves(timing: Timing, operation: Operation, ranks: int) -> bool:
    """Whether every rank has a part of its own: less is scattered to some or to none."""
    return operation is not Collective.REDUCE_SCATTER or timing.size_bytes >= ranks


OSU = Benchmark(PROGRAM, read_osu)
