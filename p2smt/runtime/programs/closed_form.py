"""What each rank must hold after a request: the closed form that results are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2smt.collectives.demand import Chunks, Demand, Givers, demand_of
from p2smt.runtime.job import JobRequest
from p2smt.runtime.options import RunOptions
from p2smt.runtime.payload import (
    PERIOD,
    Array,
    Cutting,
    Floats,
    Numbers,
    spread,
    spread_row,
    spread_whole_row,
)
from p2smt.runtime.programs.regions import RowsHeld

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
        for rank, rows in zip(group, own, strict=True):
            if not rows.all():
                text = f"ends with {rows.sum()} of {len(rows)} parts of the payload"
                found.append(Mismatch(request.name, rank, text))
    return found


def _wrong_shards(request: JobRequest, group: tuple[int, ...], own: RowsHeld) -> list[Mismatch]:
    found = []
    for rank, rows in zip(group, own, strict=True):
        if rows.sum() != 1:
            text = f"ends with {rows.sum()} parts of the payload instead of one"
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
    rows = [
        spread_whole_row(numbers.integers(member), cutting, row) for row, member in enumerate(group)
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
