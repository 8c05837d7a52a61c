"""Plans on rank lists: written, read, checked, priced, run, lowered; refused when changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import p2smt
from p2smt.parallelism.placement import AxisRule
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.file import plan_data, read_plan
from p2smt.plans.problem import plan_problem
from p2smt.plans.solution import Solution, rank_alternative
from p2smt.report.outputs.shape import json_of
from p2smt.report.solution_data import solution_data
from p2smt.report.solution_tables import solution_tables
from p2smt.report.tables import console
from p2smt.result import SolveStats, Status
from tests.cli.tools import assert_one_error, cli

Plan = dict[str, Any]

# Levels 6,6 and axes 4,9: the default order, which no matrix expresses.
LEVELS = """
name: sixes
algorithms: [ring]
levels:
  - {name: node, size: 6, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
  - {name: gpu, size: 6, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us}}
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    path = tmp_path_factory.mktemp("rank_lists") / "sixes.yaml"
    path.write_text(LEVELS)
    requests = (
        p2smt.reduce("dp=1MiB*3"),
        p2smt.reduce_scatter("tp=1MiB"),
        p2smt.all_gather("dp+tp=1MiB"),
        p2smt.all_to_all("tp=1MiB"),
        p2smt.send("dp=1MiB"),
    )
    return Problem(p2smt.load_topology(str(path)), p2smt.parse_axes("dp=4,tp=9"), requests)


def solution(asked: Problem, order: tuple[int, ...]) -> Solution:
    found = rank_alternative(asked, RankList(order, asked.axis_sizes))
    return Solution(
        asked, Status.FEASIBLE, (found,), 0.0, 0.0, Status.TRUNCATED, SolveStats("cpsat")
    )


@pytest.fixture(scope="module")
def plan(asked: Problem) -> Plan:
    found = solution(asked, tuple(range(36)))
    return json.loads(json.dumps(plan_data(found, found.alternatives[0])))  # type: ignore[no-any-return]


@pytest.fixture
def path(plan: Plan, tmp_path: Path) -> str:
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    return str(tmp_path / "plan.json")


def test_it_is_written_read_and_valid(asked: Problem, plan: Plan, path: str) -> None:
    assert plan["matrix"] is None
    assert plan["ranks"] == list(range(36))
    assert plan_problem(read_plan(path), "plan") == (asked, RankList(tuple(range(36)), (4, 9)))
    outcome = cli("verify", path, "--json")
    data = outcome.json()
    assert (outcome.code, data["verdict"], data["violations"]) == (0, "valid", [])
    assert data["objective_s"] == pytest.approx(plan["objective_s"])
    assert cli("cost", path).code == 0


def test_it_runs(path: str) -> None:
    outcome = cli("run", path, "--backend", "reference", "--payload", "36KiB", "--json")
    assert outcome.code == 0
    assert outcome.json()["verified"] is True


@pytest.mark.exhaustive
def test_every_request_but_none_against_the_order_becomes_a_schedule(
    path: str, tmp_path: Path
) -> None:
    for number in range(1, 6):
        target = str(tmp_path / f"{number}.yaml")
        assert cli("convert", path, target, "--request", str(number)).code == 0
        assert cli("verify", target).code == 0


def test_a_send_against_the_order_of_devices_is_not_run(asked: Problem, tmp_path: Path) -> None:
    found = solution(asked, tuple(reversed(range(36))))
    target = tmp_path / "plan.json"
    target.write_text(json.dumps(plan_data(found, found.alternatives[0])))
    assert cli("verify", str(target)).code == 0
    outcome = cli("run", str(target), "--backend", "reference")
    assert_one_error(outcome)
    assert "plan.json" in outcome.err
    assert "do not ascend" in outcome.err
    assert_one_error(cli("convert", str(target), str(tmp_path / "x.yaml"), "--request", "5"))


def test_it_is_shown(asked: Problem) -> None:
    found = solution(asked, tuple(range(36)))
    screen = console()
    with screen.capture() as captured:
        screen.print(solution_tables(found))
    assert "no matrix expresses this order" in captured.get()
    (listed,) = json_of(solution_data(found))["alternatives"]
    assert (listed["matrix"], listed["ranks"]) == (None, list(range(36)))


def at(*path: str | int, to: object) -> Callable[[Plan], None]:
    def change(plan: Plan) -> None:
        where: Any = plan
        for key in path[:-1]:
            where = where[key]
        where[path[-1]] = to

    return change


def swap_ranks(plan: Plan) -> None:
    plan["ranks"][0], plan["ranks"][35] = 35, 0


