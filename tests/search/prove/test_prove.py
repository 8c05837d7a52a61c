"""Solving a plan again: proved, refuted by a better plan or a false bound, or open at a limit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import p2smt
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Form
from p2smt.errors import EncodingBug, OutOfTimeError
from p2smt.parallelism.placement import AxisRule
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.check.check_plan import LINKS_OF_PLAN, check_plan
from p2smt.plans.file import plan_data, read_plan
from p2smt.plans.file_model import PlanModel
from p2smt.plans.solution import ProofStatus, Solution, rank_alternative
from p2smt.report.outputs.shape import json_of
from p2smt.report.plan_data import report_data, report_lines
from p2smt.result import SearchLimits, SolveStats, Status
from p2smt.search import prove as prove_module
from p2smt.search.prove import TICK, prove
from tests.cli.tools import TINY, cli

SIXES = """
name: sixes
algorithms: [ring]
levels:
  - {name: node, size: 6, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us}}
  - {name: gpu, size: 6, link: {kind: switch, bandwidth: 100 GB/s, latency: 2 us}}
"""

PROVED, REFUTED, OPEN = ProofStatus.PROVED, ProofStatus.REFUTED, ProofStatus.OPEN


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Topology:
    path = tmp_path_factory.mktemp("prove") / "tiny.yaml"
    path.write_text(TINY)
    return p2smt.load_topology(str(path))


def ask(cluster: Topology, **more: Any) -> Problem:
    requests = (p2smt.reduce("tp=64MiB"), p2smt.reduce("dp=1MiB*3"))
    return Problem(cluster, p2smt.parse_axes("dp=2,tp=4"), requests, **more)


def data_of(found: Solution, which: int = 0) -> dict[str, Any]:
    return json.loads(json.dumps(plan_data(found, found.alternatives[which])))  # type: ignore[no-any-return]


def model(folder: Path, data: dict[str, Any]) -> PlanModel:
    path = folder / "plan.json"
    path.write_text(json.dumps(data))
    plan = read_plan(str(path))
    assert isinstance(plan, PlanModel)
    return plan


@pytest.mark.parametrize("objective", ["sum", "max"])
@pytest.mark.parametrize(
    "restricted", [{}, {"rules": (AxisRule(1, 0, inside=False),), "max_length": 2}]
)
def test_what_solve_proved_is_proved_again(
    cluster: Topology, tmp_path: Path, objective: str, restricted: dict[str, Any]
) -> None:
    found = p2smt.solve(ask(cluster, objective=objective, **restricted))
    assert found.status is Status.OPTIMAL
    proof = prove(model(tmp_path, data_of(found)))
    assert (proof.status, proof.better, proof.false) == (PROVED, None, ())
    assert proof.objective_s * (1 - TICK) <= proof.bound_s <= proof.objective_s


def test_the_second_best_is_refuted_by_the_best(cluster: Topology, tmp_path: Path) -> None:
    found = p2smt.solve(ask(cluster), top=2)
    first, second = found.alternatives
    assert first.objective_s < second.objective_s
    data = data_of(found, 1)
    assert data["status"] == "feasible"
    proof = prove(model(tmp_path, data))
    assert proof.status is REFUTED
    assert proof.better is not None
    assert proof.better.objective_s == pytest.approx(first.objective_s, rel=1e-12)


def test_a_feasible_plan_as_fast_as_the_best_is_proved(cluster: Topology, tmp_path: Path) -> None:
    data = data_of(p2smt.solve(ask(cluster)))
    data |= {"status": "feasible", "bound_s": 0.0}
    for request in data["requests"]:
        request |= {"status": "feasible", "bound_s": 0.0}
    assert prove(model(tmp_path, data)).status is PROVED


ACROSS = AxisRule(1, 0, inside=False)


def longer(restriction: dict[str, Any]) -> dict[str, Any]:
    if restriction["kind"] != "max-length":
        return restriction
    return {**restriction, "instructions": 5, "text": "programs of at most 5 instructions"}


@pytest.mark.parametrize(
    ("restricted", "kind"),
    [
        ({"rules": (ACROSS,)}, "axis-rule"),
        ({"rules": (ACROSS,), "forbidden_forms": frozenset({Form.PARALLEL})}, "forbidden-form"),
        ({"rules": (ACROSS,), "max_length": 1}, "max-length"),
    ],
)
def test_a_restriction_taken_out_is_found(
    cluster: Topology, tmp_path: Path, restricted: dict[str, Any], kind: str
) -> None:
    """Nothing in the file speaks against it, but the plan is not the best without it."""
    data = data_of(p2smt.solve(ask(cluster, **restricted)))
    assert prove(model(tmp_path, data)).status is PROVED
    kept = [one for one in data["restrictions"] if one["kind"] != kind or kind == "max-length"]
    data["restrictions"] = [longer(one) for one in kept]
    plan = model(tmp_path, data)
    assert check_plan(plan, "plan").valid
    proof = prove(plan)
    assert proof.status is REFUTED
    assert proof.better is not None
    assert proof.better.objective_s < proof.objective_s * (1 - TICK)


def test_restrictions_are_kept_to(cluster: Topology, tmp_path: Path) -> None:
    """The best under its rule is proved, although plans that break it are faster."""
    rule = AxisRule(1, 0, inside=False)
    found, free = p2smt.solve(ask(cluster, rules=(rule,))), p2smt.solve(ask(cluster))
    assert found.best is not None
    assert free.best is not None
    assert free.best.objective_s < found.best.objective_s
    assert prove(model(tmp_path, data_of(found))).status is PROVED


def test_a_limit_leaves_it_open(cluster: Topology, tmp_path: Path) -> None:
    """Refuted or proved only where the search got so far: a slow plan without time is open."""
    found = p2smt.solve(ask(cluster))
    plan = model(tmp_path, data_of(found))
    proof = prove(plan, limits=SearchLimits(time_limit_s=0.0))
    assert (proof.status, proof.better) == (OPEN, None)
    assert proof.bound_s < proof.objective_s


def test_the_plans_own_limit_counts(cluster: Topology, tmp_path: Path) -> None:
    data = data_of(p2smt.solve(ask(cluster)))
    data["limits"]["time_limit_s"] = 0.0
    assert prove(model(tmp_path, data)).status is OPEN
    assert prove(model(tmp_path, data), limits=SearchLimits()).status is PROVED


def test_the_other_requests_of_max_are_held_to_their_bounds(
    cluster: Topology, tmp_path: Path
) -> None:
    """Its largest request is as fast as can be; a smaller one says that its program is the best."""
    requests = (p2smt.reduce("tp=64MiB"), p2smt.reduce("tp=1MiB"))
    axes = p2smt.parse_axes("dp=2,tp=4")
    problem = Problem(cluster, axes, requests, "max", rules=(ACROSS,))
    shorter = Problem(cluster, axes, requests, "max", rules=(ACROSS,), max_length=1)
    data, slow = data_of(p2smt.solve(problem)), data_of(p2smt.solve(shorter))
    assert prove(model(tmp_path, data)).status is PROVED
    assert slow["requests"][1]["seconds"] > data["requests"][1]["seconds"] * 1.01
    data["requests"][1] = slow["requests"][1]
    plan = model(tmp_path, data)
    assert check_plan(plan, "plan").valid
    proof = prove(plan)
    assert (proof.status, proof.better) == (REFUTED, None)
    assert len(proof.false) == 1
    assert proof.false[0].startswith("request 2 bound_s says")


@pytest.mark.parametrize("stop", ["limit", "interrupt"])
def test_bounds_that_the_time_left_does_not_settle_leave_it_open(
    cluster: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    """The time ends after the search has proved the largest request, before the other one."""
    requests = (p2smt.reduce("tp=64MiB"), p2smt.reduce("tp=1MiB"))
    axes = p2smt.parse_axes("dp=2,tp=4")
    problem = Problem(cluster, axes, requests, "max", rules=(ACROSS,))
    shorter = Problem(cluster, axes, requests, "max", rules=(ACROSS,), max_length=1)
    data, slow = data_of(p2smt.solve(problem)), data_of(p2smt.solve(shorter))
    data["requests"][1] = slow["requests"][1]
    plan = model(tmp_path, data)

    def stopped(*_: object) -> None:
        if stop == "interrupt":
            raise KeyboardInterrupt
        raise OutOfTimeError

    monkeypatch.setattr(prove_module, "answer_request", stopped)
    proof = prove(plan)
    assert (proof.status, proof.better, proof.false) == (OPEN, None, ())
    assert proof.unsettled[-1] == "request 2 bound_s"
    assert proof.bound_s >= proof.objective_s * (1 - TICK)
    (line,) = [
        text for text in report_lines(check_plan(plan, "plan"), proof) if "optimality" in text
    ]
    assert "not settled: " in line
    assert "request 2 bound_s" in line
    data = json_of(report_data(check_plan(plan, "plan"), proof))
    assert data["proof"]["unsettled"] == list(proof.unsettled)


def test_a_bound_above_a_valid_plan_is_a_contradiction(
    cluster: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a false bound of an encoding would be: it must not read as a proof."""
    found = p2smt.solve(ask(cluster))
    for factor, wrong in ((1 + TICK / 2, False), (1 + 4 * TICK, True)):
        told = replace(found, bound_s=found.bound_s * factor)
        monkeypatch.setattr(prove_module, "solve", lambda *_, told=told, **__: told)
        plan = model(tmp_path, data_of(found))
        if wrong:
            with pytest.raises(EncodingBug, match="less than the bound"):
                prove(plan)
        else:
            assert prove(plan).status is PROVED


