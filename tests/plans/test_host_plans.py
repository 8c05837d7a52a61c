"""Plans on hosts under unequal switches: written, read, checked, run; refused when changed."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.errors import InputError
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.file import read_plan
from p2smt.plans.problem import plan_problem
from p2smt.plans.rank_scene import RankScene
from p2smt.programs.semantics import ViolationKind
from p2smt.report.solution_tables import solution_tables
from p2smt.report.tables import console
from p2smt.schedules.cost.predict import schedule_cost
from tests.cli.tools import assert_one_error, cli
from tests.plans.host_plans import (
    LEAVES,
    MASTERS,
    NODES,
    RACKS,
    Plan,
    asked,
    by_devices,
    leaves,
    optimal,
    piped,
    plan_of,
    racks,
    scattered,
    solution,
)
from tests.plans.tampering import Change, both, drop, put, scale, swap, written

SCATTER = "reduce-scatter inside root"


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Six ranks whose first request has a program on racks of 3, 2 and 1."""
    problem = racks()
    return plan_of(problem, scattered(problem), MASTERS, None, SCATTER)


def test_it_is_written_read_and_valid(plan: Plan, tmp_path: Path) -> None:
    problem, path = racks(), written(plan, tmp_path)
    assert plan["ranks"] == [0, 2, 4, 6, 3, 1]
    assert plan["hosts"] == ["a1", "a3", "b2", "c1", "b1", "a2"]
    masters = plan["requests"][0]["steps"]
    assert [step["groups"] for step in masters] == [
        [[0, 2, 1], [4, 3]],
        [[0, 4, 6]],
        [[0, 2, 1], [4, 3]],
    ]
    assert plan_problem(read_plan(path), "plan") == (problem, scattered(problem))
    outcome = cli("verify", path, "--json")
    assert (outcome.code, outcome.json()["violations"]) == (0, [])
    assert outcome.json()["objective_s"] == pytest.approx(plan["objective_s"])


def test_the_objective_is_that_of_single_collectives(plan: Plan) -> None:
    singles = [r["times"] * r["single_collective_s"] for r in plan["requests"]]
    programs = [r["times"] * r["seconds"] for r in plan["requests"]]
    assert plan["objective_s"] == pytest.approx(sum(singles))
    assert plan["with_programs_s"] == pytest.approx(sum(programs))


def test_a_proved_order_is_optimal_whatever_its_programs(plan: Plan, tmp_path: Path) -> None:
    outcome = cli("verify", written(optimal(plan), tmp_path))
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.parametrize("chunks", [3, None])
def test_programs_in_chunks(tmp_path: Path, chunks: int | None) -> None:
    problem = piped(leaves(), chunks)
    found = plan_of(problem, by_devices(problem), NODES, MASTERS)
    assert cli("verify", written(found, tmp_path)).code == 0
    assert chunks is None or found["requests"][0]["chunks"] == chunks


def test_every_rank_has_the_right_result(plan: Plan, tmp_path: Path) -> None:
    """The reference executor shares nothing with the semantics."""
    outcome = cli(
        *("run", written(plan, tmp_path), "--backend", "reference"),
        *("--payload", "36KiB", "--json"),
    )
    assert (outcome.code, outcome.json()["verified"]) == (0, True)
    problem = leaves()
    larger = plan_of(problem, scattered(problem), NODES, MASTERS)
    outcome = cli("run", written(larger, tmp_path), "--backend", "reference", "--payload", "64KiB")
    assert outcome.code == 0


@pytest.mark.exhaustive
def test_predictions_of_a_run_are_those_of_the_plan(plan: Plan, tmp_path: Path) -> None:
    outcome = cli("run", written(plan, tmp_path), "--backend", "reference", "--json")
    for ran, request in zip(outcome.json()["requests"], plan["requests"], strict=True):
        assert ran["predicted_s"] == pytest.approx(request["seconds"])
        assert ran["baseline_predicted_s"] == pytest.approx(request["single_collective_s"])
        assert [step["predicted_s"] for step in ran["steps"]] == pytest.approx(
            [step["seconds"] for step in request["steps"]]
        )


