"""Whole answers: the optimum of brute force, caps, limits, checks, and a second call at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import EncodingBug, InputError
from p2smt.resharding import endpoints as array_ends
from p2smt.resharding import search as portfolio
from p2smt.resharding import search as solve
from p2smt.resharding.best_path import best_path
from p2smt.resharding.cuts import Cuts, PathResult
from p2smt.resharding.reachability import RedistributionQuestion
from p2smt.resharding.search import (
    checked_plan,
    coarse_path,
    coarse_splits,
    find_redistribution,
    solve_redistribution,
)
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.steps import ArrayStep, MemoryLimit, within
from p2smt.resharding.types import Uneven
from p2smt.result import SearchLimits, SolveStats, Status
from tests.oracles import redistributions as oracle
from tests.resharding.search.questions import array, cluster

SMALL = cluster(2, 4)
LAYOUTS = st.sampled_from(
    (
        *("R,R", "S(dp),R", "R,S(dp)", "S(tp),R", "R,S(tp)", "S(dp),S(tp)", "S(tp),S(dp)"),
        *("S(dp,tp),R", "S(tp,dp),R", "R,S(dp,tp)", "R,S(tp,dp)", "S(tp:(2)2),S(tp:(1)2)"),
    )
)
PARTIAL = st.sampled_from(["", ";P(dp)", ";P(tp)", ";P(dp);P(tp)"])


def least_s(asked: RedistributionQuestion, max_steps: int | None = None) -> float | None:
    """The least seconds over all orders of the primes, by brute force."""
    found = []
    for ends in asked.ends():
        prices = StepPrices(asked.topology, ends.frame)

        def price(step: ArrayStep, prices: StepPrices = prices) -> float:
            return prices.step(step).seconds

        found.append(oracle.best_cost(ends, price, asked.memory(ends), max_steps))
    return min((one for one in found if one is not None), default=None)


def question(source: str, target: str, **given: object) -> RedistributionQuestion:
    kinds = [array("dp=2,tp=4", (16, 16), text) for text in (source, target)]
    return replace(RedistributionQuestion(kinds[0], kinds[1], SMALL), **given)  # type: ignore[arg-type]


def fits(source: str, partial: str) -> str | None:
    """The layout with partial axes, where these do not shard it."""
    axes = [axis for axis in ("dp", "tp") if f"P({axis})" in partial]
    return None if any(axis in source for axis in axes) else source + partial


@given(LAYOUTS, PARTIAL, LAYOUTS, st.sampled_from([None, None, 1, 2, 3]))
def test_answers_are_those_of_brute_force(
    source: str, partial: str, target: str, max_steps: int | None
) -> None:
    asked = question(fits(source, partial) or source, target, max_steps=max_steps)
    answer, least = find_redistribution(asked), least_s(asked, max_steps)
    if least is None:
        assert answer.status is Status.INFEASIBLE
        return
    assert answer.plan is not None
    assert answer.status is Status.OPTIMAL
    assert answer.plan.objective_s == pytest.approx(least, rel=1e-9)
    assert answer.plan.physical_bound_s <= answer.plan.bound_s <= answer.plan.objective_s
    assert max_steps is None or len(answer.plan.steps) <= max_steps


@given(LAYOUTS, LAYOUTS, st.integers(0, 6), st.booleans())
def test_caps_are_kept_and_the_least_one_is_known(
    source: str, target: str, more: int, keep: bool
) -> None:
    base = question(source, target)
    cap = base.ends()[0].states_limit_bytes + 128 * more
    asked = replace(base, memory_bytes=cap, keep_source=keep)
    answer, least = find_redistribution(asked), least_s(asked)
    if least is not None:
        assert answer.plan is not None
        assert answer.plan.objective_s == pytest.approx(least, rel=1e-9)
        assert answer.plan.peak_step_bytes <= cap
        return
    assert answer.status is Status.INFEASIBLE
    lowest = answer.least.limit_bytes
    assert lowest is not None
    assert lowest > cap
    assert least_s(replace(asked, memory_bytes=lowest)) is not None
    assert least_s(replace(asked, memory_bytes=lowest - 1)) is None


@pytest.mark.exhaustive
@given(LAYOUTS, LAYOUTS, st.integers(1, 3), st.booleans())
def test_the_least_cap_of_few_steps(source: str, target: str, most: int, keep: bool) -> None:
    base = question(source, target, max_steps=most, keep_source=keep)
    cap = base.ends()[0].states_limit_bytes
    asked = replace(base, memory_bytes=cap)
    answer = find_redistribution(asked)
    if answer.status is not Status.INFEASIBLE:
        return
    least = answer.least.memory_bytes
    assert answer.least.too_few_steps == (least is None)
    anyhow = replace(asked, memory_bytes=2**40)
    assert (least_s(anyhow, most) is None) == answer.least.too_few_steps
    if least is not None:
        assert least_s(replace(asked, memory_bytes=least), most) is not None
        assert least_s(replace(asked, memory_bytes=least - 1), most) is None


def test_nested_states_need_a_memory_that_is_named() -> None:
    """Chunks of chunks may grow over source and destination: both least caps are told."""
    kinds = [
        array("dp=2,tp=2", (5, 7), text, uneven=Uneven.NESTED)
        for text in ("S(dp),S(tp)", "S(tp),S(dp)")
    ]
    asked = RedistributionQuestion(kinds[0], kinds[1], cluster(2, 2))
    answer = find_redistribution(asked)
    assert answer.status is Status.INFEASIBLE
    states, steps = answer.least.limit_bytes, answer.least.memory_bytes
    assert states is not None
    assert steps is not None
    assert asked.ends()[0].states_limit_bytes < states < steps
    assert find_redistribution(replace(asked, memory_bytes=steps)).plan is not None
    fewer = find_redistribution(replace(asked, memory_bytes=steps - 1))
    assert (fewer.status, fewer.least.memory_bytes) == (Status.INFEASIBLE, steps)


@pytest.mark.exhaustive
def test_orders_of_the_primes_that_were_left_out_are_not_proved() -> None:
    """Two axes of 12 have 9 orders together."""
    kinds = [array("x=12,y=12", (144, 144), text) for text in ("S(x),R", "R,S(x)")]
    asked = RedistributionQuestion(kinds[0], kinds[1], cluster(12, 12))
    whole = find_redistribution(asked)
    assert (asked.orders_left_out(), whole.status) == (0, Status.OPTIMAL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_ends, "MAX_SPLITS", 2)
        again = replace(asked, memory_bytes=2**40)  # not asked before
        found = find_redistribution(again)
        assert found.plan is not None
        assert (found.orders_left_out, found.status) == (7, Status.FEASIBLE)
        assert found.bound_s == found.plan.physical_bound_s
        never = find_redistribution(replace(again, max_steps=1, memory_bytes=4 * 144 * 12))
        assert (never.plan, never.status) == (None, Status.UNKNOWN)


@pytest.mark.exhaustive
@given(LAYOUTS, LAYOUTS, st.permutations(range(8)), st.permutations(range(8)))
def test_orders_of_devices(source: str, target: str, one: list[int], other: list[int]) -> None:
    kinds = [
        array("dp=2,tp=4", (16, 16), text, devices=tuple(order))
        for text, order in ((source, one), (target, other))
    ]
    plan = solve_redistribution(kinds[0], kinds[1], SMALL)
    assert plan.status is Status.OPTIMAL
    assert plan.states[-1].order == len(plan.frame.orders) - 1


@pytest.mark.parametrize("uneven", [Uneven.PADDED, Uneven.NESTED])
def test_uneven_arrays(uneven: Uneven) -> None:
    kinds = [
        array("dp=2,tp=4", (13, 9), text, uneven=uneven) for text in ("S(dp),S(tp)", "R,S(tp)")
    ]
    plan = solve_redistribution(kinds[0], kinds[1], SMALL)
    assert plan.status is Status.OPTIMAL
    assert plan.frame.shape == ((14, 12) if uneven is Uneven.PADDED else (13, 9))


def test_the_same_type_takes_nothing() -> None:
    answer = find_redistribution(question("S(dp),S(tp)", "S(dp),S(tp)"))
    assert answer.plan is not None
    assert (answer.plan.steps, answer.plan.objective_s) == ((), 0.0)
    assert answer.status is Status.OPTIMAL
    assert answer.plan.peak_step_bytes == answer.plan.peak_bytes == 128


def test_a_second_call_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question("S(dp),S(tp)", "S(tp),S(dp)")
    first = find_redistribution(asked)
    monkeypatch.setattr(solve, "find_path", None)
    assert find_redistribution(question("S(dp),S(tp)", "S(tp),S(dp)")) is first
    for other in (
        replace(asked, memory_bytes=1 << 20),
        replace(asked, max_steps=5),
        replace(asked, cuts=Cuts.LEVELS),
        replace(asked, keep_source=True),
        replace(asked, topology=cluster(2, 4, "3 us")),
        replace(asked, limits=SearchLimits(seed=1)),
        replace(
            asked,
            source=replace(asked.source, shape=(32, 16)),
            target=replace(asked.target, shape=(32, 16)),
        ),
    ):
        with pytest.raises(TypeError):
            find_redistribution(other)


def test_no_time_gives_no_proof_and_is_not_kept() -> None:
    asked = question("S(dp),S(tp)", "R,S(tp,dp)", limits=SearchLimits(time_limit_s=0.0))
    answer = find_redistribution(asked)
    assert answer.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert find_redistribution(asked) is not answer


def test_the_layers_answer_where_the_exact_search_has_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(portfolio, "EXACT_S", 0.0)
    asked = question("S(dp),S(tp)", "R,S(tp,dp)", max_steps=3)
    answer, least = find_redistribution(asked), least_s(asked, 3)
    assert answer.plan is not None
    assert answer.plan.objective_s == pytest.approx(least)
    assert (answer.status, answer.plan.max_steps) == (Status.OPTIMAL, 3)


def test_a_plan_longer_than_the_layers_is_not_said_to_be_one_of_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exact = best_path

    def unproved(*args: Any, **options: Any) -> PathResult:
        return replace(exact(*args, **options), status=Status.FEASIBLE, bound_s=0.0)

    for name, value in (("best_path", unproved), ("MANY_LAYERS", 1), ("MOST_LAYERS", 1)):
        monkeypatch.setattr(portfolio, name, value)
    asked = question("S(dp),S(tp)", "S(tp),S(dp)", limits=SearchLimits(seed=7))
    plan = find_redistribution(asked).plan
    assert plan is not None
    assert len(plan.steps) > 1
    assert (plan.status, plan.max_steps) == (Status.FEASIBLE, None)


def test_errors_of_the_call_without_a_plan() -> None:
    asked = question("S(dp),S(tp)", "R,S(dp,tp)", memory_bytes=128)
    with pytest.raises(
        InputError, match="no plan keeps to it; the least memory that one meets is 384B"
    ):
        solve_redistribution(asked.source, asked.target, SMALL, memory=128)
    with pytest.raises(InputError, match="must be 1 to 64"):
        question("S(dp),S(tp)", "R,S(dp,tp)", max_steps=0)
    with pytest.raises(InputError, match="is below the source's 128 B"):
        solve_redistribution(asked.source, asked.target, SMALL, memory=127)


def checked(asked: RedistributionQuestion, steps: tuple[ArrayStep, ...]) -> None:
    (ends, *_) = asked.ends()
    found = PathResult(Status.OPTIMAL, 0, steps, 1.0, 1.0, SolveStats("test"))
    checked_plan(asked, ends, found, None, 0.0, found.stats)


def test_wrong_steps_are_never_an_answer() -> None:
    asked = question("S(dp),S(tp)", "R,S(dp,tp)")
    plan = find_redistribution(asked).plan
    assert plan is not None
    steps = plan.array_steps
    checked(asked, steps)
    for wrong in (steps[1:], steps[:-1], (*steps, steps[-1])):
        with pytest.raises(EncodingBug, match="do not lead from source to destination"):
            checked(asked, wrong)
    (ends, *_) = asked.ends()
    with pytest.raises(EncodingBug, match="step all-to-all"):
        checked(asked, (type(steps[-1])(ends.source, ends.target),))
    with pytest.raises(EncodingBug, match="exceed the cap"):
        checked(replace(asked, memory_bytes=128), steps)


@pytest.mark.parametrize("text", ["a=4,b=4", "a=16"])
def test_coarse_digits_give_plans_on_fine_ones(text: str) -> None:
    topology = cluster(4, 4)
    layouts = ("S(a),S(b)", "S(b),S(a)") if "b" in text else ("S(a),R", "R,S(a)")
    source, target = (array(text, (16, 16), layout) for layout in layouts)
    asked = RedistributionQuestion(source, target, topology)
    ends = asked.ends()
    limit = MemoryLimit(ends[0].states_limit_bytes)
    found = coarse_path(asked, ends, limit, SearchLimits())
    assert found is not None
    frame = ends[found.ends].frame
    for step in found.steps:
        step.check(frame)
    assert within(frame, ends[found.ends].source, found.steps, limit)
    prices = StepPrices(topology, frame)
    assert sum(prices.step(step).seconds for step in found.steps) == pytest.approx(found.seconds)
    best = find_redistribution(asked).plan
    assert best is not None
    assert found.seconds is not None
    assert best.objective_s <= found.seconds * (1 + 1e-9)


def test_coarse_digits_are_few() -> None:
    kind = array("a=64,b=64", (4096, 4096), "S(a),S(b)")
    splits = coarse_splits(cluster(512, 8), kind)
    assert splits == ((16, 4), (8, 8))
