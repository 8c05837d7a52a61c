"""Payloads: sums that every order of additions gets right, and cuts that lose nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.runtime.payload import PERIOD, Cutting, DataType, Numbers, spread, spread_row

TYPES = list(DataType)


def sums_of(numbers: Numbers, ranks: list[int]) -> int:
    """The largest element of the sum over some ranks."""
    return int(np.sum([numbers.integers(rank) for rank in ranks], axis=0).max())


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("ranks", [2, 3, 8, 64, 200, 300, 3000])
def test_sums_stay_exact(data_type: DataType, ranks: int) -> None:
    """Whatever ranks form a group: neighbours, every second one, or any others."""
    chance = random.Random(ranks)
    groups = {ranks, ranks // 2 or 1, 2}
    for members in groups:
        numbers = Numbers(data_type, members, ranks, period=97)
        stride = ranks // members
        for group in (
            list(range(members)),
            list(range(0, stride * members, stride)),
            chance.sample(range(ranks), members),
        ):
            assert 0 < sums_of(numbers, group) <= data_type.exact_limit


@pytest.mark.parametrize(
    ("data_type", "ranks"), [(DataType.BFLOAT16, 600), (DataType.FLOAT16, 5000)]
)
def test_every_second_rank_stays_exact(data_type: DataType, ranks: int) -> None:
    """A group that a rule by rank numbers alone would give the same ones to everybody."""
    numbers = Numbers(data_type, ranks // 2, ranks, period=50)
    assert sums_of(numbers, list(range(0, ranks, 2))) <= data_type.exact_limit


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("ranks", [2, 7, 130, 300, 3000])
def test_no_two_ranks_contribute_the_same(data_type: DataType, ranks: int) -> None:
    numbers = Numbers(data_type, ranks, ranks, period=4001)
    found = {numbers.integers(rank).tobytes() for rank in range(ranks)}
    assert len(found) == ranks


@pytest.mark.parametrize("data_type", TYPES)
def test_few_ranks_contribute_no_zeros(data_type: DataType) -> None:
    """So a contribution that is missing, or there twice, shows in every element."""
    numbers = Numbers(data_type, 64, 64, period=500)
    assert all((numbers.integers(rank) > 0).all() for rank in range(64))


def test_seeds_differ() -> None:
    one, other = (Numbers(DataType.FLOAT32, 4, 4, seed).integers(1) for seed in (0, 1))
    assert (one != other).any()
    assert len(one) == PERIOD


def test_random_values_are_between_one_and_minus_one() -> None:
    values = Numbers(DataType.FLOAT32, 4, 4).floats(3)
    assert np.abs(values).max() <= 1
    assert abs(values.mean()) < 0.02


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("members", [2, 5, 16, 100])
def test_the_bound_holds_for_any_order(dtype: type[np.floating], members: int) -> None:
    numbers = Numbers(DataType(np.dtype(dtype).name), members, members, period=200)
    values = [numbers.floats(rank).astype(dtype) for rank in range(members)]
    right = np.sum([v.astype(np.float64) for v in values], axis=0)
    size = np.sum([np.abs(v.astype(np.float64)) for v in values], axis=0)
    bound = numbers.error_bound(size)
    chance = random.Random(0)
    for _ in range(20):
        chance.shuffle(values)
        total = values[0].copy()
        for value in values[1:]:
            total += value
        assert (np.abs(total.astype(np.float64) - right) <= bound).all()
    pairs = values
    while len(pairs) > 1:  # a tree
        odd = pairs[len(pairs) & ~1 :]
        pairs = [a + b for a, b in zip(pairs[::2], pairs[1::2], strict=False)] + odd
    assert (np.abs(pairs[0].astype(np.float64) - right) <= bound).all()


def test_a_missing_or_doubled_value_is_beyond_the_bound() -> None:
    numbers = Numbers(DataType.FLOAT32, 8, 8, period=1000)
    values = [numbers.floats(rank).astype(np.float32).astype(np.float64) for rank in range(8)]
    bound = numbers.error_bound(np.abs(values).sum(axis=0))
    assert (np.abs(values[3]) > bound).mean() > 0.99


def test_without_a_useful_bound_nothing_is_refused() -> None:
    numbers = Numbers(DataType.BFLOAT16, 300, 300)
    assert np.isinf(numbers.error_bound(np.ones(3))).all()


def test_limits_and_roundoffs_are_those_of_the_types() -> None:
    for data_type, dtype in ((DataType.FLOAT32, np.float32), (DataType.FLOAT16, np.float16)):
        assert dtype(data_type.exact_limit) - 1 == dtype(data_type.exact_limit - 1)
        assert dtype(data_type.exact_limit + 1) == dtype(data_type.exact_limit)
        assert data_type.unit_roundoff == np.finfo(dtype).eps / 2
        assert data_type.item_bytes == np.dtype(dtype).itemsize


# Layouts ----------------------------------------------------------------------------------


@given(st.integers(1, 3000), st.sampled_from(TYPES), st.integers(1, 9), st.integers(1, 40))
def test_pieces_hold_every_element_once(
    size: int, data_type: DataType, rows: int, chunks: int
) -> None:
    cutting = Cutting.of(size, data_type, rows, chunks)
    elements = -(-size // data_type.item_bytes)
    assert cutting.elements == elements
    assert len(cutting.spans) == min(chunks, elements)
    period = np.arange(1, elements + 1)
    found = []
    for span in cutting.spans:
        piece = spread(period, span, rows)
        assert piece.shape == (rows, span[2])
        assert piece.size - span[1] < rows  # no more padding than rows need
        assert (piece.ravel()[span[1] :] == 0).all()
        assert all((spread_row(period, span, row) == piece[row]).all() for row in range(rows))
        found.append(piece.ravel()[: span[1]])
    assert np.concatenate(found).tolist() == period.tolist()
    assert cutting.padded == sum(rows * span[2] for span in cutting.spans)


@given(st.integers(1, 7), st.integers(0, 50), st.integers(1, 60))
def test_values_repeat(period: int, first: int, length: int) -> None:
    values = np.arange(period) + 1
    piece = spread(values, (first, length, -(-length // 4)), 4).ravel()
    assert piece[:length].tolist() == [(first + i) % period + 1 for i in range(length)]
