"""Files of nccl-tests to what a calibration takes: a starting topology and samples."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2smt.calibration.samples import Measurements, Sample
from p2smt.cluster.topology import (
    MAX_DEVICES,
    Algorithm,
    Level,
    Link,
    LinkKind,
    Piece,
    Topology,
)
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.files.json_text import loads
from p2smt.files.yaml_text import read_bytes
from p2smt.interop.nccl_tests.elements import (
    RankCount,
    Timing,
    TimingTable,
    check_times,
    counted,
    operation_of_test,
    parts_of,
    ran_alone,
    test_in,
    version_of,
)
from p2smt.interop.nccl_tests.log_lines import is_json_log
from p2smt.interop.nccl_tests.parse_text import parse_text
from p2smt.programs.program import Grouping

MAX_FILES = 100


def measurements_of(
    paths: Sequence[str],
    topology: Topology | None = None,
    operation: Operation | None = None,
    ranks: int | Sequence[int | None] | None = None,
    ran: Sequence[tuple[Algorithm, ...] | None] | None = None,
    source: Benchmark | None = None,
) -> Measurements:
    """The measurements in some files; without a topology, that of their device lists.

    ``ranks`` holds for every file, or one number for each (None: as the file tells); ``ran`` are
    the algorithms of each file (None: nothing is said of it).  ``source``: who printed them, if
    not nccl-tests.

    Raises:
        InputError: a file is malformed, or leaves open what ran or where.
    """
    source = source or Benchmark("nccl-tests", read_nccl_tests)
    if not 1 <= len(paths) <= MAX_FILES:
        raise InputError(f"{len(paths)} files", f"give 1 to {MAX_FILES} files of {source.name}")
    if len(set(paths)) != len(paths):
        raise InputError("the list of files", "names a file twice", "name each once")
    counts = _per_file(paths, ranks)
    tables = [
        found
        for path, count in zip(paths, counts, strict=True)
        for found in source.read(path, operation, count)
    ]
    if operation and all(measured.operation is not operation for measured in tables):
        said = ", ".join(dict.fromkeys(measured.operation.value for measured in tables))
        given = f"--collective {operation.value}, and the files say {said}"
        raise InputError(given, "contradict each other", "drop --collective")
    start = topology or derived_topology(tables)
    named = [(measured, _file(measured.table.source, paths)) for measured in tables]
    by = dict(zip(paths, ran or [None] * len(paths), strict=True))
    return Measurements(
        start,
        tuple(
            replace(sample, ran=by[measured.table.source])
            for measured, file in named
            for sample in samples_of(measured, start, file)
        ),
        tuple(
            f"{source.name} {_source(measured, start, file, by[measured.table.source])}"
            for measured, file in named
        ),
        tuple(f"{file}:{line}" for measured, file in named for line in measured.table.wrong),
    )


def _per_file(
    paths: Sequence[str], ranks: int | Sequence[int | None] | None
) -> Sequence[int | None]:
    if ranks is None or isinstance(ranks, int):
        return [ranks] * len(paths)
    if len(ranks) != len(paths):
        given = f"{len(ranks)} numbers of ranks for {len(paths)} files"
        raise InputError(given, "give one for all files, or one for each")
    return ranks


def _file(path: str, paths: Sequence[str]) -> str:
    """The name of a file; its path where another one has the same name."""
    name = os.path.basename(path)
    return name if [os.path.basename(other) for other in paths].count(name) == 1 else path


def _source(
    measured: RankedTable, topology: Topology, file: str, ran: tuple[Algorithm, ...] | None
) -> str:
    some = [sample.members for sample in samples_of(measured, topology, file)[:1]]
    inner = topology.levels[-1]
    part = [f"{members} of {inner.name} {inner.size}" for members in some if members]
    hosts = [] if measured.hosts is None else [f"hosts: {measured.hosts}"]
    ran_by = [", ".join(measured.table.ran)] if measured.table.ran else []
    by = [f"by {', '.join(algorithm.value for algorithm in ran)}"] if ran else []
    told = (*part, *hosts, *ran_by, *by)
    where = f" ({'; '.join(told)})" if told else ""
    what, times = f"{measured.operation.value}, {measured.ranks} ranks", len(measured.table.timings)
    return f"{file}: {what}{where}, {times} times"


# Reads what nccl-tests writes with ``-J`` (file version 3, src/util.cu).
# The object holds ``args`` (the command), ``env``, ``config`` with ``devices`` (one entry per
# process, which has nthreads x ngpus ranks), and ``results``.  ``env`` is the whole environment
# of whoever ran it: neither it nor anything but the name of the test in ``args`` is kept.  What
# ``nccl_version`` says is kept, too.


_HALF_DIGIT = 0.5e-6  # six decimals
_SIDES = ("out_of_place", "in_place")
_FIGURES = ("time", "alg_bw", "bus_bw")


def parse_json(text: str, source: str) -> list[TimingTable]:
    """The table in a JSON report.

    Raises:
        InputError: the text is not such a report, or is cut short.
    """
    data = _object(_parsed(text, source), source)
    results = data.get("results")
    if not isinstance(results, list):
        raise InputError(f"{source}: results", "must be a list of rows", "run it again with -J")
    timings: list[Timing] = []
    wrong: list[int] = []
    first_type = None
    for number, entry in enumerate(results, 1):
        row = _object(entry, f"{source}: results[{number}]")
        first_type = _same_type(row.get("type"), first_type, f"{source}: results[{number}]")
        found, bad = _row(row, source, number)
        if bad:
            wrong.append(number)
        else:
            timings += found
    args = data.get("args")
    first = args[0] if isinstance(args, list) and args and isinstance(args[0], str) else ""
    said = _said(data, source)
    code = data.get("nccl_version")
    ran = (f"NCCL {version_of(code)}",) if type(code) is int and 1000 < code < 10**6 else ()
    return [TimingTable(source, test_in(first), said, tuple(timings), tuple(wrong), ran=ran)]


def _same_type(found: Any, first: str | None, where: str) -> str | None:
    """The data type of all rows so far."""
    if not isinstance(found, str):
        return first
    if first is not None and found != first:
        raise InputError(f"{where}: type {found[:40]}", f"the report has {first[:40]} above")
    return found


def _parsed(text: str, source: str) -> Any:
    try:
        return loads(text)
    except json.JSONDecodeError as error:
        rule = f"is not complete JSON: {error.msg[:80]}"
        raise InputError(f"{source}, line {error.lineno}", rule, "run it again with -J") from None
    except (ValueError, RecursionError) as error:
        rule = f"is not a report of nccl-tests: {str(error)[:80]}"
        raise InputError(source, rule, "run it again with -J") from None


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(where, "must be a JSON object", "run it again with -J")
    return value


def _row(row: Mapping[str, Any], source: str, number: int) -> tuple[list[Timing], bool]:
    """The times of one row, and whether any result was wrong."""
    where = f"{source}: results[{number}]"
    size = _number(row.get("size"), f"{where}.size", 2.0**62)
    parts = _parts(row, int(size))
    found, wrong = [], False
    for side in _SIDES:
        if row.get(side) is None:
            continue
        cell = _object(row[side], f"{where}.{side}")
        if "time" not in cell:
            rule = "has no time" + (", only cpu_time (option -C)" if "cpu_time" in cell else "")
            raise InputError(f"{where}.{side}", rule, "measure without -C")
        wrong |= cell.get("nwrong") is not None and _number(cell["nwrong"], where) > 0
        values = [_number(cell.get(key, 0.0), f"{where}.{side}.{key}") for key in _FIGURES]
        timing = _timing(number, int(size), values, cell, parts)
        if size and timing.seconds:
            check_times(timing, where)
            found.append(timing)
    return found, wrong


def _parts(row: Mapping[str, Any], size: int) -> int:
    count, data_type = row.get("count"), row.get("type")
    if not isinstance(count, int) or not 0 < count < 2**62 or not isinstance(data_type, str):
        return 0
    return parts_of(size, count, data_type)


def _timing(
    number: int, size: int, values: list[float], cell: Mapping[str, Any], parts: int
) -> Timing:
    error = _HALF_DIGIT if "alg_bw" in cell and "bus_bw" in cell else 0.0
    time, alg, bus = values
    return Timing(number, size, time / 1e6, alg, bus, error, error, parts)


def _number(value: Any, where: str, limit: float = 1e12) -> float:
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    if not whole or not 0 <= value < limit or not math.isfinite(value):
        shown = repr(value)[:40] if isinstance(value, str | int | float) else type(value).__name__
        raise InputError(f"{where} {shown}", "is not a number in range", "run it again with -J")
    return float(value)


def _said(data: Mapping[str, Any], source: str) -> tuple[RankCount, ...]:
    """Ranks and hosts, from the processes; nothing if the report does not tell."""
    config = data.get("config")
    if not isinstance(config, dict) or not isinstance(config.get("devices"), list):
        return ()
    each = 1
    for key in ("nthreads", "ngpus"):
        each *= int(_number(config.get(key, 1), f"{source}: config.{key}", MAX_DEVICES))
    names: dict[int, str] = {}
    for i, entry in enumerate(config["devices"][:MAX_DEVICES]):
        device = _object(entry, f"{source}: config.devices[{i}]")
        if device.get("group") not in (0, None):
            rule = "the ranks ran in several groups at once"
            raise InputError(source, rule, "measure one group of all ranks")
        names[i] = str(device.get("hostname", ""))[:255]
    whole = each > 0 and names and all(names.values())
    return (counted(f"{source}: config", "its device list", names, each),) if whole else ()


# What a table measured, on how many ranks: its rows against what the file and the user say.
# The rows tell most: busbw / algbw and the count column hold the number of ranks.  Whatever the
# file says beside must agree with them, and with itself.


_PASSES: dict[Operation, int] = {
    Collective.ALL_REDUCE: 2,
    Collective.ALL_GATHER: 1,
    Collective.REDUCE_SCATTER: 1,
    RequestKind.ALL_TO_ALL: 1,
}
"""busbw / algbw is so many times (n - 1) / n; 1 for all others."""
_ABOVE = 1.001
_PLAINLY = 0.01
_ROUNDED = 1e-3  # a time of four digits
UNKNOWN = (2, MAX_DEVICES)


def operation_of(table: TimingTable, given: Operation | None = None) -> Operation:
    """What ran: as the file says, as its bandwidths show, or as ``given``.

    Raises:
        InputError: it cannot be known, or is none that the model has.
    """
    reduced = any(_ratio(t)[0] > _ABOVE for t in table.timings)  # all-reduce alone goes above 1
    if table.test and not (table.carried and reduced):
        named = operation_of_test(table.test, table.where)
        if not table.carried or _agrees(table, named):
            return named
    if reduced:
        return Collective.ALL_REDUCE
    if given is None:
        _check_together(table)
        rule = "does not say which collective it measured"
        raise InputError(table.where, rule, "name it with --collective")
    return given


def _agrees(table: TimingTable, operation: Operation) -> bool:
    try:
        ranks_shown(table, operation)
    except InputError:
        return False
    return True


def ranks_of(table: TimingTable, operation: Operation, given: int | None = None) -> int:
    """How many ranks took part.

    Raises:
        InputError: it cannot be known, or rows, file and ``given`` disagree.
    """
    low, high = shown = ranks_shown(table, operation)
    rows = f"its bandwidths are those of {_span(shown)} ranks"
    if given is not None:
        if shown != UNKNOWN and not low <= given <= high:
            raise InputError(f"{table.where}: {given} ranks given", rows, "give the right number")
        return given
    said = _that_count(table, shown)
    for one in said:
        if one.ranks == 1 and shown == UNKNOWN:
            raise count_unfit(table, 1)
        if one.ranks is not None and not low <= one.ranks <= high:
            remedy = "correct the file, or name the right number with --ranks"
            raise InputError(f"{one.where}: {one.what} has {one.ranks} ranks", rows, remedy)
    ranks = next((one.ranks for one in said if one.ranks), low if low == high else None)
    if ranks is None:
        between = "" if shown == UNKNOWN else f" ({low} to {high} fit its bandwidths)"
        rule = f"does not tell the number of ranks{between}"
        raise InputError(table.where, rule, "name it with --ranks")
    _check_said(said, ranks)
    return ranks


def count_unfit(table: TimingTable, ranks: int) -> InputError:
    """The refusal of so many ranks."""
    rule = f"a collective needs 2 to {MAX_DEVICES} ranks"
    remedy = "measure on more devices; if mpirun or srun started several, build with MPI=1"
    given = f"{table.where}: {ranks} rank{'s' * (ranks != 1)}"
    return InputError(given, rule, remedy if ranks == 1 else "measure on more devices")


def _that_count(table: TimingTable, shown: tuple[int, int]) -> tuple[RankCount, ...]:
    """What was said of this table: what stands above an earlier one only if its rows agree."""
    if not table.carried:
        return table.said
    low, high = shown
    return tuple(one for one in table.said if one.ranks is None or low <= one.ranks <= high)


def _check_said(said: tuple[RankCount, ...], ranks: int) -> None:
    for one in said:
        if one.ranks not in (None, ranks) or one.least > ranks:
            theirs = one.ranks or f"{one.least} or more"
            raise InputError(
                f"{one.where}: {one.what} has {theirs} ranks",
                f"{next((s.what for s in said if s.ranks == ranks), 'its rows')} {ranks}",
                "correct one of them, or name the right number with --ranks",
            )


def per_host_of(table: TimingTable, ranks: int) -> int | None:
    """Ranks on each host; None where the file does not tell.

    Raises:
        InputError: hosts have different numbers of ranks, or lines of the file disagree.
    """
    found: RankCount | None = None
    for one in table.said:
        if one.ranks not in (None, ranks):
            continue
        if one.uneven:
            rule = "hosts must have equally many ranks each"
            raise InputError(f"{one.where}: {one.uneven[0]} to {one.uneven[1]} ranks", rule)
        mine = one.hosts_of(ranks)
        if mine is None or ranks % mine:
            continue
        if found and found.hosts_of(ranks) != mine:
            raise InputError(
                f"{one.where}: {one.what} has {ranks // mine} hosts",
                f"{found.what} {ranks // (found.hosts_of(ranks) or 1)}",
                "correct one of them",
            )
        found = one
    return found.hosts_of(ranks) if found else None


def _check_together(table: TimingTable) -> None:
    """Refuse the rows of one rank, as each of several processes that ran alone prints them.

    Small messages show it less plainly: their algbw is hardly above the last digit of busbw.
    """
    for timing in table.timings:
        if not timing.busbw and timing.algbw > 10 * timing.busbw_error > 0:
            raise ran_alone(f"{table.at(timing)}: busbw 0 at algbw {timing.algbw:g} GB/s")


def ranks_shown(table: TimingTable, operation: Operation) -> tuple[int, int]:
    """The least and most ranks that agree with every row; ``UNKNOWN`` where the rows do not tell.

    Raises:
        InputError: a row is none of this operation, or of another number of ranks than the others.
    """
    low, high = UNKNOWN
    if operation in _PASSES:
        _check_together(table)
    for timing in table.timings:
        least, most = _row_ranks(timing, operation)
        if least > most:
            raise InputError(
                f"{table.at(timing)}: busbw {timing.busbw:g} at algbw {timing.algbw:g} GB/s",
                f"is no row of {operation.value}",
                "name what ran, or correct that line",
            )
        if least > high or most < low:
            raise InputError(
                f"{table.at(timing)}: bandwidths of {_span((least, most))} ranks",
                f"the rows above have {_span((low, high))}",
                "split the table by ranks",
            )
        low, high = max(low, least), min(high, most)
    return low, high


def _row_ranks(timing: Timing, operation: Operation) -> tuple[int, int]:
    """The least and most ranks that agree with a row; the first above the second: none does."""
    passes = _PASSES.get(operation, 0)
    spread = passes == 1
    if (timing.parts > 1 and not spread) or (timing.parts == 1 and spread and _plainly_one(timing)):
        return 1, 0
    low, high = UNKNOWN
    if spread and timing.parts > 1:
        low = high = timing.parts
    least, most = (spread and _old_ratio(timing)) or _ratio(timing)
    if not passes:
        return (low, high) if least <= 1 <= most else (1, 0)
    if most < passes / 2 - 1e-9 or least >= passes:  # of two ranks, and of endlessly many
        return 1, 0
    # ratio / passes = 1 - 1/n
    low = max(low, math.ceil(1 / (1 - least / passes) - 1e-6))
    return low, high if most >= passes else min(high, math.floor(1 / (1 - most / passes) + 1e-6))


def _plainly_one(timing: Timing) -> bool:
    least, most = _ratio(timing)
    return least <= 1 <= most < least + _PLAINLY


def _ratio(timing: Timing) -> tuple[float, float]:
    """Bounds of busbw / algbw, given that both are rounded; (0, inf) where they say nothing."""
    low, high = timing.algbw - timing.algbw_error, timing.algbw + timing.algbw_error
    if low <= 0:
        return 0.0, math.inf
    return (timing.busbw - timing.busbw_error) / high, (timing.busbw + timing.busbw_error) / low


def _old_ratio(timing: Timing) -> tuple[float, float] | None:
    """Bounds of algbw by size / time in an old version, which prints (n - 1) / n of it twice."""
    low, high = timing.algbw - timing.algbw_error, timing.algbw + timing.algbw_error
    shown = timing.size_bytes / timing.seconds / 1e9
    if timing.algbw != timing.busbw or low <= 0 or high > shown * (1 - _ROUNDED):
        return None
    return (1 - _ROUNDED) * low / shown, (1 + _ROUNDED) * high / shown


def _span(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return str(low) if low == high else f"{low} to {high}"


# Reads a file of nccl-tests, what it prints or its ``-J`` report.


MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RankedTable:
    """A table with what it takes to place it: operation, ranks, and ranks per host (or none)."""

    table: TimingTable
    operation: Operation
    ranks: int
    per_host: int | None

    @property
    def hosts(self) -> int | None:
        """How many hosts took part, where the file tells."""
        return None if self.per_host is None else self.ranks // self.per_host


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A program that measures: its name, and how a file of it is read (path, operation, ranks)."""

    name: str
    read: Callable[[str, Operation | None, int | None], list[RankedTable]]


