"""`--what-if`: each line is what the same question says on the changed cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import H100, SMALL, TINY, assert_one_error, cli
from tests.schemas.tools import complaints

LEAVES = """
name: leaves
library: none
algorithms: [ring]
levels:
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 9 us, fabric: roce}}
  - {name: node, size: 4, link: {kind: switch, bandwidth: 9 GB/s, latency: 9 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 99 GB/s, latency: 2 us, fabric: nvlink4}}
"""
NAMED = """
switches: [{name: s1, hosts: "n[1-4]"}, {name: s2, hosts: "n[5-8]"}]
"""
FEW = ("--max-vpp", "1", "--recompute", "none", "--max-cp", "1", "--max-mbs", "2")
TRAINED = ("-m", "small.yaml", "--global-batch", "16", "--seq", "1024")
SOLVED = ("-a", "dp=2,tp=4", "--reduce", "dp=1GiB", "--reduce", "tp=64MiB*8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two nodes of four devices, variants of them, and a model that is small enough."""
    tiny = TINY + H100
    (tmp_path / "tiny.yaml").write_text(tiny)
    (tmp_path / "faster.yaml").write_text(tiny.replace("10 GB/s", "20 GB/s"))
    (tmp_path / "slower.yaml").write_text(tiny.replace("100 GB/s", "50 GB/s"))
    (tmp_path / "more.yaml").write_text(tiny.replace("size: 2", "size: 4"))
    (tmp_path / "one.yaml").write_text(tiny.replace("size: 2", "size: 1"))
    (tmp_path / "roomy.yaml").write_text(tiny.replace("80 GB", "141 GB"))
    (tmp_path / "batch.yaml").write_text(tiny.replace("name: node", "name: batch"))
    (tmp_path / "leaves.yaml").write_text(LEAVES + H100)
    (tmp_path / "named.yaml").write_text(LEAVES + NAMED + H100)
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answered(*words: str) -> dict[str, Any]:
    done = cli(*words, "--json")
    assert done.code == 0, done
    assert complaints("plan-training" if words[0] == "plan" else words[0], done.json()) == []
    return done.json()


CHANGES = {
    "node*2": ("faster.yaml", "16"),
    "gpu*0.5": ("slower.yaml", "16"),
    "node=1": ("one.yaml", "16"),
    "hosts=4": ("more.yaml", "16"),
    "memory=141GB": ("roomy.yaml", "16"),
    "batch=32": ("tiny.yaml", "32"),
}


def test_a_plan_under_each_change_is_the_plan_of_the_changed_question() -> None:
    asked = [word for change in CHANGES for word in ("--what-if", change)]
    found = answered("plan", *TRAINED, "-t", "tiny.yaml", *FEW, *asked)
    now = found["top"][0]
    for row, (change, (topology, batch)) in zip(found["what_if"], CHANGES.items(), strict=True):
        there = ("-m", "small.yaml", "--seq", "1024", "--global-batch", batch, "-t", topology)
        then = answered("plan", *there, *FEW)
        assert row["change"] == change
        assert row["status"] == then["status"] == "optimal"
        assert row["iteration_s"] == pytest.approx(then["objective_s"], rel=1e-9)
        best = next(one for one in then["top"] if one["strategy"] == row["best"])
        assert row["range_s"] == pytest.approx(best["range_s"], rel=1e-9)
        gain = best["tokens_per_s"] / now["tokens_per_s"] - 1
        assert row["gain"] == pytest.approx(gain, rel=1e-9, abs=1e-12)
        low, high = row["gain_range"]
        assert low <= row["gain"] <= high


def test_an_estimate_keeps_its_strategy_and_fills_the_devices() -> None:
    strategy = ("-s", "tp=2,zero=1")
    changes = {**CHANGES, "memory=1KB": ("tiny.yaml", "16")}
    asked = [word for change in changes for word in ("--what-if", change)]
    found = answered("estimate", *TRAINED, "-t", "tiny.yaml", *strategy, *asked)
    assert found["degrees"]["dp"] == 4
    for row, (change, (topology, batch)) in zip(found["what_if"], changes.items(), strict=True):
        there = ("-m", "small.yaml", "--seq", "1024", "--global-batch", batch, "-t", topology)
        then = answered("estimate", *there, *strategy)
        assert (row["status"], row["best"]) == ("complete", then["strategy"])
        assert row["iteration_s"] == pytest.approx(then["iteration_s"], rel=1e-12)
        assert row["tokens_per_s"] == pytest.approx(then["tokens_per_s"], rel=1e-12)
        assert (row["reason"] == "does not fit") == (change == "memory=1KB")


def test_the_gain_keeps_links_alike_before_and_after() -> None:
    row = answered("estimate", *TRAINED, "-t", "dgx-h100:2", "-s", "tp=2", "--what-if", "node*2")
    then = row["what_if"][0]
    low, high = then["gain_range"]
    assert low <= then["gain"] <= high
    assert low < high


def test_an_estimate_that_cannot_be_says_why() -> None:
    words = ("estimate", *TRAINED, "-t", "tiny.yaml", "-s", "tp=2,dp=4", "--what-if", "hosts=3")
    (row,) = answered(*words)["what_if"]
    assert (row["status"], row["best"], row["gain"]) == ("infeasible", None, None)
    assert "12" in row["reason"]


