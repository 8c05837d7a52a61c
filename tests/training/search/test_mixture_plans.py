"""The search of mixtures against plain enumeration of strategies and pairs of placements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isclose
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.link import Device
from p2smt.cluster.topology import Topology
from p2smt.parallelism.folded import FoldedPlacement
from p2smt.parallelism.placement import AxisRule, FixedEntry, FloatArray, Placement
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.training.efficiency import Efficiency, Framework, LayerConstants, TrainingRun
from p2smt.training.iteration import predict
from p2smt.training.search import pairs
from p2smt.training.search.bounds_table import BoundsTable
from p2smt.training.search.candidates import Candidates
from p2smt.training.search.choices import Choices
from p2smt.training.search.pairs import PairedCandidates
from p2smt.training.search.plan import plan
from p2smt.training.search.plan_answer import PlanAnswer
from p2smt.training.search.prices import SceneCache
from p2smt.training.search.question import Again, PlanQuestion, SpaceLimits
from p2smt.training.search.strategies import space_of
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.transformer import (
    Attention,
    Experts,
    LatentAttention,
    LayerKind,
    LayerRun,
    Mlp,
    Transformer,
)
from tests.oracles.mixture_plans import enumerated_mixtures
from tests.oracles.placements import obeys
from tests.oracles.plans import Enumerated
from tests.tiers import examples_of
from tests.training.search.test_plan import cluster as bare_cluster
from tests.training.search.test_plan import no_ring

DEVICE = Device("d", (("bf16", 1e12), ("fp8", 2e12)), 1e11, 10**7)
SHARED = Transformer(
    *("shared", 4, 64, 8, 4, 96, True, 100, 8),
    experts=Experts(8, 2, 48, shared_width=32),
    order=(LayerRun(1, (LayerKind(),)), LayerRun(3, (LayerKind(mlp=Mlp.EXPERTS),))),
)
LATENT = replace(
    SHARED,
    name="latent",
    layers=5,
    experts=Experts(8, 3, 48, groups=4, top_groups=2),
    mla=LatentAttention(16, 24, 8, 4, 8),
    mtp=1,
    order=(LayerRun(1, (LayerKind(),)), LayerRun(4, (LayerKind(mlp=Mlp.EXPERTS),))),
)
WINDOWED = replace(
    SHARED,
    name="windowed",
    window=16,
    experts=Experts(6, 2, 32, clamped=True),
    order=(
        LayerRun(
            2,
            (LayerKind(Attention.WINDOW, Mlp.EXPERTS), LayerKind(mlp=Mlp.EXPERTS)),
        ),
    ),
)
HOST_S = ("host_attention_s", "host_mlp_s", "host_experts_s", "host_expert_s")
HOST = LayerConstants(low=(("fp8", 0.4),), **dict.fromkeys(HOST_S, 1e-6))
FRAMEWORK = Framework("f", True, 0.5, True, True, 4)
BARE = Framework("f", False, 0.0, False, True, 4)


def cluster(sizes: tuple[int, ...], bandwidths: tuple[float, ...], ports: int = 1) -> Topology:
    """One whose devices know fp8."""
    return replace(bare_cluster(sizes, bandwidths, ports), device=DEVICE)


PLAIN: tuple[Again, ...] = (Recompute.NONE,)
SIXTEEN = Batch(16, 64)


def constants(framework: Framework = FRAMEWORK) -> Efficiency:
    return Efficiency("e", "d", framework, 0.5, 0.0, 1, 0.05, layers=HOST)


@dataclass(frozen=True)
class Space:
    """A question, the largest degrees that are tried, and how many pairs it has at least."""

    model: Transformer
    topology: Topology
    most: Mapping[str, int]
    least: int
    again: tuple[Again, ...] = PLAIN
    batch: Batch = SIXTEEN
    rest: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def question(self) -> PlanQuestion:
        limits: dict[str, Any] = {**self.most, "recompute": self.again, **self.rest}
        space = SpaceLimits(**limits)
        given = {"efficiency": constants()} | dict(self.more)
        return PlanQuestion(self.model, self.batch, self.topology, space=space, **given)


def most(**degrees: int) -> dict[str, int]:
    return dict.fromkeys(("tp", "cp", "pp", "vpp", "micro_batch", "ep", "etp"), 1) | degrees


SPACES = {
    "two_levels": Space(
        SHARED,
        cluster((4, 4), (1e9, 1e10)),
        most(tp=4, cp=2, pp=2, ep=8, etp=2),
        1_000,
        rest={"zero": (1,), "sequence_parallel": (True, False)},
    ),
    "latent_in_fp8": Space(
        LATENT,
        cluster((4, 2), (1e8, 1e10)),
        most(tp=2, cp=2, pp=4, vpp=2, ep=8, etp=2),
        1_000,
        rest={"zero": (0, 1), "overlap": (False, True)},
        more={"dtype": "fp8", "within": 0.2, "top": 5},
    ),
    "modules_again": Space(
        SHARED,
        cluster((2, 2, 4), (1e9, 1e9, 1e10)),
        most(tp=2, pp=2, vpp=2, micro_batch=2, ep=8),
        1_000,
        (*PLAIN, ("layernorm", "moe_act"), ("moe",), Recompute.FULL),
        rest={"zero": (1,), "dispatcher": ("flex",)},
        more={"memory_bytes": 1_100_000},
    ),
    "windows_on_six": Space(
        WINDOWED,
        cluster((3, 2), (1e8, 1e9)),
        most(tp=2, cp=2, pp=4, vpp=2, micro_batch=4, ep=6, etp=2),
        1_000,
        batch=Batch(24, 64),
        rest={"zero": (0, 1, 2, 3)},
        more={"efficiency": constants(BARE), "tie": 1e-3},
    ),
    "three_levels": Space(
        SHARED,
        cluster((2, 2, 4), (1e8, 1e9, 1e10)),
        most(tp=4, pp=4, vpp=2, micro_batch=4, ep=8),
        2_000,
        rest={"zero": (1,)},
    ),
    "rules_on_both": Space(
        SHARED,
        cluster((4, 2, 2), (1e8, 1e9, 1e10)),
        most(tp=4, cp=2, pp=4, micro_batch=2, ep=8, etp=2),
        1_000,
        rest={"zero": (1,), "overlap": (False,)},
        more={"rules": (AxisRule(5, 0, inside=True), FixedEntry(3, 2, 1))},
    ),
    "a_launcher": Space(
        LATENT,
        cluster((2, 8), (1e8, 1e10), 2),
        most(tp=4, cp=4, pp=4, ep=8, etp=2),
        900,
        rest={"zero": (1,)},
        more={"dtype": "fp8", "lacks": no_ring, "launcher": "one", "within": 0.5},
    ),
    "captured": Space(
        replace(SHARED, experts=Experts(8, 2, 48, shared_width=6)),
        cluster((2, 8), (1e8, 1e10)),
        most(tp=4, pp=2, vpp=2, ep=8, etp=2),
        200,
        (*PLAIN, Recompute.FULL),
        rest={"zero": (1,)},
        more={"graphs": "full"},
    ),
    "captured_in_part": Space(
        SHARED,
        cluster((2, 4), (1e8, 1e10)),
        most(tp=4, pp=2, ep=8),
        100,
        (*PLAIN, Recompute.FULL),
        rest={"zero": (1,)},
        more={"graphs": "partial"},
    ),
    "most_pairs": Space(
        SHARED,
        cluster((4, 2, 2), (1e8, 1e9, 1e10)),
        most(tp=4, cp=2, pp=4, vpp=2, micro_batch=2, ep=8, etp=2),
        10_000,
        (*PLAIN, ("layernorm", "moe_act")),
        rest={"zero": (1,), "overlap": (False,)},
        more={"memory_bytes": 900_000},
    ),
}
EVERY_DAY = ("modules_again", "a_launcher", "captured", "captured_in_part")


def same(found: PlanAnswer, expected: Enumerated) -> None:
    """The answer is what enumeration says."""
    question, counts = found.question, found.counts
    assert counts.strategies == expected.strategies
    assert counts.placements == expected.placements
    assert (counts.too_large, counts.unplaced) == (expected.too_large, expected.unplaced)
    assert counts.closed
    if not expected.times:
        assert (found.status, found.top) == (Status.INFEASIBLE, ())
        return
    assert (found.status, found.ranking) == (Status.OPTIMAL, Status.COMPLETE)
    assert isclose(found.bound_s, expected.best_s, rel_tol=1e-9)
    for one in found.top:
        assert isclose(one.iteration_s, expected.times[one.strategy][0], rel_tol=1e-9)
        assert one.expert_matrix is not None
        assert one.experts is not None
        FoldedPlacement(Placement(one.matrix), one.experts)
        assert all(obeys((*one.matrix, *one.expert_matrix[1:]), rule) for rule in question.rules)
        run = TrainingRun(question.model, question.batch, one.strategy)
        where = one.placement, one.experts
        assert predict(run, question.topology, question.efficiency, *where) == one.prediction
        assert set(one.alike) == expected.alike(one.strategy)
    in_order(found, expected)
    assert found.near is not None
    assert found.near.status is Status.COMPLETE
    members = [one.strategy for one in found.near.members]
    assert len(set(members)) == len(members)
    assert set(members) == expected.near(question.within)
    for near in found.near.members:
        assert isclose(near.iteration_s, expected.times[near.strategy][0], rel_tol=1e-9)


def in_order(found: PlanAnswer, expected: Enumerated) -> None:
    """Places go to the fastest; of equal ones to the plainest; one to those that are alike."""
    left = expected.equal(found.question.tie)
    for one in found.top:
        assert one.strategy in left[0]
        assert plain(one.strategy) <= min(map(plain, left[0]))
        gone = {one.strategy, *one.alike}
        left = [rest for some in left if (rest := [each for each in some if each not in gone])]
    assert len(found.top) == found.question.top or not left


def plain(strategy: Strategy) -> tuple[int, ...]:
    """Less is plainer."""
    flex = int(strategy.dispatcher == "flex")
    return int(strategy.overlap), flex, strategy.etp, strategy.zero, strategy.cp, strategy.vpp


def is_that_of_enumeration(space: Space) -> Enumerated:
    expected = enumerated_mixtures(space.question, space.most, space.again)
    same(plan(space.question), expected)
    return expected


@pytest.mark.parametrize(
    "name",
    [
        name if name in EVERY_DAY else pytest.param(name, marks=[pytest.mark.exhaustive])
        for name in SPACES
    ],
)
def test_answers_are_those_of_plain_enumeration(name: str) -> None:
    space = SPACES[name]
    expected = is_that_of_enumeration(space)
    assert space.least <= expected.placements <= 20_000
    assert expected.times


# Small spaces drawn at random.


@st.composite
def small_spaces(draw: st.DrawFn) -> Space:
    sizes = draw(st.sampled_from([(4,), (2, 2), (3, 2)]))
    speeds = tuple(draw(st.sampled_from([1e8, 1e9, 1e10])) for _ in sizes)
    model = draw(st.sampled_from([SHARED, LATENT, WINDOWED]))
    levels = len(sizes)
    rule = st.builds(AxisRule, st.integers(0, 6), st.integers(0, levels - 1), st.booleans())
    entry = st.builds(
        FixedEntry, st.integers(0, 6), st.integers(0, levels - 1), st.sampled_from([1, 2])
    )
    again = draw(
        st.sampled_from([PLAIN, (("layernorm", "moe_act"), Recompute.FULL), (*PLAIN, ("moe",))])
    )
    return Space(
        model,
        cluster(sizes, speeds, draw(st.sampled_from([1, 2]))),
        most(
            tp=draw(st.sampled_from([1, 2])),
            cp=draw(st.sampled_from([1, 2])),
            pp=draw(st.sampled_from([1, 4])),
            vpp=draw(st.sampled_from([1, 2])),
            ep=draw(st.sampled_from([2, 6])),
            etp=draw(st.sampled_from([1, 2])),
        ),
        0,
        again,
        Batch(draw(st.sampled_from([12, 24])), 64),
        {
            "zero": draw(st.sampled_from([(0,), (1,), (0, 3)])),
            "dispatcher": draw(st.sampled_from([None, ("flex",)])),
            "overlap": draw(st.sampled_from([None, (False,)])),
        },
        {
            "efficiency": constants(draw(st.sampled_from([FRAMEWORK, BARE]))),
            "rules": tuple(draw(st.lists(rule | entry, max_size=1))),
            "memory_bytes": draw(st.sampled_from([None, 2 * 10**6, 10**6])),
            "within": draw(st.sampled_from([0.0, 0.05, 0.5])),
            "dtype": draw(st.sampled_from(["bf16", "fp8"])),
            "tie": draw(st.sampled_from([0.0, 1e-3])),
            "launcher": draw(st.sampled_from(["", "one"])),
        },
    )


@settings(max_examples=examples_of(50))
@given(small_spaces())
def test_small_spaces_are_those_of_plain_enumeration(space: Space) -> None:
    expected = enumerated_mixtures(space.question, space.most, space.again)
    if expected.strategies:
        same(plan(space.question), expected)


# Bounds: no strategy is faster than they say, and one that says too much is found out.


@pytest.fixture(scope="module")
def timed() -> tuple[BoundsTable, PairedCandidates, Enumerated]:
    space = SPACES["modules_again"]
    question = replace(space.question, memory_bytes=10**7)
    candidates = Candidates.of(question, space_of(question, Choices.of(question)))
    watch = StopWatch.start(SearchLimits())
    pricing = PairedCandidates.of(candidates, SceneCache(question.topology), watch)
    expected = enumerated_mixtures(question, space.most, space.again)
    return BoundsTable.of(candidates), pricing, expected


def test_every_strategy_takes_what_enumeration_says_and_no_less_than_its_bounds(
    timed: tuple[BoundsTable, PairedCandidates, Enumerated],
) -> None:
    bounds_table, pricing, expected = timed
    columns = bounds_table.candidates.columns
    rows = np.arange(len(columns))
    seconds, places = pricing.best(rows)
    assert len(expected.times) == len(columns)
    for row in rows.tolist():
        least_s = expected.times[columns.strategy(row)][0]
        assert isclose(seconds[row], least_s, rel_tol=1e-9)
        assert isclose(pricing.seconds_at(row, int(places[row])), least_s, rel_tol=1e-9)
    bound_s = pricing.least_s(rows)
    assert (bounds_table.low_s <= bound_s * (1 + SAME)).all()
    assert (bound_s <= seconds * (1 + SAME)).all()
    assert (bound_s < seconds * 0.999).any()
    assert (bounds_table.low_s < bound_s * 0.999).any()


def uneven(many: int) -> FloatArray:
    """Every other strategy is said to take a hundred times as long."""
    return np.where(np.arange(many) % 2, 100.0, 1.0)


def _bound_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PairedCandidates.least_s
    monkeypatch.setattr(
        PairedCandidates,
        "least_s",
        lambda self, rows: real(self, rows) * uneven(len(self.candidates))[rows],
    )


def _free_bound_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Candidates.computing_s
    monkeypatch.setattr(Candidates, "computing_s", lambda self: real(self) * uneven(len(self)))


def _front_without_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "front", lambda table: np.array([len(table) - 1]))


def _one_row_of_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PairedCandidates._fronts_of
    monkeypatch.setattr(
        PairedCandidates,
        "_fronts_of",
        lambda self, side, keys: dict(list(real(self, side, keys).items())[:1]),
    )


@pytest.mark.parametrize(
    "broken", [_bound_too_high, _free_bound_too_high, _front_without_all, _one_row_of_pipelines]
)
def test_a_search_whose_bounds_say_too_much_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None],
    timed: tuple[BoundsTable, PairedCandidates, Enumerated],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    question = replace(SPACES["modules_again"].question, memory_bytes=10**7, within=10)
    same(plan(question), timed[2])
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        same(plan(question), timed[2])
