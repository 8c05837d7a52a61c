"""Plans part by part: the answer of a search in one piece, and every pair in one cube."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from p2smt.api.planning import launcher_lacks
from p2smt.api.planning import plan as planned
from p2smt.errors import InputError
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.parallel_options import InProcess, Spread
from p2smt.parallel_search.subproblem import (
    OverBudget,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.parallelism.placement import FixedEntry
from p2smt.result import SearchLimits, Status
from p2smt.search.placements import obeys
from p2smt.training.efficiencies.efficiency_files import read_efficiency
from p2smt.training.measured.measured_runs import searched_strategies
from p2smt.training.search.plan import plan
from p2smt.training.search.plan_answer import PlanAnswer
from p2smt.training.search.question import PlanQuestion, Prices
from p2smt.training.search.subproblems import PlanSpace, plan_cache, plan_space, scale_of
from p2smt.training.training_plan import training_plan_data
from tests.oracles.plans import enumerated
from tests.search.spaces.questions import Quiet, every_matrix, holds
from tests.training.search.test_plan import SIZES, cluster, most_tp, questions
from tests.training.search.test_plan import same as as_enumerated
from tests.training.search.test_plan_answers import SMALL

PROGRAMS = replace(SMALL, prices=Prices.PROGRAMS, within=0.2)
MEASURED = searched_strategies(read_efficiency("megatron-h100"))
WIDE = replace(SMALL, topology=cluster((2, 2, 2), (1e8, 1e9, 1e9)), within=0.5, top=7)


def told(found: PlanAnswer) -> object:
    """All of an answer but how the search went."""
    top = [(one.strategy, one.matrix, one.iteration_s, one.alike) for one in found.top]
    programs = [[str(answer.program) for answer in one.programs] for one in found.top]
    near = found.near, found.measured, found.recommended
    return found.status, found.ranking, found.bound_s, top, programs, near


@pytest.mark.exhaustive
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(questions(SIZES), st.sampled_from([None, 1e-6]))
def test_parts_answer_as_enumeration_does(question: PlanQuestion, budget: float | None) -> None:
    try:
        found = plan(question, spread=Spread(budget_s=budget))
    except InputError:
        return
    as_enumerated(found, enumerated(question, most_tp(question)))
    assert told(found) == told(plan(question))


@pytest.mark.parametrize("question", [WIDE, PROGRAMS, replace(PROGRAMS, tie=0.01, top=1)])
@pytest.mark.parametrize("budget", [None, 1e-6])
def test_parts_answer_as_the_whole_does(question: PlanQuestion, budget: float | None) -> None:
    whole = plan(question, measured=MEASURED)
    assert whole.status is Status.OPTIMAL
    assert whole.recommended is not None
    in_parts = plan(question, measured=MEASURED, spread=Spread(budget_s=budget))
    assert told(whole) == told(in_parts)


@pytest.mark.exhaustive
def test_two_processes_write_the_same_plan() -> None:
    files = []
    for spread in (None, Spread(processes=2)):
        found = planned(PROGRAMS, SearchLimits(seed=3), spread)
        assert found.plan is not None
        files.append(json.dumps(training_plan_data(found.plan)))
    assert files[0] == files[1]


@pytest.mark.parametrize("kept", [1, 3])
def test_a_journal_that_ended_early_is_continued(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "j.jsonl"
    whole = plan(PROGRAMS, spread=Spread(journal=str(path)))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:kept]) + lines[kept][:50])
    assert told(plan(PROGRAMS, spread=Spread(journal=str(path)))) == told(whole)
    with pytest.raises(InputError, match="another search"):
        plan(WIDE, spread=Spread(journal=str(path)))


def space_of(question: PlanQuestion, ceiling: int | None = None) -> PlanSpace:
    tick_s = scale_of(plan_cache(PlanSpace(question, 1.0)).known)
    return PlanSpace(question, tick_s, ceiling)


def test_every_placement_is_in_one_cube_at_every_depth() -> None:
    question = replace(WIDE, rules=(FixedEntry(1, 0, 2),))
    space = space_of(question)
    sizes = plan_cache(space).candidates.sizes.tolist()
    levels = question.topology.sizes
    pairs = [
        (tuple(axes), matrix)
        for axes in sizes
        for matrix in every_matrix(levels, tuple(axes), question.rules)
    ]
    cubes = space.roots()
    for _ in range(4):
        for axes, matrix in pairs:
            name = ",".join(f"{n}={s}" for n, s in zip(("pp", "dp", "cp", "tp"), axes, strict=True))
            mine = [one for one in cubes if one.path[0] == name and holds(one, matrix, 1)]
            assert len(mine) == 1
        cubes = tuple(child for one in cubes for child in (space.split(one) or (one,)))


def test_members_are_the_pairs_up_to_the_cutoff() -> None:
    space = space_of(WIDE)
    found = search(space, InProcess(space), top=WIDE.top)
    assert found.status is Status.OPTIMAL
    cutoff = space.cutoff_of(found.best, WIDE.top)
    assert cutoff is not None
    assert all(one <= cutoff for one in found.best)
    least: dict[str, float] = {}
    expected = enumerated(WIDE, most_tp(WIDE)).times
    for one in found.best:
        assert space.member(one.witness) == one
        least.setdefault(json.loads(one.witness)["strategy"], one.value * space.tick_s)
    times = sorted(seconds for seconds, _ in expected.values())
    limit_s = cutoff.value * space.tick_s
    assert sorted(least.values()) == pytest.approx([s for s in times if s <= limit_s], rel=1e-9)


def test_ticks_are_exact() -> None:
    space = space_of(WIDE)
    for seconds in plan_cache(space).known.low_s.tolist():
        assert space.ticks(seconds) * space.tick_s == seconds
    assert space.tick_s == 2.0 ** round(np.log2(space.tick_s))


def test_a_ceiling_closes_what_is_above_it() -> None:
    space = space_of(WIDE)
    best = search(space, InProcess(space), top=1).best[0]
    low = space_of(WIDE, best.value - 4096)
    found = search(low, InProcess(low), top=1)
    assert (found.status, found.best) == (Status.INFEASIBLE, ())
    root = space.roots()[0]
    closed = low.close(SubproblemTask(root), Quiet())
    assert not isinstance(closed, OverBudget)
    assert closed.verdict is SubproblemVerdict.BOUNDED
    assert closed.bound is not None
    assert closed.bound >= best.value - 4096


def test_no_time_claims_nothing() -> None:
    space = space_of(PROGRAMS)
    late = space.close(SubproblemTask(space.roots()[0], deadline_s=1e-9), Quiet())
    assert not isinstance(late, OverBudget)
    assert late.verdict is SubproblemVerdict.UNKNOWN
    split = space.close(SubproblemTask(space.roots()[0], budget_s=1e-9), Quiet())
    assert isinstance(split, OverBudget)
    found = plan(PROGRAMS, SearchLimits(time_limit_s=0.0), spread=Spread())
    assert found.status is Status.UNKNOWN


def test_a_description_makes_the_space_again() -> None:
    lacks = launcher_lacks("megatron", SMALL.batch)
    question = replace(PROGRAMS, launcher="megatron", lacks=lacks, fixed=(("tp", 2),))
    space = PlanSpace(question, 2.0**-60, 123)
    again = plan_space(json.loads(json.dumps(space.description())), launcher_lacks)
    assert again == space
    assert again.question.lacks == lacks
    with pytest.raises(InputError):
        plan_space({"question": {}}, launcher_lacks)


@pytest.mark.parametrize("part", ["strategy", "matrix", "programs", "other"])
def test_what_is_no_member_is_refused(part: str) -> None:
    space = space_of(PROGRAMS)
    best = search(space, InProcess(space), top=1).best[0]
    data = json.loads(best.witness)
    wrong = {
        "strategy": "tp=3",
        "matrix": "[[1,1],[1,1],[1,1],[1,1]]",
        "programs": dict.fromkeys(data["programs"], "all-reduce inside moon"),
    }
    witness = "{}" if part == "other" else json.dumps({**data, part: wrong[part]})
    with pytest.raises(InputError):
        space.member(witness)


def test_a_cube_that_is_none_is_refused() -> None:
    space = space_of(WIDE)
    for path in ((), ("pp=3,dp=3,cp=1,tp=1",), (space.roots()[0].path[0], "dp:9")):
        with pytest.raises(InputError):
            space.close(SubproblemTask(Subproblem(path)), Quiet())


def test_rules_hold_in_parts() -> None:
    question = replace(WIDE, rules=(FixedEntry(1, 0, 2),))
    found = plan(question, spread=Spread(budget_s=1e-6))
    assert told(found) == told(plan(question))
    assert all(obeys(one.matrix, question.rules) for one in found.top)
