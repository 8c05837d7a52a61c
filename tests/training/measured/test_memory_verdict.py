"""The three verdicts on memory: their order, their bounds, and what an estimate says with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.training.memory_verdict import MemoryVerdict, memory_verdict, usable_bytes

GB = 10**9
ORDER = (MemoryVerdict.FITS, MemoryVerdict.TIGHT, MemoryVerdict.NOT)


@pytest.mark.parametrize(
    ("needed", "verdict"),
    [
        (0, MemoryVerdict.FITS),
        (77 * GB, MemoryVerdict.FITS),
        (77 * GB + 1, MemoryVerdict.TIGHT),
        (92 * GB, MemoryVerdict.TIGHT),
        (92 * GB + 1, MemoryVerdict.NOT),
    ],
)
def test_the_bounds_are_parts_of_a_device(needed: int, verdict: MemoryVerdict) -> None:
    assert memory_verdict(needed, usable_bytes(100 * GB)) is verdict


@given(st.integers(0, 2**45), st.integers(0, 2**45), st.integers(1, 2**45))
def test_less_need_is_never_judged_worse(one: int, other: int, capacity: int) -> None:
    less, more = sorted((one, other))
    assert ORDER.index(memory_verdict(less, capacity)) <= ORDER.index(
        memory_verdict(more, capacity)
    )


@given(st.integers(0, 2**45), st.integers(1, 2**45))
def test_what_does_not_fit_is_what_needs_more_than_it_may_take(needed: int, capacity: int) -> None:
    assert (memory_verdict(needed, capacity) is MemoryVerdict.NOT) == (needed > capacity)
