"""Programs on the reference backend, in one process: run by step, held against closed forms."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from p2smt.collectives.demand import Chunks, Demand, Givers, demand_of
from p2smt.collectives.dispatch import Dispatch
from p2smt.collectives.names import Collective, RequestKind
from p2smt.runtime.job import Job, JobRequest
from p2smt.runtime.payload import (
    PERIOD,
    Array,
    Cutting,
    DataType,
    Floats,
    Numbers,
    RankReport,
    RequestRun,
    RunOptions,
    spread,
    spread_row,
    spread_whole_row,
)
from p2smt.runtime.programs.regions import GroupMove, RowMoves, RowsHeld, StepError, moves_of, rows
from p2smt.runtime.programs.tokens import check_tokens, dispatch_fault

# The reference executor: every rank in one process, in numpy.
# It moves rows as :mod:`p2smt.runtime.programs.regions` says and adds in rank order; it shares
# nothing with the semantics, so that each is a check of the other.


Buffers = dict[int, Array]
"""One piece (rows, width) of the payload per rank; changed in place."""


def run_piece(row_moves: RowMoves, buffers: Buffers) -> None:
    """Carry out all steps on one piece."""
    for moves in row_moves.steps:
        for move in moves:
            _carry_out(move, buffers)


def _carry_out(move: GroupMove, buffers: Buffers) -> None:
    own = [buffers[rank] for rank in move.members]
    region = list(rows(move.region))
    match move.operation:
        case Collective.ALL_REDUCE:
            summed = _sum(own, region)
            for buffer in own:
                buffer[region] = summed
        case Collective.REDUCE:
            own[0][region] = _sum(own, region)
        case Collective.REDUCE_SCATTER:
            for buffer, part in zip(own, move.parts, strict=True):
                kept = list(rows(part))
                buffer[kept] = _sum(own, kept)
        case Collective.BROADCAST:
            for buffer in own[1:]:
                buffer[region] = own[0][region]
        case Collective.ALL_GATHER:
            for source, part in zip(own, move.parts, strict=True):
                brought = list(rows(part))
                for buffer in own:
                    buffer[brought] = source[brought]
        case RequestKind.ALL_TO_ALL:
            before = np.stack(own)
            shares = [list(rows(part)) for part in move.parts] or [[n] for n in range(len(own))]
            for buffer, kept in zip(own, shares, strict=True):
                for source, came in zip(before, shares, strict=True):
                    buffer[came] = source[kept]
        case RequestKind.SEND:
            for buffer, source in zip(reversed(own[1:]), reversed(own[:-1]), strict=True):
                buffer[:] = source
        case _:
            assert_never(move.operation)


def _sum(buffers: Sequence[Array], region: Sequence[int]) -> Array:
    total = buffers[0][region].copy()
    for buffer in buffers[1:]:
        total += buffer[region]
    return total


# What each rank must hold after a request: the closed form that results are compared with.


ValueOf = Callable[[int], Array]
"""One period of a rank's contribution."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A wrong result: ``offset`` counts elements of the payload, None where rows are wrong."""

    request: str
    rank: int
    what: str
    offset: int | None = None
    expected: float | None = None
    found: float | None = None

    def __str__(self) -> str:
        where = "" if self.offset is None else f", element {self.offset}"
        numbers = ""
        if self.expected is not None:
            numbers = f": expected {_number(self.expected)}, found {_number(self.found)}"
        return f"{self.request}: rank {self.rank}{where}: {self.what}{numbers}"


def _number(value: float | None) -> str:
    if value is None:
        return "nothing"
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def wrong_rows(request: JobRequest, held: RowsHeld) -> list[Mismatch]:
    """Ranks that do not end with the rows that the request asks for."""
    found = []
    for group in request.groups:
        own = held[list(group)]
        if demand_of(request.kind).goal.chunks is Chunks.ONE_EACH:
            found += _wrong_shards(request, group, own)
            continue
        for rank, its in zip(group, own, strict=True):
            if not its.all():
                text = f"ends with {its.sum()} of {len(its)} parts of the payload"
                found.append(Mismatch(request.name, rank, text))
    return found