def test_solve_under_each_change_is_the_answer_on_the_changed_cluster() -> None:
    asked = ("--what-if", "node*2", "--what-if", "gpu*0.5")
    found = answered("solve", *SOLVED, "-t", "tiny.yaml", *asked)
    for row, topology in zip(found["what_if"], ("faster.yaml", "slower.yaml"), strict=True):
        then = answered("solve", *SOLVED, "-t", topology)
        assert row["status"] == then["status"] == "optimal"
        assert row["iteration_s"] == pytest.approx(then["objective_s"], rel=1e-9)
        gain = found["objective_s"] / then["objective_s"] - 1
        assert row["gain"] == pytest.approx(gain, rel=1e-9)
        assert json.loads(row["best"]) == then["alternatives"][0]["matrix"]


def test_of_named_hosts_the_best_choice_is_taken() -> None:
    """Four of eight: all of one leaf, two of each, or one switch's."""
    found = answered("plan", *TRAINED, *FEW, "-t", "named.yaml", "--what-if", "hosts=4")
    (row,) = found["what_if"]
    every = []
    for leaf, node in ((1, 4), (2, 2)):
        use = ("--use", f"leaf={leaf}", "--use", f"node={node}")
        every.append(answered("plan", *TRAINED, *FEW, "-t", "leaves.yaml", *use)["objective_s"])
    assert row["status"] == "optimal"
    assert row["iteration_s"] == pytest.approx(min(every), rel=1e-9)


@pytest.mark.parametrize(
    ("change", "told"), [("hosts=7", "give 4 or 6 or 8"), ("hosts=9", "names 8")]
)
def test_hosts_that_no_switches_share_evenly_are_refused(change: str, told: str) -> None:
    done = cli("plan", *TRAINED, "-t", "named.yaml", "--what-if", change)
    assert_one_error(done)
    assert told in done.err


def test_an_answer_on_named_hosts_chooses_its_own() -> None:
    words = ("-a", "dp=3,tp=4", "--reduce", "dp=1GiB", "-t", "named.yaml")
    asked = [word for n in (7, 5, "8") for word in ("--what-if", f"hosts={n}")]
    found = answered("solve", *words, *asked, "--what-if", "node*2")
    seven, five, eight, faster = found["what_if"]
    assert seven["iteration_s"] == eight["iteration_s"] == found["objective_s"]
    assert (five["status"], five["reason"]) == ("infeasible", "12 ranks need 6 hosts")
    assert faster["iteration_s"] < found["objective_s"]
    assert cli("solve", *words, "--what-if", "hosts=9").code == 2
    lines = cli("solve", *words, "--what-if", "leaf*2").out.splitlines()
    (now,) = (line for line in lines if line.startswith("now "))
    assert "this order of ranks" in now


def test_a_levels_name_wins_over_a_word() -> None:
    (row,) = answered(*("plan", *TRAINED, "-t", "batch.yaml", "--what-if", "batch=1"))["what_if"]
    one = answered("plan", *TRAINED, "-t", "one.yaml")
    assert row["iteration_s"] == pytest.approx(one["objective_s"], rel=1e-9)


@pytest.mark.parametrize("command", ["plan", "estimate"])
def test_the_first_screen_has_the_table_in_twenty_lines(command: str) -> None:
    strategy = FEW if command == "plan" else ("-s", "tp=2")
    changes = [*CHANGES, "gpu*2", "hosts=1"]
    asked = [word for change in changes for word in ("--what-if", change)]
    done = cli(command, *TRAINED, "-t", "tiny.yaml", *strategy, *asked)
    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[-len(changes) :]] == changes
    assert {line[:8].strip() for line in lines} >= {"run", "time", "memory"}


def test_without_an_answer_nothing_is_gained() -> None:
    words = (*TRAINED, "-t", "tiny.yaml", "--memory", "1KB", "--what-if", "node*2")
    done = cli("plan", *words, "--json")
    assert done.code == 4
    assert "what_if" not in done.json()


def test_an_unproved_answer_is_marked() -> None:
    words = ("--time-limit", "0.000001", "--what-if", "node*2")
    done = cli("plan", *TRAINED, "-t", "tiny.yaml", *words, "--json")
    assert done.code == 3
    for row in done.json().get("what_if", ()):
        assert row["status"] in ("feasible", "unknown")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("nodes*2", "levels are node, gpu"),
        ("leaf=3", "levels are node, gpu"),
        ("", "names no level"),
        ("node", "write node*2 or node=3"),
        ("node*", "factor"),
        ("node*-1", "factor"),
        ("node*inf", "factor"),
        ("node*0", "factor"),
        ("node=0", "node=0"),
        ("gpu=5", "only the outermost level can grow"),
        ("hosts*2", "hosts=30"),
        ("hosts=0", "hosts=0"),
        ("memory=lots", "memory=lots"),
        ("memory=0", "must be more than 0 of a device, with a unit; write it like memory=141GB"),
        ("batch=1.5", "batch=1.5"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "estimate"])
def test_bad_changes_are_one_line(command: str, change: str, told: str) -> None:
    strategy = () if command == "plan" else ("-s", "tp=2")
    done = cli(command, *TRAINED, "-t", "tiny.yaml", *strategy, "--what-if", change)
    assert_one_error(done)
    assert told in done.err


@pytest.mark.parametrize(
    "changes", [("node*2", "node*2"), tuple(f"node*{n}" for n in range(2, 11))]
)
def test_twice_or_too_many_is_one_line(changes: tuple[str, ...]) -> None:
    asked = [word for change in changes for word in ("--what-if", change)]
    assert_one_error(cli("plan", *TRAINED, "-t", "tiny.yaml", *asked))


@pytest.mark.parametrize("change", ["memory=80GB", "batch=2", "hosts=1", "leaf*2"])
def test_of_a_problem_only_levels_are_changed(change: str) -> None:
    done = cli("solve", *SOLVED, "-t", "tiny.yaml", "--what-if", change)
    assert_one_error(done)
    assert "levels are node, gpu" in done.err