def test_a_rank_list_at_a_limit_says_that_the_matrices_are_not_done(tmp_path: Path) -> None:
    (tmp_path / "sixes.yaml").write_text(SIXES)
    cluster = p2smt.load_topology(str(tmp_path / "sixes.yaml"))
    problem = Problem(cluster, p2smt.parse_axes("tp=9,dp=4"), (p2smt.reduce("dp=64MiB"),))
    model(tmp_path, data_of(p2smt.solve(problem)))
    path = str(tmp_path / "plan.json")
    said = "nothing faster was found, but other rank orders were not tried"
    whole, cut = (
        cli("verify", path, "--prove", "--details"),
        cli("verify", path, "--prove", "--details", "--time-limit", "0.000001"),
    )
    assert (whole.code, cut.code) == (3, 3)
    assert f"open, {said}" in whole.out
    assert f"open, the search ended at its limit: {said}" in cut.out


def test_a_link_level_bound_that_no_search_finds_is_false(
    cluster: Topology, tmp_path: Path
) -> None:
    """The links allow the plan's own placement less than they allow another one."""
    requests = (p2smt.reduce("tp=1MiB"), p2smt.all_to_all("dp=1MiB"))
    data = data_of(p2smt.solve(Problem(cluster, p2smt.parse_axes("dp=2,tp=4"), requests)))
    own_s = sum(request["physical_bound_s"] for request in data["requests"])
    assert data["physical_bound_s"] < own_s * 0.99
    data["physical_bound_s"] = own_s
    plan = model(tmp_path, data)
    assert check_plan(plan, "plan").valid
    proof = prove(plan)
    assert (proof.status, proof.better) == (REFUTED, None)
    assert proof.false[0].startswith("physical_bound_s says")


