"""Programs that a search found are the plan's; after an interrupt none are sought."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from p2smt.api import planning
from p2smt.api.efficiencies import efficiency_of
from p2smt.api.planning import Planned, plan
from p2smt.api.workload import estimate
from p2smt.cli.codes import INTERRUPTED
from p2smt.cli.training.plan_command import _finish
from p2smt.cluster.file import parse_topology
from p2smt.collectives.names import RequestKind
from p2smt.parallelism.request import Request
from p2smt.plans.file_model import PlanModel
from p2smt.report.outputs.shape import json_of
from p2smt.report.training.estimate_data import planned_data
from p2smt.result import Status
from p2smt.search.solve import solve
from p2smt.training import training_plan as plans
from p2smt.training.search.plan import plan as search_plan
from p2smt.training.search.plan_answer import PlanAnswer
from p2smt.training.search.question import PlanQuestion, Prices, SpaceLimits
from p2smt.training.strategy import AXES, Batch, Recompute
from p2smt.training.training_plan import (
    TrainingPlan,
    check_training_plan,
    known_answers,
    training_plan,
    training_plan_data,
)
from tests.cli.tools import H100, TINY
from tests.training.test_plan_file import CHUNKED, MODEL

CLUSTER = parse_topology(TINY + H100, "tiny")
SPACE = SpaceLimits(recompute=(Recompute.NONE,), zero=(0, 1))


def question(prices: Prices = Prices.COLLECTIVES, **fixed: Any) -> PlanQuestion:
    constants = efficiency_of(CLUSTER)
    given = tuple(({"dp": 2, "pp": 2} | fixed).items())
    return PlanQuestion(
        MODEL, Batch(16, 1024), CLUSTER, constants, SPACE, given, top=1, prices=prices
    )


def wrong(found: TrainingPlan) -> list[str]:
    plan_file = json.loads(json.dumps(training_plan_data(found)))
    report = check_training_plan(PlanModel.model_validate(plan_file), "plan")
    return [note.message for note in report.notes]


def refuse(*_: object, **__: object) -> None:
    pytest.fail("programs were sought")


@cache
def with_programs() -> Planned:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "solve", refuse)
        return plan(question(Prices.PROGRAMS))


def test_programs_of_the_search_are_those_of_the_plan() -> None:
    found = with_programs()
    assert found.plan is not None
    assert found.answer.best is not None
    assert found.plan.solution is not None
    assert found.plan.estimate.iteration_s == found.answer.best.iteration_s
    again = training_plan(found.top[0])
    assert again.solution is not None
    texts = [[str(one.program) for one in made.answers] for made in (found.plan, again)]
    assert texts[0] == texts[1]
    assert found.plan.collectives_s == again.collectives_s
    assert found.plan.solution.status is again.solution.status is Status.OPTIMAL
    assert found.plan.solution.bound_s == pytest.approx(again.solution.bound_s)
    assert found.plan.solution.physical_bound_s == pytest.approx(again.solution.physical_bound_s)
    assert wrong(found.plan) == wrong(again) == []


def test_programs_of_other_requests_are_no_answers() -> None:
    found = with_programs()
    assert found.plan is not None
    assert found.plan.solution is not None
    problem, answers = found.plan.solution.problem, found.plan.answers
    assert known_answers(problem, answers) == answers
    first = answers[0].request
    mine = [one for one in answers if not _alike(one.request, first)]
    assert known_answers(problem, mine) is None
    for other in (
        replace(first, payload_bytes=first.payload_bytes + 1),
        replace(first, kind=RequestKind.SEND),
        replace(first, axes=("tp", "pp")),
    ):
        assert known_answers(problem, [replace(answers[0], request=other), *mine]) is None
    idle = next(axis for axis in AXES if axis not in problem.axis_names)
    wide = replace(first, axes=(*first.axes, idle))
    assert known_answers(problem, [replace(answers[0], request=wide), *mine]) == answers


def _alike(one: Request, other: Request) -> bool:
    return replace(one, times=1) == replace(other, times=1)


def test_without_a_search_single_collectives_answer() -> None:
    run = estimate(MODEL, CLUSTER, CHUNKED, Batch(16, 1024))
    found = training_plan(run, search=False)
    assert found.estimate.iteration_s == pytest.approx(run.iteration_s)
    assert all(one.seconds == one.single_s for one in found.answers)
    assert found.solution is not None
    assert found.solution.status is Status.FEASIBLE
    assert found.notes == (
        "no program was found in time: a single collective answers each request",
    )
    assert wrong(found) == []


def test_after_an_interrupt_no_programs_are_sought(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*given: Any) -> PlanAnswer:
        return replace(search_plan(*given), interrupted=True, status=Status.FEASIBLE)

    monkeypatch.setattr(planning, "search_plan", interrupted)
    monkeypatch.setattr(plans, "solve", refuse)
    found = plan(question())
    assert found.interrupted
    assert json_of(planned_data(found))["interrupted"] is True
    assert _finish(found, None, None, details=False, as_json=False) == INTERRUPTED
    assert capsys.readouterr().out.startswith("stopped  interrupted: the best found so far\n")


def test_an_interrupt_among_the_programs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*given: Any, **options: Any) -> Any:
        return replace(solve(*given, **options), alternatives=(), interrupted=True)

    monkeypatch.setattr(plans, "solve", stopped)
    found = plan(question())
    assert not found.answer.interrupted
    assert found.interrupted
    assert found.plan is not None
    assert found.plan.answers
