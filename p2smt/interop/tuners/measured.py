"""Where tables, with a way forced, show a gain over the library's own choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.calibration_files import RankedTable, read_nccl_tests, text_of
from p2smt.interop.osu import PROGRAM, is_osu, read_osu
from p2smt.interop.tuners.choices import Comm
from p2smt.interop.tuners.regions import OPERATIONS, Pair, Region
from p2smt.interop.tuners.rules import ALGORITHMS, PROTOCOLS

OWN_WAY = "own"
DEFAULT_MARGIN = 0.1
"""The part of the library's own time that a measured gain must exceed, unless another is given."""
_Times = Mapping[int, float]
_Place = tuple[str, Comm]


@dataclass(frozen=True, slots=True)
class ForcedTimes:
    """Mean seconds by size, of the library's own choice and of each pair that was forced."""

    own: Mapping[_Place, _Times]
    forced: Mapping[tuple[_Place, Pair], _Times]

    def gains(self, place: _Place, margin: float) -> tuple[Region, ...]:
        """Where a pair gains more than the margin: from one measured size to another, no further.

        Between two sizes that were measured next to each other, the pair gains at both.
        """
        sizes = sorted(self.own.get(place, {}))
        best = [self._best(place, (size,), margin) for size in sizes]
        found: list[Region] = []
        for at, size in enumerate(sizes):
            if at and best[at] and best[at - 1]:
                both = self._best(place, (sizes[at - 1], size), margin)
                _add(found, sizes[at - 1] + 1, size - 1, both)
            _add(found, size, size, best[at])
        return tuple(found)

    def _best(self, place: _Place, sizes: Sequence[int], margin: float) -> Pair | None:
        """The pair that takes the least part of the library's own time, at its worst size."""
        own = self.own[place]
        parts = {
            pair: max(of[size] / own[size] for size in sizes)
            for (at, pair), of in self.forced.items()
            if at == place and all(size in of for size in sizes)
        }
        best = min(parts, key=lambda pair: parts[pair], default=None)
        return best if best is not None and parts[best] < 1 - margin else None


def _add(found: list[Region], first: int, last: int, pair: Pair | None) -> None:
    """Add a region, or make the one that ends before it longer; none of no pair or no size."""
    if pair is None or last < first:
        return
    if found and found[-1].found == pair and found[-1].last == first - 1:
        first = found.pop().first
    found.append(Region(first, last, pair))


@dataclass(frozen=True, slots=True)
class MeasuredWords:
    """How files of a library name collectives, and what names a way of it (refused if none)."""

    operations: Mapping[str, Operation]
    way: Callable[[str, str], Pair]


def read_forced(
    texts: Sequence[str], words: MeasuredWords | None = None, comm: Comm | None = None
) -> ForcedTimes:
    """The tables of ``own=FILE`` and ``WAY=FILE``; without ``words`` in those of NCCL's files.

    ``comm`` ran what tables of the OSU micro-benchmarks have, which do not tell.

    Raises:
        InputError: one is neither, or its table does not tell collective, ranks and ranks per host.
    """
    words = words or MeasuredWords(OPERATIONS, _pair)
    own: dict[_Place, _Times] = {}
    forced: dict[tuple[_Place, Pair], _Times] = {}
    for text in texts:
        way, _, path = text.partition("=")
        pair = None if path and way == OWN_WAY else words.way(way, path)
        for table in _tables(path, comm):
            place, times = _place(table, path, words.operations), _times(table)
            taken = own.get(place) if pair is None else forced.get((place, pair))
            if taken is not None:
                given = f"--measured {way}: {place[0]} on {place[1]}"
                raise InputError(given, "is in two tables", "give one of them")
            if pair is None:
                own[place] = times
            else:
                forced[place, pair] = times
    for place, _ in forced:
        if place not in own:
            given = f"--measured: {place[0]} on {place[1]}"
            rule = "has no table of the library's own choice to compare with"
            raise InputError(given, rule, f"add {OWN_WAY}=FILE, of a run that forces nothing")
    return ForcedTimes(own, forced)


def _tables(path: str, comm: Comm | None) -> list[RankedTable]:
    if not is_osu(text_of(path, f"nccl-tests or {PROGRAM}")):
        return read_nccl_tests(path)
    if comm is None:
        rule = f"is of the {PROGRAM}, which do not tell where ranks ran"
        raise InputError(f"--measured {path[:80]}", rule, "name one communicator, such as 4x2")
    return [replace(table, per_host=comm.per_node) for table in read_osu(path, ranks=comm.ranks)]


def _pair(way: str, path: str) -> Pair:
    """Algorithm and protocol of a way."""
    algorithm, _, protocol = way.lower().partition("/")
    if not path or algorithm not in ALGORITHMS or protocol not in PROTOCOLS:
        rule = "must be own=FILE or ALGORITHM/PROTOCOL=FILE, such as ring/ll128=a.txt"
        names = f"algorithms are {', '.join(ALGORITHMS)}; protocols {', '.join(PROTOCOLS)}"
        raise InputError(f"--measured {f'{way}={path}'[:60]!r}", rule, names)
    return algorithm, protocol


def _place(table: RankedTable, path: str, operations: Mapping[str, Operation]) -> _Place:
    collective = next((n for n, known in operations.items() if known is table.operation), None)
    if collective is None:
        rule = f"is {table.operation.value}, which tuner files do not have"
        raise InputError(f"--measured {path[:80]}", rule, f"they have {', '.join(operations)}")
    if table.per_host is None:
        rule = "does not tell how many ranks a host has"
        raise InputError(
            f"--measured {path[:80]}", rule, "keep the list of devices above the table"
        )
    return collective, Comm(table.ranks // table.per_host, table.per_host)


def _times(table: RankedTable) -> _Times:
    sizes: dict[int, list[float]] = {}
    for timing in table.table.timings:
        sizes.setdefault(timing.size_bytes, []).append(timing.seconds)
    return {size: fmean(times) for size, times in sizes.items()}