def restrict(data: dict[str, Any]) -> Callable[[Plan], None]:
    return lambda plan: plan["restrictions"].insert(0, data)


def rule(axis: str, level: str, within: bool) -> dict[str, Any]:
    text = f"{axis} {'within' if within else 'across'} {level}"
    return {"kind": "axis-rule", "text": text, "axis": axis, "level": level, "within": within}


ENTRY = {"kind": "fixed-entry", "text": "tp=node:3", "axis": "tp", "level": "node", "entry": 3}
FORM = {"kind": "forbidden-form", "text": "no inside", "form": "inside"}
STEPS = {
    "kind": "step-limit",
    "text": "at most 0 steps across node",
    "level": "node",
    "at_most": 0,
}
FIRST = ("requests", 0)

LIES: dict[str, tuple[Callable[[Plan], None], str]] = {
    "ranks of others": (swap_ranks, "groups of the axes"),
    "a program": (at(*FIRST, "program", to="all-reduce inside root"), "no program"),
    "no step": (at(*FIRST, "steps", to=[]), "one step"),
    "another step": (at(*FIRST, "steps", 0, "instruction", to="send"), "all-reduce on the groups"),
    "other groups": (at(*FIRST, "steps", 0, "groups", 0, 0, to=1), "groups of the axes"),
    "time": (at(*FIRST, "seconds", to=1e-9), "seconds says"),
    "bound": (at(*FIRST, "bound_s", to=1e-5), "bound_s lies above the only one that is known"),
    "link-level bound": (at(*FIRST, "physical_bound_s", to=1e-5), "physical_bound_s says"),
    "optimal request": (at(*FIRST, "status", to="optimal"), "called optimal"),
    "optimal plan": (at("status", to="optimal"), "called optimal"),
    "bound of the plan": (at("bound_s", to=1e-9), "nothing bounds rank orders"),
    "shards": (at("requests", 1, "shards", to=None), "shards are not"),
    "chunks": (at(*FIRST, "chunks", to=8), "only several steps are pipelined"),
    "peak": (at(*FIRST, "peak_bytes", to=2**21), "peak_bytes says"),
    "within": (restrict(rule("tp", "node", within=True)), "tp within node: some group spans"),
    "entry": (restrict(ENTRY), "no matrix expresses"),
    "form": (restrict(FORM), "no inside: its one step"),
    "steps": (restrict(STEPS), "at most 0 steps across node: it has 1"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_changed_plan_is_refuted(plan: Plan, tmp_path: Path, name: str) -> None:
    changed = copy.deepcopy(plan)
    change, message = LIES[name]
    change(changed)
    (tmp_path / "plan.json").write_text(json.dumps(changed))
    outcome = cli("verify", str(tmp_path / "plan.json"), "--details")
    assert outcome.code == 1, outcome
    assert message in outcome.out


BAD: dict[str, Callable[[Plan], None]] = {
    "a device twice": at("ranks", 0, to=1),
    "a device too many": lambda plan: plan["ranks"].append(36),
    "no ranks": at("ranks", to=[]),
    "devices of another size": at("axes", 0, "size", to=5),
}


@pytest.mark.parametrize("name", BAD)
def test_ranks_that_are_no_order_are_bad_input(plan: Plan, tmp_path: Path, name: str) -> None:
    changed = copy.deepcopy(plan)
    BAD[name](changed)
    (tmp_path / "plan.json").write_text(json.dumps(changed))
    outcome = cli("verify", str(tmp_path / "plan.json"))
    assert_one_error(outcome)
    assert "plan.json" in outcome.err


def test_rules_hold_for_rank_lists_too(asked: Problem, tmp_path: Path) -> None:
    """tp=6 of levels 6,6 fills a node; in another order each of its groups spans several."""
    axes = p2smt.parse_axes("dp=6,tp=6")
    within = Problem(
        asked.topology, axes, (p2smt.reduce("tp=1MiB"),), rules=(AxisRule(1, 0, inside=True),)
    )
    across = Problem(
        asked.topology, axes, (p2smt.reduce("tp=1MiB"),), rules=(AxisRule(1, 0, inside=False),)
    )
    rows = tuple(range(36))
    columns = tuple(6 * (i % 6) + i // 6 for i in range(36))
    for problem, order, code in [
        (within, rows, 0),
        (within, columns, 1),
        (across, rows, 1),
        (across, columns, 0),
    ]:
        found = solution(problem, order)
        target = tmp_path / "plan.json"
        target.write_text(json.dumps(plan_data(found, found.alternatives[0])))
        assert cli("verify", str(target)).code == code
