"""Whole answers of synthesize: CP-SAT with symmetries and without, and z3, say the same."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.synthesis.bounds import rate_bound, steps_bound
from p2smt.synthesis.setting import NAMES, Answer, Synthesis
from tests.strategies.draws import Draws, draws

ASKED = (("cpsat", True), ("cpsat", False), ("z3", False))
ROOTED = ("broadcast", "gather", "reduce", "scatter")


def common_answer(
    fabric: Fabric, collective: str, size: tuple[int, int, int], *, root: int = 0, messages: int = 1
) -> Synthesis:
    """The answer that all give; settled, and a schedule no better than the bound."""
    steps, rounds, chunks = size
    every = [
        p2smt.synthesize(
            *(fabric, collective),
            steps=steps,
            rounds=rounds,
            chunks=chunks,
            root=root,
            messages=messages,
            symmetry=symmetry,
            solver=solver,
        )
        for solver, symmetry in ASKED
    ]
    assert len({(one.status, one.reason) for one in every}) == 1, [one.reason for one in every]
    assert every[0].status in (Answer.SCHEDULE, Answer.NO_SCHEDULE)
    for one in every:
        assert one.bound is not None
        assert one.sums is None or one.rate >= one.bound.value
    return every[0]


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Three ranks, or four: a ring one way or both, some more edges, capacities that are shared.

    Edges may stand side by side; bandwidths may be fractions.
    """
    ranks = draw(st.integers(3, 4))
    turns = draw(st.sampled_from([(1,), (1, -1)]))
    pairs = [(a, (a + turn) % ranks) for a in range(ranks) for turn in turns]
    rank = st.integers(0, ranks - 1)
    pairs += draw(st.lists(st.tuples(rank, rank).filter(lambda p: p[0] != p[1]), max_size=2))
    rates = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2)])
    shared = draw(st.booleans())
    capacities = [Capacity("", draw(rates)) for _ in pairs]
    capacities += [Capacity("shared", draw(rates) + 1)] if shared else []
    last = (len(pairs),) if shared else ()
    edges = [
        FabricEdge(a, b, (n, *(last if draw(st.booleans()) else ())))
        for n, (a, b) in enumerate(pairs)
    ]
    return Fabric("drawn", ranks, tuple(capacities), tuple(sorted(edges)))


@given(draws(), fabrics(), st.sampled_from(sorted(NAMES)))
@settings(max_examples=15, deadline=None)
def test_drawn_fabrics(data: Draws, fabric: Fabric, collective: str) -> None:
    """Sizes that no bound refutes, by as little as can be: what is said is from a search."""
    root = data.draw(st.integers(0, 2), label="root") if collective in ROOTED else 0
    steps = steps_bound(fabric, collective, root) + data.draw(st.integers(0, 1), label="more steps")
    small = steps < 4 and collective != "all-to-all"
    chunks = data.draw(st.integers(1, 2 if small else 1), label="chunks")
    messages = 1
    if collective == "all-reduce" and chunks == 1 and steps < 4:
        messages = data.draw(st.integers(1, 2), label="messages")
    bound = rate_bound(fabric, collective, steps, root).value
    rounds = max(steps, math.ceil(bound * chunks)) + data.draw(st.integers(0, 1), label="rounds")
    found = common_answer(fabric, collective, (steps, rounds, chunks), root=root, messages=messages)
    assert found.reason != "no schedule (bound)"


@pytest.mark.parametrize(
    ("collective", "refuted_by_search"),
    [("all-gather", False), ("all-reduce", True), ("broadcast", False), ("reduce-scatter", False)],
)
def test_every_small_size_of_a_circle(collective: str, refuted_by_search: bool) -> None:
    """Three ranks, each with a link to the next alone."""
    edges = tuple(FabricEdge(a, (a + 1) % 3, (a,)) for a in range(3))
    fabric = Fabric("circle", 3, (Capacity("", Fraction(1)),) * 3, edges)
    reasons = [
        common_answer(fabric, collective, (steps, steps + more, chunks)).reason
        for steps, more, chunks in product((2, 3), (0, 1), (1, 2, 3))
    ]
    assert "schedule" in reasons
    assert "no schedule (bound)" in reasons
    assert any("complete search" in reason for reason in reasons) is refuted_by_search
