"""Algorithms that always run a collective: shown, costed, overruled, recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import TINY, cli

SCENE = ("--axes", "dp=2,tp=4", "--placement", "[[1,2],[2,2]]", "--reduce", "tp=1GiB")
REDUCE_FIRST = "reduce inside root; broadcast inside root"
LIBRARY = "library: {broadcast: binomial, reduce: scatter-gather}\n"


@pytest.fixture
def gloo(tmp_path: Path) -> str:
    path = tmp_path / "gloo.yaml"
    path.write_text(TINY.replace("library: none\n", LIBRARY))
    return str(path)


def test_a_topology_shows_its_library(gloo: str) -> None:
    runs = "runs: ring; broadcast always binomial, reduce always scatter-gather"
    assert runs in cli("topology", "show", gloo).out.splitlines()
    shown = cli("topology", "show", gloo, "--json").json()["topology"]
    assert shown["library"] == "none"
    assert shown["overrides"] == {"broadcast": "binomial", "reduce": "scatter-gather"}


def algorithms(topology: str, *more: str) -> list[str]:
    found = cli("cost", "-t", topology, *SCENE, "--program", REDUCE_FIRST, *more, "--json").json()
    return [step["algorithm"] for step in found["steps"]]


def test_costs_are_those_of_the_library(gloo: str) -> None:
    assert algorithms(gloo) == ["scatter-gather", "binomial"]
    assert algorithms(gloo, "--algorithm", "auto") == ["scatter-gather", "binomial"]
    assert algorithms(gloo, "--algorithm", "tree") == ["tree", "tree"]


@pytest.mark.parametrize(("option", "kept"), [("auto", True), ("ring", False)])
def test_a_plan_keeps_the_library_it_was_costed_with(
    gloo: str, tmp_path: Path, option: str, kept: bool
) -> None:
    plan = str(tmp_path / "plan.json")
    cli("solve", "-t", gloo, *SCENE[:2], *SCENE[4:], "--algorithm", option, "-o", plan)
    data: dict[str, Any] = json.loads(Path(plan).read_text())
    assert ("overrides" in data["topology"]) is kept
    assert cli("verify", plan, "--json").json()["verdict"] == "valid"