def _wrong_shards(request: JobRequest, group: tuple[int, ...], own: RowsHeld) -> list[Mismatch]:
    found = []
    for rank, its in zip(group, own, strict=True):
        if its.sum() != 1:
            text = f"ends with {its.sum()} parts of the payload instead of one"
            found.append(Mismatch(request.name, rank, text))
    for row in np.flatnonzero(own.sum(axis=0) > 1):
        rank = group[int(np.flatnonzero(own[:, row])[1])]
        text = f"ends with part {row}, which another rank has too"
        found.append(Mismatch(request.name, rank, text))
    if not found and request.shards is not None:
        ends = own.argmax(axis=1)
        for rank, row, claimed in zip(group, ends, request.shards, strict=True):
            if row != claimed:
                text = f"ends with part {row}; the plan says part {claimed}"
                found.append(Mismatch(request.name, rank, text))
    return found


def expected_pieces(
    request: JobRequest, cutting: Cutting, rank: int, values: ValueOf
) -> list[Array]:
    """The result of a rank: per piece an array (rows, width).

    Of a reduce-scatter all rows are given; which ones count is known from the rows held.  The
    first rank of a send keeps its own payload, since nothing is sent to it.
    """
    group = next(g for g in request.groups if rank in g)
    place, demand = group.index(rank), demand_of(request.kind)
    if _adds(demand):
        sums = values(group[0]).copy()
        for member in group[1:]:
            sums += values(member)
        return [spread(sums, span, cutting.rows) for span in cutting.spans]
    if demand.goal.givers is Givers.BEFORE:
        period = values(group[max(place - 1, 0)])
        return [spread(period, span, cutting.rows) for span in cutting.spans]
    if demand.start.chunks is Chunks.OWN:
        sources = [(values(member), row) for row, member in enumerate(group)]
    else:
        sources = [(values(member), place) for member in group]
    return [
        np.stack([spread_row(period, span, row) for period, row in sources])
        for span in cutting.spans
    ]


def _adds(demand: Demand) -> bool:
    """Whether all devices give to the same chunks, and their sums are wanted."""
    together = demand.goal.givers is Givers.EVERY and demand.goal.summed
    return together and demand.start.chunks is Chunks.EVERY


def single_result(
    request: JobRequest, cutting: Cutting, rank: int, numbers: Numbers
) -> Array | None:
    """What the single collective leaves (rows, width) on the exact payload as it lies, in pieces.

    None: the same, element by element, as what the program leaves.
    """
    if len(cutting.spans) == 1 or _adds(demand_of(request.kind)):
        return None
    group = next(g for g in request.groups if rank in g)
    own = demand_of(request.kind).start.chunks is Chunks.OWN
    rows = [
        spread_whole_row(numbers.integers(member), cutting, row if own else group.index(rank))
        for row, member in enumerate(group)
    ]
    return np.stack(rows)


def compare(
    request: JobRequest,
    cutting: Cutting,
    rank: int,
    rows: RowsHeld,
    results: list[Array],
    expected: list[Array],
    bounds: list[Floats] | None = None,
) -> Mismatch | None:
    """The first element of the held ``rows`` that is not as expected (within ``bounds``)."""
    for i, (span, result, right) in enumerate(zip(cutting.spans, results, expected, strict=True)):
        off = result != right if bounds is None else ~(np.abs(result - right) <= bounds[i])
        off &= rows[:, None]
        if off.any():
            place = int(np.flatnonzero(off.ravel())[0])
            return Mismatch(
                request.name,
                rank,
                "wrong value" if bounds is None else "beyond the bound of rounding errors",
                span[0] + place,
                float(right.ravel()[place]),
                float(result.ravel()[place]),
            )
    return None


def numbers_of(request: JobRequest, cutting: Cutting, options: RunOptions, ranks: int) -> Numbers:
    """The contributions of so many ranks to a request's payload."""
    period = min(PERIOD, cutting.elements)
    return Numbers(options.data_type, request.size, ranks, options.seed, period)


def exact_results(
    request: JobRequest, cutting: Cutting, rank: int, numbers: Numbers
) -> list[Array]:
    """The closed form for the exact payload."""
    return expected_pieces(request, cutting, rank, numbers.integers)


