"""Each collective alone: preconditions and effects on given states against the definitions."""

from __future__ import annotations

import pytest
import z3
from hypothesis import example, given
from hypothesis import strategies as st

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.encodings.program.z3 import (
    SymbolicState,
    at_most,
    effect,
    initial_rows,
    is_goal,
    most_rows,
    precondition,
)
from tests.oracles import programs as oracle

K = 4
KINDS = (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER)
Words = list[list[int]]
"""Per device and row the contributors as bits."""


def symbolic(words: Words) -> SymbolicState:
    return SymbolicState.of([tuple(z3.BitVecVal(word, K) for word in device) for device in words])


def literal(device: list[int]) -> oracle.Device:
    return tuple(frozenset(c for c in range(K) if word >> c & 1) for word in device)


def holds(formula: z3.BoolRef) -> bool:
    """The truth of a formula without variables."""
    (verdict,) = [f for f in [z3.simplify(formula)] if z3.is_true(f) or z3.is_false(f)]
    return bool(z3.is_true(verdict))


@st.composite
def near_steps(draw: st.DrawFn) -> Words:
    """States of a few rows that often satisfy some precondition, and often just miss it."""
    filled = draw(st.lists(st.booleans(), min_size=K, max_size=K))
    shape = draw(st.sampled_from(["columns", "rows", "nested", "any"]))
    word = st.integers(0, 2**K - 1)
    if shape == "columns":
        words = [[(1 << d) * f for f in filled] for d in range(K)]
    elif shape == "rows":
        owner = draw(st.lists(st.integers(0, K), min_size=K, max_size=K))
        words = [[15 * (owner[r] == d) for r in range(K)] for d in range(K)]
    elif shape == "nested":
        first = draw(st.lists(word, min_size=K, max_size=K))
        words = [first, *([row & draw(word) for row in first] for _ in range(K - 1))]
    else:
        words = draw(st.lists(st.lists(word, min_size=K, max_size=K), min_size=K, max_size=K))
    if draw(st.booleans()):
        words[draw(st.integers(0, K - 1))][draw(st.integers(0, K - 1))] = draw(word)
    return words


@pytest.mark.parametrize("collective", Collective)
@given(near_steps(), st.sets(st.integers(0, K - 1), min_size=2).map(sorted))
@example([[1, 1, 1, 0], [2, 2, 2, 0], [4, 4, 4, 0], [8, 8, 8, 0]], [0, 1])
@example([[0, 1, 1, 1], [0, 2, 2, 2], [0, 4, 4, 4], [0, 8, 8, 8]], [0, 1, 2])
@example([[1, 0, 1, 0], [2, 0, 2, 0], [4, 0, 4, 0], [8, 0, 8, 0]], [1, 3])
@example([[15, 0, 0, 0], [0, 15, 15, 0], [0, 0, 0, 0], [0, 0, 0, 0]], [0, 1])
@example([[0] * 4] * 4, [0, 1, 2, 3])
@example([[3] * 4] * 4, [1, 2])
def test_one_step_of_one_group(collective: Collective, words: Words, group: list[int]) -> None:
    expected = oracle.EFFECT[collective]([literal(words[d]) for d in group])
    state, members = symbolic(words), tuple(group)
    assert holds(precondition(collective, state, members)) is (expected is not None)
    if expected is not None:
        after = effect(collective, state, members)
        found = [[z3.simplify(row).as_long() for row in rows] for rows in after]
        assert [literal(rows) for rows in found] == expected


SCATTERED = [[15, 0, 0, 0], [0, 0, 15, 0], [0, 15, 0, 0], [0, 0, 0, 15]]


@pytest.mark.parametrize("kind", KINDS)
@given(
    st.sampled_from([SCATTERED, [[15] * 4] * 4]),
    st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 15)),
)
@example(SCATTERED, (0, 0, 7))
@example([[15, 0, 0, 0], [15, 0, 0, 0], [0, 15, 0, 0], [0, 0, 0, 15]], None)
@example([[15, 0, 0, 0], [0, 0, 15, 15], [0, 15, 0, 0], [0, 0, 0, 15]], None)
def test_goals(kind: RequestKind, goal: Words, change: tuple[int, int, int] | None) -> None:
    words = [list(device) for device in goal]
    if change is not None:
        device, row, word = change
        words[device][row] = word
    expected = oracle.is_goal(demand_of(kind), tuple(map(literal, words)))
    assert holds(is_goal(demand_of(kind), symbolic(words))) is expected


@pytest.mark.parametrize("kind", KINDS)
def test_initial_states(kind: RequestKind) -> None:
    words = [[row.as_long() for row in device] for device in initial_rows(demand_of(kind), K)]
    assert tuple(map(literal, words)) == oracle.initial(demand_of(kind), K)


@given(near_steps())
def test_row_counts(words: Words) -> None:
    state = symbolic(words)
    counts = [len(oracle.nonempty(literal(device))) for device in words]
    assert [z3.simplify(total).as_long() for total in state.totals] == counts
    assert z3.simplify(most_rows(state, [0, 2, 3])).as_long() == max(counts[0], *counts[2:])


@pytest.mark.parametrize(("bound", "held"), [(-1, 0), (0, 1), (6, 7), (7, 8), (2**70, 8)])
def test_bounds_outside_the_range_of_a_bit_vector(bound: int, held: int) -> None:
    values = [z3.BitVecVal(number, 3) for number in range(8)]
    assert sum(holds(at_most(number, bound)) for number in values) == held
