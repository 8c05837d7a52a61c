"""Cubes of matrices partition them, at every depth."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallel_search.subproblem import Subproblem
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.search.spaces.matrix_subproblems import MatrixSubproblems, ways
from tests.search.spaces.questions import every_matrix, holds, sizes_and_rules

NAMES = ("a", "b", "c")
Sized = tuple[tuple[int, ...], tuple[int, ...], tuple[AxisRule | FixedEntry, ...]]


def cubes_of(sized: Sized) -> MatrixSubproblems:
    levels, axes, rules = sized
    return MatrixSubproblems(NAMES[: len(axes)], levels, axes, rules)


@settings(max_examples=40)
@given(sizes_and_rules(), st.sampled_from([1, 4, 50]))
def test_every_matrix_is_in_exactly_one_root(sized: Sized, least: int) -> None:
    roots = cubes_of(sized).roots(least)
    for matrix in every_matrix(*sized):
        assert sum(holds(cube, matrix) for cube in roots) == 1


@settings(max_examples=40)
@given(sizes_and_rules())
def test_children_partition_their_parent(sized: Sized) -> None:
    cubes, waiting = cubes_of(sized), [Subproblem()]
    matrices = every_matrix(*sized)
    while waiting:
        cube = waiting.pop()
        mine = [matrix for matrix in matrices if holds(cube, matrix)]
        assert list(cubes.matrices(cube)) == sorted(mine)
        children = cubes.split(cube)
        waiting += children
        if children:
            assert all(sum(holds(child, m) for child in children) == 1 for m in mine)
        else:
            assert len(mine) <= 1 or not cube.path


def test_without_rules_no_cube_is_empty() -> None:
    cubes = MatrixSubproblems(NAMES, (4, 6, 2), (6, 4, 2))
    waiting = [Subproblem()]
    while waiting:
        cube = waiting.pop()
        assert next(cubes.matrices(cube), None) is not None
        waiting += cubes.split(cube)


def test_rows_are_written_as_they_are_read() -> None:
    cubes = MatrixSubproblems(NAMES, (4, 4), (4, 2, 2), prefix=("before",))
    cube = Subproblem(("before", "a:2,2", "b:1,2"))
    assert cubes.rows(cube) == ((2, 2), (1, 2))
    assert cubes.first(cube) == (2, 2, 1, 2)
    assert cubes.fixed(cube)[-1] == FixedEntry(1, 1, 2)


@pytest.mark.parametrize(
    "path",
    [("b:2,2",), ("a:2",), ("a:2,3",), ("a:4,1", "b:2,1"), ("a:0,4",), ("a:x,4",), ("a:2,2",) * 4],
)
def test_what_is_no_cube_is_refused(path: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        MatrixSubproblems(NAMES, (4, 4), (4, 2, 2)).rows(Subproblem(path))


def test_a_size_is_split_in_every_way() -> None:
    assert list(ways(4, (4, 2))) == [(2, 2), (4, 1)]
    assert list(ways(1, ())) == [()]
    assert list(ways(2, ())) == []
