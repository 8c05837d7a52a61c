"""`p2smt plan` of mixtures of experts: figures of `estimate`, limits of the space, bad input."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from p2smt.cli.codes import INFEASIBLE
from p2smt.training.strategy import Strategy, parse_strategy
from tests.cli.tools import H100, SMALL, TINY, assert_one_error, cli

EXPERTS = "experts: {count: 8, active: 2, width: 256}\nmtp: 1\n"
KEYS = ("strategy", "parts", "hidden", "memory", "fits", "mfu", "requests", "matrix")
BRIDGE = ("--efficiency", "megatron-bridge-h100")
SCENE = (
    *("--model", "mixture.yaml", "--global-batch", "16", "--seq", "1024"),
    *("-t", "tiny.yaml", *BRIDGE),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes of four devices, a mixture and a dense model small enough for them."""
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "mixture.yaml").write_text(SMALL + EXPERTS)
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)


@cache
def _planned(*more: str) -> str:
    done = cli("plan", *SCENE, *more, "--json")
    assert done.err == ""
    return done.out


def planned(*more: str) -> dict[str, Any]:
    found = json.loads(_planned(*more))
    assert isinstance(found, dict)
    return found


def strategies(data: dict[str, Any]) -> list[Strategy]:
    return [parse_strategy(one["strategy"]) for one in data["near_optimal_strategies"]]


def test_every_figure_is_that_of_estimate_on_both_matrices() -> None:
    data = planned("--fix", "ep=4")
    assert data["status"] == "optimal"
    assert data["proof"].startswith("optimal in the model: ")
    assert data["expert_axes"] == ["pp", "ed", "ep", "et"]
    assert data["bound_s"] == pytest.approx(data["objective_s"], rel=1e-6)
    for one in (*data["top"], data["best"]):
        where = json.dumps(one["matrix"]), json.dumps(one["expert_matrix"])
        again = cli(
            *("estimate", *SCENE, "--strategy", one["strategy"], "--placement", where[0]),
            *("--expert-placement", where[1], "--json"),
        ).json()
        same = {*KEYS, "expert_matrix", "degrees"}
        if "programs" in one:  # the best has faster ones than single collectives
            assert one["collectives_s"] == again["iteration_s"] >= one["iteration_s"]
            same -= {"parts", "hidden", "mfu", "requests"}
        assert {key: again[key] for key in same} == {key: one[key] for key in same}


def test_flags_limit_the_space_and_are_told() -> None:
    limits = ("--max-ep", "4", "--max-etp", "1", "--dispatcher", "flex", "--overlap", "0")
    data = planned(*limits, "--within", "200%")
    told = {one["name"]: one["values"] for one in data["space"]}
    assert {key: told[key] for key in ("ep", "etp", "dispatcher", "overlap")} == {
        "ep": "1 to 4",
        "etp": "1 to 1",
        "dispatcher": "flex",
        "overlap": "no",
    }
    found = strategies(data)
    assert {one.ep for one in found} == {1, 2, 4}
    assert all(one.etp == 1 and not one.overlap for one in found)
    assert all(one.dispatcher == "flex" for one in found)
    wider = strategies(planned("--within", "200%"))
    assert any(one.ep == 8 for one in wider)
    assert any(one.overlap for one in wider)


@pytest.mark.parametrize(
    ("rule", "key", "axis"),
    [("ep within node", "expert_matrix", 2), ("tp within node", "matrix", 3)],
)
def test_rules_hold_on_the_matrix_of_their_axis(rule: str, key: str, axis: int) -> None:
    data = planned("--require", rule, "--top", "20")
    assert data["status"] == "optimal"
    assert all(one[key][axis][0] == 1 for one in data["top"])


