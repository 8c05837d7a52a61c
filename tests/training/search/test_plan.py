"""The search against plain enumeration: optimum, near-optimal set, what is not possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.result import Status
from p2smt.search.placements import obeys
from p2smt.training.efficiency import Efficiency, Framework, LayerConstants, TrainingRun
from p2smt.training.iteration import predict
from p2smt.training.search.plan import plan
from p2smt.training.search.plan_answer import PlanAnswer
from p2smt.training.search.question import PlanQuestion, SpaceLimits
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.oracles.plans import Enumerated, enumerated
from tests.tiers import examples_of

DEVICE = Device("d", (("bf16", 1e12),), 1e11, 10**7)
FRAMEWORKS = [Framework("f", yes, pp, yes, True, 4) for yes, pp in ((True, 0.5), (False, 0.0))]
MODEL = Transformer("m", 4, 128, 8, 4, 256, True, 512, 16)


def link(bandwidth: float, *, network: bool, ports: int = 1) -> Link:
    fabric = "infiniband" if network else "nvlink4"
    return Link(LinkKind.SWITCH, (Piece("simple", 2e-6, bandwidth),), fabric=fabric, ports=ports)


def cluster(sizes: tuple[int, ...], bandwidths: tuple[float, ...], ports: int = 1) -> Topology:
    """The innermost level is inside a node."""
    last = len(sizes) - 1
    levels = tuple(
        Level(f"l{j}", size, link(speed, network=j < last, ports=ports if j < last else 1))
        for j, (size, speed) in enumerate(zip(sizes, bandwidths, strict=True))
    )
    return Topology("t", levels, device=DEVICE)


SIZES = [(4,), (2, 2), (3, 2)]
"""Of clusters with few placements."""


@st.composite
def clusters(draw: st.DrawFn, of: Sequence[tuple[int, ...]]) -> Topology:
    sizes = draw(st.sampled_from(of))
    speeds = tuple(draw(st.sampled_from([1e8, 1e9, 1e10])) for _ in sizes)
    return cluster(sizes, speeds, draw(st.sampled_from([1, 2])) if len(sizes) < 3 else 1)


@st.composite
def questions(draw: st.DrawFn, of: Sequence[tuple[int, ...]]) -> PlanQuestion:
    topology = draw(clusters(of))
    layers, heads = draw(st.sampled_from([2, 4, 6])), draw(st.sampled_from([4, 12]))
    model = replace(MODEL, layers=layers, heads=heads)
    space = SpaceLimits(
        tp=draw(st.sampled_from([None, 4])),
        cp=draw(st.sampled_from([1, 2])),
        vpp=draw(st.sampled_from([1, 2, None])),
        micro_batch=draw(st.sampled_from([1, 2])),
        recompute=draw(
            st.sampled_from([None, (Recompute.NONE,), (Recompute.FULL, Recompute.SELECTIVE)])
        ),
        zero=draw(st.sampled_from([(0,), (2,), (1, 3)])),
        sequence_parallel=draw(st.sampled_from([(False,), (False, True)])),
    )
    fixed: tuple[tuple[str, int | Recompute], ...] = draw(
        st.sampled_from([(), (("tp", 2),), (("recompute", Recompute.FULL),), (("zero", 1),)])
    )
    space = replace(space, **{name: None for name, _ in fixed})
    levels = len(topology.levels)
    rule = st.builds(AxisRule, st.integers(0, 3), st.integers(0, levels - 1), st.booleans())
    axes = st.integers(0, 2 if fixed == (("tp", 2),) else 3)
    entry = st.builds(FixedEntry, axes, st.integers(0, levels - 1), st.sampled_from([1, 2]))
    return PlanQuestion(
        model,
        Batch(draw(st.sampled_from([12, 24])), 64),
        topology,
        Efficiency(
            *("e", "d", draw(st.sampled_from(FRAMEWORKS)), 0.5, 1e-5, 1, 0.05),
            layers=draw(st.sampled_from([None, None, LayerConstants(host_mlp_s=1e-5)])),
        ),
        space,
        fixed,
        tuple(draw(st.lists(rule | entry, max_size=1))),
        draw(st.sampled_from([None, 10**9, 3 * 10**6, 10**6])),
        draw(st.sampled_from([0.0, 0.05, 0.5])),
        draw(st.sampled_from([1, 3])),
        lacks=draw(st.sampled_from([None, no_ring])),
        launcher="one",
        flash=draw(st.booleans()),
        tie=draw(st.sampled_from([0.0, 1e-3, 0.05])),
    )


def no_ring(strategy: Strategy, model: Transformer) -> tuple[str, ...]:
    """A launcher without context parallelism."""
    return (f"cp={strategy.cp} of {model.name}",) if strategy.cp > 1 else ()


def most_tp(question: PlanQuestion) -> int:
    return question.space.tp or question.topology.sizes[-1]


def same(found: PlanAnswer, expected: Enumerated) -> None:
    """The answer is what enumeration says; every part of it."""
    question, counts = found.question, found.counts
    assert counts.strategies == expected.strategies
    assert counts.placements == expected.placements
    assert (counts.too_large, counts.unplaced) == (expected.too_large, expected.unplaced)
    assert counts.lacking <= expected.lacking
    assert counts.closed
    assert counts.strategies == sum(
        (counts.too_large, counts.lacking, counts.unplaced, counts.bounded, counts.evaluated)
    )
    assert counts.placements == sum(
        (counts.placements_excluded, counts.placements_priced, counts.placements_bounded)
    )
    if not expected.times:
        assert (found.status, found.top, found.near) == (Status.INFEASIBLE, (), None)
        assert found.reason
        assert "all closed" in found.proof()
        return
    assert (found.status, found.ranking) == (Status.OPTIMAL, Status.COMPLETE)
    times = sorted(seconds for seconds, _ in expected.times.values())
    for one in found.top:
        assert isclose(one.iteration_s, expected.times[one.strategy][0], rel_tol=1e-9)
        assert obeys(one.matrix, question.rules)
        run = TrainingRun(question.model, question.batch, one.strategy)
        again = predict(run, question.topology, question.efficiency, one.placement)
        assert again == one.prediction
        assert set(one.alike) == expected.alike(one.strategy)
    in_order(found, expected)
    assert found.near is not None
    assert found.near.status is Status.COMPLETE
    members = [one.strategy for one in found.near.members]
    assert len(set(members)) == len(members) == found.near.count
    assert set(members) == expected.near(question.within)
    assert "all closed" in found.proof()
    assert ("the plainest" in found.proof()) is (found.top[0].iteration_s > times[0] * (1 + 1e-6))
    assert isclose(found.bound_s, times[0], rel_tol=1e-9)


def in_order(found: PlanAnswer, expected: Enumerated) -> None:
    """Places go to the fastest; of equal ones to the plainest; one to those that are alike."""
    left = expected.equal(found.question.tie)
    for one in found.top:
        equal = left[0]
        assert one.strategy in equal
        assert plain(one.strategy, expected) <= min(plain(some, expected) for some in equal)
        gone = {one.strategy, *one.alike}
        left = [rest for some in left if (rest := [each for each in some if each not in gone])]
    assert len(found.top) == found.question.top or not left


def plain(strategy: Strategy, expected: Enumerated) -> tuple[int, int, int, int]:
    """Less is plainer; memory to rounding."""
    memory = round(expected.memory[strategy] / 100)
    return (strategy.zero, strategy.cp, strategy.vpp, memory)


def is_that_of_enumeration(question: PlanQuestion) -> None:
    expected = enumerated(question, most_tp(question))
    if expected.strategies:
        same(plan(question), expected)


@settings(max_examples=examples_of(100))
@given(questions(SIZES))
def test_answers_are_those_of_plain_enumeration(question: PlanQuestion) -> None:
    is_that_of_enumeration(question)


@pytest.mark.exhaustive
@pytest.mark.slow
@settings(max_examples=examples_of(100))
@given(questions([*SIZES, (2, 2, 2)]))
def test_answers_on_three_levels_are_those_of_plain_enumeration(question: PlanQuestion) -> None:
    is_that_of_enumeration(question)


@pytest.mark.evidence
def test_a_large_space_is_that_of_plain_enumeration() -> None:
    """Up to 20,000 pairs of strategy and placement."""
    topology = cluster((4, 4), (1e9, 1e10))
    eff = Efficiency("e", "d", FRAMEWORKS[0], 0.5, 1e-5, 1, 0.05)
    question = PlanQuestion(MODEL, Batch(32, 64), topology, eff, memory_bytes=4 * 10**6)
    expected = enumerated(question, 4)
    assert 5_000 < expected.placements <= 20_000
    same(plan(question), expected)
