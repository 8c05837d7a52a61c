"""Interned multisets, against plain counters."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from p2smt.collectives.contract import Contribution
from p2smt.schedules.multisets import NOTHING, Multisets, Part

Plain = tuple[dict[Part, int], dict[int, int]]

PARTS: list[Part] = ["a", *(Contribution(rank, chunk) for rank in range(2) for chunk in range(2))]
PLAIN = st.tuples(
    st.dictionaries(st.sampled_from(PARTS), st.integers(1, 3)),
    st.dictionaries(st.integers(0, 2), st.integers(1, 3)),
)


def plain(table: Multisets, number: int) -> Plain:
    """The multiset of a number."""
    whole = table.known[number]
    return dict(whole.parts), dict(whole.reads)


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


@given(st.lists(st.sampled_from(PARTS), min_size=1), st.lists(st.integers(0, 9), min_size=1))
def test_sums_of_any_shape_have_their_parts_in_order(parts: list[Part], turns: list[int]) -> None:
    table = Multisets()
    sums = [([part], table.single(part)) for part in parts]
    while len(sums) > 1:
        k = turns[len(sums) % len(turns)] % (len(sums) - 1)
        (one, a), (two, b) = sums[k : k + 2]
        sums[k : k + 2] = [([*one, *two], table.add(a, b))]
    (ordered, number) = sums[0]
    assert table.known[number].parts == Counter(parts)
    if len(set(parts)) == len(parts):  # each sum is a new one
        assert list(table.known[number].parts) == ordered
