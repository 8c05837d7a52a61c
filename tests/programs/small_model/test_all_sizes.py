"""Formulas and counts that hold for all sizes, against each size (docs/small-model.md, lemma 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.small_model.diagrams import EMPTY, Node
from experiments.small_model.equality_types import Formula, Where, number_of, types
from experiments.small_model.symbolic_state import (
    Broken,
    Hierarchies,
    Polynomial,
    Undecided,
    unequal,
)
from p2smt.collectives.names import RequestKind
from tests.tiers import examples_of

Bits = npt.NDArray[np.bool_]
Chosen = frozenset[tuple[int, int]]
"""A relation of two variables over two levels: the pairs of types that are in it."""
STORE = Hierarchies(2, RequestKind.ALL_REDUCE)
SIZES = tuple(product((2, 3, 4), repeat=2))
PAIRS = st.tuples(*[st.integers(0, len(types(2)) - 1)] * 2)
RELATIONS = st.frozensets(PAIRS, min_size=1, max_size=12)
CASES = (
    (Formula(("du",), (), "d"), (Where.ANY, Where.ANY)),
    (Formula(("eu",), (), "du"), (Where.VARIES, Where.FIXED)),
    (Formula(("eu", "de"), (), "du"), (Where.VARIES, Where.VARIES)),
    (Formula(("du", "eu"), (), ""), (Where.FIXED, Where.VARIES)),
    (Formula(("du", "dv"), ("uv",), ""), (Where.ANY, Where.ZERO)),
    (Formula(("du",), ("eu",), ""), (Where.VARIES, Where.ZERO)),
    (Formula(("du",), ("fu",), "d"), (Where.VARIES, Where.FIXED)),
    (Formula(("du",), ("fu",), ""), (Where.FIXED, Where.VARIES)),
)


def node_of(chosen: Chosen) -> Node:
    """The relation with these pairs of types."""
    found = EMPTY
    for pair in sorted(chosen):
        levels = [lambda t, n=number: number_of(t) == n for number in pair]
        found = STORE.diagrams.union(found, STORE.diagrams.product(2, levels))
    return found


def table(node: Node, variables: int, sizes: Sequence[int]) -> Bits:
    """A relation on given sizes: an axis per variable, of all pairs of digits."""
    values = list(product(*map(range, sizes)))
    tuples = product(values, repeat=variables)
    found = [STORE.diagrams.holds(node, list(zip(*one, strict=True))) for one in tuples]
    return np.array(found, dtype=bool).reshape((len(values),) * variables)


def asked(where: Where, digits: dict[str, int]) -> bool:
    """Whether devices are in one group, f its first, as far as one level goes."""
    members = {digits[name] for name in "de" if name in digits}
    match where:
        case Where.VARIES:
            return digits.get("f", 0) == 0
        case Where.FIXED:
            return len(members | {digits[name] for name in "f" if name in digits}) == 1
        case Where.ZERO:
            return members <= {0}
    return True


def by_hand(
    formula: Formula, where: tuple[Where, ...], relations: Sequence[Node], sizes: Sequence[int]
) -> Bits:
    """What a formula defines on given sizes, by trying all values."""
    names, values = formula.variables, list(product(*map(range, sizes)))
    tables = [table(node, 2, sizes) for node in relations]
    found = np.zeros((len(values),) * len(formula.output), dtype=bool)
    for tried in product(range(len(values)), repeat=len(names)):
        at = dict(zip(names, tried, strict=True))
        digits = [{name: values[n][level] for name, n in at.items()} for level in range(2)]
        if all(map(asked, where, digits)):
            true = [
                bool(t[at[r[0]], at[r[1]]]) for t, r in zip(tables, formula.holds, strict=False)
            ]
            others = tables[len(formula.holds) :]
            false = [
                bool(t[at[r[0]], at[r[1]]]) for t, r in zip(others, formula.fails, strict=True)
            ]
            if all(true) and not any(false):
                found[tuple(at[name] for name in formula.output)] = True
    return found


def relation_nodes(formula: Formula, chosen: Sequence[Chosen]) -> tuple[Node, ...]:
    many = len(formula.holds) + len(formula.fails)
    return tuple(node_of(one) for one in chosen[:many])


@given(st.sampled_from(CASES), st.lists(RELATIONS, min_size=3, max_size=3), st.sampled_from(SIZES))
@settings(max_examples=examples_of(100), deadline=None)
def test_a_formula_says_the_same_of_all_sizes(
    case: tuple[Formula, tuple[Where, ...]], chosen: list[Chosen], sizes: tuple[int, int]
) -> None:
    formula, where = case
    relations = relation_nodes(formula, chosen)
    expected = by_hand(formula, where, relations, sizes)
    if not formula.output:
        verdict = STORE.broken(formula, relations, where)
        allowed = Broken.EVERYWHERE if expected else Broken.NOWHERE
        assert verdict in (allowed, Broken.PERHAPS)
        return
    try:
        found = STORE.find(formula, relations, where)
    except Undecided:
        return
    assert (table(found, len(formula.output), sizes) == expected).all()


THIRD = frozenset({(number_of((1, 2)), number_of((0, 0)))})
"""Rows unlike a device's digit at the outer level, neither of them zero: none where it is of 2."""
ANY_ROW, LACKS = CASES[0][0], CASES[5][0]


