"""``p2smt.verify`` and its neighbours on every kind of subject, and files in and out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import p2smt
from p2smt.result import OUT_OF_EFFORT
from tests.cli.tools import TINY
from tests.schedules.races.test_decide import updates

SYMBOLIC = Path(__file__).parents[1] / "schedules" / "symbolic"


@pytest.fixture
def plan_file(tmp_path: Path, plan: dict[str, Any]) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    return path


def test_a_plan_and_its_file(plan_file: Path) -> None:
    of_file, of_plan = p2smt.verify(plan_file), p2smt.verify(p2smt.read_plan(plan_file))
    assert isinstance(of_file, p2smt.PlanReport)
    assert of_file.valid
    assert of_plan == of_file


@pytest.mark.parametrize("end", ["xml", "yaml"])
def test_a_schedule_and_its_file(tmp_path: Path, end: str) -> None:
    ring = p2smt.classic("ring-all-reduce", 4)
    path = tmp_path / f"ring.{end}"
    p2smt.write_schedule(ring, path)
    of_file = p2smt.verify(path, fifo_depth=3)
    assert isinstance(of_file, p2smt.Report)
    assert of_file.verdict is p2smt.Verdict.VALID
    assert of_file.fifo_depth == p2smt.verify(ring, fifo_depth=3).fifo_depth == 3
    assert p2smt.read_schedule(path).contract == ring.contract


def test_a_schedule_that_is_wrong() -> None:
    ring = p2smt.classic("ring-all-reduce", 4)
    cut = replace(ring, steps=tuple(step for step in ring.steps if step.rank != 2))
    report = p2smt.verify(cut)
    assert report.verdict is p2smt.Verdict.INVALID
    assert report.violations


def test_a_family_and_a_program() -> None:
    family = p2smt.verify_family(SYMBOLIC / "ring_all_reduce.yaml", 5)
    assert (family.verdict, len(family.instances)) == (p2smt.Verdict.VALID, 4)
    program = p2smt.parse_program("reduce inside root")
    wrong = p2smt.verify_program(program, (2, 2))
    assert wrong.verdict is p2smt.Verdict.INVALID
    cluster = p2smt.load_topology("dgx-a100:2")
    right = p2smt.verify_program(p2smt.parse_program("all-reduce inside root"), cluster)
    assert right.verdict is p2smt.Verdict.VALID
    assert right.instances[0].parameters == (("node", 2), ("gpu", 8))


def test_a_topology_is_written_as_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    cluster = p2smt.load_topology(str(path))
    p2smt.write_topology(cluster, tmp_path / "again.yaml")
    assert p2smt.load_topology(str(tmp_path / "again.yaml")) == cluster


def test_a_solution_without_an_answer_is_not_written(tmp_path: Path) -> None:
    cluster = p2smt.load_topology("dgx-a100:2")
    axes = p2smt.parse_axes("dp=2,tp=8")
    names = [axis.name for axis in axes]
    rules = (
        p2smt.parse_rule("dp within node", True, names, cluster.names),
        p2smt.parse_rule("tp within node", True, names, cluster.names),
    )
    asked = p2smt.Problem(cluster, axes, (p2smt.reduce("dp=1MiB"),), rules=rules)
    solution = p2smt.solve(asked)
    assert solution.status is p2smt.Status.INFEASIBLE
    with pytest.raises(p2smt.InputError, match="has no plan to write"):
        p2smt.write_plan(solution, tmp_path / "plan.json")
    assert not (tmp_path / "plan.json").exists()


@pytest.mark.parametrize(
    ("text", "rule"),
    [("hello", "is neither a plan"), ("{}", "is no plan"), (None, "does not exist")],
)
def test_what_is_neither_plan_nor_schedule_is_refused(
    tmp_path: Path, text: str | None, rule: str
) -> None:
    path = tmp_path / "some.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(p2smt.InputError, match=rule):
        p2smt.verify(path)
    with pytest.raises(p2smt.InputError, match="is not a schedule"):
        p2smt.read_schedule(path)


def test_a_calibration_needs_links_and_sizes() -> None:
    cluster = p2smt.load_topology("dgx-a100:1")
    with pytest.raises(p2smt.InputError, match="has no links to measure"):
        p2smt.measure(cluster, p2smt.RunOptions(backend="reference"))
    with pytest.raises(p2smt.InputError, match="a fit needs at least"):
        p2smt.measure(cluster, sizes=(1024, 1024))


def test_effort_limits_what_the_solver_spends(tmp_path: Path) -> None:
    schedule, path = updates(3, lock=False), tmp_path / "race.yaml"
    p2smt.write_schedule(schedule, path)
    for report in (p2smt.verify(schedule, effort=0), p2smt.verify(path, effort=0)):
        assert isinstance(report, p2smt.Report)
        assert report.verdict is p2smt.Verdict.UNKNOWN
        assert OUT_OF_EFFORT in report.reason
    assert p2smt.verify(schedule, time_limit_s=None).verdict is p2smt.Verdict.INVALID
