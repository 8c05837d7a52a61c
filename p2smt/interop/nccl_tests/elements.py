"""One table of nccl-tests: what ran, on how many ranks, and its rows.

Facts about nccl-tests (2.19, src/*.cu): the size column is the larger of a rank's send and
receive buffer, so the whole vector: of an all-gather the output, of a reduce-scatter the input.
algbw is size / time; busbw / algbw is 2 (n - 1) / n for all-reduce, (n - 1) / n for all-gather
and reduce-scatter, 1 for broadcast and reduce.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.collectives.names import Collective
from p2smt.errors import InputError

_BINARY = re.compile(r"\b([a-z_]{1,30})_perf(?:_mpi)?\b")
_COLLECTIVES = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reduce": Collective.REDUCE,
    "broadcast": Collective.BROADCAST,
}
_NOT_OURS = ("alltoall", "alltoallv", "sendrecv", "gather", "scatter", "hypercube")
_PASSES = {
    Collective.ALL_REDUCE: 2,
    Collective.ALL_GATHER: 1,
    Collective.REDUCE_SCATTER: 1,
}


@dataclass(frozen=True, slots=True)
class Timing:
    """One time of a row: bandwidths in GB/s with half a unit of their last digit."""

    line: int
    size_bytes: int
    seconds: float
    algbw: float = 0.0
    busbw: float = 0.0
    algbw_error: float = 0.0
    busbw_error: float = 0.0


@dataclass(frozen=True, slots=True)
class TimingTable:
    """One table.

    ``where`` names file and line, ``binary`` is the test as the file tells it (empty: it does
    not), ``hosts`` the number of ranks on each host (empty: unknown), ``wrong`` the lines with
    wrong results, which are left out.
    """

    where: str
    binary: str
    hosts: tuple[int, ...]
    timings: tuple[Timing, ...]
    wrong: tuple[int, ...] = ()

    def collective(self, given: Collective | None = None) -> Collective:
        """What ran: as the file says, as its bandwidths show, or as ``given``.

        Raises:
            InputError: it cannot be known, or is none that the model has.
        """
        if self.binary:
            return binary_collective(self.binary, self.where)
        if any(_ratio(t)[0] > 1.001 for t in self.timings):
            return Collective.ALL_REDUCE  # the only one whose busbw exceeds its algbw
        if given is None:
            rule = "does not say which collective it measured"
            raise InputError(self.where, rule, "name it with --collective")
        return given

    def ranks(self, collective: Collective, given: int | None = None) -> int:
        """How many ranks took part: as ``given``, or from bandwidths and device list.

        Raises:
            InputError: it cannot be known, or the two disagree.
        """
        if given is not None:
            return given
        shown = ranks_from_bandwidths(self.timings, collective)
        listed = sum(self.hosts)
        if listed and shown and listed not in shown:
            raise InputError(
                f"{self.where}: {listed} devices listed",
                f"its bandwidths are those of {shown[0]} ranks",
                "name the right number with --ranks",
            )
        if listed or (shown and shown[0] == shown[-1]):
            return listed or shown[0]
        between = f" ({shown[0]} to {shown[-1]} fit its bandwidths)" if shown else ""
        rule = f"does not tell the number of ranks{between}"
        raise InputError(self.where, rule, "name it with --ranks")


def binary_in(text: str) -> str:
    """The test that a line names, such as ``all_reduce``; empty if none."""
    names = [name for name in _BINARY.findall(text) if name in _COLLECTIVES or name in _NOT_OURS]
    return names[0] if names else ""


def binary_collective(binary: str, where: str) -> Collective:
    """The collective of a test.

    Raises:
        InputError: the model has no such collective.
    """
    if binary not in _COLLECTIVES:
        rule = f"a calibration uses {', '.join(c.value for c in _COLLECTIVES.values())}"
        raise InputError(f"{where}: test {binary[:40]!r}", rule, "leave it out")
    return _COLLECTIVES[binary]


def ranks_from_bandwidths(timings: Sequence[Timing], collective: Collective) -> range:
    """The numbers of ranks that agree with every row's busbw / algbw; empty if none is known."""
    passes = _PASSES.get(collective)
    if passes is None:
        return range(0)
    low, high = 2, MAX_DEVICES
    for timing in timings:
        least, most = (bound / passes for bound in _ratio(timing))
        if 0 < least < 1:  # ratio / passes = 1 - 1/n
            low = max(low, math.ceil(1 / (1 - least) - 1e-6))
        if 0 < most < 1:
            high = min(high, math.floor(1 / (1 - most) + 1e-6))
    known = low > 2 or high < MAX_DEVICES
    return range(low, high + 1) if known and low <= high else range(0)


def _ratio(timing: Timing) -> tuple[float, float]:
    """Bounds of busbw / algbw, given that both are rounded; (0, inf) where they say nothing."""
    low, high = timing.algbw - timing.algbw_error, timing.algbw + timing.algbw_error
    if low <= 0:
        return 0.0, math.inf
    return (timing.busbw - timing.busbw_error) / high, (timing.busbw + timing.busbw_error) / low


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


def hosts_of(names: Mapping[int, str], each: int = 1) -> tuple[int, ...]:
    """Ranks per host, sorted, from the host of each rank (or process of ``each`` ranks)."""
    return tuple(sorted(count * each for count in Counter(names.values()).values()))