def rounded_sum(
    request: JobRequest, cutting: Cutting, rank: int, values: ValueOf, numbers: Numbers
) -> tuple[list[Array], list[Floats]]:
    """Results in float64 for a random payload, and the bounds on a computed sum's error.

    ``values`` are the contributions as rounded to the type, in float64.
    """
    right = expected_pieces(request, cutting, rank, values)
    if not _adds(demand_of(request.kind)):
        return right, [np.zeros_like(piece) for piece in right]
    size = expected_pieces(request, cutting, rank, lambda r: np.abs(values(r)))
    return right, [numbers.error_bound(piece) for piece in size]


# Runs a job on the reference executor: one process, no times.


_NUMPY = {DataType.FLOAT32: np.float32, DataType.FLOAT16: np.float16, DataType.INT64: np.int64}
"""numpy has no bfloat16: its integers are summed in float32, and random values not at all."""


def run_reference(job: Job, options: RunOptions) -> list[RankReport]:
    """The reports of all ranks, without times."""
    runs = [_run_request(job, request, options) for request in job.requests]
    machine = {"host": platform.node(), "python": platform.python_version(), "device": "numpy"}
    return [RankReport(rank, [run[rank] for run in runs], machine) for rank in range(job.ranks)]


def _run_request(job: Job, request: JobRequest, options: RunOptions) -> list[RequestRun]:
    runs = [RequestRun() for _ in range(job.ranks)]
    if isinstance(request.kind, Dispatch) and request.size > 1:
        if fault := dispatch_fault(request):
            runs[request.groups[0][0]].errors.append(fault)
        else:
            check_tokens(request, options, runs)
        return runs
    try:
        row_moves = moves_of(request, request.steps, job.ranks)
    except StepError as error:
        runs[error.rank].errors.append(f"{request.name}: {error}")
        return runs
    for wrong in wrong_rows(request, row_moves.held):
        runs[wrong.rank].errors.append(str(wrong))
    cutting = Cutting.of(request.payload_bytes, options.data_type, request.size, request.chunks)
    check = _Check(request, cutting, row_moves, options, runs)
    check.exact()
    if options.data_type in (DataType.FLOAT32, DataType.FLOAT16):
        check.random()
    return runs


class _Check:
    def __init__(
        self,
        request: JobRequest,
        cutting: Cutting,
        row_moves: RowMoves,
        options: RunOptions,
        runs: list[RequestRun],
    ) -> None:
        self.request, self.cutting, self.row_moves, self.runs = request, cutting, row_moves, runs
        self.numbers = numbers_of(request, cutting, options, len(runs))
        self.dtype = _NUMPY.get(options.data_type, np.float32)

    def exact(self) -> None:
        periods: dict[int, Array] = {rank: self.numbers.integers(rank) for rank in self._ranks()}
        results = self._execute(periods)
        for rank in self._ranks():
            right = expected_pieces(self.request, self.cutting, rank, periods.__getitem__)
            self._compare(rank, results[rank], right)
            self.runs[rank].checked = True

    def random(self) -> None:
        periods: dict[int, Array] = {
            rank: self.numbers.floats(rank).astype(self.dtype).astype(np.float64)
            for rank in self._ranks()
        }
        results, values = self._execute(periods), periods.__getitem__
        for rank in self._ranks():
            right, bounds = rounded_sum(self.request, self.cutting, rank, values, self.numbers)
            self._compare(rank, results[rank], right, bounds)
            finite = all(bool(np.isfinite(bound).all()) for bound in bounds)
            self.runs[rank].float_checked = finite

    def _ranks(self) -> list[int]:
        return [rank for group in self.request.groups for rank in group]

    def _execute(self, periods: dict[int, Array]) -> dict[int, list[Array]]:
        """The pieces of every rank after the program, in float64 or int64."""
        found: dict[int, list[Array]] = {rank: [] for rank in periods}
        wide = np.int64 if self.dtype is np.int64 else np.float64
        for span in self.cutting.spans:
            buffers = {
                rank: spread(period, span, self.cutting.rows).astype(self.dtype)
                for rank, period in periods.items()
            }
            run_piece(self.row_moves, buffers)
            for rank, buffer in buffers.items():
                found[rank].append(buffer.astype(wide))
        return found

    def _compare(
        self, rank: int, results: list[Array], right: list[Array], bounds: list[Array] | None = None
    ) -> None:
        held: RowsHeld = self.row_moves.held[rank]
        wrong = compare(self.request, self.cutting, rank, held, results, right, bounds)
        if wrong is not None:
            self.runs[rank].errors.append(str(wrong))
