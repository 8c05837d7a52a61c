"""Rank tensors and reduction groups of parallelism matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallelism.placement import (
    Matrix,
    ParallelismAxis,
    Placement,
    default_ranks,
    rank_groups,
)
from tests.oracles.placements import all_matrices
from tests.strategies.draws import Draws, draws
from tests.strategies.placements import matrices, sizes

RUNNING = ((1, 1, 2, 2), (1, 2, 1, 2))


def device(matrix: Matrix, rank: tuple[int, ...]) -> int:
    """The device of a rank by the definition: digits of mixed-radix numbers."""
    left, digits = list(rank), {}
    for j in reversed(range(len(matrix[0]))):
        for i, row in enumerate(matrix):
            left[i], digits[i, j] = divmod(left[i], row[j])
    found = 0
    for j in range(len(matrix[0])):
        for i, row in enumerate(matrix):
            found = found * row[j] + digits[i, j]
    return found


def named(groups: np.ndarray) -> list[set[str]]:
    """Groups of the running example, its 16 GPUs called A0..A3, B0.., C0.., D0..D3."""
    return [{f"{'ABCD'[d // 4]}{d % 4}" for d in group} for group in groups]


def test_the_running_example_has_exactly_four_matrices() -> None:
    assert list(all_matrices((1, 2, 2, 4), (4, 4))) == [
        ((1, 1, 1, 4), (1, 2, 2, 1)),
        ((1, 1, 2, 2), (1, 2, 1, 2)),
        ((1, 2, 1, 2), (1, 1, 2, 2)),
        ((1, 2, 2, 1), (1, 1, 1, 4)),
    ]


def test_groups_of_the_running_example() -> None:
    placement = Placement(RUNNING)
    assert named(placement.groups([0])) == [
        {"A0", "A2", "B0", "B2"},
        {"A1", "A3", "B1", "B3"},
        {"C0", "C2", "D0", "D2"},
        {"C1", "C3", "D1", "D3"},
    ]
    assert named(placement.groups([1])) == [
        {"A0", "A1", "C0", "C1"},
        {"A2", "A3", "C2", "C3"},
        {"B0", "B1", "D0", "D1"},
        {"B2", "B3", "D2", "D3"},
    ]


def test_no_axis_gives_groups_of_one_and_all_axes_one_group() -> None:
    placement = Placement(RUNNING)
    assert placement.groups([]).tolist() == [[d] for d in range(16)]
    assert placement.groups([0, 1]).tolist() == [list(range(16))]


@given(matrices())
def test_the_rank_tensor_is_the_definition(matrix: Matrix) -> None:
    ranks = Placement(matrix).rank_tensor()
    assert ranks.shape == Placement(matrix).axis_sizes
    for rank in np.ndindex(ranks.shape):
        assert ranks[rank] == device(matrix, rank)


@given(matrices())
def test_the_rank_tensor_is_a_permutation_that_increases_along_every_axis(matrix: Matrix) -> None:
    ranks = Placement(matrix).rank_tensor()
    assert sorted(ranks.ravel().tolist()) == list(range(ranks.size))
    for axis in range(ranks.ndim):
        assert (np.diff(ranks, axis=axis) > 0).all()


@given(matrices(), draws())
def test_groups_partition_the_devices_and_agree_with_the_rank_tensor(
    matrix: Matrix, data: Draws
) -> None:
    placement = Placement(matrix)
    axes = sorted(data.draw(st.sets(st.integers(0, len(matrix) - 1))))
    groups = placement.groups(axes)
    assert groups.shape[1] == math.prod(placement.axis_sizes[i] for i in axes)
    assert sorted(groups.ravel().tolist()) == list(range(groups.size))
    assert (np.diff(groups, axis=1) > 0).all()
    others = rank_groups(placement.rank_tensor(), axes)
    assert sorted(groups.tolist()) == sorted(others.tolist())


@given(sizes())
def test_sizes_of_all_matrices_are_those_asked_for(
    both: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    levels, axes = both
    found = list(all_matrices(levels, axes))
    assert found == sorted(set(found))
    for matrix in found:
        Placement(matrix).check(levels, axes)


def test_factors_multiply_the_axes_of_a_level() -> None:
    placement = Placement(((2, 3), (5, 7), (1, 2)))
    assert placement.factors([0]) == (2, 3)
    assert placement.factors([0, 2]) == (2, 6)
    assert placement.factors([]) == (1, 1)


def test_the_default_layout_is_row_major_and_may_have_no_matrix() -> None:
    ranks = default_ranks((4, 9))
    (matrix,) = all_matrices((6, 6), (4, 9))
    assert Placement(matrix).rank_tensor().tolist() != ranks.tolist()
    assert ranks[1, 2] == 11
    assert rank_groups(ranks, [0])[0].tolist() == [0, 9, 18, 27]


def test_text_is_json_without_blanks() -> None:
    assert Placement(RUNNING).text() == "[[1,1,2,2],[1,2,1,2]]"


@pytest.mark.parametrize("matrix", [(), ((),), ((1, 2), (1,)), ((0,),), ((2, -1),)])
def test_a_malformed_matrix_is_rejected(matrix: Matrix) -> None:
    with pytest.raises(InputError, match="matrix"):
        Placement(matrix)


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(InputError, match=r"row products.*\[4, 4\], not \[2, 8\]"):
        Placement(RUNNING).check((1, 2, 2, 4), (2, 8))
    with pytest.raises(InputError, match=r"column products.*not \[2, 2, 2, 2\]"):
        Placement(RUNNING).check((2, 2, 2, 2), (4, 4))


@pytest.mark.parametrize(("name", "size"), [("", 2), ("2d", 2), ("a b", 2), ("dp", 0)])
def test_a_bad_axis_is_rejected(name: str, size: int) -> None:
    with pytest.raises(InputError, match="must be"):
        ParallelismAxis(name, size)
