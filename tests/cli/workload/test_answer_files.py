"""`p2smt estimate FILE` of p2smt's own answers: plan files, and what it prints as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import H100, TINY, assert_one_error, cli

MODEL = "name: small\nlayers: 8\nhidden: 512\nheads: 8\nffn: 1024\ngated: true\nvocab: 32000\n"
MIXTURE = (
    "name: mixed\nlayers: 8\nhidden: 512\nheads: 8\ngated: true\nvocab: 32000\n"
    "experts: {count: 8, active: 2, width: 256}\n"
)
ON = ("-t", "tiny.yaml")
BATCH = ("--global-batch", "16", "--seq", "1024")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes of four devices, and two models."""
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "small.yaml").write_text(MODEL)
    (tmp_path / "mixed.yaml").write_text(MIXTURE)
    monkeypatch.chdir(tmp_path)


def estimated(*told: str) -> dict[str, Any]:
    """The answer, which is also left in ``a.json``, and as a plan in ``plan.json``."""
    found = cli("estimate", *told, *ON, "--json", "-o", "plan.json")
    assert found.code == 0, found.err
    Path("a.json").write_text(found.out)
    return found.json()


def of_run(data: dict[str, Any]) -> dict[str, Any]:
    keys = ("strategy", "matrix", "expert_matrix", "iteration_s", "memory_bytes", "global_batch")
    return {key: data.get(key) for key in keys}


@pytest.mark.parametrize("file", ["a.json", "plan.json"])
@pytest.mark.parametrize(
    "told",
    [
        (
            "-m",
            "small.yaml",
            "-s",
            "tp=2,pp=2,recompute=full",
            "--placement",
            "[[1,2],[2,1],[1,1],[1,2]]",
        ),
        ("-m", "small.yaml", "-s", "tp=2,cp=2,zero=1,optimizer_bytes=8"),
    ],
)
def test_an_answer_is_estimated_as_it_was(told: tuple[str, ...], file: str) -> None:
    expected = estimated(*told, *BATCH)
    assert of_run(cli("estimate", file, *ON, "--json").json()) == of_run(expected)


def test_a_mixture_is_known_by_its_plan_and_else_by_its_name() -> None:
    rows = (
        "--placement",
        "[[1,1],[1,4],[1,1],[2,1]]",
        "--expert-placement",
        "[[1,1],[2,1],[1,4],[1,1]]",
    )
    expected = estimated("-m", "mixed.yaml", "-s", "tp=2,sp=1,ep=4", *rows, *BATCH)
    assert of_run(cli("estimate", "plan.json", *ON, "--json").json()) == of_run(expected)
    unnamed = cli("estimate", "a.json", *ON)
    assert_one_error(unnamed)
    assert "does not say --model" in unnamed.err
    named = cli("estimate", "a.json", *ON, "--model", "mixed.yaml", "--json")
    assert of_run(named.json()) == of_run(expected)


def test_the_strategy_to_run_of_a_plan_is_taken() -> None:
    asked = ("-m", "small.yaml", *BATCH, *ON, "--json", "--pick", "2")
    data = cli("plan", *asked).json()
    Path("p.json").write_text(json.dumps(data))
    found = cli("estimate", "p.json", *ON, "--json").json()
    assert found["strategy"] == data["recommended"]["strategy"] == data["top"][1]["strategy"]
    assert found["matrix"] == data["recommended"]["matrix"]
    again = cli("plan", "--model", "p.json", *BATCH, *ON, "--json").json()
    assert again["best"]["strategy"] == data["best"]["strategy"]


def test_a_placement_of_another_topology_is_said_not_to_hold() -> None:
    estimated("-m", "small.yaml", "-s", "tp=2,pp=2", *BATCH)
    Path("other.yaml").write_text(
        (TINY + H100).replace("size: 2", "size: 1").replace("size: 4", "size: 8")
    )
    found = cli("estimate", "a.json", "-t", "other.yaml", "--json")
    assert found.code == 0
    assert "its placement is of another topology: ranks are in order" in found.err


@pytest.mark.parametrize(
    ("change", "more", "rule"),
    [
        ({"strategy": "tp=0"}, (), "tp=0"),
        ({"strategy": None}, (), "has no strategy: nothing was found"),
        ({"sequence": "many"}, (), "sequence 'many': is not a whole"),
        ({"global_batch": 2.5}, (), "global_batch"),
        ({"model": {"layers": 8}}, (), "model: hidden: this key is missing"),
        ({"model": []}, (), "says nothing of a training"),
        ({"matrix": [[1, "x"]]}, (), "must have rows of whole numbers"),
        ({"devices": 8}, ("--set", "TP=2"), "--set TP: tells what a file leaves open"),
        ({"devices": 8}, ("--model", "llama-3-8b"), "has layers 8, and llama-3-8b 32"),
        ({"devices": 8}, ("--seq", "2048"), "a.json has sequences of 1,024 tokens"),
        ({"devices": 8}, ("--use", "node=1"), "starts 8 ranks, and 4 devices are asked for"),
    ],
)
def test_bad_answers_are_one_line(change: dict[str, Any], more: tuple[str, ...], rule: str) -> None:
    data = estimated("-m", "small.yaml", "-s", "tp=2", *BATCH)
    Path("a.json").write_text(json.dumps(data | change))
    found = cli("estimate", "a.json", *ON, *more)
    assert_one_error(found)
    assert rule in found.err


def test_a_plan_without_a_training_is_refused() -> None:
    cli("solve", *ON, "--axes", "dp=8", "--reduce", "dp=1MiB", "-o", "s.json")
    found = cli("estimate", "s.json", *ON)
    assert_one_error(found)
    assert "is an answer that says nothing of a training" in found.err
    assert_one_error(cli("plan", "--model", "s.json", *BATCH, *ON))
