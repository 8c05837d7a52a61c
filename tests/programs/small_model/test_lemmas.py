"""Each lemma of the small-model theorem (docs/small-model.md), on given sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest

from experiments.small_model.open_arcs import Orders, Traced, split_run
from experiments.small_model.search import GOAL, Found, search
from experiments.small_model.symbolic_state import RowDigit
from p2smt.collectives.names import Collective, RequestKind
from p2smt.problems.placement import InstructionSet, reduction_items
from p2smt.programs.program import Grouping, Hierarchy, parse_program
from tests.programs.small_model.systems import DEAD, contents, system
from tests.programs.small_model.test_lockstep import COUNTEREXAMPLE
from tests.programs.small_model.test_symbolic_states import Sizes

REDUCE, SCATTER, GATHER = (
    RequestKind.ALL_REDUCE,
    RequestKind.REDUCE_SCATTER,
    RequestKind.ALL_GATHER,
)
Word = tuple[int, ...]
Step = tuple[Collective, Grouping]
THREES = ((2, 2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3), (4, 3, 2))
REDUCTIONS = {Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.REDUCE}


@cache
def found(levels: int, kind: RequestKind, length: int) -> Found:
    return search(levels, kind, length)


# lemma 3: the first and the last row


@pytest.mark.parametrize("factors", [(2, 3), (2, 2, 3), (3, 2, 2)])
def test_the_first_row_goes_to_the_first_member_and_the_last_to_the_last(
    factors: tuple[int, ...],
) -> None:
    concrete, layer, seen = system(REDUCE, factors), [0], 0
    for _ in range(3):
        after = []
        for at in layer:
            for i, step in enumerate(concrete.steps):
                to = concrete.step(at, i)
                if to != DEAD:
                    after.append(to)
                if to != DEAD and step.collective is Collective.REDUCE_SCATTER:
                    before, now = (np.asarray(contents(concrete, n).any(axis=2)) for n in (at, to))
                    for row, member in ((0, 0), (-1, -1)):
                        held, keeps = before[step.groups, row], now[step.groups, row]
                        expected = np.zeros_like(held)
                        expected[:, member] = held[:, member]
                        assert (keeps == expected).all()
                        seen += int(held.any())
        layer = list(dict.fromkeys(after))
    assert seen > 10


# lemma 5: the orders of rows


def rows_by(order: Sequence[int], factors: Sequence[int]) -> list[tuple[int, ...]]:
    """The digits of each row, split by these levels, outermost first; the others are 0."""
    left, digits = math.prod(factors), np.zeros((math.prod(factors), len(factors)), dtype=int)
    rows = np.arange(left)
    for level in order:
        left //= factors[level]
        digits[:, level] = rows // left % factors[level]
    return [tuple(map(int, row)) for row in digits]


def is_one_run(rows: list[int]) -> bool:
    return rows == list(range(rows[0], rows[0] + len(rows)))


@pytest.mark.parametrize("factors", THREES)
def test_a_run_of_one_order_is_in_pieces_in_the_other(factors: tuple[int, ...]) -> None:
    orders = [order for many in range(4) for order in permutations(range(3), many)]
    different = 0
    for one, other in product(orders, repeat=2):
        levels = split_run(one, other)
        if levels is None:
            continue
        different += 1
        zero = [
            [n for n, row in enumerate(rows_by(order, factors)) if not any(row[i] for i in levels)]
            for order in (one, other)
        ]
        assert len(zero[0]) == len(zero[1])
        assert sorted(map(is_one_run, zero)) == [False, True]
    assert different > 20


def traced(factors: tuple[int, ...], length: int) -> Iterator[tuple[Traced, int]]:
    """States with their orders, and what the same word leads to on given sizes."""
    graph, concrete = found(3, REDUCE, 16), system(REDUCE, factors)
    orders = Orders(graph.steps)
    layer = {(orders.beginning, 0)}
    for _ in range(length):
        after = set()
        for state, at in layer:
            for arc in graph.arcs.get(state.state, ()):
                if arc.target is not GOAL:
                    to = concrete.step(at, arc.instruction)
                    after.add((orders.next(state, arc.instruction, arc.target), to))
        yield from after
        layer = after


@pytest.mark.parametrize(
    "factors", [THREES[1], *(pytest.param(f, marks=pytest.mark.exhaustive) for f in THREES)]
)
def test_rows_are_in_the_order_that_is_said(factors: tuple[int, ...]) -> None:
    """Not up to their order: each row of each device is the one of these digits."""
    steps = found(3, REDUCE, 16).steps
    sizes, known = Sizes(steps, factors), 0
    index = {digits: n for n, digits in enumerate(product(*map(range, factors)))}
    for state, at in traced(factors, 5):
        real = contents(system(REDUCE, factors), at)
        for span, order in zip(state.state.spans, state.orders, strict=True):
            if order is not None:
                asked = enumerate(steps.row_digits(span.content))
                assert {i for i, digit in asked if digit is not RowDigit.NOTHING} <= set(order)
                rows = [index[digits] for digits in rows_by(order, factors)]
                devices = sizes.devices(span)
                assert (sizes.array(span.content)[devices][:, rows] == real[devices]).all()
                known += len(state.state.spans) > 1
    assert known > 20


@pytest.mark.parametrize("factors", THREES)
def test_broadcasts_between_two_orders_are_refused(factors: tuple[int, ...]) -> None:
    graph, concrete = found(3, REDUCE, 16), system(REDUCE, factors)
    orders, refused = Orders(graph.steps), 0
    for state, at in traced(factors, 5):
        for arc in graph.open_arcs:
            if arc.state == state.state and orders.refused(state, arc.instruction):
                refused += 1
                assert concrete.step(at, arc.instruction) == DEAD
    assert refused


# lemma 6: no cutoff


def allowed(factors: tuple[int, ...], text: str) -> bool:
    """Whether a program is valid, by the semantics."""
    hierarchy, items = Hierarchy.plain(factors), InstructionSet.of(len(factors)).items
    concrete, at = system(REDUCE, factors), 0
    for one in parse_program(text).instructions:
        at = concrete.step(at, items.index((one.collective, hierarchy.grouping(one))))
    return concrete.goal(at)


@pytest.mark.parametrize("factors", list(product((2, 3, 4), repeat=3)))
def test_the_program_of_seven_steps_is_valid_where_n1_divides_n3(
    factors: tuple[int, int, int],
) -> None:
    assert allowed(factors, COUNTEREXAMPLE) == (factors[2] % factors[0] == 0)


@pytest.mark.parametrize("first", range(2, 9))
def test_two_ways_to_number_runs_agree_where_n1_divides_n3(first: int) -> None:
    for n2, n3 in product(range(2, 9), repeat=2):
        rows = product(range(n3), range(1, n2), range(first))
        alike = all(
            (u * first * n2 + v * first + s) // (n2 * n3) == (u * first + s) // n3
            for u, v, s in rows
        )
        assert alike == (n3 % first == 0)


# lemma 7: the levels that a program tells apart


def levels_of(steps: Sequence[Step], kinds: set[Collective]) -> list[int]:
    return sorted(i for c, g in steps if c in kinds for i in range(g.outer, g.inner))


def fresh_outer_ends(steps: Sequence[Step], depth: int) -> int:
    """Broadcasts whose groups begin where no earlier step's begin or end."""
    ends, fresh = {0, depth}, 0
    for collective, grouping in steps:
        fresh += collective is Collective.BROADCAST and grouping.outer not in ends
        ends |= {grouping.outer, grouping.inner}
    return fresh


