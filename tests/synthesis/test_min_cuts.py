"""Cuts that are sought: against all cuts, and against flows."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.fabric.fabric_file import load_fabric
from p2smt.synthesis import bounds as rate
from p2smt.synthesis.bounds import rate_bound
from p2smt.synthesis.certificate.certificate import BoundedCollective, BoundKind
from p2smt.synthesis.min_cuts import Network, narrow_cut
from tests.synthesis.test_bounds import checked


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 5)), max_size=14))
def test_the_flow_is_the_narrowest_cut(arcs: list[tuple[int, int, int]]) -> None:
    network = Network(5)
    for tail, head, room in arcs:
        network.join(tail, head, room)
    sent = network.fill(0, 4)
    widths = [
        sum(room for a, b, room in arcs if a in side and b not in side)
        for size in range(4)
        for side in ({0, *rest} for rest in combinations((1, 2, 3), size))
    ]
    side = network.reached(0)
    assert sent == min(widths)
    assert sent == sum(room for a, b, room in arcs if a in side and b not in side)


@st.composite
def linked(draw: st.DrawFn) -> Fabric:
    """Five ranks, each link a capacity of its own; a ring holds them together."""
    pairs = [(a, b) for a in range(5) for b in range(5) if a != b]
    ring = [(a, (a + 1) % 5) for a in range(5)]
    ways = sorted({*ring, *draw(st.lists(st.sampled_from(pairs), max_size=6))})
    capacities = tuple(Capacity(f"{a}->{b}", Fraction(draw(st.integers(1, 4)), 2)) for a, b in ways)
    edges = tuple(FabricEdge(a, b, (n,)) for n, (a, b) in enumerate(ways))
    return Fabric("linked", 5, capacities, edges)


def narrowest(fabric: Fabric, collective: str, root: int) -> Fraction:
    """The greatest of what must enter sets, over the bandwidth by which it does: all sets."""
    best = Fraction(0)
    for size in range(1, 5):
        for inside in combinations(range(5), size):
            entering = [e for e in fabric.edges if e.source not in inside and e.target in inside]
            into = sum((fabric.capacities[e.loads[0]].bandwidth for e in entering), Fraction(0))
            needed = 5 - size
            if collective == "broadcast":
                needed = int(root not in inside)
            if collective == "reduce":
                needed = int(root in inside)
            if collective == "reduce-scatter":
                needed = size
            best = max(best, Fraction(needed) / into)
    return best


@settings(max_examples=25, deadline=None)
@given(linked(), st.sampled_from(["all-gather", "broadcast", "reduce", "reduce-scatter"]))
def test_sought_cuts_are_the_best_of_all(fabric: Fabric, collective: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rate, "MOST_WAYS", 0)
        found = checked(rate_bound(fabric, collective, None, 1))
    assert found.kind in (BoundKind.DEGREE, BoundKind.CUT)
    # several cuts in one proof share no edge's capacity here, so that the best one is best
    assert found.value == narrowest(fabric, collective, 1)


def test_enough_rounds_leave_no_cut() -> None:
    dgx1, gather = load_fabric("dgx1"), BoundedCollective.ALL_GATHER
    assert narrow_cut(dgx1, gather, 0, 0, Fraction(7, 6)) is None
    assert narrow_cut(dgx1, gather, 0, 0, Fraction(1)) is not None
    assert narrow_cut(dgx1, BoundedCollective.ALL_TO_ALL, 0, 0, Fraction(1)) is None
