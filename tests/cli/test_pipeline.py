"""`--pipeline` on the command line, and chunks in plan files."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import Outcome, assert_one_error, cli

Plan = dict[str, Any]
REQUESTS = (
    *("--axes", "dp=2,tp=4", "--reduce", "dp+tp=1GiB", "--all-gather", "dp+tp=8MiB*3"),
    *("--reduce", "dp=1MiB", "--all-to-all", "tp=1MiB", "--fix", "tp=gpu:4"),
)
PROGRAM = "reduce-scatter inside node; all-reduce parallel node in root; all-gather inside node"
SCENE = ("--axes", "dp=8", "--placement", "[[2,4]]", "--reduce", "dp=1GiB")


@pytest.fixture(scope="module")
def plan(tiny: str) -> Plan:
    data = cli("solve", "-t", tiny, *REQUESTS, "--pipeline", "8", "--json").json()
    assert data["status"] == "optimal"
    assert data["alternatives"][0]["chunks"] == [8, 1, 8, 1]
    assert isinstance(data["plan"], dict)
    return data["plan"]


def verify(folder: Path, plan: Plan, *more: str) -> Outcome:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return cli("verify", str(path), *more)


def test_a_plan_says_chunks_and_the_steps_of_one(plan: Plan, tmp_path: Path) -> None:
    first = plan["requests"][0]
    assert [r["chunks"] for r in plan["requests"]] == [8, 1, 8, 1]
    assert first["steps"][0]["payload_bytes"] == 2**30 / 8
    assert sum(step["seconds"] for step in first["steps"]) < first["seconds"]
    assert "programs of several steps in 8 chunks" in [r["text"] for r in plan["restrictions"]]
    data = verify(tmp_path, plan, "--json").json()
    assert (data["verdict"], data["violations"]) == ("valid", [])
    assert data["seconds"] == pytest.approx([r["seconds"] for r in plan["requests"]])
    costs = cli("cost", str(tmp_path / "plan.json"), "--details").out
    assert "all-reduce dp+tp 1 GiB in 8 chunks" in costs
    assert "steps: time of one execution, or per chunk" in costs
    assert "  reduce-scatter inside node, per chunk " in costs
    assert "  all-to-all " in costs
    assert "all-to-all, per chunk" not in costs


def test_tables_show_chunks_where_there_are_several(tiny: str) -> None:
    out = cli(
        "solve", "-t", tiny, *REQUESTS[:-2], "--pipeline", "auto", "--top", "2", "--details"
    ).out
    assert "all-reduce dp+tp 1 GiB in 64 chunks" in out
    assert "A/64 " in out
    assert "A/M: in M chunks" in out
    whole = cli("solve", "-t", tiny, *REQUESTS).out
    assert whole == cli("solve", "-t", tiny, *REQUESTS, "--pipeline", "1").out
    assert "chunks" not in whole


def test_older_plans_have_one_chunk(tiny: str, tmp_path: Path) -> None:
    plan = cli("solve", "-t", tiny, *REQUESTS, "--json").json()["plan"]
    for request in plan["requests"]:
        assert request.pop("chunks") == 1
    assert verify(tmp_path, plan).code == 0


def set_in(number: int, *path: str | int, to: object) -> Callable[[Plan], None]:
    """A change of a value of a request."""

    def change(plan: Plan) -> None:
        at: Any = plan["requests"][number]
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to

    return change


def _sum_of_steps(plan: Plan) -> None:
    first = plan["requests"][0]
    first["seconds"] = 8 * sum(step["seconds"] for step in first["steps"])


LIES: dict[str, tuple[Callable[[Plan], None], str]] = {
    "other chunks": (set_in(0, "chunks", to=4), "payload_bytes says"),
    "no chunks": (lambda p: p["requests"][0].pop("chunks"), "payload_bytes says"),
    "seconds": (set_in(0, "seconds", to=1.0), "request 1 seconds says"),
    "steps one after the other": (_sum_of_steps, "request 1 seconds says"),
    "step payload": (set_in(0, "steps", 0, "payload_bytes", to=2.0**30), "step 1 payload_bytes"),
    "step seconds": (set_in(0, "steps", 1, "seconds", to=1.0), "step 2 seconds"),
    "step load": (set_in(0, "steps", 2, "load_bytes", to=1.0), "step 3 load_bytes"),
    "chunks of one step": (set_in(1, "chunks", to=8), "only several steps are pipelined"),
    "chunks of a fixed step": (set_in(3, "chunks", to=2), "only several steps are pipelined"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_changed_plan_is_refuted(plan: Plan, tmp_path: Path, name: str) -> None:
    change, words = LIES[name]
    changed = copy.deepcopy(plan)
    change(changed)
    outcome = verify(tmp_path, changed)
    assert outcome.code == 1
    assert words in outcome.out
    verdicts = [line for line in outcome.out.splitlines() if line.startswith(("valid", "invalid"))]
    assert len(verdicts) == 1
    assert verdicts[0].startswith("invalid: ")


@pytest.mark.parametrize("chunks", [0, -1, 1025, 10**30, 1.5, "8", True, None])
def test_chunks_that_are_no_number_of_chunks(plan: Plan, tmp_path: Path, chunks: object) -> None:
    changed = copy.deepcopy(plan)
    changed["requests"][0]["chunks"] = chunks
    outcome = verify(tmp_path, changed)
    assert_one_error(outcome)
    assert "chunks" in outcome.err


def test_cost_of_a_program_in_chunks(tiny: str) -> None:
    def cost(*more: str) -> dict[str, Any]:
        return cli("cost", "-t", tiny, *SCENE, "--program", PROGRAM, *more, "--json").json()

    whole, four, auto = cost(), cost("--pipeline", "4"), cost("--pipeline", "auto")
    assert [data["chunks"] for data in (whole, four)] == [1, 4]
    assert whole == cost("--pipeline", "1")
    assert whole["seconds"] == sum(step["seconds"] for step in whole["steps"])
    times = [step["seconds"] for step in four["steps"]]
    assert four["seconds"] == pytest.approx(sum(times) + 3 * max(times))
    assert auto["seconds"] <= four["seconds"] < whole["seconds"]
    for data in (whole, four, auto):
        assert data["physical_bound_s"] <= data["seconds"]
    shown = cli(
        "cost", "-t", tiny, *SCENE, "--program", PROGRAM, "--pipeline", "4", "--details"
    ).out
    assert "steps of one chunk" in shown
    last = shown.splitlines()[-1]
    assert re.match(r"\S+ ms in 4 chunks, .*: assumed, no table measures .*; single coll", last)


def test_one_step_stays_whole(tiny: str) -> None:
    data = cli("cost", "-t", tiny, *SCENE, "--pipeline", "8", "--json").json()
    assert (data["chunks"], data["seconds"]) == (1, data["single_collective_s"])
