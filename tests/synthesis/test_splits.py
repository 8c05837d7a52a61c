"""Ways to make copies of orbits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from p2smt.synthesis.group_order import splits
from p2smt.synthesis.subgroups import Subgroup

GROUP: Subgroup = frozenset(range(12))


def plainly(copies: int, leavers: Sequence[Subgroup]) -> Iterator[list[Subgroup]]:
    if copies == 0:
        yield []
    for number, one in enumerate(leavers):
        size = len(GROUP) // len(one)
        if 0 < size <= copies:
            yield from ([one, *rest] for rest in plainly(copies - size, leavers[number:]))


@given(st.integers(0, 14), st.lists(st.sampled_from([1, 2, 3, 4, 6, 12]), max_size=4))
def test_all_are_found_in_order(copies: int, sizes: list[int]) -> None:
    leavers = [frozenset(range(size)) for size in sizes]
    assert list(splits(copies, GROUP, leavers)) == list(plainly(copies, leavers))


def test_many_copies_need_no_deep_calls() -> None:
    """20,000 of them, which the whole group leaves where they are."""
    assert [len(one) for one in islice(splits(20_000, GROUP, [GROUP]), 2)] == [20_000]
