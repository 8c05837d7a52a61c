"""One table of nccl-tests: its rows, and what the file says of test, ranks and hosts.

Facts about nccl-tests (2.19, src/*.cu): the size column is the larger of a rank's send and
receive buffer, so the whole vector: of an all-gather the output, of a reduce-scatter the input, of
an all-to-all all that a rank sends (its own part too), of a sendrecv the message.  algbw is
size / time; busbw / algbw is 2 (n - 1) / n for all-reduce, (n - 1) / n for all-gather,
reduce-scatter and all-to-all, 1 for broadcast, reduce and sendrecv.  The count column holds what
one rank contributes: of all-gather, reduce-scatter and all-to-all the n-th part of the size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError

_NAME = re.compile(r"\b([a-z_]{1,30})_perf(?:_mpi)?\b")
TESTS: dict[str, Operation] = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reduce": Collective.REDUCE,
    "broadcast": Collective.BROADCAST,
    "alltoall": RequestKind.ALL_TO_ALL,
    "sendrecv": RequestKind.SEND,
}
"""What a test of nccl-tests measures."""
_NOT_OURS = ("alltoallv", "gather", "scatter", "hypercube")
_BYTES = {
    **dict.fromkeys(("int8", "uint8", "char", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "int", "float"), 4),
    **dict.fromkeys(("int64", "uint64", "double"), 8),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """One time of a row: bandwidths in GB/s with half a unit of their last digit.

    ``parts`` says how often what one rank contributes goes into the size; 0: unknown.
    """

    line: int
    size_bytes: int
    seconds: float
    algbw: float = 0.0
    busbw: float = 0.0
    algbw_error: float = 0.0
    busbw_error: float = 0.0
    parts: int = 0


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a device list shows of its hosts, ranks being numbered host by host.

    The first rank of every host seen is a multiple of ``step`` (0: only the first host was seen), a
    host has ``least`` ranks or more, and ``named`` holds (rank, host).
    """

    step: int
    least: int
    named: tuple[tuple[int, str], ...] = ()

    def per_host(self, ranks: int) -> int | None:
        """Ranks per host among so many; None unless one number alone fits."""
        fits = [n for n in range(max(1, self.least), ranks + 1) if self._fits(n, ranks)]
        return fits[0] if len(fits) == 1 else None

    def _fits(self, each: int, ranks: int) -> bool:
        if ranks % each or self.step % each:
            return False
        pairs = {(rank // each, host) for rank, host in self.named}
        return len(pairs) == len({block for block, _ in pairs}) == len({host for _, host in pairs})


@dataclass(frozen=True, slots=True)
class RankCount:
    """What a line of a file says of the ranks; None: it does not.

    ``what`` names the line for messages, ``where`` says where it stands.  There are ``ranks``, or
    at least ``least``, ``per_host`` on each host or as ``blocks`` show.  ``uneven`` has the least
    and the most ranks of a host where they differ.
    """

    where: str
    what: str
    ranks: int | None
    per_host: int | None = None
    uneven: tuple[int, int] | None = None
    least: int = 0
    blocks: Blocks | None = None

    def hosts_of(self, ranks: int) -> int | None:
        """Ranks per host, if there are so many ranks."""
        return self.blocks.per_host(ranks) if self.blocks else self.per_host


@dataclass(frozen=True, slots=True)
class TimingTable:
    """One table.

    ``where`` names file and line, ``test`` is the test as the file tells it (empty: it does not),
    ``said`` what lines of the file say of its ranks, ``wrong`` the lines with wrong results, which
    are left out.  ``carried``: test and ranks were said above an earlier table of the file.
    """

    where: str
    test: str
    said: tuple[RankCount, ...]
    timings: tuple[Timing, ...]
    wrong: tuple[int, ...] = ()
    carried: bool = False

    @property
    def source(self) -> str:
        """The file's name, as it was given."""
        return self.where.rpartition(", line ")[0] or self.where

    def at(self, timing: Timing) -> str:
        """Where one of its rows stands."""
        inside = (
            f": results[{timing.line}]" if self.source == self.where else f", line {timing.line}"
        )
        return f"{self.source}{inside}"


def test_in(line: str) -> str:
    """The test that a line names, such as ``all_reduce``; empty if none."""
    names = [name for name in _NAME.findall(line) if name in TESTS or name in _NOT_OURS]
    return names[0] if names else ""


def test_named(name: str, where: str) -> str:
    """The test of a name that a person wrote: ``all-to-all`` and ``alltoall_perf`` are one.

    Raises:
        InputError: nccl-tests has no such test.
    """
    plain = name.strip().lower().replace("-", "_").removesuffix("_perf")
    known = {test.replace("_", ""): test for test in (*TESTS, *_NOT_OURS)}
    known["send"] = "sendrecv"
    if plain.replace("_", "") not in known:
        rule = f"is none of nccl-tests: {', '.join(TESTS)}"
        raise InputError(f"{where}: collective {name[:40]!r}", rule, "correct that line")
    return known[plain.replace("_", "")]


def operation_named(test: str, where: str) -> Operation:
    """What a test measures.

    Raises:
        InputError: the model has no such operation.
    """
    if test not in TESTS:
        rule = f"a calibration uses {', '.join(TESTS)}"
        raise InputError(f"{where}: test {test[:40]!r}", rule, "leave it out")
    return TESTS[test]


def parts_of(size_bytes: int, count: int, data_type: str) -> int:
    """How often ``count`` elements go into the size; 0 if it cannot be known."""
    part = count * _BYTES.get(data_type, 0)
    return size_bytes // part if part and size_bytes % part == 0 else 0


def is_data_type(word: str) -> bool:
    """Whether a word is a data type of nccl-tests."""
    return word in _BYTES


def check_times(timing: Timing, where: str) -> None:
    """Refuse a row whose time and algbw do not belong together: shifted or cut columns.

    Raises:
        InputError: algbw is neither size / time nor, as old versions print, (n - 1) / n of it.
    """
    shown = timing.size_bytes / timing.seconds / 1e9
    low, high = timing.algbw - timing.algbw_error, timing.algbw + timing.algbw_error
    if timing.algbw_error and not (0.9 * low <= shown <= 2.04 * high):
        raise InputError(
            f"{where}: time {timing.seconds * 1e6:.6g} us and algbw {timing.algbw:g} GB/s",
            f"do not belong to {timing.size_bytes} bytes",
            "correct or remove that line",
        )
