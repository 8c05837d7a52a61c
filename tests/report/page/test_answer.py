"""The part ``answer`` of plan files, against what the same search prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from p2smt.cli.codes import BAD_INPUT
from p2smt.plans.file import read_plan
from p2smt.plans.file_model import PlanModel
from tests.cli.tools import H100, RACKS, SMALL, TINY, assert_one_error, cli

TRAINED = "plan --model small.yaml --global-batch 16 --seq 1024 -t tiny.yaml --within 30%"
PLACED = "solve -t tiny.yaml -a dp=2,tp=4 --reduce dp=1GiB --reduce 'tp=64MiB*3'"
HOSTED = "solve -t racks.yaml --hosts n[1-3] -a dp=3,tp=2 --reduce dp=1GiB"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "racks.yaml").write_text(RACKS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(command: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer in the file that a command writes, and what the command prints."""
    done = cli(*shlex.split(command), "-o", "plan.json", "--json")
    assert done.code == 0, done.err
    answer = json.loads(Path("plan.json").read_text())["answer"]
    assert isinstance(answer, dict)
    return answer, done.json()


@pytest.mark.usefixtures("folder")
def test_a_training_has_every_near_strategy_with_its_memory() -> None:
    answer, printed = written(TRAINED + " --top 2")
    assert answer["command"] == f"p2smt {TRAINED} --top 2"
    assert (answer["status"], answer["proof"]) == (printed["status"], printed["proof"])
    assert answer["reserve_bytes"] == printed["free_bytes"]
    near = printed["near_optimal_strategies"]
    said = [{key: one[key] for key in ("strategy", "iteration_s")} for one in answer["points"]]
    assert said == near
    assert len(near) > 3
    for point in answer["points"][::20]:
        asked = "estimate --model small.yaml --global-batch 16 --seq 1024 -t tiny.yaml --json"
        found = cli(*shlex.split(asked), "--strategy", point["strategy"]).json()
        assert point["memory_bytes"] == found["memory_bytes"]
        assert sum(point["parts"].values()) == pytest.approx(point["iteration_s"])
        assert point["parts"]["optimizer"] == pytest.approx(found["parts"]["optimizer"])


@pytest.mark.usefixtures("folder")
def test_links_are_occupied_as_long_as_their_requests_say() -> None:
    answer, printed = written(PLACED)
    levels = {one["level"]: one for one in answer["links"]}
    assert [*levels] == ["node", "gpu"]
    for one in levels.values():
        assert one["busy_s"] == pytest.approx(sum(one["requests"].values()))
        assert one["busy_s"] <= printed["objective_s"]
    across_s = sum(
        request["times"] * request["chunks"] * step["load_bytes"] / 10e9
        for request in printed["plan"]["requests"]
        for step in request["steps"]
        if step["bottleneck"] == "node"
    )
    assert 0 < across_s <= levels["node"]["busy_s"] * (1 + 1e-9)
    alone = [one for one in printed["plan"]["requests"] if len(one["steps"]) == 1]
    assert alone == [] or levels["node"]["busy_s"] == pytest.approx(across_s)
    (other,) = answer["beside"]
    assert other["seconds"] == printed["default_layout"]["objective_s"]


@pytest.mark.usefixtures("folder")
def test_hosts_without_ranks_and_other_orders_are_named() -> None:
    answer, printed = written("solve -t racks.yaml --hosts n[1-4] -a dp=2,tp=2 --reduce dp=1GiB")
    assert answer["idle"] == printed["idle"]
    assert len(answer["idle"]) == 2
    names = {one["name"]: one["objective_s"] for one in printed["orders"]}
    assert {one["name"]: one["seconds"] for one in answer["beside"]} == names


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [TRAINED, PLACED, HOSTED])
def test_verify_takes_files_with_and_without_it(command: str) -> None:
    written(command)
    assert cli("verify", "plan.json").code == 0
    data = json.loads(Path("plan.json").read_text())
    assert isinstance(read_plan("plan.json"), PlanModel)
    del data["answer"]
    Path("plan.json").write_text(json.dumps(data))
    assert cli("verify", "plan.json").code == 0
    Path("plan.json").write_text(json.dumps(data | {"answer": {"status": "best"}}))
    done = cli("verify", "plan.json")
    assert_one_error(done)
    assert "answer" in done.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [TRAINED, PLACED])
def test_no_plan_is_written_under_the_name_of_a_page(command: str) -> None:
    done = cli(*shlex.split(command), "-o", "report.html")
    assert done.code == BAD_INPUT
    assert "p2smt report PLAN -o" in done.err
    assert not Path("report.html").exists()
