"""Files of the OSU micro-benchmarks to what a calibration takes."""

from __future__ import annotations

from dataclasses import replace

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.collectives.names import Collective
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.elements import Timing, TimingTable
from p2smt.interop.nccl_tests.files import Benchmark, RankedTable, count_unfit, text_of
from p2smt.interop.osu.parse_text import PER_RANK, parse_osu

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
