"""`verify` and `cost` of the plan of a redistribution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p2smt import verify
from p2smt.errors import InputError
from p2smt.plans.file import read_plan
from p2smt.resharding.plan_check import RedistributionReport
from p2smt.resharding.plan_file import read_redistribution, redistribution_text
from p2smt.resharding.steps import MemoryLimit
from tests.cli.tools import cli
from tests.resharding.planning import array_type, best_plan, dearest_plan

MESH = "a=2,b=4"
SOURCE, TARGET = array_type(MESH, (64, 64), "S(a),S(b)"), array_type(MESH, (64, 64), "S(b),S(a)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans")
    best = best_plan(SOURCE, TARGET)
    (path / "best.json").write_text(redistribution_text(best))
    (path / "slow.json").write_text(redistribution_text(dearest_plan(SOURCE, TARGET)))
    reduces = array_type(MESH, (64, 64), "R,S(a);P(b)"), array_type(MESH, (64, 64), "S(a),R")
    capped = best_plan(*reduces, memory=MemoryLimit(2**15, True, True))
    (path / "capped.json").write_text(redistribution_text(capped))
    data = json.loads(redistribution_text(best))
    data["steps"][0]["seconds"] *= 2
    (path / "wrong.json").write_text(json.dumps(data))
    return path


def test_a_valid_plan(folder: Path) -> None:
    done = cli("verify", str(folder / "best.json"))
    assert done.code == 0
    assert done.out.startswith("valid: 2 steps, 10.04 us\nchecked: rules of steps, meaning, ")
    assert done.out.endswith("optimality: not checked\n")


@pytest.mark.parametrize("name", ["best", "capped"])
def test_the_fastest_is_proved(folder: Path, name: str) -> None:
    done = cli("verify", str(folder / f"{name}.json"), "--prove")
    assert done.code == 0
    assert "optimality: proved, no plan takes less than " in done.out


def test_a_slow_plan_is_valid_and_refuted(folder: Path) -> None:
    assert cli("verify", str(folder / "slow.json")).code == 0
    done = cli("verify", str(folder / "slow.json"), "--prove", "--json")
    assert done.code == 1
    proof = done.json()["proof"]
    assert proof["status"] == "refuted"
    assert proof["better_s"] == pytest.approx(best_plan(SOURCE, TARGET).objective_s)
    assert proof["better_s"] < proof["objective_s"]
    told = cli("verify", str(folder / "slow.json"), "--prove").out
    assert "optimality: refuted, a better plan takes 10.04 us" in told


def test_a_wrong_plan(folder: Path) -> None:
    done = cli("verify", str(folder / "wrong.json"), "--prove", "--details")
    assert done.code == 1
    assert done.out.startswith("cost: step 1 seconds says ")
    assert "\ninvalid: 2 steps" in done.out
    assert cli("cost", str(folder / "wrong.json")).code == 1


@pytest.mark.parametrize("change", [{"levels_only": True}, {"max_steps": 1}])
def test_a_plan_against_its_own_restrictions(folder: Path, change: dict[str, Any]) -> None:
    data = json.loads((folder / "best.json").read_text())
    path = folder / "restricted.json"
    path.write_text(json.dumps(data | change))
    done = cli("verify", str(path), "--prove", "--details")
    assert done.code == 1
    assert done.out.startswith(f"rule: {next(iter(change))} says ")


def test_cost_shows_the_steps(folder: Path) -> None:
    done = cli("cost", str(folder / "best.json"), "--details")
    assert done.code == 0
    assert "permute to S(b),S(a)" in done.out
    assert "optimality: not checked\n\nthe file says optimal: 10.04 us, proved among" in done.out
    steps = cli("cost", str(folder / "best.json"), "--json").json()["steps"]
    assert [step["kind"] for step in steps] == ["all-to-all", "permute"]


def test_options_that_are_not_for_plans(folder: Path) -> None:
    for command in (
        ("verify", "--time-limit", "1"),
        ("verify", "--fifo-depth", "2"),
        ("cost", "-t", "dgx-a100:2"),
    ):
        name, *options = command
        assert cli(name, str(folder / "best.json"), *options).code == 2


def test_other_readers_of_plans_say_what_it_is(folder: Path) -> None:
    with pytest.raises(InputError, match="is the plan of a redistribution"):
        read_plan(str(folder / "best.json"))
    done = cli("convert", str(folder / "best.json"), str(folder / "made.xml"))
    assert done.code == 2
    assert "is the plan of a redistribution" in done.err


def test_verify_as_a_function(folder: Path) -> None:
    path = folder / "best.json"
    for report in (verify(path), verify(read_redistribution(str(path)))):
        assert isinstance(report, RedistributionReport)
        assert report.valid


def test_one_device_needs_no_steps(tmp_path: Path) -> None:
    path = str(tmp_path / "one.json")
    where = ("-t", "azure-ndv4:1", "--use", "gpu=1", "--mesh", "dp=1")
    kind = ("--shape", "8,8", "--dtype", "f32", "--from", "S(dp),R", "--to", "R,R")
    assert cli("redistribute", *where, *kind, "-o", path).code == 0
    assert cli("verify", path, "--prove").out.startswith("valid: 0 steps, 0 s\n")
    assert cli("run", path, "--backend", "reference").code == 0
    assert cli("export", path, "--to", "jax-shard-map").code == 0
