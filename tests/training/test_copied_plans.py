"""Plans where ZeRO's shards have copies (HSDP): dp is two axes, each with requests of its own."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2smt.api.workload import estimate
from p2smt.cluster.file import parse_topology
from p2smt.errors import InputError
from p2smt.parallelism.folded import divided
from p2smt.parallelism.placement import Placement, default_ranks, rank_groups
from p2smt.plans.file_model import PlanModel
from p2smt.training.efficiency import TrainingRun
from p2smt.training.plan_block import run_of
from p2smt.training.strategy import Batch, parse_strategy
from p2smt.training.training_plan import check_training_plan, training_plan, training_plan_data
from tests.cli.tools import H100, TINY, cli
from tests.oracles.placements import all_matrices
from tests.training.test_folded_plans import MODEL

DENSE = "tp=2,dp=4,zero=3,dp_replicate=2"
MIXTURE = "dp=8,ep=2,zero=1,dp_replicate=2,dispatcher=flex"
STRATEGIES = (
    DENSE,
    "pp=2,dp=4,zero=1,dp_replicate=2,mbs=2",
    "dp=4,cp=2,zero=1,dp_replicate=4",
    MIXTURE,
    "pp=2,dp=4,ep=2,zero=1,dp_replicate=2",
)


@cache
def text(strategy: str) -> str:
    cluster = parse_topology(TINY + H100, "tiny")
    model = MODEL if ",ep=" in strategy else "llama-3-8b"
    asked = estimate(model, cluster, strategy, Batch(64, 128), "megatron-bridge-h100")
    made = training_plan(asked)
    assert made.collectives_s == pytest.approx(asked.iteration_s, rel=1e-9)
    return json.dumps(training_plan_data(made))


def data(strategy: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text(strategy))
    found["training"]["memory_bytes"] = 10**15
    return found


def wrong(plan: dict[str, Any]) -> str:
    """What is wrong with a plan, in words; empty: nothing."""
    try:
        report = check_training_plan(PlanModel.model_validate(plan), "plan")
    except InputError as error:
        return str(error)
    broken = [str(violation.message) for _, violation in report.violations]
    return "; ".join([*broken, *(note.message for note in report.notes)])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_requests_have_the_groups_of_shards_and_of_copies(strategy: str) -> None:
    """Ranks in order: copies are the outer part of dp, and of the data parallelism of experts."""
    plan, given = data(strategy), parse_strategy(strategy)
    assert wrong(plan) == ""
    copies, met = given.dp_replicate, set[str]()
    pp, cp, tp, ep = given.pp, given.cp, given.tp, given.ep
    sides = {
        "attention": (("pp", "dpr", "dps", "cp", "tp"), (pp, copies, given.dp // copies, cp, tp)),
        "experts": (("pp", "edr", "eds", "ep", "et"), (pp, copies, given.ed // copies, ep, 1)),
    }
    for request in plan["requests"]:
        names, sizes = sides[request.get("matrix", "attention")]
        ranks = default_ranks(sizes)
        groups = rank_groups(ranks, [names.index(axis) for axis in request["axes"]])
        met |= set(request["axes"])
        if len(request["steps"]) == 1:
            found = sorted(map(sorted, request["steps"][0]["groups"]))
            assert found == sorted(map(sorted, groups.tolist())), request["axes"]
    assert "dpr" in met
    assert ("edr" in met) == (ep > 1)
    assert met.isdisjoint({"dp", "ed"})


@pytest.mark.parametrize("strategy", [DENSE, MIXTURE])
def test_other_copies_and_missing_requests_are_found(strategy: str) -> None:
    plan = data(strategy)
    for copies in (1, 4):
        other = data(strategy)
        other["training"]["strategy"]["dp_replicate"] = copies
        assert wrong(other)
    for number, request in enumerate(plan["requests"]):
        fewer = data(strategy)
        del fewer["requests"][number]
        assert wrong(fewer), request["axes"]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, strategy in (("dense", DENSE), ("mixture", MIXTURE)):
        Path(f"{name}.json").write_text(text(strategy))


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("file", "to", "lines"),
    [
        (
            "dense",
            "torchtitan",
            ["data_parallel_replicate_degree 2", "data_parallel_shard_degree 2"],
        ),
        (
            "dense",
            "torchtitan-options",
            ["data_parallel_replicate_degree 2", "data_parallel_shard_degree 2"],
        ),
        ("dense", "megatron", ["--num-distributed-optimizer-instances 2"]),
        ("mixture", "megatron-options", ["--num-distributed-optimizer-instances 2"]),
        ("dense", "device-mesh", ['(2, 2, 2), mesh_dim_names=("dpr", "dps", "tp")']),
        ("dense", "csv", ["rank"]),
    ],
)
def test_exports_say_copies_and_shards(file: str, to: str, lines: list[str]) -> None:
    done = cli("export", f"{file}.json", "--to", to)
    assert done.code == 0
    assert all(line in done.out for line in lines)


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("to", "order", "words"),
    [
        ("megatron", "dps,dpr,tp", "has copies of shards as the outer part of dp"),
        ("megatron-options", "dps,dpr,tp", "p2smt: error: ranks of"),
        ("deepspeed", "", "axis dpr: is no axis of DeepSpeed"),
    ],
)
def test_what_has_not_these_groups_refuses(to: str, order: str, words: str) -> None:
    launched = ("--launched", order) if order else ()
    Path("first.json").write_text(text(DENSE.replace("zero=3", "zero=1")))
    done = cli("export", "first.json", "--to", to, *launched)
    assert done.code == 2
    assert words in done.err


@pytest.mark.parametrize("copies", [1, 2, 3, 4, 6])
def test_rows_are_divided_as_ranks_in_order_are(copies: int) -> None:
    """Copies have the same ranks of dp, stretch by stretch, wherever a matrix says so."""
    every = list(all_matrices((4, 6), (2, 12, 1)))
    found = divided(np.array(every), copies)
    rows = {tuple(map(tuple, one)) for one in found.tolist()}
    wanted = {
        matrix
        for matrix in all_matrices((4, 6), (2, copies, 12 // copies, 1))
        if all(
            matrix[1][inner] == 1 or matrix[2][outer] == 1
            for inner in range(2)
            for outer in range(inner)
        )
    }
    assert rows == wanted
    for one in rows:
        joined = (one[0], tuple(a * b for a, b in zip(one[1], one[2], strict=True)), one[3])
        tensor = Placement(one).rank_tensor()
        assert np.array_equal(tensor.reshape(2, 12, 1), Placement(joined).rank_tensor())


def test_a_run_is_read_back() -> None:
    block = PlanModel.model_validate(data(MIXTURE)).training
    assert block is not None
    run = TrainingRun(MODEL, Batch(64, 128), parse_strategy(MIXTURE))
    assert run_of(block, "plan").strategy == run.strategy
