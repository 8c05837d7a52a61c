"""From solve to the file and back: the same problem, restrictions, limits and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import p2smt
from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Form
from p2smt.parallelism.placement import AxisRule, FixedEntry, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.file import plan_data, read_plan
from p2smt.plans.file_model import OldPlanModel, PlanModel
from p2smt.plans.problem import plan_problem
from p2smt.plans.restrictions import restriction_data
from p2smt.result import SearchLimits
from p2smt.search.prove import stated_limits
from tests.cli.tools import TINY, cli

DATA = Path(__file__).parent / "data"
Fields = dict[str, Any]

CASES: dict[str, Fields] = {
    "none": {},
    "rules": {"rules": (AxisRule(1, 0, inside=True), AxisRule(0, 0, inside=False))},
    "an entry": {"rules": (FixedEntry(1, 0, 2), FixedEntry(1, 1, 2))},
    "a rule twice": {"rules": (AxisRule(1, 0, inside=True), AxisRule(1, 0, inside=True))},
    "length": {"max_length": 2},
    "forms": {"forbidden_forms": frozenset({Form.PARALLEL, Form.MASTER})},
    "steps": {"step_limits": (("node", 1), ("gpu", 2))},
    "algorithms": {"algorithms": (Algorithm.TREE, Algorithm.RING)},
    "pipeline": {"pipeline": 4},
    "any pipeline": {"pipeline": None},
    "largest": {"objective": "max"},
    "all": {
        "rules": (FixedEntry(1, 0, 2), AxisRule(0, 1, inside=False)),
        "max_length": 3,
        "forbidden_forms": frozenset({Form.MASTER}),
        "step_limits": (("node", 1),),
        "algorithms": (Algorithm.RING,),
        "pipeline": 2,
        "objective": "max",
    },
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> p2smt.Topology:
    path = tmp_path_factory.mktemp("round_trip") / "tiny.yaml"
    path.write_text(TINY)
    return p2smt.load_topology(str(path))


@pytest.mark.parametrize("name", CASES)
def test_the_problem_comes_back(cluster: p2smt.Topology, tmp_path: Path, name: str) -> None:
    requests = (p2smt.reduce("tp=1MiB*3"), p2smt.all_gather("tp+dp=8MiB"))
    asked = Problem(cluster, p2smt.parse_axes("dp=2,tp=4"), requests, **CASES[name])
    found = p2smt.solve(asked, top=2)
    assert found.best is not None
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_data(found, found.best)))
    plan = read_plan(str(path))
    assert found.best.matrix is not None
    assert plan_problem(plan, "plan") == (found.problem, Placement(found.best.matrix))
    report = check_plan(plan, "plan")
    assert report.valid, report.notes
    assert "restrictions" in report.checked
    assert report.not_checked == ("optimality", "link-level bound of the plan")


def test_the_limits_come_back(cluster: p2smt.Topology, tmp_path: Path) -> None:
    problem = Problem(cluster, p2smt.parse_axes("dp=2,tp=4"), (p2smt.reduce("tp=1MiB"),))
    limits = SearchLimits(time_limit_s=60.0, seed=7, workers=2)
    found = p2smt.solve(problem, top=2, limits=limits)
    assert found.best is not None
    (tmp_path / "plan.json").write_text(json.dumps(plan_data(found, found.best)))
    plan = read_plan(str(tmp_path / "plan.json"))
    assert isinstance(plan, PlanModel)
    assert stated_limits(plan.limits) == limits
    assert (plan.limits.solver, plan.limits.top) == ("cpsat", 2)


def test_texts_are_as_options_take_them(cluster: p2smt.Topology) -> None:
    axes, requests = p2smt.parse_axes("dp=2,tp=4"), (p2smt.reduce("tp=1MiB"),)
    texts = {
        name: [one["text"] for one in restriction_data(Problem(cluster, axes, requests, **fields))]
        for name, fields in CASES.items()
    }
    assert texts["rules"][:2] == ["tp within node", "dp across node"]
    assert texts["an entry"][:2] == ["tp=node:2", "tp=gpu:2"]
    assert texts["none"] == ["programs of at most 5 instructions"]
    assert texts["forms"][1:] == ["no master", "no parallel"]
    assert texts["steps"][1:] == ["at most 1 step across node", "at most 2 steps across gpu"]
    assert texts["algorithms"][1:] == ["collectives run by tree or ring"]
    assert texts["pipeline"][1:] == ["programs of several steps in 4 chunks"]


@pytest.mark.parametrize("name", ["version-1.json", "version-1-restricted.json"])
def test_plans_of_version_1_are_read_but_not_held_to_words(name: str) -> None:
    plan = read_plan(str(DATA / name))
    assert isinstance(plan, OldPlanModel)
    outcome = cli("verify", str(DATA / name), "--json")
    data = outcome.json()
    assert (outcome.code, data["verdict"]) == (0, "valid")
    links = "link-level bound of the plan"
    requests = "link-level bounds of requests"
    assert data["not_checked"] == ["optimality", links, requests, "restrictions"]
    assert "restrictions" not in data["checked"]
    text = cli("verify", str(DATA / name)).out
    assert f"{links}: not checked\n{requests}: not checked\nrestrictions: not checked\n" in text


def test_a_plan_of_version_1_runs_and_is_priced(tmp_path: Path) -> None:
    path = str(DATA / "version-1.json")
    assert cli("cost", path).code == 0
    assert cli("run", path, "--backend", "reference", "--payload", "8KiB").code == 0
    assert cli("convert", path, str(tmp_path / "x.yaml"), "--request", "1").code == 0


def test_a_plan_of_version_1_cannot_be_proved() -> None:
    outcome = cli("verify", str(DATA / "version-1.json"), "--prove")
    assert outcome.code == 2
    assert "restrictions in words" in outcome.err