def test_what_needs_a_third_digit_does_not_exist_on_all_sizes() -> None:
    with pytest.raises(Undecided):
        STORE.find(ANY_ROW, (node_of(THIRD),))
    closed = Formula(("du",), (), "")
    assert STORE.broken(closed, (node_of(THIRD),)) is Broken.PERHAPS


def test_a_witness_that_some_sizes_lack_is_no_witness() -> None:
    """With another row, of which there is one on each size, there is no doubt any more."""
    either = THIRD | {(number_of((1, 1)), number_of((0, 0)))}
    found = STORE.find(ANY_ROW, (node_of(either),))
    assert table(found, 1, (2, 3)).tolist() == [False, False, False, True, False, False]
    assert STORE.broken(Formula(("du",), (), ""), (node_of(either),)) is Broken.EVERYWHERE


@given(RELATIONS, st.sampled_from(SIZES))
@settings(max_examples=examples_of(100), deadline=None)
def test_rows_are_counted_for_all_sizes(chosen: Chosen, sizes: tuple[int, int]) -> None:
    rows = node_of(chosen)
    counts = STORE.counts(rows)
    expected = table(rows, 2, sizes).sum(axis=1)
    for number, device in enumerate(product(*map(range, sizes))):
        zeros = sum(1 << level for level, digit in enumerate(device) if digit == 0)
        assert value(counts.get(zeros, {}), sizes) == expected[number]


def value(count: Polynomial, sizes: Sequence[int]) -> int:
    """A count on given sizes."""
    return sum(
        factor * math.prod(n - 2 for i, n in enumerate(sizes) if levels >> i & 1)
        for levels, factor in count.items()
    )


POLYNOMIALS = st.dictionaries(st.integers(0, 3), st.integers(-3, 3), max_size=4)


@given(POLYNOMIALS, POLYNOMIALS, st.tuples(st.integers(2, 6), st.integers(2, 6)))
@settings(max_examples=examples_of(300), deadline=None)
def test_counts_differ_as_they_are_said_to(
    one: Polynomial, other: Polynomial, sizes: tuple[int, int]
) -> None:
    match unequal(one, other):
        case Broken.NOWHERE:
            assert value(one, sizes) == value(other, sizes)
        case Broken.EVERYWHERE:
            assert value(one, sizes) != value(other, sizes)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({0: 1, 1: 1}, {0: 1, 1: 1}, Broken.NOWHERE),
        ({0: 2, 1: 1}, {0: 1}, Broken.EVERYWHERE),
        ({1: 1}, {0: 1}, Broken.PERHAPS),  # 3 - 2 is 1
        ({0: 1, 1: 1}, {0: 1}, Broken.PERHAPS),  # 2 - 2 is 0
    ],
)
def test_counts_differ_on_all_sizes_or_perhaps(
    one: Polynomial, other: Polynomial, expected: Broken
) -> None:
    assert unequal(one, other) is expected


def test_as_many_types_as_ways_to_be_alike() -> None:
    """Bell numbers: digits and zero in classes."""
    assert [len(types(n)) for n in range(6)] == [1, 2, 5, 15, 52, 203]
    assert all(number_of(kind) == at for at, kind in enumerate(types(4)))
