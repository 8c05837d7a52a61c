"""Each command's fields, exit codes and text, run in process on a small cluster."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2smt.files.validation import validated
from p2smt.plans.solution import Solution
from p2smt.programs.program import parse_program
from p2smt.result import Status
from p2smt.search.joint import JointSearch
from p2smt.units import format_time
from tests.cli.tools import TINY, Outcome, cli

MATRIX = "[[2,1],[1,4]]"
SCENE = ("--axes", "dp=2,tp=4", "--placement", "[[1,2],[2,2]]", "--reduce")
TEXT = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


def solve(tiny: str, *more: str) -> Outcome:
    return cli("solve", "-t", tiny, "--axes", "dp=2,tp=4", "--reduce", "dp=1GiB", *more)


def without_numbers(text: str) -> list[str]:
    """Lines with every time as T, percentage as % and ratio as x."""
    text = re.sub(r" *\d[\d.]* (s|ms|us|ns)\b", " T", text)
    text = re.sub(r" *\d[\d.e+]* ?%", " %", text)
    return re.sub(r" *\d[\d.e+]*x", " x", text).splitlines()


def test_placements_as_json() -> None:
    outcome = cli("placements", "--levels", "4,16", "--axes", "4,16", "--json")
    data = outcome.json()
    assert (outcome.code, outcome.err) == (0, "")
    assert (data["status"], data["count"]) == ("complete", 3)
    assert data["placements"] == [[[1, 4], [4, 4]], [[2, 2], [2, 8]], [[4, 1], [1, 16]]]
    assert data["levels"] == [{"name": "l1", "size": 4}, {"name": "l2", "size": 16}]
    assert data["axes"] == [{"name": "a1", "size": 4}, {"name": "a2", "size": 16}]


def test_placements_for_people(tiny: str) -> None:
    outcome = cli("placements", "-t", tiny, "--axes", "dp=2,tp=4")
    assert outcome.out.splitlines() == [
        "complete: 2 placements of dp=2, tp=4 on node=2, gpu=4",
        "[[1,2],[2,2]]",
        "[[2,1],[1,4]]",
    ]


@pytest.mark.parametrize(("rule", "count"), [("dp within node", 1), ("dp across node", 1)])
def test_placements_under_rules(tiny: str, rule: str, count: int) -> None:
    every = ("placements", "-t", tiny, "--axes", "dp=2,tp=4", "--json")
    required = cli(*every, "--require", rule).json()["placements"]
    forbidden = cli(*every, "--forbid", rule).json()["placements"]
    assert len(required) == count
    assert sorted(required + forbidden) == cli(*every).json()["placements"]
    fixed = cli(*every, "--fix", "dp=node:2,gpu:1").json()
    assert fixed["placements"] == [[[2, 1], [1, 4]]]


def test_a_truncated_list_is_not_settled() -> None:
    arguments = ("--levels", "4,16", "--axes", "4,16", "--limit", "2", "--json")
    outcome = cli("placements", *arguments)
    assert outcome.code == 3
    assert (outcome.json()["status"], outcome.json()["count"]) == ("truncated", 2)


@pytest.mark.parametrize("solver", ["cpsat", "z3"])
def test_programs_as_json(solver: str) -> None:
    outcome = cli("programs", "--factors", "2,2", "--length", "3", "--solver", solver, "--json")
    data = outcome.json()
    assert (outcome.code, data["status"], data["checked"]) == (0, "complete", "devices")
    assert data["count_by_length"] == [1, 4, 19]
    assert data["count"] == len(data["programs"]) == sum(data["count_by_length"])
    for program in data["programs"]:
        assert str(parse_program(program["text"])) == program["text"]
        assert program["text"] == "; ".join(program["instructions"])


def test_programs_of_a_placement(tiny: str) -> None:
    data = cli("programs", "-t", tiny, *SCENE, "tp", "--json").json()
    listed = {program["text"] for program in data["programs"]}
    assert TEXT in listed
    assert "all-reduce inside root" in listed


def test_the_best_programs_by_time(tiny: str) -> None:
    outcome = cli("programs", "-t", tiny, *SCENE, "tp=1GiB", "--top", "4", "--json")
    data = outcome.json()
    seconds = [program["seconds"] for program in data["programs"]]
    assert seconds == pytest.approx(sorted(seconds), rel=1e-9)
    assert data["programs"][0]["text"] == TEXT
    assert sum(data["count_by_length"]) == data["count"] == 4
    lines = cli(
        "programs", "-t", tiny, *SCENE, "tp=1GiB", "--top", "2", "--details"
    ).out.splitlines()
    assert lines[-2].split("  ")[-1] == TEXT
    assert lines[0].endswith("least time first")
    assert lines[1] == "programs complete for all sizes (small-model theorem)"
    single = format_time(data["single_collective_s"])
    assert lines[2].startswith(f"single collective {single}, ring ")
    assert data["program_gain"] == pytest.approx(data["single_collective_s"] / seconds[0] - 1)
    assert (data["gain_by_choice"], data["named_algorithm"]) == (0.0, None)


def test_the_best_programs_without_a_size_are_the_shortest() -> None:
    data = cli("programs", "--factors", "2,2", "--top", "5", "--json").json()
    assert data["count_by_length"] == [1, 4, 0, 0, 0]
    assert {program["seconds"] for program in data["programs"]} == {None}
    lines = cli("programs", "--factors", "2,2", "--top", "1").out.splitlines()
    assert lines == [
        "complete: the best 1 program (1 of length 1), shortest first",
        "programs complete for all sizes (small-model theorem)",
        "all-reduce inside root",
    ]


def test_no_program_is_said_in_words() -> None:
    forms = [word for form in ("inside", "parallel", "master") for word in ("--forbid-form", form)]
    outcome = cli("programs", "--factors", "2,2", *forms)
    assert outcome.out == (
        "complete: no program of up to 5 instructions, checked on devices\n"
        "programs complete for all sizes (small-model theorem)\n"
    )


def test_cost_of_a_program(tiny: str) -> None:
    data = cli("cost", "-t", tiny, *SCENE, "tp=1GiB", "--program", TEXT, "--json").json()
    assert data["program"] == TEXT
    assert [step["instruction"] for step in data["steps"]] == TEXT.split("; ")
    assert data["seconds"] == pytest.approx(sum(step["seconds"] for step in data["steps"]))
    assert data["physical_bound_s"] <= data["seconds"] < data["single_collective_s"]


def test_cost_for_people(tiny: str) -> None:
    lines = without_numbers(
        cli("cost", "-t", tiny, *SCENE, "tp=1GiB", "--program", TEXT, "--details").out
    )
    assert lines[:2] == [
        "steps",
        "instruction                           time  algorithm    bottleneck   range",
    ]
    assert lines[2].startswith("reduce-scatter inside node T  ring simple  gpu 512 MiB")
    bounds = "algorithm bound T (gap %); link-level bound T (gap %)"
    known = ": assumed, no library runs here"
    assert lines[-1].startswith(" T, ")
    assert f"{known}; single collective T; {bounds}; decided by" in lines[-1]


def test_solve_as_json(tiny: str) -> None:
    outcome = solve(tiny, "--reduce", "tp=64MiB*128", "--json", "--compare", MATRIX)
    data = outcome.json()
    assert (outcome.code, outcome.err, data["status"]) == (0, "", "optimal")
    assert data["physical_bound_s"] <= data["bound_s"] <= data["objective_s"]
    assert data["plan"]["matrix"] == data["alternatives"][0]["matrix"]
    assert data["plan"]["objective_s"] == data["objective_s"]
    assert data["ranking"] == "complete"
    assert [a["objective_s"] for a in data["alternatives"]] == sorted(
        a["objective_s"] for a in data["alternatives"]
    )
    assert data["default_layout"]["objective_s"] >= data["objective_s"]
    assert data["compared_layout"]["name"] == "given"
    for request in data["plan"]["requests"]:
        assert str(parse_program(request["program"])) == request["program"]


def test_near_optimal_placements_are_listed_or_counted(tiny: str) -> None:
    both = ("--reduce", "tp=1GiB")
    counted = solve(tiny, *both, "--json").json()
    assert (counted["near_optimal_within"], counted["near_optimal_placements"]) == (0.05, None)
    assert counted["near_optimal"] >= 1
    data = solve(tiny, *both, "--within", "1000 %", "--top", "1", "--json").json()
    assert (data["near_optimal_status"], data["near_optimal_within"]) == ("complete", 10.0)
    listed = data["near_optimal_placements"]
    assert data["near_optimal"] == len(listed) == 2
    assert listed[0]["matrix"] == data["alternatives"][0]["matrix"]
    least_s = data["objective_s"]
    assert [one["gap"] for one in listed] == pytest.approx(
        [one["objective_s"] / least_s - 1 for one in listed]
    )
    lines = solve(tiny, *both, "--within", "1000%", "--top", "1", "--details").out.splitlines()
    assert "placements within 1000 % of the best: 2" in lines
    assert (
        "placements within 5 % of the best: 1" in solve(tiny, *both, "--details").out.splitlines()
    )


def test_solve_for_people(tiny: str) -> None:
    outcome = solve(
        tiny, "--reduce-scatter", "tp=1GiB", "--fix", "dp=node:1", "--sensitivity", "--details"
    )
    assert [line for line in outcome.out.splitlines() if line != line.rstrip()] == []
    lines = without_numbers(outcome.out)
    assert lines[0].startswith("optimal: T per iteration (total), ")
    assert lines[0].endswith(": assumed, no library runs here")
    assert "the default layout" in lines[3]
    assert lines[5:9] == [
        "placement",
        "axis  size  node  gpu",
        "dp       2     1    2",
        "tp       4     2    2",
    ]
    step = "  reduce-scatter parallel node in root T  ring simple  node 1 GiB"
    assert any(line.startswith(step) for line in lines)
    order = "reduce-scatter tp 1 GiB: the members of a group, in device order, end with shards "
    assert order + "0, 2, 1, 3" in lines
    assert "node x 0.8 T T  yes" in lines
    assert "proved to stay the best in 4 of 4 cases" in lines


def test_alternatives_name_their_programs_by_letter(tiny: str) -> None:
    lines = solve(tiny, "--send", "tp=1MiB", "--details").out.splitlines()
    start = lines.index("best placements")
    assert [line.split()[0::3][0] for line in lines[start + 2 : start + 4]] == ["1", "2"]
    assert all(
        re.search(" [AB] - .* assumed, no library runs here$", line)
        for line in lines[start + 2 : start + 4]
    )
    assert "their programs, in the order of the requests" in lines


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", ["solve", "topology show tpu-v5p", "topology list"])
def test_a_terminal_is_not_overrun(
    tiny: str, monkeypatch: pytest.MonkeyPatch, width: int, command: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    outcome = solve(tiny, "--sensitivity") if command == "solve" else cli(*command.split())
    lines = re.sub(r"\x1b\[[0-9;]*m", "", outcome.out).splitlines()
    assert max(map(len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []


def test_infeasible_is_a_proof(tiny: str) -> None:
    outcome = solve(tiny, "--require", "dp within node", "--fix", "dp=node:2")
    assert outcome.code == 4
    conflict = "dp within node; dp=node:2"
    assert outcome.out == f"infeasible: these restrictions exclude each other: {conflict}\n"
    data = solve(tiny, "--require", "dp within gpu", "--json").json()
    assert (data["status"], data["plan"], data["objective_s"]) == ("infeasible", None, None)
    assert data["conflict"] == ["dp within gpu"]


def test_no_time_at_all_is_not_settled(tiny: str) -> None:
    outcome = solve(tiny, "--time-limit", "0")
    assert (outcome.code, outcome.out.split(":")[0]) == (3, "feasible")
    data = solve(tiny, "--time-limit", "0", "--json").json()
    assert (data["status"], data["ranking"]) == ("feasible", "truncated")
    assert data["objective_s"] <= data["default_layout"]["objective_s"]
    assert data["default_layout"]["matrix"]
    none = solve(tiny, "--time-limit", "0", "--forbid-form", "inside", "--json").json()
    assert (none["status"], none["plan"], none["alternatives"]) == ("unknown", None, [])


def test_a_bound_that_was_not_found_is_none(tiny: str, tmp_path: Path) -> None:
    """A plan holds 0 in its place, and reads as it was shown."""
    path = tmp_path / "plan.json"
    shown = solve(tiny, "--time-limit", "0", "-o", str(path), "--details").out.splitlines()
    assert shown[1] == "proved bound none, link-level bound none"
    data = solve(tiny, "--time-limit", "0", "--json").json()
    assert (data["bound_s"], data["physical_bound_s"]) == (None, None)
    assert (data["plan"]["bound_s"], data["plan"]["physical_bound_s"]) == (0.0, 0.0)
    assert "link-level bound none" in cli("cost", str(path), "--details").out.splitlines()
    assert cli("verify", str(path)).code == 0


def test_nothing_to_send_is_bounded_by_0(tiny: str) -> None:
    asked = ("--axes", "dp=8,pp=1", "--reduce", "pp=1MiB")
    outcome = cli("solve", "-t", tiny, *asked).out
    assert "proved bound 0 s (gap 0 %), link-level bound 0 s (gap 0 %)" in outcome
    data = cli("solve", "-t", tiny, *asked, "--json").json()
    assert (data["status"], data["bound_s"], data["physical_bound_s"]) == ("optimal", 0.0, 0.0)


def test_an_interrupt_without_any_plan_is_said(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("p2smt.search.bound_table.BoundTable.fill", interrupt)
    outcome = solve(tiny, "--forbid-form", "inside")  # the single collective is no answer then
    assert (outcome.code, outcome.err) == (130, "p2smt: interrupted\n")
    assert outcome.out == "interrupted: no plan had been found\n"
    known = solve(tiny)
    assert (known.code, known.err) == (130, "p2smt: interrupted\n")
    assert known.out.startswith("interrupted: the best found so far\nfeasible: ")
    assert solve(tiny, "--json").json()["interrupted"] is True


def test_an_interrupt_of_the_sensitivity_keeps_the_answer(
    tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cut(JointSearch):
        def run(self, top: int) -> Solution:
            return replace(super().run(top), interrupted=True)

    monkeypatch.setattr("p2smt.search.sensitivity.JointSearch", Cut)
    outcome = solve(tiny, "--sensitivity", "--json")
    data = outcome.json()
    assert (outcome.code, data["interrupted"], data["sensitivity"]) == (130, True, [])
    assert (data["status"], data["plan"]["status"]) == ("optimal", "optimal")


def test_an_open_bound_is_not_settled(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def truncated(self: JointSearch, top: int) -> Solution:
        found = searched(self, top)
        best = replace(found.alternatives[0], status=Status.FEASIBLE)
        return replace(
            found,
            status=Status.FEASIBLE,
            bound_s=found.bound_s / 2,
            alternatives=(best, *found.alternatives[1:]),
            ranking=Status.TRUNCATED,
        )

    searched = JointSearch.run
    monkeypatch.setattr("p2smt.search.joint.JointSearch.run", truncated)
    outcome = solve(tiny, "--details")
    assert outcome.code == 3
    lines = without_numbers(outcome.out)
    assert lines[0].startswith("feasible: T per iteration (total), ")
    assert "best placements found; the search stopped before it was done" in lines


def test_large_groups_say_what_they_were_checked_on() -> None:
    axes = ("--axes", "dp=2048", "--fix", "dp=node:256,gpu:8", "--reduce-scatter", "dp=1GiB")
    lines = cli("solve", "-t", "azure-ndv4:256", *axes, "--top", "1", "--details").out.splitlines()
    basis = "programs complete for all sizes (small-model theorem)"
    assert f"checked on quotient 2x3; {basis}" in lines
    order = "the order of the shards is not computed for groups of 2048"
    assert f"reduce-scatter dp 1 GiB: {order}" in lines


def test_topologies(tiny: str) -> None:
    names = cli("topology", "list", "--json").json()["presets"]
    assert "azure-ndv4" in names
    assert cli("topology", "show", tiny, "--json").json()["devices"] == 8
    assert cli("topology", "check", tiny).out == "valid: tiny, 8 devices (node 2, gpu 4)\n"
    assert cli("topology", "check", tiny, "--json").json()["verdict"] == "valid"
    assert cli("topology", "list", "--details").out.splitlines()[1].split() == [
        "name",
        "levels",
        "what",
    ]


@pytest.mark.parametrize("name", ["azure-ndv4", "tpu-v5p", "mi300x", "dgx1-v100:4"])
def test_show_has_a_row_per_protocol(name: str) -> None:
    levels = cli("topology", "show", name, "--json").json()["topology"]["levels"]
    rows = [p for level in levels for p in level["link"].get("protocols", [level["link"]])]
    lines = cli("topology", "show", name, "--details").out.splitlines()
    first = lines.index("levels, outermost first") + 2
    assert lines[first + len(rows)] == ""
    assert all("B/s" in line for line in lines[first : first + len(rows)])


@pytest.mark.parametrize("name", ["plan", "topology"])
def test_schema(name: str) -> None:
    data: dict[str, Any] = json.loads(cli("schema", name).out)
    assert data["$schema"].startswith("https://json-schema.org/")
    assert data["additionalProperties"] is False


def test_a_plan_fits_the_model_behind_its_schema(tiny: str) -> None:
    from p2smt.plans.file_model import PlanModel

    plan = solve(tiny, "--all-to-all", "tp=1MiB", "--json").json()["plan"]
    assert validated(PlanModel, plan, "plan").model_dump(mode="json")["matrix"] == plan["matrix"]
    schema = json.loads(cli("schema", "plan").out)
    not_of_all = {"hosts", "with_programs_s", "allocation", "training", "answer", "splits"}
    assert set(plan) == set(schema["properties"]) - not_of_all
    newer = {"basis", "range_s", "range_basis", "range_basis_why"}  # older files have none
    assert set(schema["required"]) == set(plan) - newer
