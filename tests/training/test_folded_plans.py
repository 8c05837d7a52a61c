"""Plans of mixtures, whose requests lie on two matrices: written, read, verified; changes found."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from p2smt.api.workload import estimate
from p2smt.cluster.file import parse_topology
from p2smt.errors import InputError
from p2smt.parallelism.folded import pairs
from p2smt.plans.file_model import PlanModel
from p2smt.plans.sides import plan_sides
from p2smt.plans.solution import ProofStatus
from p2smt.result import SearchLimits, Status
from p2smt.search.prove import prove
from p2smt.training.plan_block import efficiency_in, run_of
from p2smt.training.strategy import AXES, EXPERT_AXES, Batch, parse_strategy
from p2smt.training.training_plan import (
    TrainingPlan,
    check_training_plan,
    training_plan,
    training_plan_data,
)
from p2smt.training.transformer import Experts, LayerKind, LayerRun, Mlp, Transformer
from tests.cli.tools import H100, TINY, cli
from tests.plans.tampering import Change, both, put
from tests.refusals import refusal

MODEL = Transformer(
    *("small", 4, 64, 8, 4, 96, True, 100, 8),
    experts=Experts(8, 2, 48, shared_width=32),
    order=(LayerRun(1, (LayerKind(),)), LayerRun(3, (LayerKind(mlp=Mlp.EXPERTS),))),
)
FOLDED = "pp=2,dp=2,tp=2,sp=1,ep=2,etp=2,zero=1,dispatcher=flex"
STRATEGIES = (
    FOLDED,
    "dp=8,ep=8,zero=1",
    "dp=8,ep=2,zero=3,dispatcher=flex",
    "cp=2,dp=4,ep=8",
    "tp=4,sp=1,dp=2,ep=8,zero=1",
    "pp=4,dp=2,ep=2,split=1/0/2/1",
    "pp=2,vpp=2,dp=4,ep=4,overlap=1,zero=1",
    "pp=8,split=0/1/1/0/1/0/1/0",
)
SHORT = "dp=8,ep=2,dispatcher=flex"
Plan = dict[str, Any]
Path_ = tuple[str | int, ...]


@cache
def planned(strategy: str = FOLDED) -> TrainingPlan:
    cluster = parse_topology(TINY + H100, "tiny")
    return training_plan(estimate(MODEL, cluster, strategy, Batch(64, 128), "megatron-bridge-h100"))


@cache
def text(strategy: str = FOLDED) -> str:
    return json.dumps(training_plan_data(planned(strategy)))


def data(strategy: str = FOLDED) -> Plan:
    found: Plan = json.loads(text(strategy))
    return found


def verdict(plan: Plan) -> list[str]:
    """What is wrong with a plan."""
    report = check_training_plan(PlanModel.model_validate(plan), "plan")
    assert report.valid == (not report.notes and not report.violations)
    broken = [str(violation.message) for _, violation in report.violations]
    return [*broken, *(note.message for note in report.notes)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_plan_is_valid_and_says_what_was_asked(strategy: str) -> None:
    plan = data(strategy)
    assert verdict(plan) == []
    block = PlanModel.model_validate(plan).training
    assert block is not None
    assert run_of(block, "plan") == planned(strategy).estimate.run
    assert efficiency_in(block, "plan") == planned(strategy).estimate.efficiency
    found = planned(strategy).estimate
    assert found.placement is not None
    assert found.experts is not None
    both = {"attention": found.placement.matrix, "experts": found.experts.matrix}
    assert plan["training"]["placement"] == {k: [list(r) for r in v] for k, v in both.items()}
    assert plan["training"]["prediction"]["iteration_s"] == found.iteration_s


# Groups by a list of every device's place, written out apart from the package's placements.


def coordinates(levels: list[int], matrix: list[list[int]]) -> list[tuple[int, ...]]:
    """The place on each axis of every device: a level's digits go to the axes in their order."""
    found = []
    for place in itertools.product(*map(range, levels)):
        axes = [0] * len(matrix)
        for level, digit in enumerate(place):
            left = digit
            for axis in reversed(range(len(matrix))):
                weight = 1
                for lower in range(level + 1, len(levels)):
                    weight *= matrix[axis][lower]
                axes[axis] += left % matrix[axis][level] * weight
                left //= matrix[axis][level]
        found.append(tuple(axes))
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_single_steps_have_the_groups_of_their_matrix(strategy: str) -> None:
    plan = data(strategy)
    levels = [level["size"] for level in plan["topology"]["levels"]]
    names = {"attention": AXES, "experts": EXPERT_AXES}
    for request in plan["requests"]:
        rows, axes = plan["training"]["placement"][request["matrix"]], names[request["matrix"]]
        groups: dict[tuple[int, ...], list[int]] = {}
        for device, place in enumerate(coordinates(levels, rows)):
            others = tuple(
                at for at, name in zip(place, axes, strict=True) if name not in request["axes"]
            )
            groups.setdefault(others, []).append(device)
        whole = [one for one in request["steps"] if "inside root" in one["instruction"]]
        if request["program"] is None or len(request["steps"]) == 1:
            whole = request["steps"]
        for step in whole:
            assert sorted(map(sorted, step["groups"])) == sorted(groups.values()), request["axes"]