@pytest.mark.parametrize("factor", [0.0, 0.9])
def test_a_smaller_link_level_bound_of_an_optimal_plan_is_false(
    cluster: Topology, tmp_path: Path, factor: float
) -> None:
    """Who knows the optimum knows the least that the links allow."""
    data = data_of(p2smt.solve(ask(cluster)))
    assert data["physical_bound_s"] > 0
    data["physical_bound_s"] *= factor
    plan = model(tmp_path, data)
    report = check_plan(plan, "plan")
    assert report.valid
    assert LINKS_OF_PLAN in report.not_checked
    proof = prove(plan)
    assert (proof.status, proof.better) == (REFUTED, None)
    assert proof.false[0].startswith("physical_bound_s says")
    assert proof.weaker == ()


def test_smaller_bounds_of_a_feasible_plan_are_named(cluster: Topology, tmp_path: Path) -> None:
    """A search that was cut short may have found no better ones."""
    found = p2smt.solve(ask(cluster))
    data = data_of(found) | {"status": "feasible", "bound_s": 0.0, "physical_bound_s": 0.0}
    plan = model(tmp_path, data)
    proof = prove(plan)
    assert (proof.status, proof.false) == (PROVED, ())
    said = [text.split(" says ")[0] for text in proof.weaker]
    assert said == ["bound_s", "physical_bound_s"]
    lines = list(report_lines(check_plan(plan, "plan"), proof))
    assert lines[-2:] == [f"  weaker than proved: {text}" for text in proof.weaker]
    data = json_of(report_data(check_plan(plan, "plan"), proof))
    assert data["proof"]["weaker"] == list(proof.weaker)


def test_the_link_level_bound_of_a_plan_is_checked_by_its_proof(
    cluster: Topology, tmp_path: Path
) -> None:
    plan = model(tmp_path, data_of(p2smt.solve(ask(cluster))))
    report = check_plan(plan, "plan")
    proved = json_of(report_data(report, prove(plan)))
    cut = json_of(report_data(report, prove(plan, limits=SearchLimits(time_limit_s=0.0))))
    assert LINKS_OF_PLAN in proved["checked"]
    assert LINKS_OF_PLAN not in proved["not_checked"]
    assert LINKS_OF_PLAN not in cut["checked"]
    assert LINKS_OF_PLAN in cut["not_checked"]
    assert f"{LINKS_OF_PLAN}: not checked" in report_lines(report)
    assert f"{LINKS_OF_PLAN}: not checked" not in report_lines(report, prove(plan))


