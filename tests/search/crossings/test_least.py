"""Least sufficient sets: the known ones, against every program at random numbers, and limits."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.plans.crossings.least_set import LeastSet, SymbolicSetting
from p2smt.plans.crossings.least_set_check import check_least_set
from p2smt.plans.crossings.proofs import broken, least_hitting
from p2smt.problems.crossing import SumOfMaxima
from p2smt.result import SearchLimits, Status
from p2smt.search.crossings.least import glance, least_set
from tests.strategies.draws import Draws, draws

FLAT = "all-reduce inside root"
NESTED = "reduce-scatter inside l1; all-reduce parallel l1 in root; all-gather inside l1"
JOINED = "all-reduce inside l1; all-reduce parallel l1 in root"
SETTINGS = {
    "2x8": SymbolicSetting((2, 8), (1, 1), calls=False),
    "4x8": SymbolicSetting((4, 8), (1, 1), calls=False),
    "4x8 ports": SymbolicSetting((4, 8), (8, 1), calls=False),
    "4x8 calls": SymbolicSetting((4, 8), (1, 1)),
    "4x8 gather": SymbolicSetting((4, 8), (1, 1), RequestKind.ALL_GATHER),
    "2x3 short": SymbolicSetting((2, 3), (1, 1), max_length=2),
    "6": SymbolicSetting((6,), (1,)),
}
EXPECTED = {
    "2x8": ([FLAT, NESTED], 61, 30),
    "4x8": ([FLAT, NESTED], 61, 30),
    "4x8 ports": ([FLAT, NESTED], 61, 26),
    "4x8 calls": ([FLAT, JOINED, NESTED], 61, 45),
}


@cache
def found(name: str) -> LeastSet:
    return least_set(SETTINGS[name], SearchLimits())


@pytest.mark.parametrize("name", EXPECTED)
def test_known_sets(name: str) -> None:
    members, programs, costs = EXPECTED[name]
    one = found(name)
    assert one.status is Status.OPTIMAL
    assert [str(one.costs[n].programs[0]) for n in one.members] == members
    assert (one.programs, len(one.costs)) == (programs, costs)
    assert all(one.alone(n) is not None for n in one.members)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_four_of_the_programs_suffice_on_three_levels() -> None:
    one = least_set(SymbolicSetting((2, 4, 8), (1, 1, 1), calls=False), SearchLimits())
    assert (one.programs, len(one.costs), len(one.members)) == (848, 355, 4)
    assert check_least_set(one).valid


@pytest.mark.parametrize("name", SETTINGS)
def test_the_certificate_holds_without_a_solver(name: str) -> None:
    assert check_least_set(found(name)).faults == ()


numbers = st.fractions(0, 1000, max_denominator=1000) | st.sampled_from(
    [Fraction(10) ** n for n in range(-6, 7)]
)


@given(st.sampled_from(list(SETTINGS)), draws())
def test_a_member_is_best_for_any_numbers(name: str, data: Draws) -> None:
    one = found(name)
    point = tuple(data.draw(numbers) for _ in one.setting.unknowns)
    values = [cost.cost.value(point) for cost in one.costs]
    assert min(values[n] for n in one.members) == min(values)


@pytest.mark.parametrize("name", SETTINGS)
def test_no_member_can_be_left_out(name: str) -> None:
    one = found(name)
    for member in one.members:
        point = one.alone(member)
        assert point is not None
        rest = [cost.cost.value(point) for n, cost in enumerate(one.costs) if n != member]
        assert not rest or one.costs[member].cost.value(point) < min(rest)


def test_a_time_limit_leaves_costs_open() -> None:
    none = least_set(SETTINGS["4x8"], SearchLimits(time_limit_s=0.0))
    assert (none.status, none.costs) == (Status.UNKNOWN, ())


def test_factors_of_one_and_ports_that_do_not_fit_are_refused() -> None:
    for factors, ports, rule in (
        ((1, 8), (1, 1), "at least 2"),
        ((4, 8), (1,), "are for 1 levels"),
        ((4, 8), (3, 1), "spread evenly"),
    ):
        with pytest.raises(InputError, match=rule):
            least_set(SymbolicSetting(factors, ports), SearchLimits())


rows = st.tuples(*[st.fractions(0, 3, max_denominator=3)] * 3)
sums = st.builds(
    lambda fixed, maxima: SumOfMaxima(fixed, tuple(maxima)),
    rows,
    st.lists(rows.filter(any), max_size=3),
)


@given(sums, st.lists(sums, min_size=1, max_size=3))
def test_what_is_seen_at_a_glance_holds(candidate: SumOfMaxima, others: list[SumOfMaxima]) -> None:
    seen = glance(candidate, tuple(others))
    if seen is not None:
        assert broken(candidate, others, seen) is None


def test_most_is_seen_at_a_glance() -> None:
    one = found("4x8 calls")
    members = tuple(one.costs[n].cost for n in one.members)
    rest = [cost for n, cost in enumerate(one.costs) if n not in one.members]
    seen = sum(glance(cost.cost, members) is not None for cost in rest)
    assert seen > len(rest) / 2


@given(st.lists(st.frozensets(st.integers(0, 5), min_size=1, max_size=3), max_size=5))
def test_the_fewest_elements_meet_every_set(sets: list[frozenset[int]]) -> None:
    chosen = least_hitting(sets)
    assert all(one & set(chosen) for one in sets)
    fewer = combinations(range(6), max(0, len(chosen) - 1))
    if chosen:
        assert not any(all(one & set(few) for one in sets) for few in fewer)