def read_nccl_tests(
    path: str, operation: Operation | None = None, ranks: int | None = None
) -> list[RankedTable]:
    """The tables of a file; ``operation`` and ``ranks`` stand in for what it does not tell.

    Raises:
        InputError: the file cannot be read, is too large, malformed, or leaves open what ran.
    """
    text = text_of(path, "nccl-tests")
    is_json = text.lstrip("\ufeff \t\r\n").startswith("{") and not is_json_log(text)
    tables = parse_json(text, path) if is_json else parse_text(text, path)
    return [_measured(table, operation, ranks) for table in tables if table.timings or table.wrong]


def text_of(path: str, program: str) -> str:
    """What a program printed to a file.

    Raises:
        InputError: the file cannot be read, or is too large.
    """
    given = f"file {path!r}"
    if not os.path.isfile(path):
        rule = "is not a regular file" if os.path.exists(path) else "does not exist"
        raise InputError(given, rule, f"name the output of {program}")
    raw = read_bytes(path, given, MAX_BYTES, "keep the tables only")
    return raw.decode("utf-8", errors="replace")  # names of hosts may be in any encoding


def _measured(table: TimingTable, given: Operation | None, ranks: int | None) -> RankedTable:
    what = operation_of(table, given)
    ranks = ranks_of(table, what, ranks)
    if not 2 <= ranks <= MAX_DEVICES:
        raise count_unfit(table, ranks)
    return RankedTable(table, what, ranks, per_host_of(table, ranks))