def test_a_rank_list_is_refuted_or_open(cluster: Topology, tmp_path: Path) -> None:
    """What is proved of matrices does not bound rank orders, of which few are tried."""
    problem = ask(cluster)
    best = p2smt.solve(problem).best
    assert best is not None
    stats = SolveStats("cpsat")
    for order, status in (((0, 1, 2, 3, 4, 5, 6, 7), OPEN), ((0, 4, 1, 5, 2, 6, 3, 7), REFUTED)):
        found = rank_alternative(problem, RankList(order, (2, 4)))
        made = Solution(problem, Status.FEASIBLE, (found,), 0.0, 0.0, Status.TRUNCATED, stats)
        proof = prove(model(tmp_path, data_of(made)))
        assert (proof.status, proof.bound_s) == (status, 0.0)
        assert (proof.better is None) is (found.objective_s <= best.objective_s * (1 + TICK))
        told = cli("verify", str(tmp_path / "plan.json"), "--prove", "--json").json()["proof"]
        assert (told["status"], told["bound_s"]) == (status.value, None)
        outcome = cli("verify", str(tmp_path / "plan.json"), "--prove", "--details")
        assert outcome.code == (3 if status is OPEN else 1)
        assert ("other rank orders were not tried" in outcome.out) is (status is OPEN)


def test_a_rank_list_that_solve_answers_refutes_every_matrix(tmp_path: Path) -> None:
    """Levels 6,6, axes 9,4: the default order is faster than the best matrix."""
    (tmp_path / "sixes.yaml").write_text(SIXES)
    cluster = p2smt.load_topology(str(tmp_path / "sixes.yaml"))
    problem = Problem(cluster, p2smt.parse_axes("tp=9,dp=4"), (p2smt.reduce("dp=64MiB"),))
    found = p2smt.solve(problem)
    listed, best = found.alternatives[:2]
    assert (listed.matrix is None, best.matrix is None) == (True, False)
    assert prove(model(tmp_path, data_of(found))).status is OPEN
    proof = prove(model(tmp_path, data_of(found, 1)))
    assert proof.status is REFUTED
    assert proof.better is not None
    assert proof.better.ranks == tuple(range(36))


def test_what_is_not_valid_is_not_solved_again(cluster: Topology, tmp_path: Path) -> None:
    data = data_of(p2smt.solve(ask(cluster)))
    data["objective_s"] *= 2
    with pytest.raises(p2smt.InputError, match="is not valid"):
        prove(model(tmp_path, data))


def test_the_command_says_it_and_exits_with_it(cluster: Topology, tmp_path: Path) -> None:
    path, found = tmp_path / "plan.json", p2smt.solve(ask(cluster), top=2)
    text = {}
    for name, which, more, code in (
        ("proved", 0, (), 0),
        ("refuted", 1, (), 1),
        ("open", 0, ("--time-limit", "0.000001"), 3),
    ):
        path.write_text(json.dumps(data_of(found, which)))
        outcome = cli("verify", str(path), "--prove", "--details", *more)
        assert (outcome.code, outcome.err) == (code, "")
        text[name] = outcome.out
        data = cli("verify", str(path), "--prove", "--json", *more).json()
        assert (data["verdict"], data["proof"]["status"]) == ("valid", name)
        assert ("optimality" in data["not_checked"]) is (name == "open")
        assert ("optimality" in data["checked"]) is (name != "open")
        assert data["proof"]["bound_s"] <= data["proof"]["objective_s"]
        assert (data["proof"]["better"] is None) is (name != "refuted")
    assert "optimality: proved, no placement matrix takes less than" in text["proved"]
    assert "optimality: refuted, a better plan takes" in text["refuted"]
    assert f"  placement {found.alternatives[0].placement.text()}\n" in text["refuted"]
    assert "optimality: open" in text["open"]
    assert "the search ended at its limit; nothing is proved of its time" in text["open"]


def test_an_invalid_plan_is_told_before_it_is_solved_again(
    cluster: Topology, tmp_path: Path
) -> None:
    data = data_of(p2smt.solve(ask(cluster)))
    data["requests"][0]["seconds"] = 1e-9
    (tmp_path / "plan.json").write_text(json.dumps(data))
    outcome = cli("verify", str(tmp_path / "plan.json"), "--prove", "--json")
    assert (outcome.code, outcome.json()["verdict"]) == (1, "invalid")
    assert outcome.json()["proof"] is None


def test_only_plans_are_proved(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text("<algo/>")
    for arguments in ((str(tmp_path / "x.xml"),), ("--program", "all-reduce inside l1")):
        outcome = cli("verify", *arguments, "--prove")
        assert outcome.code == 2
        assert "--prove" in outcome.err