def test_a_search_in_parts_answers_the_same_and_is_verified() -> None:
    few = ("--max-pp", "1", "--max-cp", "1", "--max-etp", "1", "--recompute", "none")
    asked = (*few, "--zero", "1", "--max-mbs", "1")
    whole = cli("plan", *SCENE, *asked, "-o", "whole.json")
    parts = cli("plan", *SCENE, *asked, "-o", "parts.json", "--journal", "j.jsonl")
    assert (parts.code, parts.err) == (0, "")
    assert parts.out.replace("parts.json", "whole.json") == whole.out
    assert Path("parts.json").read_bytes() == Path("whole.json").read_bytes()
    lines = Path("j.jsonl").read_text().splitlines(keepends=True)
    Path("j.jsonl").write_text("".join(lines[: len(lines) // 2]))
    again = cli("plan", *SCENE, *asked, "-o", "again.json", "--journal", "j.jsonl")
    assert again.out.replace("again.json", "whole.json") == whole.out
    checked = cli("verify", "j.jsonl", "--sample", "3", "--details").out
    assert checked.startswith("valid: optimise over plan, optimal")
    assert "axis sizes with a pair of matrices" in checked


def test_the_text_has_both_matrices() -> None:
    done = cli("plan", *SCENE, "--fix", "ep=4", "--details")
    assert done.code == 0
    assert "placement of experts: parts of each axis at each level" in done.out
    assert "all have" in done.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fix", "ep=3"), "ep=3: .*ep must divide the 8 experts .rule ep.; change"),
        (("--fix", "etp=3"), "etp=3: .*must divide the width of an expert, 256 .rule etp."),
        (
            ("--fix", "ep=8", "--fix", "etp=2"),
            "ep=8, etp=2: .*ep . etp must divide dp . cp . tp .rule expert-ranks.",
        ),
        (("--fix", "tp=2", "--fix", "sp=0"), "tp=2, sp=0: .*need sequence parallelism"),
        (("--fix", "ep=1", "--overlap", "1"), "ep=1, overlap=1: .*overlap=1 needs ep > 1"),
        (("--overlap", "1", "--recompute", "full"), "overlap=1 allows neither full"),
        (("--overlap", "1", "--recompute", "moe"), "overlap=1 allows neither full"),
        (("--fix", "ep=4", "--max-ep", "2"), "fixed ep=4: .*at most 2 .--max-ep.; drop one"),
        (("--max-ep", "none"), "--max-ep 'none': is not a whole number"),
        (("--dispatcher", "deepep"), "--dispatcher 'deepep': must be one of alltoall, flex"),
        (("--overlap", "yes"), "--overlap 'yes': must be 0 or 1"),
        (("--recompute", "mla_up_proj"), "has no mla_up_proj to compute again"),
        (("--require", "xp within node"), "xp"),
        (("--prices", "programs"), "prices of programs: mixtures of experts are searched with"),
    ],
)
def test_bad_input_is_refused_in_a_line(options: tuple[str, ...], words: str) -> None:
    done = cli("plan", *SCENE, *options, "-o", "new.json")
    assert_one_error(done)
    assert re.search(words, done.err)
    assert not Path("new.json").exists()
    assert not Path("j.jsonl").exists()


@pytest.mark.parametrize("option", [("--max-ep", "2"), ("--overlap", "1"), ("--fix", "ep=2")])
def test_a_dense_model_has_no_experts_to_limit(option: tuple[str, str]) -> None:
    done = cli("plan", "--model", "small.yaml", *SCENE[2:], *option)
    assert_one_error(done)
    assert "is of mixtures of experts, and small is none" in done.err


def test_what_does_not_fit_says_by_how_much() -> None:
    done = cli("plan", *SCENE, "--memory", "20MB")
    assert done.code == INFEASIBLE
    text = " ".join(done.out.split())
    assert re.search(r"nothing fits: .* comes nearest, and lacks 0.\d+ GB", text)
    assert "ep=8" in text
    assert "what would help: " in done.out


def test_devices_of_amd_have_what_flex_needs_named() -> None:
    given = ("--model", "mixture.yaml", "--global-batch", "16", "--seq", "1024", "-t", "mi355x:2")
    told = "flex on AMD needs a DeepEP for ROCm"
    done = cli("estimate", *given, "-s", "ep=8,dispatcher=flex")
    assert f"caution  {told}" in done.out
    assert told not in cli("estimate", *given, "-s", "ep=8").out
    full = cli("estimate", *given, "-s", "ep=8,dispatcher=flex,graphs=full").out
    assert "flex with graphs=full needs HybridEP, which runs on CUDA alone" in " ".join(
        full.split()
    )


@pytest.mark.parametrize(
    ("launcher", "to"),
    [("megatron", "megatron-options"), ("megatron-bridge", "megatron-bridge")],
)
def test_the_next_command_is_one_that_there_is(launcher: str, to: str) -> None:
    """Without a launcher experts may lie as no trainer numbers ranks; with one they do not."""
    asked = ("--fix", "ep=4", "--fix", "dp=8", "--top", "1")
    across, within = (cli("plan", *SCENE, *asked, *ep) for ep in ACROSS)
    assert "next     no trainer numbers ranks so: to launch it, plan with --launcher" in across.out
    assert cli("plan", *SCENE, *asked, "-o", "across.json", *ACROSS[0]).code == 0
    refused = cli("export", "across.json", "--to", to)
    assert refused.err.endswith(f"plan with --launcher {launcher}, which keeps to its order\n")
    assert "next     -o PLAN, export PLAN --to " in within.out
    told = cli("plan", *SCENE, *asked, "--launcher", launcher, "-o", "made.json", *ACROSS[0])
    assert f"next     export made.json --to {to}; all tables: --details" in told.out
    assert cli("export", "made.json", "--to", to).code == 0


ACROSS = (("--require", "ep across node"), ("--require", "ep within node"))