# What a table of nccl-tests measures on a topology, and the topology that tables tell.


HOSTS = ("node", "host", "machine", "server")
"""Names of levels whose entities are hosts; without such a level, hosts do not count."""
_PARTED = (LinkKind.SWITCH, LinkKind.FULL_MESH)  # some siblings are as many in a smaller one


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the ranks of a run were: ``outermost`` and ``members`` as a sample has them."""

    grouping: Grouping
    outermost: int | None = None
    members: int | None = None


def samples_of(measured: RankedTable, topology: Topology, file: str = "") -> list[Sample]:
    """The samples of a table on a topology; ``file`` names its rows, else the name of the file.

    Raises:
        InputError: so many ranks are neither in one entity, nor whole outermost entities, nor one
            rank on each host; or the topology has fewer.
    """
    place = _place(measured, topology)
    name = file or os.path.basename(measured.table.source)
    return [
        Sample(
            measured.operation,
            place.grouping,
            timing.size_bytes,
            timing.seconds,
            outermost=place.outermost,
            source=f"{name}:{timing.line}",
            members=place.members,
        )
        for timing in measured.table.timings
    ]


def _place(measured: RankedTable, topology: Topology) -> _Place:
    sizes, ranks, inside = topology.sizes, measured.ranks, topology.devices_under(0)
    wholes = {math.prod(sizes[j:]): j for j in reversed(range(1, len(sizes) + 1))}
    _check_hosts(measured, topology)
    if _one_per_host(measured, topology):
        return _fitting(_Place(Grouping(0, 1, master=True), ranks), measured, topology)
    if wholes.get(ranks, 0) > 0 and ranks > 1:
        outer = sum(size > 1 for size in sizes[: wholes[ranks]])
        return _Place(Grouping(outer, sum(size > 1 for size in sizes)))
    if ranks % inside == 0:
        count = ranks // inside
        grouping = Grouping(0, sum(size > 1 for size in (count, *sizes[1:])))
        return _fitting(_Place(grouping, count), measured, topology)
    if ranks < sizes[-1] and topology.levels[-1].link.kind in _PARTED:
        return _Place(Grouping(0, 1), members=ranks)
    raise _misplaced(measured, topology)


def _host_level(topology: Topology) -> int | None:
    return next((j for j, level in enumerate(topology.levels) if level.name in HOSTS), None)


def _one_per_host(measured: RankedTable, topology: Topology) -> bool:
    return (
        measured.per_host == 1
        and _host_level(topology) == 0
        and len(topology.sizes) == 2
        and topology.devices_under(0) > 1
    )


def _check_hosts(measured: RankedTable, topology: Topology) -> None:
    """Refuse a run whose hosts are not those of the topology."""
    level, each = _host_level(topology), measured.per_host
    if level is None or each is None or _one_per_host(measured, topology):
        return
    under = topology.devices_under(level)
    if each > under or (each < under and measured.hosts != 1):
        raise _misplaced(measured, topology)


def _fitting(place: _Place, measured: RankedTable, topology: Topology) -> _Place:
    """The place, if the topology has so many outermost entities."""
    first, count = topology.levels[0], place.outermost or 1
    if count <= first.size:
        return place
    name = topology.name.split(":")[0]
    raise InputError(
        f"{measured.table.where}: {measured.ranks} ranks are {count} of level {first.name}",
        f"{topology.name} has {first.size}",
        f"name the topology that was measured, such as {name}:{count}",
    )


def _misplaced(measured: RankedTable, topology: Topology) -> InputError:
    hosts = "" if measured.per_host is None else f" on {_counted(measured.hosts or 1, 'host')}"
    return InputError(
        f"{measured.table.where}: {measured.ranks} ranks{hosts}",
        f"{topology.name} has levels {', '.join(f'{lv.name} {lv.size}' for lv in topology.levels)}",
        f"measure whole nodes, or name {_part_measured(measured, topology)}",
    )


def _part_measured(measured: RankedTable, topology: Topology) -> str:
    """What to name: where as many of each outermost entity may have run, the part that did."""
    first, inner = topology.levels[0], topology.levels[-1]
    each, left = divmod(measured.ranks, first.size)
    if left or len(topology.levels) != 2 or not 0 < each < inner.size:
        return "the topology that was measured"
    return f"the part that was measured, such as --use {inner.name}={each}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def derived_topology(tables: Sequence[RankedTable]) -> Topology:
    """The two levels, node and gpu, that the tables' device lists tell; their links to be fitted.

    With runs on one host only, or with one rank per host only, there is one level.  A node has a
    port per device: how many network cards it has the tables do not tell, and no device has all.

    Raises:
        InputError: a table does not tell its hosts, hosts have different numbers of ranks, or
            the inside of a node was not measured.
    """
    for measured in tables:
        if measured.per_host is None:
            rule = "does not tell on which hosts its ranks ran"
            raise InputError(measured.table.where, rule, "name the cluster with --topology")
    gpus = max(measured.per_host or 1 for measured in tables)
    nodes = max(measured.hosts or 1 for measured in tables)
    levels = [_level("node", nodes, gpus)] if nodes > 1 else []
    levels += [_level("gpu", gpus)] if gpus > 1 else []
    if len(levels) > 1 and all(measured.hosts != 1 for measured in tables):
        raise InputError(
            f"{len(tables)} tables of {nodes} nodes",
            "the links inside a node were not measured",
            "add a file of one node, or name the inside with --topology",
        )
    ports = "; a node has as many ports as devices, whatever cards it has" if nodes > 1 else ""
    text = f"Levels as the device lists of the measurements tell{ports}."
    return Topology("measured", tuple(levels), description=text)


def _level(name: str, size: int, ports: int = 1) -> Level:
    """A level whose link is to be fitted."""
    return Level(name, size, Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e17),), ports))
