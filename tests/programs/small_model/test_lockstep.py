"""The small-model theorem (docs/small-model.md), by the semantics alone.

Two systems with the same number of factors run in lockstep: a pair of states is what one word
of instructions leads to in each.  If no reachable pair has its goal on one side only, the same
programs are valid in both, up to the length explored, or at every length once no pair is new.
"""

from __future__ import annotations

import pytest

from p2smt.collectives.names import RequestKind
from p2smt.problems.placement import InstructionSet
from p2smt.programs.program import Hierarchy, Program
from tests.programs.small_model.systems import DEAD, System, system
from tests.tiers import but_the_first

COUNTEREXAMPLE = (
    "reduce-scatter inside l2; reduce-scatter parallel l2 in l1; all-gather inside l2; "
    "all-gather master l2 in l1; reduce-scatter parallel l1 in root; broadcast inside l2; "
    "all-gather parallel l1 in root"
)
REDUCE, SCATTER, GATHER = (
    RequestKind.ALL_REDUCE,
    RequestKind.REDUCE_SCATTER,
    RequestKind.ALL_GATHER,
)
Word = tuple[int, ...]


def shortest_difference(one: System, other: System, length: int) -> tuple[Word | None, bool]:
    """A shortest word that is a program of one only; and whether no pair was left to explore."""
    layer: list[tuple[tuple[int, int], Word]] = [((0, 0), ())]
    seen = {(0, 0)}
    for _ in range(length):
        found: list[tuple[tuple[int, int], Word]] = []
        for (a, b), word in layer:
            for number in range(len(one.steps)):
                pair = one.step(a, number), other.step(b, number)
                if one.goal(pair[0]) != other.goal(pair[1]):
                    return (*word, number), False
                if pair not in seen and pair != (DEAD, DEAD):
                    seen.add(pair)
                    found.append((pair, (*word, number)))
        layer = found
    return None, not layer


def compare(
    kind: RequestKind, small: tuple[int, ...], real: tuple[int, ...], length: int
) -> tuple[Word | None, bool]:
    return shortest_difference(system(kind, small), system(kind, real), length)


@pytest.mark.parametrize("kind", [REDUCE, SCATTER, GATHER])
@pytest.mark.parametrize("real", [(3, 2), (2, 3), (4, 2), (2, 4), (4, 4), (5, 3), (6, 10)])
def test_two_factors_agree_at_every_length(kind: RequestKind, real: tuple[int, ...]) -> None:
    assert compare(kind, (2, 2), real, 30) == (None, True)


@pytest.mark.parametrize("kind", but_the_first(GATHER, SCATTER))
@pytest.mark.parametrize("real", but_the_first((3, 2, 2), (2, 3, 2), (2, 2, 3), (2, 3, 5)))
def test_three_factors_agree_at_every_length_on_other_requests(
    kind: RequestKind, real: tuple[int, ...]
) -> None:
    assert compare(kind, (2, 2, 2), real, 30) == (None, True)


THREE = [(3, 2, 2), (2, 3, 2), (2, 2, 3), (4, 2, 2), (2, 3, 5)]


@pytest.mark.parametrize(
    ("real", "length"),
    [
        *(pytest.param(real, n, marks=pytest.mark.exhaustive) for real in THREE for n in (4, 6)),
        *(pytest.param(real, 8, marks=pytest.mark.exhaustive) for real in ((3, 3, 3), (2, 3, 2))),
        pytest.param((3, 2, 2, 2), 6, marks=pytest.mark.evidence),
        pytest.param((2, 2, 3, 2), 4, marks=pytest.mark.exhaustive),
        pytest.param((2, 3, 4, 2), 4, marks=pytest.mark.evidence),
    ],
)
def test_factors_agree_with_twos_up_to_a_length(real: tuple[int, ...], length: int) -> None:
    word, _ = compare(REDUCE, (2,) * len(real), real, length)
    assert word is None


@pytest.mark.exhaustive
@pytest.mark.parametrize("real", [(3, 2, 2), (4, 2, 2), (2, 2, 3), (3, 2, 5)])
def test_the_property_ends_at_length_7(real: tuple[int, ...]) -> None:
    word, _ = compare(REDUCE, (2, 2, 2), real, 7)
    assert word is not None
    assert len(word) == 7


@pytest.mark.exhaustive
def test_the_documented_counterexample() -> None:
    word, _ = compare(REDUCE, (2, 2, 2), (3, 2, 2), 7)
    hierarchy, items = Hierarchy.plain((2, 2, 2)), InstructionSet.of(3).items
    program = Program(tuple(hierarchy.instruction(*items[number]) for number in word or ()))
    assert str(program) == COUNTEREXAMPLE