def test_groups_of_experts_are_not_those_of_attention() -> None:
    requests = data()["requests"]
    groups = {(one["matrix"], *one["axes"]): one["steps"][0]["groups"] for one in requests}
    assert groups["attention", "tp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert groups["experts", "ep"] == [[0, 2], [1, 3], [4, 6], [5, 7]]


# What is changed is found.

UNTOLD = {
    *(("limits", name) for name in ("time_limit_s", "seed", "workers", "top", "solver")),
    *(("requests", "*", name) for name in ("range_s", "basis", "basis_why")),
    *(("requests", "*", "steps", "*", name) for name in ("range_s", "basis", "basis_why")),
    ("range_s",),
    ("range_basis",),
    ("range_basis_why",),
    ("topology",),
    ("training", "memory_bytes"),
    ("training", "model", "name"),
    ("training", "strategy", "flash"),
    *(("training", "efficiency", name) for name in ("name", "device", "runs", "error")),
    *(
        ("training", "efficiency", "framework", name)
        for name in ("name", "pp_hidden", "fetch_hidden", "gradient_bytes_fp16", "loss_bytes")
    ),
    *(
        ("training", "efficiency", "layers", name)
        for name in ("host_mamba_s", "quantised", "state_bytes")
    ),
}
"""What nothing in this plan follows from: as in plans of dense models."""


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value in a plan with where it stands."""
    match value:
        case dict():
            for key, one in value.items():
                yield from leaves(one, (*path, key))
        case list():
            for number, one in enumerate(value):
                yield from leaves(one, (*path, number))
        case _:
            yield path, value


def told_entries(plan: Plan) -> Iterator[tuple[Path_, Path_, Any]]:
    """Every entry that is held to something: its path with and without numbers, and its value."""
    for path, value in leaves(plan):
        plain = tuple("*" if isinstance(key, int) else key for key in path)
        if value is not None and not any(plain[: len(one)] == one for one in UNTOLD):
            yield path, plain, value


def one_of_each(plan: Plan) -> Iterator[tuple[Path_, Any]]:
    """An entry of each kind, of the last request on each matrix, and all of the placement.

    Not what is asked: all kinds of plans of trainings say that alike.
    """
    found: dict[object, tuple[Path_, Any]] = {}
    asked = ("model", "batch", "strategy", "efficiency")
    for path, plain, value in told_entries(plan):
        if plain[0] == "training" and plain[1] in asked:
            continue
        side = plan["requests"][path[1]]["matrix"] if path[0] == "requests" else ""
        found[path if "placement" in path else (side, *plain)] = path, value
    return iter(found.values())


def holder(plan: Plan, path: Path_) -> Any:
    found: Any = plan
    for key in path[:-1]:
        found = found[key]
    return found


def changed(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value * 2 if value else 1
        case _:
            return {"attention": "experts", "experts": "attention"}.get(value, f"{value}x")


def found_wrong(plan: Plan) -> bool:
    try:
        return bool(verdict(plan))
    except ValueError:  # an InputError, or pydantic's
        return True


def missed_of(plan: Plan, entries: Iterable[tuple[Path_, Any]]) -> list[Path_]:
    """Entries of which another value is not found."""
    missed = []
    for path, value in entries:
        other = copy.deepcopy(plan)
        holder(other, path)[path[-1]] = changed(value)
        if not found_wrong(other):
            missed.append(path)
    return missed


def test_a_changed_entry_of_each_kind_is_found() -> None:
    plan = data(SHORT)
    entries = list(one_of_each(plan))
    assert len(entries) > 80
    assert missed_of(plan, entries) == []


@pytest.mark.exhaustive
def test_every_changed_entry_is_found() -> None:
    plan = data()
    entries = [(path, value) for path, _, value in told_entries(plan)]
    assert len(entries) > 500
    assert missed_of(plan, entries) == []


def test_every_other_pair_of_matrices_is_found() -> None:
    """Also one that is consistent: requests do not lie on it."""
    strategy, plan = parse_strategy(FOLDED), data()
    own, count = copy.deepcopy(plan["training"]["placement"]), 0
    for some in pairs((2, 4), strategy.sizes, strategy.expert_sizes):
        for one in some.placements():
            rows = {"attention": one.attention.matrix, "experts": one.experts.matrix}
            other = {side: [list(row) for row in matrix] for side, matrix in rows.items()}
            if other != own:
                plan["training"]["placement"] = other
                assert found_wrong(plan), other
                count += 1
    assert count == 4


BOTH = ("training", "placement")
MALFORMED: dict[str, tuple[Change, str]] = {
    "another row of pp": (
        put(*BOTH, "experts", to=[[1, 2], [2, 1], [1, 1], [1, 2]]),
        "both must have the same row of pp, not [2, 1] and [1, 2]",
    ),
    "a row too few": (
        put(*BOTH, "experts", to=[[2, 1], [1, 2], [1, 2]]),
        "must be pp, ed, ep, et",
    ),
    "other levels": (
        put(*BOTH, "experts", to=[[2, 1], [1, 1], [1, 2], [1, 4]]),
        "both must have the same levels, not [2, 4] and [2, 8]",
    ),
    "ragged": (put(*BOTH, "experts", 2, to=[2]), "training.placement"),
    "attention elsewhere": (
        put(*BOTH, "attention", to=[[2, 1], [1, 1], [1, 2], [1, 2]]),
        "is not the plan's matrix on its axes",
    ),
    "the largest": (put("objective", to="max"), "must be sum where a plan has two matrices"),
    "no placement": (put(*BOTH, to=None), "have a `matrix` where"),
    "no matrix": (put("requests", 2, "matrix", to=None), "have a `matrix` where"),
    "a third matrix": (put("requests", 2, "matrix", to="router"), "matrix"),
    "an axis of the other": (put("requests", 0, "axes", to=["ep"]), "ep"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_cannot_be_is_refused_by_its_rule(what: str, tmp_path: Path) -> None:
    how, rule = MALFORMED[what]
    plan = data()
    how(plan)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    done = cli("verify", str(path))
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert rule in done.err
    assert "Traceback" not in done.err


WRONG: dict[str, tuple[Change, str]] = {
    "degrees of experts": (
        put("training", "strategy", "ep", to=1),
        "axes of experts are pp=2,ep=2,et=2, and those of the strategy pp=2,ed=2,et=2",
    ),
    "the dispatcher": (put("training", "strategy", "dispatcher", to="alltoall"), "request"),
    "imbalance": (put("requests", 8, "dispatch", "imbalance", to=1.5), "request 9"),
    "the pipeline's matrix": (
        put("requests", 5, "matrix", to="experts"),
        "request 6 is on the matrix of experts, and send pp 8 KiB x 64 on that of attention",
    ),
    "a payload": (
        put("requests", 8, "bytes", to=4096),
        "and that of the strategy dispatch ep 8 KiB to 2 of 8 experts",
    ),
    "no experts": (put("training", "model", "experts", to=None), "needs its sizes, key experts"),
    "a dense model": (
        both(
            put("training", "model", "experts", to=None),
            put("training", "model", "order", to=[]),
            put("training", "strategy", "ep", to=1),
            put("training", "strategy", "etp", to=1),
            put("training", "strategy", "dispatcher", to="alltoall"),
        ),
        "a mixture of experts, and no other model, has a placement of its experts",
    ),
    "memory": (
        put("training", "prediction", "memory", "optimizer", to=1),
        "training memory.optimizer says 1",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_contradicts_is_told(what: str) -> None:
    how, words = WRONG[what]
    plan = data()
    how(plan)
    try:
        said = verdict(plan)
    except InputError as error:
        said = [str(error)]
    assert said
    assert any(words in one for one in said), said


def test_a_side_is_a_plan_of_its_own() -> None:
    plan = PlanModel.model_validate(data())
    attention, experts = plan_sides(plan, "plan")
    assert [attention.name, experts.name] == ["attention", "experts"]
    assert sorted((*attention.numbers, *experts.numbers)) == list(range(len(plan.requests)))
    assert [one.name for one in experts.plan.axes] == ["pp", "ep", "et"]
    total = sum(side.plan.objective_s or 0.0 for side in (attention, experts))
    assert total == pytest.approx(plan.objective_s)


def test_a_plan_is_proved() -> None:
    plan = PlanModel.model_validate(data())
    proof = prove(plan, "plan")
    assert proof.status is ProofStatus.PROVED
    assert proof.objective_s == pytest.approx(plan.objective_s)
    cut = prove(plan, "plan", limits=SearchLimits(time_limit_s=0.0))
    assert cut.status is not ProofStatus.REFUTED


@pytest.mark.parametrize("side", ["attention", "experts"])
def test_programs_that_are_not_the_best_refute_it(side: str) -> None:
    """Single collectives for the requests on one matrix, where programs are faster."""
    model = replace(MODEL, hidden=1024, vocab=10000)
    cluster = parse_topology(TINY + H100, "tiny")
    run = estimate(model, cluster, "dp=8,ep=2,zero=1", Batch(64, 128), "megatron-bridge-h100")
    best = training_plan(run)
    known = [one for one in best.answers if ("ed" in one.request.axes) is (side == "attention")]
    single = training_plan(run, search=False).answers
    rest = [one for one in single if ("ed" in one.request.axes) is (side == "experts")]
    plan = json.loads(json.dumps(training_plan_data(training_plan(run, known=[*known, *rest]))))
    assert verdict(plan) == []
    proof = prove(PlanModel.model_validate(plan), "plan")
    assert proof.status is ProofStatus.REFUTED
    assert proof.better is not None
    total_s = sum(one.request.times * one.seconds for one in best.answers)
    assert proof.objective_s == pytest.approx(plan["objective_s"])
    assert proof.better.objective_s == pytest.approx(total_s)
    assert proof.bound_s == pytest.approx(total_s, rel=1e-6)
    axes = {axis for request in proof.better.requests for axis in request.request.axes}
    assert axes == ({"dp"} if side == "attention" else {"ed", "ep"})


def test_known_answers_of_both_sides_need_no_search() -> None:
    found = planned()
    again = training_plan(found.estimate, known=found.answers, search=False)
    assert again.answers == found.answers
    assert all(one.status is Status.OPTIMAL for one in again.answers)


def test_without_a_search_single_collectives_answer_both_sides() -> None:
    found = training_plan(planned().estimate, search=False)
    assert found.estimate.iteration_s == pytest.approx(found.collectives_s)
    assert verdict(json.loads(json.dumps(training_plan_data(found)))) == []


def test_ranks_in_an_order_that_no_matrix_expresses_have_no_plan() -> None:
    found = replace(planned().estimate, experts=None)
    said = refusal(lambda: training_plan_data(training_plan(found)))
    assert "matrix" in said
