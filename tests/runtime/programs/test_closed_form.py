"""What ranks must end with, against a second definition written element by element."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from p2smt.collectives.names import RequestKind
from p2smt.runtime.job import JobRequest
from p2smt.runtime.payload import PERIOD, Array, Cutting, DataType, RunOptions
from p2smt.runtime.programs.reference_backend import (
    Mismatch,
    compare,
    expected_pieces,
    numbers_of,
    rounded_sum,
    wrong_rows,
)
from tests.runtime.tools import ALL, GATHER, SCATTER, request

EXCHANGE, SEND = RequestKind.ALL_TO_ALL, RequestKind.SEND
GROUPS = ((0, 3, 5), (1, 2, 4))


def values(rank: int) -> Array:
    return np.arange(7) + 100 * (rank + 1)


def naive(kind: RequestKind, group: tuple[int, ...], rank: int, bounds: list[int]) -> list[int]:
    """All elements, without padding, of a payload cut at ``bounds``.

    Each piece is cut into rows of equal width, the last ones shorter or empty.
    """
    found, place = [], group.index(rank)

    def element(of: int, number: int) -> int:
        return int(values(of)[number % 7])

    for start, stop in pairwise(bounds):
        width = -(-(stop - start) // len(group))
        for offset in range(stop - start):
            row, column = divmod(offset, width)
            if kind in (ALL, SCATTER):
                found.append(sum(element(m, start + offset) for m in group))
            elif kind is GATHER:
                found.append(element(group[row], start + offset))
            elif kind is SEND:
                found.append(element(group[max(0, place - 1)], start + offset))
            else:
                mine = place * width + column
                found.append(element(group[row], start + mine) if mine < stop - start else 0)
    return found


@pytest.mark.parametrize("kind", list(RequestKind))
@pytest.mark.parametrize(("elements", "chunks"), [(12, 1), (13, 1), (29, 3), (2, 1), (4, 9)])
def test_every_kind(kind: RequestKind, elements: int, chunks: int) -> None:
    cutting = Cutting.of(elements * 4, DataType.FLOAT32, 3, chunks)
    asked = request(kind, (), GROUPS, elements * 4, chunks=chunks)
    bounds = [span[0] for span in cutting.spans] + [elements]
    for group in GROUPS:
        for rank in group:
            pieces = expected_pieces(asked, cutting, rank, values)
            assert [piece.shape for piece in pieces] == [(3, span[2]) for span in cutting.spans]
            flat = [p.ravel()[: s[1]] for p, s in zip(pieces, cutting.spans, strict=True)]
            assert np.concatenate(flat).tolist() == naive(kind, group, rank, bounds)


# Comparison -------------------------------------------------------------------------------

CUTTING = Cutting.of(4 * 13, DataType.INT64, 3, 1)
ASKED = request(ALL, (), ((0, 1, 2),), 52, name="all-reduce dp")
EVERY = np.ones(3, dtype=bool)


def pieces_with(cutting: Cutting, offset: int, change: float) -> tuple[list[Array], list[Array]]:
    right = [np.arange(3.0 * span[2]).reshape(3, -1) + span[0] for span in cutting.spans]
    found = [piece.copy() for piece in right]
    for piece, span in zip(found, cutting.spans, strict=True):
        if span[0] <= offset < span[0] + span[1]:
            piece.ravel()[offset - span[0]] += change
    return found, right


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("offset", [0, 5, 12])
def test_the_wrong_element_is_named(chunks: int, offset: int) -> None:
    cutting = Cutting.of(4 * 13, DataType.FLOAT32, 3, chunks)
    found, right = pieces_with(cutting, offset, 0.5)
    wrong = compare(ASKED, cutting, 2, EVERY, found, right)
    assert wrong == Mismatch("all-reduce dp", 2, "wrong value", offset, offset, offset + 0.5)
    assert str(wrong) == (
        f"all-reduce dp: rank 2, element {offset}: wrong value: "
        f"expected {offset}, found {offset + 0.5}"
    )
    loose = [np.full_like(piece, 0.5) for piece in right]
    assert compare(ASKED, cutting, 2, EVERY, found, right, loose) is None
    assert compare(ASKED, cutting, 2, EVERY, right, right) is None


def test_not_a_number_is_wrong() -> None:
    cutting = Cutting.of(12, DataType.FLOAT32, 3, 1)
    found, right = pieces_with(cutting, 1, float("nan"))
    bounds = [np.full_like(right[0], np.inf)]
    assert compare(ASKED, cutting, 0, EVERY, found, right) is not None
    wrong = compare(ASKED, cutting, 0, EVERY, found, right, bounds)
    assert wrong is not None
    assert "found nan" in str(wrong)


def test_only_rows_that_are_held_count() -> None:
    cutting = Cutting.of(4 * 9, DataType.FLOAT32, 3, 1)
    found, right = pieces_with(cutting, 4, 1)
    assert compare(ASKED, cutting, 0, np.array([1, 0, 1], bool), found, right) is None
    assert compare(ASKED, cutting, 0, np.array([0, 1, 0], bool), found, right) is not None


def held(*rows: str) -> Array:
    return np.array([[c == "1" for c in text] for text in rows])


@pytest.mark.parametrize(
    ("kind", "rows", "shards", "errors"),
    [
        (ALL, ("111", "111", "111"), None, []),
        (GATHER, ("111", "101", "111"), None, ["rank 1: ends with 2 of 3 parts"]),
        (SCATTER, ("100", "001", "010"), None, []),
        (SCATTER, ("100", "001", "010"), (0, 2, 1), []),
        (
            SCATTER,
            ("100", "001", "010"),
            (0, 1, 2),
            ["part 2; the plan says part 1", "part 1; the"],
        ),
        (SCATTER, ("100", "100", "010"), (0, 0, 1), ["rank 1: ends with part 0, which another"]),
        (SCATTER, ("110", "001", "000"), None, ["2 parts of the payload instead", "with 0 parts"]),
    ],
)
def test_rows(
    kind: RequestKind, rows: tuple[str, ...], shards: tuple[int, ...] | None, errors: list[str]
) -> None:
    asked = request(kind, (), ((0, 1, 2),), shards=shards)
    found = [str(wrong) for wrong in wrong_rows(asked, held(*rows))]
    assert len(found) == len(errors)
    assert all(part in text for part, text in zip(errors, found, strict=True))


def sums(asked: JobRequest) -> tuple[list[Array], list[Array]]:
    cutting = Cutting.of(80, DataType.FLOAT32, 3, 1)
    numbers = numbers_of(asked, cutting, RunOptions(), 6)
    return rounded_sum(asked, cutting, 3, numbers.floats, numbers)


def test_only_sums_may_be_rounded() -> None:
    (summed,), (bounds,) = sums(request(ALL, (), GROUPS, 80))
    assert bounds.shape == summed.shape
    assert (bounds.ravel()[:20] > 0).all()
    assert (np.abs(summed) <= bounds / (2 * 2.0**-24)).all()  # the sum of magnitudes
    _, (bounds,) = sums(request(GATHER, (), GROUPS, 80))
    assert (bounds == 0).all()


def test_periods_are_as_short_as_the_payload() -> None:
    for size, period in ((80, 20), (4 * PERIOD + 4, PERIOD)):
        cutting = Cutting.of(size, DataType.FLOAT32, 3, 1)
        assert numbers_of(request(ALL, (), GROUPS, size), cutting, RunOptions(), 6).period == period
