"""Every command that prints times prints their ranges and what they rest on, in one form."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from p2smt.cost.accuracy import PriceBasis
from p2smt.plans.file import read_plan
from p2smt.units import format_time, format_time_range
from tests.cli.tools import cli
from tests.refusals import refusal

PLACED = "-t aws-p5:2 --axes dp=16 --placement '[[2,8]]'"
SOLVED = "solve -t aws-p5:2 --axes dp=8,tp=2 --reduce dp=1GiB --reduce tp=1MiB*4"
TRAINED = "--model llama-3-8b -t dgx-h100:1 --global-batch 16 --seq 2048"
ESTIMATE = f"estimate {TRAINED} --strategy tp=2,pp=1,dp=4"
WORDS = [one.value for one in PriceBasis]


def told(seconds: float, data: dict[str, Any], basis: str = "basis") -> str:
    """The short form of a time and its fields."""
    low, high = data["range_s"]
    assert low <= seconds <= high
    assert data[basis] in WORDS
    return f"{format_time(seconds)}, {format_time_range(low, high, seconds)}: {data[basis]}"


def both(command: str) -> tuple[str, dict[str, Any]]:
    """All that a command prints for people, and as data."""
    words = shlex.split(command)
    return cli(*words, "--details").out, cli(*words, "--json").json()


def test_cost_says_it_of_a_request_and_of_several() -> None:
    text, data = both(f"cost {PLACED} --reduce dp=1GiB")
    assert told(data["seconds"], data) in text
    assert data["basis"] == "fitted here"
    text, data = both(f"cost {PLACED} --reduce dp=1GiB --all-to-all dp=64MiB")
    for one in data["requests"]:
        assert told(one["seconds"], one) in text
    total = f"{format_time(data['objective_s'])} per iteration (total), "
    assert total + told(data["objective_s"], data).partition(", ")[2] in text
    ends = zip(*(one["range_s"] for one in data["requests"]), strict=True)
    assert data["range_s"] == pytest.approx([sum(end) for end in ends])
    assert data["basis"] == "fitted on a like system", "no table of all-to-all"


@pytest.mark.parametrize("programs", ["", "--program single"])
def test_each_size_has_its_range(programs: str) -> None:
    text, data = both(f"cost {PLACED} --reduce dp --sizes 64KiB..1GiB*64 {programs}")
    rows = [line for line in text.splitlines() if re.match(r" *\d+ [KMG]iB ", line)]
    for one, row in zip(data["sizes"], rows, strict=True):
        assert told(one["seconds"], one).partition(", ")[2] in row


def test_solve_its_file_and_cost_of_that_say_the_same(tmp_path: Path) -> None:
    text, data = both(SOLVED)
    known = told(data["objective_s"], data, "range_basis").partition(", ")[2]
    assert f"per iteration (total), {known}" in text
    default = data["default_layout"]
    assert told(default["objective_s"], default).partition(", ")[2] in text
    path = tmp_path / "plan.json"
    assert cli(*shlex.split(SOLVED), "-o", str(path)).code == 0
    plan = json.loads(path.read_text())
    assert (plan["range_s"], plan["range_basis"]) == (data["range_s"], data["range_basis"])
    assert f"per iteration (total), {known}" in cli("cost", str(path), "--details").out
    costed = cli("cost", str(path), "--json").json()["requests"]
    assert [one["range_s"] for one in costed] == [one["range_s"] for one in plan["requests"]]
    assert all(one["basis"] in WORDS for one in costed)


def test_every_placement_and_each_step_of_a_program_has_one() -> None:
    text, data = both(f"{SOLVED} --top 3 --within 100%")
    assert len(data["alternatives"]) == 2
    rows = re.findall(r"^ +[12]  .*$", text, re.M)
    for one, row in zip(data["alternatives"], rows, strict=False):
        assert row.endswith(told(one["objective_s"], one).partition(", ")[2])
        for seconds, steps in zip(one["seconds"], one["steps"], strict=True):
            assert all(told(step["seconds"], step) for step in steps)
            assert sum(step["seconds"] for step in steps) == pytest.approx(seconds)
    near = data["near_optimal_placements"]
    assert near[0]["range_s"] == data["range_s"] == data["alternatives"][0]["range_s"]
    assert all(told(one["objective_s"], one) for one in near)


def test_programs_and_the_single_collective_beside_them() -> None:
    text, data = both(f"programs {PLACED} --reduce dp=1GiB --top 4")
    several = [one for one in data["programs"] if len(one["instructions"]) > 1]
    assert several
    for one in data["programs"]:
        assert f"{told(one['seconds'], one)}  {one['text']}" in text
    beside = told(data["single_collective_s"], data, "range_basis").partition(", ")[2]
    assert re.search(f"^single collective .*, {beside}$", text, re.M)
    best = several[0]
    text, one = both(f"cost {PLACED} --reduce dp=1GiB --program '{best['text']}'")
    assert [one[key] for key in ("range_s", "basis")] == [best[key] for key in ("range_s", "basis")]
    ends = zip(*(step["range_s"] for step in one["steps"]), strict=True)
    assert one["range_s"] == pytest.approx([sum(end) for end in ends])
    for step in one["steps"]:
        low, high = step["range_s"]
        assert format_time_range(low, high, step["seconds"]) in text


def test_a_file_says_in_words_why_it_knows_no_more(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    options = "-t dgx-a100:2 --library none --axes dp=8,tp=2 --reduce dp=1GiB --reduce tp=1MiB"
    said = cli("solve", *shlex.split(options), "-o", str(path), "--details")
    assert "assumed, no library runs here" in said.out
    plan = json.loads(path.read_text())
    assert plan["range_basis_why"] == "no library runs here"
    assert {one["basis_why"] for one in plan["requests"]} == {"no library runs here"}
    assert "assumed, no library runs here" in cli("cost", str(path), "--details").out


def test_a_file_without_ranges_is_read_and_verified(tmp_path: Path) -> None:
    """Older files have none; what a file says of them is held against nothing, but has a shape."""
    path = tmp_path / "plan.json"
    assert cli(*shlex.split(SOLVED), "-o", str(path)).code == 0
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "range_s": [0.0, 1e9], "range_basis": "assumed"}))
    assert cli("verify", str(path)).code == 0
    for wrong in ([1.0], [1.0, -1.0], "1 ms"):
        path.write_text(json.dumps({**plan, "range_s": wrong}))
        assert "range_s" in refusal(read_plan, str(path))
    steps = [step for one in plan["requests"] for step in one["steps"]]
    for one in (plan, *plan["requests"], *steps):
        keys = ("range_s", "range_basis", "range_basis_why", "basis_why")
        for key in (*keys, *(("basis",) if one is not plan else ())):
            one.pop(key, None)
    path.write_text(json.dumps(plan))
    done = cli("cost", str(path))
    assert (done.code, cli("verify", str(path)).code) == (0, 0)
    assert not any(f": {word}" in done.out for word in WORDS)
    assert {one["range_s"] for one in cli("cost", str(path), "--json").json()["requests"]} == {None}


def test_compare_says_it_of_each_order() -> None:
    text, data = both("compare -t aws-p5:2 --axes dp=8,tp=2 --reduce dp=1GiB --send tp=1MiB")
    for one in (data, data["best"], *data["orders"]):
        assert told(one["objective_s"], one).partition(", ")[2] in text
    assert data["range_s"] == data["best"]["range_s"]


def test_estimate_and_plan_say_it_of_communication() -> None:
    _, data = both(ESTIMATE)
    text = cli(*ESTIMATE.split(), "--details").out
    low, high = data["communication_range_s"]
    assert f"by its communication {format_time_range(low, high, data['iteration_s'])}" in text
    for one in data["requests"]:
        assert told(one["call_s"], one).partition(", ")[2] in text
    plan = f"plan {TRAINED} --fix tp=2 --fix pp=1"
    _, data = both(plan)
    text = cli(*plan.split(), "--details").out
    for one in data["top"]:
        low, high = one["communication_range_s"]
        assert format_time_range(low, high, one["iteration_s"]) in text


def test_what_takes_no_time_has_no_range() -> None:
    text, data = both(
        "cost -t aws-p5:2 --axes dp=1,tp=16 --placement '[[1,1],[2,8]]' --reduce dp=1MiB"
    )
    assert (data["seconds"], data["range_s"], data["basis"]) == (0, None, None)
    assert not any(f": {word}" in text for word in WORDS)
