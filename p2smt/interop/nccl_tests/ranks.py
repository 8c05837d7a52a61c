"""What a table measured, on how many ranks: its rows against what the file and the user say.

The rows tell most: busbw / algbw and the count column hold the number of ranks.  Whatever the file
says beside must agree with them, and with itself.
"""

from __future__ import annotations

import math

from p2smt.cluster.topology import MAX_DEVICES
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.elements import RankCount, Timing, TimingTable, operation_named

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
        named = operation_named(table.test, table.where)
        if not table.carried or _agrees(table, named):
            return named
    if reduced:
        return Collective.ALL_REDUCE
    if given is None:
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


def ranks_shown(table: TimingTable, operation: Operation) -> tuple[int, int]:
    """The least and most ranks that agree with every row; ``UNKNOWN`` where the rows do not tell.

    Raises:
        InputError: a row is none of this operation, or of another number of ranks than the others.
    """
    low, high = UNKNOWN
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
