"""Bandwidths that are no small fractions: what is found with the small ones in their place."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.encodings.schedule.cpsat_search import MAX_ROUNDS, below, small_rate
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge
from p2smt.fabric.fabric_file import load_fabric
from p2smt.synthesis.setting import Answer

POSITIVE = st.fractions(Fraction(1, 10**6), 40, max_denominator=10**6)


@given(POSITIVE, st.integers(1, 40), st.integers(1, 60))
def test_as_much_passes_in_every_step(rate: Fraction, rounds: int, messages: int) -> None:
    small = small_rate(rate, rounds, messages)
    assert small.denominator <= rounds
    for r in range(1, rounds + 1):
        assert min(int(small * r), messages) == min(int(rate * r), messages)


@given(POSITIVE, st.integers(1, 60))
def test_the_largest_fraction_below(value: Fraction, denominator: int) -> None:
    assert below(value, denominator) == max(
        Fraction(int(value * q), q) for q in range(1, denominator + 1)
    )


def uneven(rate: Fraction) -> Fabric:
    """A ring of three whose first two edges have that bandwidth."""
    ring = load_fabric("ring:3")
    edges = tuple(FabricEdge(e.source, e.target, (n,)) for n, e in enumerate(ring.edges))
    rates = (rate, rate, *[Fraction(1)] * (len(edges) - 2))
    return replace(ring, edges=edges, capacities=tuple(Capacity("", one) for one in rates))


@pytest.mark.parametrize("collective", ["all-gather", "all-reduce", "reduce-scatter"])
@pytest.mark.parametrize("rounds", [3, 4])
def test_long_fractions_are_as_good_as_short_ones(collective: str, rounds: int) -> None:
    """Just below 3/2 is as good as 4/3 in up to three rounds, and just above as good as 3/2."""
    tiny = Fraction(1, 10**30)
    answers = {}
    for rate in (Fraction(3, 2) - tiny, Fraction(4, 3), Fraction(3, 2) + tiny, Fraction(3, 2)):
        found = p2smt.synthesize(
            uneven(rate), collective, steps=2, rounds=rounds, chunks=rounds, symmetry=False
        )
        answers[rate] = found.status
    below_it, four_thirds, above, half = answers.values()
    assert (below_it, above) == (four_thirds, half)
    assert Answer.UNKNOWN not in answers.values()


@pytest.mark.parametrize("collective", ["all-gather", "all-reduce"])
def test_so_many_rounds_are_too_many(collective: str) -> None:
    found = p2smt.synthesize("ring:3", collective, steps=2, rounds=MAX_ROUNDS + 1, chunks=1)
    assert found.status is Answer.UNKNOWN
    assert f"are more than {MAX_ROUNDS}" in found.detail
    most = p2smt.synthesize("ring:3", collective, steps=2, rounds=MAX_ROUNDS, chunks=1)
    assert most.status is Answer.SCHEDULE
