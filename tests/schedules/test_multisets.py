"""Interned multisets, against plain counters."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from p2smt.schedules.multisets import NOTHING, Multisets, Part

Plain = tuple[dict[Part, int], dict[int, int]]

PLAIN = st.tuples(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)),
    st.dictionaries(st.integers(0, 2), st.integers(1, 3)),
)


def plain(table: Multisets, number: int) -> Plain:
    """The multiset of a number."""
    parts, reads = table.known[number]
    return dict(parts), dict(reads)


@given(PLAIN, PLAIN)
def test_sums_are_those_of_counters(one: Plain, two: Plain) -> None:
    table = Multisets()
    a, b = table.number(*one), table.number(*two)
    parts, reads = Counter(one[0]) + Counter(two[0]), Counter(one[1]) + Counter(two[1])
    assert plain(table, table.add(a, b)) == (parts, reads)
    assert table.add(a, b) == table.add(b, a)


@given(PLAIN, st.integers(1, 3))
def test_multiples_are_repeated_sums(one: Plain, times: int) -> None:
    table = Multisets()
    number, total = table.number(*one), NOTHING
    for _ in range(times):
        total = table.add(total, number)
    assert table.scaled(number, times) == total


@given(PLAIN, PLAIN)
def test_equal_ones_and_only_they_have_one_number(one: Plain, two: Plain) -> None:
    table = Multisets()
    assert (table.number(*one) == table.number(*two)) is (one == two)


def test_nothing_is_number_0() -> None:
    table = Multisets()
    part = table.single("a")
    assert table.number({}, {}) == NOTHING
    assert table.add(part, NOTHING) == table.add(NOTHING, part) == part
    assert part != table.seen_by(0)


def test_a_new_sum_names_the_parts_of_the_first_one_first() -> None:
    table = Multisets()
    a, b = table.single("a"), table.single("b")
    assert list(table.known[table.add(b, a)].parts) == ["b", "a"]
