"""The search for copies of ZeRO's shards (HSDP), against plain enumeration, whole and in parts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.api.journal_shares import strategy_share
from p2smt.api.journals import verify_journal
from p2smt.api.planning import launcher_lacks
from p2smt.errors import InputError
from p2smt.parallel_search.parallel_options import Spread
from p2smt.parallel_search.subproblem import Subproblem
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.result import Status
from p2smt.training.axis_sizes import possible_sizes
from p2smt.training.megatron_rules import given_violations
from p2smt.training.search.hosts.search import plan_on_hosts
from p2smt.training.search.plan import plan
from p2smt.training.search.question import PlanQuestion, Prices, SpaceLimits
from p2smt.training.search.subproblems import PlanSpace, plan_cache
from p2smt.training.strategy import Batch, Recompute, Strategy
from p2smt.training.validity import obey_copies
from tests.oracles.mixture_plans import enumerated_mixtures
from tests.oracles.plans import enumerated
from tests.refusals import refusal
from tests.tiers import examples_of
from tests.training.search.test_mixture_plans import SHARED, Space, most, small_spaces
from tests.training.search.test_mixture_plans import cluster as expert_cluster
from tests.training.search.test_mixture_plans import same as as_enumerated_mixtures
from tests.training.search.test_plan import MODEL, SIZES, cluster, most_tp, questions, same
from tests.training.search.test_plan_answers import EFFICIENCY
from tests.training.search.test_subproblems import told

DENSE = PlanQuestion(
    MODEL,
    Batch(16, 64),
    cluster((2, 2, 2), (1e7, 1e8, 1e10)),
    EFFICIENCY,
    SpaceLimits(
        cp=2, pp=2, vpp=1, micro_batch=1, zero=(1, 3), recompute=(Recompute.NONE,), dp_replicate=4
    ),
    memory_bytes=10**8,
    within=0.5,
    top=5,
)
MIXTURE = Space(
    SHARED,
    expert_cluster((2, 4), (1e7, 1e10)),
    most(tp=2, pp=2, ep=4),
    90,
    rest={"zero": (1,), "overlap": (False,), "dp_replicate": 4},
    more={"within": 0.5},
)


def test_the_answer_is_that_of_enumeration() -> None:
    expected = enumerated(DENSE, most_tp(DENSE))
    found = plan(DENSE)
    same(found, expected)
    assert found.status is Status.OPTIMAL
    assert {one.dp_replicate for one in expected.times} == {1, 2, 4}


def test_copies_win_where_levels_differ_enough_and_are_the_best_there() -> None:
    """Shards are gathered again for each micro-batch: within fast nodes if they have copies."""
    question = replace(DENSE, space=replace(DENSE.space, zero=(3,), tp=1, cp=1, pp=1))
    found, without = (
        plan(replace(question, space=replace(question.space, dp_replicate=most))) for most in (4, 1)
    )
    assert found.best is not None
    assert without.best is not None
    assert found.best.strategy.dp_replicate > 1
    assert found.best.iteration_s < without.best.iteration_s


def test_the_answer_of_a_mixture_is_that_of_enumeration() -> None:
    expected = enumerated_mixtures(MIXTURE.question, MIXTURE.most, MIXTURE.again)
    assert expected.placements >= MIXTURE.least
    assert {one.dp_replicate for one in expected.times} == {1, 2, 4}
    as_enumerated_mixtures(plan(MIXTURE.question), expected)


@settings(max_examples=examples_of(40))
@given(questions(SIZES), st.sampled_from([2, 3, 4]))
def test_small_spaces_are_those_of_enumeration(question: PlanQuestion, copies: int) -> None:
    question = replace(question, space=replace(question.space, dp_replicate=copies))
    expected = enumerated(question, most_tp(question))
    if expected.strategies:
        same(plan(question), expected)


@settings(max_examples=examples_of(25))
@given(small_spaces(), st.sampled_from([2, 3]))
def test_small_spaces_of_mixtures_are_those_of_enumeration(space: Space, copies: int) -> None:
    space = replace(space, rest={**space.rest, "dp_replicate": copies})
    expected = enumerated_mixtures(space.question, space.most, space.again)
    if expected.strategies:
        as_enumerated_mixtures(plan(space.question), expected)


RULES = (AxisRule(1, 0, inside=False), FixedEntry(3, 2, 1))
FEW = replace(MIXTURE, topology=expert_cluster((2, 2), (1e7, 1e10)))
QUESTIONS = {
    "dense": DENSE,
    "rules": replace(DENSE, rules=RULES),
    "programs": replace(DENSE, prices=Prices.PROGRAMS, space=replace(DENSE.space, cp=1)),
    "mixture": FEW.question,
    "fixed": replace(
        FEW.question,
        fixed=(("dp_replicate", 2),),
        space=replace(FEW.question.space, dp_replicate=None),
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_parts_answer_as_the_whole_does_with_a_journal_that_holds(
    name: str, tmp_path: Path
) -> None:
    path, whole = tmp_path / "j.jsonl", plan(QUESTIONS[name])
    assert whole.status is Status.OPTIMAL
    spread = Spread(journal=str(path), budget_s=1e-6 if name in ("rules", "fixed") else None)
    assert told(plan(QUESTIONS[name], spread=spread)) == told(whole)
    report = verify_journal(path, sample=3)
    assert report.valid


@pytest.mark.parametrize("name", QUESTIONS)
def test_cubes_share_what_the_space_has(name: str) -> None:
    space = PlanSpace(QUESTIONS[name], 1.0)
    candidates, share = plan_cache(space).candidates, strategy_share(QUESTIONS[name])
    assert possible_sizes(space.question) == set(map(tuple, candidates.sizes.tolist()))
    assert share(Subproblem()) == candidates.placements.sum() > 0
    for root in space.roots():
        waiting = [root]
        while waiting:
            cube = waiting.pop()
            children = space.split(cube)
            assert not children or sum(map(share, children), Fraction(0)) == share(cube)
            assert space._cubes(cube).empty(cube) == (share(cube) == 0)
            waiting += children


def test_arrays_obey_the_rules_of_single_strategies() -> None:
    grid = [
        Strategy(tp=tp, dp=dp, cp=cp, zero=zero, ep=ep, dp_replicate=copies)
        for tp, dp, cp, zero, ep, copies in product(
            (1, 2), (1, 2, 6, 8), (1, 2), (0, 1), (1, 2, 4), (1, 2, 3, 4)
        )
        if dp * cp * tp % ep == 0
    ]
    names = ("tp", "dp", "cp", "zero", "ep", "etp", "dp_replicate")
    values = {name: np.array([getattr(one, name) for one in grid]) for name in names}
    found = obey_copies(SHARED, values).tolist()
    broken = [{rule[0] for rule in given_violations(SHARED, one)} for one in grid]
    assert found == [not any(name.startswith("dp_replicate") for name in one) for one in broken]
    assert 0 < sum(found) < len(found)


def test_they_are_searched_for_where_a_launcher_has_them_or_they_are_asked_for() -> None:
    plain = replace(DENSE, space=replace(DENSE.space, dp_replicate=None))
    lacks = launcher_lacks("torchtitan", DENSE.batch)
    assert not plain.copied
    assert not replace(plain, launcher="megatron").copied
    titan = replace(plain, launcher="torchtitan", lacks=lacks)
    assert titan.most_copies == titan.topology.devices
    assert ("dp_replicate", "1 to 8") in plan(titan).space
    assert ("dp_replicate", "1 to 4") in plan(DENSE).space
    assert "dp_replicate" not in dict(plan(plain).space)


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        (
            (("dp_replicate", 3),),
            "dp_replicate=3: no strategy is valid on 8 devices: it must divide",
        ),
        ((("dp_replicate", 8),), "fixed dp_replicate=8: dp_replicate is limited, too"),
        ((("dp_replicate", 2), ("zero", 0)), "ZeRO must shard something"),
    ],
)
def test_what_cannot_be_is_refused(fixed: tuple[tuple[str, int], ...], words: str) -> None:
    space = replace(DENSE.space, zero=None)
    assert words in refusal(lambda: plan(replace(DENSE, space=space, fixed=fixed)))


def test_hosts_refuse_them() -> None:
    with pytest.raises(InputError, match="not searched for on named hosts"):
        plan_on_hosts(DENSE, ("h0",))
