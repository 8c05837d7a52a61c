"""The search against Dijkstra over all states and all steps that their own rules allow."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings

from p2smt.resharding.best_path import best_path
from p2smt.resharding.cuts import PathResult
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.reachability import least_limit
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import MemoryLimit, within
from p2smt.resharding.types import parse_mesh
from p2smt.result import SearchLimits, Status, StopWatch
from tests.oracles import redistributions as oracle
from tests.resharding.search.exact_cases import Case, cases, cluster, ends_between
from tests.tiers import examples_of


def _small(ends: Ends) -> bool:
    """Whether the oracle's list of all steps is short."""
    more = len(ends.source.partial) + len(ends.frame.orders) - 1
    return len(ends.frame.digits) + (1 if more else 0) <= 3


def _check_plan(case: Case, found: PathResult, prices: StepPrices) -> None:
    """The steps obey their rules, lead from source to target, and cost what is said."""
    ends = case.ends[found.ends]
    state = ends.source
    for step in found.steps:
        step.check(ends.frame)
        assert step.before == state
        state = step.after
    assert state == ends.target
    assert within(ends.frame, ends.source, found.steps, case.memory)
    assert case.max_steps is None or len(found.steps) <= case.max_steps
    seconds = sum(prices.step(step).seconds for step in found.steps)
    assert found.seconds == pytest.approx(seconds, rel=1e-9)
    assert found.bound_s == found.seconds


def _price_of(prices: StepPrices) -> oracle.Price:
    return lambda step: prices.step(step).seconds


def _check_optimum(case: Case) -> None:
    prices = case.prices
    wanted = [
        oracle.best_cost(one, _price_of(price), case.memory, case.max_steps)
        for one, price in zip(case.ends, prices, strict=True)
    ]
    best = min((seconds for seconds in wanted if seconds is not None), default=None)
    found = best_path(case.ends, prices, case.memory, SearchLimits(), max_steps=case.max_steps)
    if best is None:
        assert found.status is Status.INFEASIBLE
        assert found.seconds is None
        return
    assert found.status is Status.OPTIMAL
    assert found.seconds == pytest.approx(best, rel=1e-9)
    _check_plan(case, found, prices[found.ends])


@given(cases())
@settings(max_examples=12)
def test_the_optimum_is_that_of_brute_force(case: Case) -> None:
    assume(all(map(_small, case.ends)))
    _check_optimum(case)


@pytest.mark.exhaustive
@given(cases())
@settings(max_examples=examples_of(1000), deadline=None)
def test_the_optimum_is_that_of_brute_force_often(case: Case) -> None:
    _check_optimum(case)


@given(cases())
@settings(max_examples=5)
def test_the_least_cap_is_that_of_brute_force(case: Case) -> None:
    assume(all(map(_small, case.ends)))
    memory = case.memory
    wanted = [
        oracle.least_limit(one, of_steps=memory.of_steps, keep_source=memory.keep_source)
        for one in case.ends
    ]
    least = min((limit for limit in wanted if limit is not None), default=None)
    assert least_limit(case.ends, case.prices, memory) == least


@given(cases())
@settings(max_examples=5)
def test_without_time_no_least_cap_is_told(case: Case) -> None:
    watch = StopWatch.start(SearchLimits(time_limit_s=0.0))
    assert least_limit(case.ends, case.prices, case.memory, watch) is None


def test_a_watch_is_looked_at_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = ends_between(parse_mesh("a=2,b=4"), (24, 24), ("S(a),S(b)", "S(b),S(a)"))
    prices = [StepPrices(cluster("dgx-h100", 2, 4), one.frame) for one in ends]
    memory, watch = MemoryLimit(1), StopWatch.start(SearchLimits())
    least = least_limit(ends, prices, memory, watch)
    assert least == least_limit(ends, prices, memory) == ends[0].states_limit_bytes
    looks = itertools.count()
    monkeypatch.setattr(StopWatch, "expired", lambda _: next(looks) > 1)
    assert least_limit(ends, prices, memory, watch) is None
    assert next(looks) == 4
