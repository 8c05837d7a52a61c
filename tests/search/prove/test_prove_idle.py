"""Plans that leave hosts idle: which, is part of what is checked and proved."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.file_model import PlanModel
from tests.cli.tools import RACKS, assert_one_error, cli
from tests.schemas.mutations import mutants
from tests.strategies.draws import Draws, draws

AXES = ("-a", "dp=2,pp=2,tp=2", "--reduce", "dp=64MiB", "--send", "pp=1MiB", "--fix", "tp=gpu:2")
FIVE = ["n1", "n2", "n3", "n4", "n5"]

Plan = dict[str, Any]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    (tmp_path / "racks.yaml").write_text(RACKS)
    return tmp_path


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A plan on four of five hosts."""
    folder = tmp_path_factory.mktemp("idle")
    (folder / "racks.yaml").write_text(RACKS)
    asked = ("solve", "-t", str(folder / "racks.yaml"), "--hosts", "n[1-5]", *AXES, "--json")
    plan: Plan = cli(*asked).json()["plan"]
    return plan


def solved(hosts: str, *more: str) -> Plan:
    """The plan of these hosts, which is written, too."""
    outcome = cli("solve", "-t", "racks.yaml", "--hosts", hosts, *AXES, *more, "-o", "plan.json")
    assert outcome.code == 0, outcome.err
    plan: Plan = json.loads(Path("plan.json").read_text())
    return plan


def write(plan: Plan) -> None:
    Path("plan.json").write_text(json.dumps(plan))


@pytest.mark.usefixtures("here")
def test_a_plan_has_all_hosts_that_were_listed_where_some_are_idle() -> None:
    plan = solved("n[1-5]")
    switches = plan["allocation"]["switches"]
    assert [one["hosts"] for one in switches] == ["n[1,3,5]", "n[2,4]"]
    assert set(plan["hosts"]) < set(FIVE)
    assert solved("n[1-4]")["allocation"] is None


@pytest.mark.usefixtures("here")
def test_which_hosts_are_idle_is_proved() -> None:
    solved("n[1-5]")
    outcome = cli("verify", "plan.json", "--prove", "--details")
    assert outcome.code == 0
    assert "proved, no choice and order of the 5 hosts listed takes less than" in outcome.out
    solved("n[1-4]")
    assert (
        "proved, no order of these hosts takes less than"
        in cli("verify", "plan.json", "--prove", "--details").out
    )


@pytest.mark.usefixtures("here")
def test_a_plan_on_the_wrong_hosts_is_refuted_by_others_of_those_listed() -> None:
    listed = solved("n[1-5]")["allocation"]
    plan = solved("n[1,3,5],n2")
    assert cli("verify", "plan.json", "--prove").code == 0
    write({**plan, "allocation": listed})
    assert cli("verify", "plan.json").code == 0
    outcome = cli("verify", "plan.json", "--prove", "--json")
    assert outcome.code == 1
    proof = outcome.json()["proof"]
    assert proof["status"] == "refuted"
    assert proof["better"]["objective_s"] < proof["objective_s"]
    assert set(proof["better_hosts"]) != set(plan["hosts"])


@pytest.mark.usefixtures("here")
def test_idle_hosts_of_uplinks_without_a_stated_bandwidth() -> None:
    Path("racks.yaml").write_text(RACKS + "assumed: [rack]\n")
    plan = solved("n[1-5]")
    links = [level["link"]["bandwidth"] for level in plan["allocation"]["levels"]]
    assert links == [level["link"]["bandwidth"] for level in plan["topology"]["levels"]]
    outcome = cli("verify", "plan.json", "--prove", "--details")
    assert outcome.code == 0
    assert "no choice and order of the 5 hosts listed takes less time" in outcome.out


@pytest.mark.usefixtures("here")
def test_a_topology_that_is_not_of_its_hosts_is_a_violation() -> None:
    plan = solved("n[1-5]")
    plan["allocation"]["levels"][0]["link"]["latency"] = "11 us"
    write(plan)
    outcome = cli("verify", "plan.json", "--json")
    assert outcome.code == 1
    assert [(one["kind"], one["message"]) for one in outcome.json()["violations"]] == [
        ("ranks", "the topology is not that of its hosts in the allocation")
    ]


@pytest.mark.usefixtures("here")
def test_an_allocation_without_a_host_of_the_plan_is_refused() -> None:
    plan = solved("n[1-5]")
    text = json.dumps(plan["allocation"]).replace("n[1,3,5]", "m[1,3,5]").replace("n[2,4]", "m2")
    write({**plan, "allocation": json.loads(text)})
    for more in ((), ("--prove",)):
        outcome = cli("verify", "plan.json", *more)
        assert_one_error(outcome)
        assert "allocation: host" in outcome.err


@pytest.mark.usefixtures("here")
def test_an_allocation_of_a_plan_without_hosts_is_refused() -> None:
    listed = solved("n[1-5]")["allocation"]
    outcome = cli("solve", "-t", "dgx-h100:2", "-a", "dp=2,tp=8", "--reduce", "dp=1MiB", "--json")
    write({**outcome.json()["plan"], "allocation": listed})
    outcome = cli("verify", "plan.json")
    assert_one_error(outcome)
    assert "allocation: is for rank lists on named hosts" in outcome.err


@pytest.mark.usefixtures("here")
def test_entries_inside_the_nodes_are_held_against_the_ranks() -> None:
    plan = solved("n[1-4]")
    assert cli("verify", "plan.json").code == 0
    fixed = next(rule for rule in plan["restrictions"] if rule["kind"] == "fixed-entry")
    fixed |= {"axis": "dp", "text": "dp=gpu:2"}
    write(plan)
    outcome = cli("verify", "plan.json")
    assert outcome.code == 1
    assert "restriction: dp=gpu:2: the matrix has 1 there" in outcome.out


@given(draws())
def test_no_change_of_an_allocation_breaks_the_check(idle: Plan, data: Draws) -> None:
    changed = {**idle, "allocation": data.draw(mutants(idle["allocation"]))}
    with suppress(InputError):
        check_plan(validated(PlanModel, changed, "plan"), "plan")