def told_apart(steps: Sequence[Step], depth: int) -> int:
    return len({0, depth} | {end for _, g in steps for end in (g.outer, g.inner)}) - 1


@pytest.mark.parametrize(
    ("depth", "length"),
    [
        (2, 16),
        (3, 16),
        pytest.param(4, 6, marks=pytest.mark.exhaustive),
        pytest.param(5, 5, marks=pytest.mark.evidence),
        pytest.param(6, 5, marks=pytest.mark.evidence),
    ],
)
def test_programs_of_m_steps_tell_at_most_m_levels_apart(depth: int, length: int) -> None:
    items, many = reduction_items(depth), 0
    for word in found(depth, REDUCE, length).programs():
        steps = [items[i] for i in word]
        gathered = levels_of(steps, {Collective.ALL_GATHER})
        assert levels_of(steps, REDUCTIONS) == list(range(depth))  # (a), (b)
        assert levels_of(steps, {Collective.REDUCE_SCATTER}) == gathered  # (c)
        assert fresh_outer_ends(steps, depth) <= bool(gathered)  # (d)
        assert told_apart(steps, depth) <= len(word)
        many += 1
    assert many > 50


@pytest.mark.parametrize("depth", [2, 3, 4, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_all_gathers_tile_the_levels(depth: int) -> None:
    items = reduction_items(depth)
    for word in found(depth, GATHER, 16).programs():
        steps = [items[i] for i in word]
        assert {c for c, _ in steps} <= {Collective.ALL_GATHER, Collective.BROADCAST}
        assert levels_of(steps, {Collective.ALL_GATHER}) == list(range(depth))
        assert fresh_outer_ends(steps, depth) == 0
        assert told_apart(steps, depth) <= len(word)


# reduce-scatter requests


def tilings(depth: int) -> Iterator[tuple[Step, ...]]:
    """Every order of reduce-scatters whose slices tile the levels."""
    for many in range(depth):
        for cuts in combinations(range(1, depth), many):
            ends = pairwise((0, *cuts, depth))
            yield from permutations((Collective.REDUCE_SCATTER, Grouping(*one)) for one in ends)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_reduce_scatters_are_the_orders_of_the_tilings(depth: int) -> None:
    items = reduction_items(depth)
    programs = {tuple(items[i] for i in w) for w in found(depth, SCATTER, 16).programs()}
    assert programs == set(tilings(depth))
    for many, count in found(depth, SCATTER, 16).counts().items():
        assert count == math.comb(depth - 1, many - 1) * math.factorial(many)
