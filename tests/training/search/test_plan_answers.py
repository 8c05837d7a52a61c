"""Parts of an answer: programs, limits, what was measured, and why nothing is possible."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import isclose

import numpy as np
import pytest

from p2smt.cluster.hosts import Hosts
from p2smt.cluster.topology import Level, Topology
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.parallelism.placement import AxisRule, FixedEntry, ParallelismAxis, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.program_synthesis import request_programs
from p2smt.training.efficiency import Efficiency, TrainingRun
from p2smt.training.iteration import predict, predict_with
from p2smt.training.pipeline import axis_requests, call_seconds, default_placement
from p2smt.training.search.bounds_table import BoundsTable
from p2smt.training.search.branch import CollectiveTiming, close, planned
from p2smt.training.search.candidates import Candidates
from p2smt.training.search.choices import Choices
from p2smt.training.search.plan import plan, verdict
from p2smt.training.search.plan_answer import StrategyRun
from p2smt.training.search.prices import PlacedCandidates, SceneCache
from p2smt.training.search.program_timing import ProgramTiming
from p2smt.training.search.question import PlanQuestion, Prices, SpaceLimits
from p2smt.training.search.strategies import space_of
from p2smt.training.strategy import AXES, Batch, Recompute, Strategy
from tests.oracles.strategies import all_strategies, placements_of
from tests.tiers import but_the_first
from tests.training.search.test_plan import DEVICE, FRAMEWORKS, MODEL, cluster, link

EFFICIENCY = Efficiency("e", "d", FRAMEWORKS[0], 0.5, 1e-5, 1, 0.05)
SMALL = PlanQuestion(
    MODEL,
    Batch(16, 64),
    cluster((2, 4), (1e8, 1e10)),
    EFFICIENCY,
    SpaceLimits(cp=1, micro_batch=1, zero=(1,), recompute=(Recompute.NONE,)),
    memory_bytes=10**8,
)


def started(question: PlanQuestion, together: int = 64) -> tuple[BoundsTable, CollectiveTiming]:
    candidates = Candidates.of(question, space_of(question, Choices.of(question)))
    watch = StopWatch.start(SearchLimits())
    pricing = PlacedCandidates.of(candidates, SceneCache(question.topology), watch)
    return BoundsTable.of(candidates), CollectiveTiming(pricing, together)


def test_a_time_limit_leaves_no_proof() -> None:
    found = plan(SMALL, SearchLimits(time_limit_s=0.0))
    assert found.status is Status.UNKNOWN
    assert found.counts.open > 0
    assert "open" in found.proof()
    assert found.gap is None


def test_an_answer_cut_short_is_between_the_bound_and_the_optimum() -> None:
    watches, whole = iter([False] * 4), plan(SMALL)
    assert whole.best is not None

    class Expiring:
        def expired(self) -> bool:
            return next(watches, True)

        def tell(self, *_: object, **__: object) -> None:
            """Nobody watches."""

    bounds_table, timing = started(SMALL, together=1)
    with pytest.raises(OutOfTimeError):
        close(bounds_table, timing, 0.05, 1, Expiring())  # type: ignore[arg-type]
    found = verdict(bounds_table, timing, ())
    assert found.best is not None
    assert found.near is not None
    assert found.gap is not None
    assert found.status is Status.FEASIBLE
    assert found.gap > 0
    assert found.bound_s <= whole.best.iteration_s <= found.best.iteration_s
    assert found.near.status is Status.TRUNCATED
    assert "not proved" in found.proof()


def test_an_interrupt_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(10))

    def interrupted(*given: object) -> None:
        if next(calls):
            raise KeyboardInterrupt
        close(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("p2smt.training.search.plan.close", interrupted)
    found = plan(SMALL)
    assert found.interrupted
    assert found.best is not None
    assert found.status is Status.OPTIMAL


def test_programs_are_never_slower_and_both_are_predicted() -> None:
    single, found = plan(SMALL), plan(replace(SMALL, prices=Prices.PROGRAMS))
    assert single.best is not None
    assert found.best is not None
    assert found.status is Status.OPTIMAL
    assert found.best.iteration_s <= single.best.iteration_s * (1 + 1e-9)
    asked = [one.request for one in found.best.prediction.requests]
    answered = [one.request for one in found.best.programs]
    assert [(r.axes, r.payload_bytes, r.times) for r in answered] == [
        (r.axes, r.payload_bytes, r.calls) for r in asked
    ]
    assert all(one.seconds <= one.single_s * (1 + 1e-9) for one in found.best.programs)


@lru_cache
def fastest_s(topology: Topology, request: Request, placement: Placement) -> float:
    """Seconds of the best program of all."""
    axes = tuple(map(ParallelismAxis, AXES, placement.axis_sizes))
    problem = Problem(topology, axes, (request,))
    return request_programs(problem, placement, request, top=1).programs[0].seconds or 0.0


def with_programs_s(question: PlanQuestion, strategy: Strategy, placement: Placement) -> float:
    """Each request with the best of all its programs, one by one."""
    run, prices = TrainingRun(question.model, question.batch, strategy), {}
    for one in axis_requests(run.model, run.batch, strategy, EFFICIENCY.framework):
        if one.kind.has_programs:
            request = Request(one.kind, one.axes, one.payload_bytes)
            prices[one.name] = fastest_s(question.topology, request, placement)
        else:
            prices[one.name] = call_seconds(question.topology, strategy, one, placement)
    return predict_with(run, DEVICE, EFFICIENCY, prices).time.iteration_s


@pytest.mark.parametrize("speeds", but_the_first((1e8, 3e8, 1e10), (1e7, 1e10, 1e10)))
def test_the_best_with_programs_is_that_of_every_placement(speeds: tuple[float, ...]) -> None:
    question = replace(
        SMALL,
        topology=cluster((2, 2, 2), speeds),
        prices=Prices.PROGRAMS,
        within=0.6,
        top=20,
        space=replace(SMALL.space, zero=(0, 3)),
        fixed=(("vpp", 1), ("sequence_parallel", False), ("pp", 1)),
    )
    found, expected = plan(question), {}
    for strategy in all_strategies(question, 2):
        placed = map(Placement, placements_of(question, strategy, ()))
        expected[strategy] = min(with_programs_s(question, strategy, one) for one in placed)
    assert found.best is not None
    assert found.near is not None
    assert (found.status, found.near.status) == (Status.OPTIMAL, Status.COMPLETE)
    least_s = min(expected.values())
    assert isclose(found.bound_s, least_s, rel_tol=1e-9)
    assert isclose(found.best.iteration_s, expected[found.best.strategy], rel_tol=1e-9)
    assert found.best.iteration_s <= least_s * (1 + question.tie)
    exact = plan(replace(question, tie=0.0)).best
    assert exact is not None
    assert isclose(exact.iteration_s, least_s, rel_tol=1e-9)
    near = {one.strategy: one.iteration_s for one in found.near.members}
    assert set(near) == {one for one, seconds in expected.items() if seconds <= 1.6 * least_s}
    assert all(isclose(expected[one], seconds, rel_tol=1e-9) for one, seconds in near.items())
    assert any(one.iteration_s < 0.9 * one.prediction.time.iteration_s for one in found.top)


def test_the_nearest_measured_strategy_is_named() -> None:
    runs = [StrategyRun("far", Strategy(tp=16, dp=64)), StrategyRun("near", Strategy(dp=8, zero=1))]
    found = plan(replace(SMALL, within=10.0), measured=runs)
    assert found.near is not None
    assert found.near.nearest is not None
    near = found.near.nearest
    assert (near.run.name, near.distance) == ("near", 0.0)
    assert near.planned.strategy == Strategy(dp=8, zero=1)
    assert found.measured is not None
    assert found.measured.planned == found.top[0]
    far = plan(SMALL, measured=[StrategyRun("far", Strategy(tp=16, dp=64, zero=1))])
    assert far.near is not None
    assert far.near.nearest is None
    assert far.measured is not None
    assert far.measured.distance > 2
    assert far.outside[-1].startswith("nothing near it was measured: far is ")
    only = [StrategyRun("only", Strategy(tp=16, dp=64, zero=3))]
    assert "zero=1: measured is 3" in plan(SMALL, measured=only).outside


def test_what_lacks_to_fit_is_said() -> None:
    tight = replace(SMALL, memory_bytes=10**5)
    found = plan(tight)
    assert found.status is Status.INFEASIBLE
    assert found.shortfall is not None
    assert found.near is None
    run = TrainingRun(MODEL, tight.batch, found.shortfall.strategy)
    needed = predict(run, tight.topology, EFFICIENCY).memory.total
    assert found.shortfall.bytes_needed == needed
    assert found.shortfall.missing_bytes == found.shortfall.bytes_needed - 10**5 > 0
    assert "need more than" in found.reason


def test_help_that_is_said_does_help() -> None:
    alone = (("tp", 1), ("pp", 1))
    wide = replace(SMALL, space=SpaceLimits(cp=1), fixed=alone)
    least = plan(replace(wide, memory_bytes=1)).shortfall
    assert least is not None
    enough = replace(wide, memory_bytes=least.bytes_needed)
    assert plan(enough).best is not None
    fixed = plan(replace(enough, fixed=(*alone, ("zero", 0)))).shortfall
    assert fixed is not None
    assert any(text.startswith("another zero than 0: ") for text in fixed.help)
    narrow = plan(replace(enough, space=SpaceLimits(zero=(0,)))).shortfall
    assert narrow is not None
    assert any(text.startswith("a larger space: ") for text in narrow.help)
    more = plan(replace(wide, memory_bytes=least.bytes_needed - 1000)).shortfall
    assert more is not None
    assert more.help == () or "times as many devices" in more.help[-1]


def test_rules_come_before_memory() -> None:
    """On one node tp cannot leave it: where it should, more memory does not help."""
    one = replace(SMALL, topology=cluster((1, 4), (1e8, 1e10)), memory_bytes=10)
    one = replace(one, space=replace(SMALL.space, zero=(0,)))
    nowhere = replace(one, fixed=(("tp", 4),), rules=(AxisRule(3, 0, False),))
    found = plan(nowhere)
    assert (found.status, found.shortfall) == (Status.INFEASIBLE, None)
    assert found.reason.startswith("none of ")
    assert found.reason.endswith("has a placement under the rules: tp across l0 (tp is 4)")
    assert "need more than" not in found.reason
    some = plan(replace(nowhere, fixed=(), rules=(FixedEntry(3, 1, 2),)))
    assert some.shortfall is not None
    assert some.shortfall.strategy.tp == 2
    assert "need more than" in some.reason
    assert "no placement under the rules" in some.reason


def test_what_helps_obeys_the_rules() -> None:
    """Of another tp none that has no placement is proposed."""
    forbidden = replace(SMALL, fixed=(("pp", 1), ("tp", 1)), rules=(FixedEntry(3, 1, 1),))
    need = plan(replace(forbidden, memory_bytes=1)).shortfall
    free = plan(replace(SMALL, fixed=(("pp", 1), ("tp", 4)), memory_bytes=1)).shortfall
    assert need is not None
    assert free is not None
    assert free.bytes_needed < need.bytes_needed
    helps = plan(replace(forbidden, memory_bytes=free.bytes_needed)).shortfall
    assert helps is not None
    assert not any("another tp" in text and "tp=4" in text for text in helps.help)


def test_rules_and_launchers_that_leave_nothing_are_named() -> None:
    ruled = plan(replace(SMALL, rules=(FixedEntry(3, 0, 3),)))
    assert (ruled.status, ruled.top) == (Status.INFEASIBLE, ())
    assert ruled.reason.endswith("under the rules: tp=l0:3 (3 must divide the 2 of l0)")
    both = (AxisRule(3, 0, True), FixedEntry(3, 0, 2), AxisRule(0, 0, True))
    ruled = plan(replace(SMALL, rules=both))
    assert ruled.reason.endswith(
        "under the rules: tp within l0 (tp is at most 4), tp=l0:2 (tp is at most 4)"
    )
    none = plan(replace(SMALL, lacks=lambda *_: ("a GPU",), launcher="it"))
    assert none.status is Status.INFEASIBLE
    assert "it runs none of" in none.reason
    assert none.reason.endswith("a GPU")


def test_the_usual_order_is_kept_where_it_is_as_good_as_any() -> None:
    for speeds in ((1e8, 1e10), (1e10, 1e10)):
        found = plan(replace(SMALL, topology=cluster((2, 4), speeds))).best
        assert found is not None
        topology = cluster((2, 4), speeds)
        run = TrainingRun(MODEL, SMALL.batch, found.strategy)
        usual_s = predict(run, topology, EFFICIENCY).time.iteration_s
        as_usual = found.placement == default_placement(topology, found.strategy)
        assert as_usual is isclose(usual_s, found.iteration_s, rel_tol=1e-9)


def test_an_answer_of_another_time_is_a_bug() -> None:
    bounds_table, timing = started(SMALL)
    close(bounds_table, timing, 0.0, 1, StopWatch.start(SearchLimits()))
    row = bounds_table.ranked()[0]
    bounds_table.time_s[row] *= 1.001
    with pytest.raises(EncodingBug, match="the search claims"):
        planned(bounds_table, timing, row)


class SummedOtherwise(CollectiveTiming):
    """Times that are summed in another order: almost the same."""

    def known_s(self, row: int, place: int) -> float:
        return float(self.pricing.seconds(row)[place]) * (1 - 8e-10)


def test_the_usual_order_is_held_against_its_own_time() -> None:
    """It may take a little more than the best placement, which the time of that one allows."""
    question = replace(SMALL, topology=cluster((2, 4), (1e8, 1e8)))
    bounds_table, timing = started(question)
    close(bounds_table, timing, 0.0, 1, StopWatch.start(SearchLimits()))
    row = bounds_table.ranked()[0]
    usual = default_placement(question.topology, bounds_table.candidates.columns.strategy(row))
    assert usual is not None
    placed = timing.pricing.placed(int(bounds_table.candidates.block[row]))
    other = placed.class_of(usual.matrix)
    otherwise = SummedOtherwise(timing.pricing)
    bounds_table.place[row] = next(k for k in range(len(placed)) if k != other)
    bounds_table.time_s[row] = otherwise.known_s(row, other) / (1 + 0.99 * SAME)
    found = planned(bounds_table, otherwise, row)
    assert found.matrix == usual.matrix
    assert found.iteration_s == found.prediction.time.iteration_s


def test_programs_that_are_slower_than_single_collectives_are_left_out() -> None:
    """A limit may cut the search for a program short, and leave a poor one."""
    bounds_table, timing = started(SMALL)
    close(bounds_table, timing, 0.0, 1, StopWatch.start(SearchLimits()))
    row, sought = bounds_table.ranked()[0], ProgramTiming.of(timing.pricing)
    place, watch = int(bounds_table.place[row]), StopWatch.start(SearchLimits())
    for one in sought.requests(row, place):
        answer = sought.programs.seek(one, timing.pricing.shared_cache.scene(one.number), watch)
        poor = replace(answer, seconds=2 * answer.single_s, status=Status.UNKNOWN)
        sought.programs.kept[one.number, one.kind, one.payload_bytes] = poor
    assert sought.known_s(row, place) is not None
    found = planned(bounds_table, sought, row)
    assert found.programs == ()
    assert isclose(found.iteration_s, float(bounds_table.time_s[row]), rel_tol=1e-9)


def test_memory_is_that_of_a_prediction_to_the_byte() -> None:
    space = replace(SMALL.space, zero=(1, 3))
    wide = replace(SMALL, batch=Batch(24, 64), topology=cluster((3, 4), (1e8, 1e10)), space=space)
    columns = space_of(wide, Choices.of(wide))
    needed = Candidates.of(wide, columns).work.memory_bytes
    totals, parts = [], set()
    for row in range(len(columns)):
        run = TrainingRun(wide.model, wide.batch, columns.strategy(row))
        totals.append(predict(run, wide.topology, EFFICIENCY).memory.total)
        work = Candidates.of(wide, columns.take(np.array([row]))).whole_work
        parts |= {float(part.max()) % 1 for part in work.memory_parts}
    assert needed.tolist() == totals
    assert max(parts) > 0
    least = min(totals)
    for limit in (least, least - 1):
        found = plan(replace(wide, memory_bytes=limit))
        assert found.counts.too_large == sum(total > limit for total in totals)


def test_an_uneven_cluster_is_refused() -> None:
    rack = Level("rack", 2, link(1e8, network=True))
    levels = (rack, *SMALL.topology.levels)
    hosts = Hosts(("a", "b", "c"), (0, 1, 2), (("r0", "r1"),))
    uneven = Topology("u", levels, device=DEVICE, hosts=hosts)
    with pytest.raises(InputError, match="not spread evenly"):
        plan(replace(SMALL, topology=uneven))