def instruct(number: int, text: str) -> Change:
    """Replace an instruction of the first request's program, in its step too."""

    def change(plan: Plan) -> None:
        request = plan["requests"][0]
        texts = request["program"].split("; ")
        texts[number] = text
        request["program"] = "; ".join(texts)
        request["steps"][number]["instruction"] = text

    return change


FIRST = ("requests", 0)
STEP = (*FIRST, "steps", 0)

LIES: dict[str, tuple[Change, str, str]] = {
    "scattered": (instruct(0, "reduce-scatter inside leaf"), "uneven-slices", "slices of 1, 2, 3"),
    "paired": (instruct(1, "all-reduce parallel leaf in root"), "uneven-slices", "parallel leaf"),
    "gathered": (instruct(2, "all-gather inside leaf"), "uneven-slices", "all-gather cuts"),
    "added twice": (instruct(1, "all-reduce inside root"), "rows-differ", "different chunks"),
    "not spread": (drop(*FIRST, "steps", 2), "group-shape", "are not those of the program"),
    "no program": (put(*FIRST, "program", to=None), "group-shape", "needs one step"),
    "other group": (put(*STEP, "groups", 1, to=[4, 6]), "group-shape", "groups are not those"),
    "other master": (swap(*STEP, "groups", 0), "group-shape", "groups are not those"),
    "ring of others": (
        swap("requests", 1, "steps", 0, "groups", 0),
        "group-shape",
        "on the groups",
    ),
    "program of a send": (put("requests", 3, "program", to=MASTERS), "group-shape", "no program"),
    "ranks": (swap("ranks"), "group-shape", "groups are not those"),
    "hosts": (swap("hosts"), "ranks", "hosts are not those"),
    "time": (scale(*FIRST, "seconds", by=0.9), "cost", "seconds says"),
    "step time": (scale(*STEP, "seconds", by=0.9), "cost", "step 1 seconds says"),
    "load": (scale(*STEP, "load_bytes", by=0.9), "cost", "load_bytes says"),
    "payload": (scale(*STEP, "payload_bytes", by=0.9), "cost", "payload_bytes says"),
    "single": (scale(*FIRST, "single_collective_s", by=0.9), "cost", "single_collective_s says"),
    "peak": (put(*FIRST, "peak_bytes", to=1), "cost", "peak_bytes says"),
    "shards": (swap("requests", 2, "shards"), "cost", "shards are not"),
    "objective": (scale("objective_s", by=1.1), "cost", "objective_s says"),
    "with programs": (scale("with_programs_s", by=0.9), "cost", "with_programs_s says"),
    "none with programs": (put("with_programs_s", to=None), "cost", "with_programs_s is missing"),
    "bound": (scale("bound_s", by=3), "bound", "bound_s lies above the time"),
    "link bound": (put("physical_bound_s", to=9.0), "bound", "physical_bound_s lies above"),
    "optimal": (put("status", to="optimal"), "bound", "called optimal"),
    "bound of a program": (
        put(*FIRST, "bound_s", to=1e-5),
        "bound",
        "bound_s lies above the only one that is known",
    ),
    "optimal program": (put(*FIRST, "status", to="optimal"), "bound", "called optimal"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_changed_plan_is_refuted(plan: Plan, tmp_path: Path, name: str) -> None:
    changed = copy.deepcopy(plan)
    change, kind, message = LIES[name]
    change(changed)
    outcome = cli("verify", written(changed, tmp_path), "--json")
    assert (outcome.code, outcome.err) == (1, "")
    found = [(broken["kind"], broken["message"]) for broken in outcome.json()["violations"]]
    assert any(kind == k and message in text for k, text in found), found


def test_a_program_time_without_a_program(tmp_path: Path) -> None:
    problem = racks()
    found = plan_of(problem, by_devices(problem)) | {"with_programs_s": 1.0}
    outcome = cli("verify", written(found, tmp_path))
    assert outcome.code == 1
    assert "no request has a program" in outcome.out


def test_a_violation_names_devices(plan: Plan, tmp_path: Path) -> None:
    """Groups are counted in the hull's numbers, which have holes."""
    changed = copy.deepcopy(plan)
    instruct(1, "all-reduce inside root")(changed)
    report = check_plan(read_plan(written(changed, tmp_path)), "plan")
    ((number, broken),) = report.violations
    assert (number, broken.kind, broken.step) == (0, ViolationKind.ROWS_DIFFER, 2)
    assert broken.group == (0, 2, 4, 6, 3, 1)
    assert broken.rank == 2


RULES: dict[str, tuple[dict[str, object], str]] = {
    "length": (
        {"kind": "max-length", "text": "programs of at most 2 instructions", "instructions": 2},
        "it has 3",
    ),
    "form": ({"kind": "forbidden-form", "text": "no master", "form": "master"}, "step 2"),
    "steps": (
        {
            "kind": "step-limit",
            "text": "at most 0 steps across leaf",
            "level": "leaf",
            "at_most": 0,
        },
        "it has 1",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_restrictions_hold_for_programs(plan: Plan, tmp_path: Path, name: str) -> None:
    changed, (data, message) = copy.deepcopy(plan), RULES[name]
    kept = [rule for rule in changed["restrictions"] if rule["kind"] != data["kind"]]
    changed["restrictions"] = [*kept, data]
    outcome = cli("verify", written(changed, tmp_path), "--json")
    assert (outcome.code, outcome.err) == (1, "")
    texts = [broken["message"] for broken in outcome.json()["violations"]]
    assert any(message in text for text in texts), texts


BAD: dict[str, tuple[Change, str]] = {
    "no level": (instruct(0, "reduce inside rack"), "is not in the topology"),
    "no text": (instruct(0, "reduce everything"), "is not COLLECTIVE"),
    "alone": (instruct(0, "reduce inside node"), "forms groups of one device"),
    "a place without a host": (put("ranks", 0, to=5), "each device of the hosts"),
    "a device twice": (put("ranks", 0, to=2), "each once"),
    "too few": (both(put("axes", 0, "size", to=2), drop("ranks", 5)), "the topology has 6"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_plans_are_one_line(plan: Plan, tmp_path: Path, name: str) -> None:
    changed = copy.deepcopy(plan)
    change, message = BAD[name]
    change(changed)
    for command in ("verify", "run"):
        more = ("--backend", "reference") if command == "run" else ()
        outcome = cli(command, written(changed, tmp_path), *more)
        assert_one_error(outcome)
        assert message in outcome.err


@pytest.mark.exhaustive
def test_a_run_says_what_goes_wrong(plan: Plan, tmp_path: Path) -> None:
    """Running is a check of its own: what the semantics refuse is not carried out."""
    for number, text in ((1, "all-reduce inside root"), (2, "broadcast master leaf in root")):
        changed = copy.deepcopy(plan)
        instruct(number, text)(changed)
        groups = [[0, 2, 4, 6, 3, 1]] if number == 1 else [[0, 4, 6]]
        put(*FIRST, "steps", number, "groups", to=groups)(changed)
        outcome = cli("run", written(changed, tmp_path), "--backend", "reference")
        assert outcome.code == 1
    changed = copy.deepcopy(plan)
    put(*STEP, "groups", 0, 0, to=5)(changed)
    outcome = cli("run", written(changed, tmp_path), "--backend", "reference")
    assert_one_error(outcome)
    assert "device 5 has no rank" in outcome.err


@pytest.mark.exhaustive
def test_links_of_another_file_are_of_the_same_hosts(plan: Plan, tmp_path: Path) -> None:
    path, other = written(plan, tmp_path), tmp_path / "other.yaml"

    def run() -> tuple[int, str]:
        outcome = cli("run", path, "--backend", "reference", "-t", str(other))
        return outcome.code, outcome.err

    other.write_text(RACKS.replace("1 GB/s", "2 GB/s"))
    assert run() == (0, "")
    other.write_text(RACKS[: RACKS.index("switches:")])
    assert run() == (0, "")
    other.write_text(RACKS.replace("b[1-2]", "b[1-3]"))
    code, error = run()
    assert code == 2
    assert "names other hosts" in error


def test_programs_need_named_hosts() -> None:
    problem = racks()
    bare = parse_topology(RACKS[: RACKS.index("switches:")], "test")
    other = Problem(bare, problem.axes, problem.requests)
    with pytest.raises(InputError, match="names no hosts"):
        RankScene.of(other, other.requests[0], RankList(tuple(range(6)), (3, 2)))


def test_shards_are_told_in_the_order_of_ranks(tmp_path: Path) -> None:
    problem = asked(LEAVES, "dp=16,tp=2", p2smt.reduce_scatter("dp+tp=32MiB"))
    text = "reduce-scatter inside node; reduce-scatter parallel node in root"
    found = solution(problem, by_devices(problem), text)
    screen = console()
    with screen.capture() as captured:
        screen.print(solution_tables(found))
    assert "in rank order, end with shards 0, 16, 1, 17" in captured.get()
    outcome = cli("verify", written(plan_of(problem, by_devices(problem), text), tmp_path))
    assert outcome.code == 0


@pytest.mark.parametrize("number", range(1, 6))
def test_every_request_becomes_a_schedule_of_ranks(plan: Plan, tmp_path: Path, number: int) -> None:
    """Rank r of the schedule is rank r of the plan, on whatever device that lies."""
    target = tmp_path / "request.yaml"
    made = cli("convert", written(plan, tmp_path), str(target), "--request", str(number))
    assert (made.code, made.err) == (0, "")
    assert "the plan" in made.out
    assert "device" not in made.out
    assert cli("verify", str(target)).code == 0
    schedule = p2smt.read_schedule(target)
    assert schedule.ranks == 6
    wanted = plan["requests"][number - 1]
    if wanted["kind"] == "send":
        sent = {(step.rank, step.send.target) for step in schedule.steps if step.send}
        assert sent == {(0, 1), (2, 3), (4, 5)}


def test_a_file_for_each_group_has_its_ranks(plan: Plan, tmp_path: Path) -> None:
    target = str(tmp_path / "request.xml")
    made = cli("convert", written(plan, tmp_path), target, "--request", "2")
    assert made.code == 0, made.err
    assert "group 1 of 2, its ranks are the plan's 0 2 4" in made.out
    assert "group 2 of 2, its ranks are the plan's 1 3 5" in made.out


def test_a_schedule_has_no_time_where_places_are_empty(plan: Plan, tmp_path: Path) -> None:
    """Its ranks are devices 0, 1, .., and device 5 is nowhere."""
    target = tmp_path / "request.yaml"
    assert cli("convert", written(plan, tmp_path), str(target), "--request", "1").code == 0
    schedule = p2smt.read_schedule(target)
    with pytest.raises(InputError, match="places without a host"):
        schedule_cost(schedule, racks().topology, 6e6)


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_real_ranks_have_the_right_results(plan: Plan, tmp_path: Path) -> None:
    """Six processes over Gloo, whose devices have holes in their numbers."""
    outcome = cli(
        *("run", written(plan, tmp_path), "--payload", "36KiB", "--json"),
        *("--repeat", "1", "--warmup", "0"),
    )
    assert (outcome.code, outcome.json()["verified"]) == (0, True), outcome
