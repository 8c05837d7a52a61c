"""Interned multisets, against plain counters."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from p2smt.schedules.multisets import NOTHING, Multisets

Plain = tuple[dict[str, int], dict[int, int]]

PLAIN = st.tuples(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 3)),
    st.dictionaries(st.integers(0, 2), st.integers(1, 3)),
)


def as_counters(table: Multisets, number: int) -> tuple[Counter[object], Counter[int]]:
    parts, reads = table.known[number]
    return Counter(parts), Counter(reads)


@given(PLAIN, PLAIN, st.integers(1, 3))
def test_sums_and_multiples_are_those_of_counters(one: Plain, two: Plain, times: int) -> None:
    table = Multisets()
    a, b = table.number(*one), table.number(*two)
    total = tuple(Counter(x) + Counter(y) for x, y in zip(one, two, strict=True))
    assert as_counters(table, table.add(a, b)) == total
    assert table.add(a, b) == table.add(b, a)
    several = tuple(Counter({k: n * times for k, n in x.items()}) for x in one)
    assert as_counters(table, table.scaled(a, times)) == several


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
