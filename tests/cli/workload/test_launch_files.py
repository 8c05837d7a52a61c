"""`p2smt estimate FILE`: the run that a launch script starts, and what such a file may lack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.tools import H100, TINY, assert_one_error, cli

SCRIPT = """#!/bin/bash
#SBATCH --nodes=2
TP=${TP:-2}
MODEL=(
    --num-layers 8 --hidden-size 512   # a small one
    --num-attention-heads 8 --group-query-attention --num-query-groups 4
    --ffn-hidden-size 1024 --swiglu --untie-embeddings-and-output-weights
    # --num-layers 99
)
MODEL+=(--seq-length 1024 --vocab-size 32000)
if [[ ${DEBUG:-0} == 1 ]]; then LOGS="--log-interval 1"; else LOGS="--log-interval 10"; fi
torchrun --nnodes 2 --nproc-per-node 4 pretrain_gpt.py "${MODEL[@]}" $LOGS \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $((TP / 2 + 1)) \\
    --sequence-parallel --micro-batch-size 1 --global-batch-size 16 --bf16 \\
    --save $CHECKPOINTS --lr 1e-4 --recompute-granularity full \\
    --recompute-method uniform --recompute-num-layers 1
"""
STRATEGY = "tp=2,pp=2,dp=2,cp=1,vpp=1,mbs=1,sp=1,zero=0,recompute=full,dropout=1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes of four devices, and a script for them."""
    (tmp_path / "tiny.yaml").write_text(TINY + H100)
    (tmp_path / "run.sh").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)


def test_a_launch_script_is_estimated_as_its_strategy_is() -> None:
    found = cli("estimate", "run.sh", "-t", "tiny.yaml", "--json")
    assert found.code == 0
    assert "left to the environment: TP=2, DEBUG=0 (--set NAME=VALUE)" in found.err
    assert "no --hidden-dropout and --attention-dropout: 0.1 each" in found.err
    assert "no --use-distributed-optimizer: zero=0" in found.err
    assert "3 options count for no time or memory here: --log-interval, --save, --lr" in found.err
    Path("model.yaml").write_text(
        "name: run.sh\nlayers: 8\nhidden: 512\nheads: 8\nkv_heads: 4\nffn: 1024\n"
        "gated: true\nvocab: 32000\nhead_size: 64\n"
    )
    told = ("--model", "model.yaml", "--global-batch", "16", "--seq", "1024", "-s", STRATEGY)
    expected = cli("estimate", *told, "-t", "tiny.yaml", "--json").json()
    data = found.json()
    assert {key: data[key] for key in ("strategy", "iteration_s", "memory_bytes")} == {
        key: expected[key] for key in ("strategy", "iteration_s", "memory_bytes")
    }


def test_settings_win_over_the_script_which_asks_for_all_that_is_open() -> None:
    told = cli("estimate", "run.sh", "-t", "tiny.yaml", "--set", "TP=1", "--json")
    assert told.json()["strategy"].startswith("tp=1,pp=1,dp=8")
    Path("run.sh").write_text(
        SCRIPT.replace("TP=${TP:-2}", "").replace("--bf16", "--bf16 $MORE_ARGS")
    )
    lacking = cli("estimate", "run.sh", "-t", "tiny.yaml")
    assert_one_error(lacking)
    assert "does not say TP, MORE_ARGS; give --set TP=.. --set MORE_ARGS=.." in lacking.err


def test_a_configuration_of_deepspeed_asks_for_what_its_program_says() -> None:
    config = {"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": True}}
    Path("ds.json").write_text(json.dumps(config | {"zero_optimization": {"stage": 2}}))
    lacking = cli("estimate", "ds.json", "-t", "tiny.yaml")
    assert_one_error(lacking)
    assert "does not say seq, --model; give --set seq=.. --model" in lacking.err
    given = ("--model", "llama-3.2-1b", "--seq", "1024", "--json")
    found = cli("estimate", "ds.json", "-t", "tiny.yaml", *given)
    assert found.json()["degrees"]["zero"] == 2
    assert "recompute stands in the program: none" in found.err
    wrong = cli("estimate", "ds.json", "-t", "tiny.yaml", *given[:2], "--seq", "many")
    assert_one_error(wrong)
    assert "--seq 'many'" in wrong.err


def test_titan_by_toml() -> None:
    Path("job.toml").write_text(
        "[model]\nname = 'llama3'\n[training]\nlocal_batch_size = 2\nseq_len = 1024\n"
        "[parallelism]\ntensor_parallel_degree = 2\n[activation_checkpoint]\nmode = 'full'\n"
    )
    given = ("-t", "tiny.yaml", "--model", "llama-3.2-1b", "--json")
    data = cli("estimate", "job.toml", *given).json()
    assert data["strategy"].startswith("tp=2,pp=1,dp=4,cp=1,vpp=1,mbs=2,sp=1,zero=3,recompute=full")
    text = Path("job.toml").read_text()
    degrees = "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 2\n"
    Path("job.toml").write_text(text.replace("[parallelism]\n", degrees))
    copied = cli("estimate", "job.toml", *given).json()
    assert copied["strategy"] == f"{data['strategy']},dp_replicate=2"


@pytest.mark.parametrize(
    ("text", "more", "rule"),
    [
        (None, (), "is no file"),
        (
            "echo hello\n",
            (),
            "is no launch of Megatron-LM, Megatron-Bridge, TorchTitan or DeepSpeed",
        ),
        (SCRIPT.replace("--lr", "--unheard-of"), (), "has --unheard-of, whose effect"),
        (SCRIPT.replace("--bf16", "--bf16 $EXTRA_ARGS"), (), "does not say EXTRA_ARGS"),
        (SCRIPT.replace("--bf16", ""), (), "trains in fp32, which is not priced"),
        (SCRIPT.replace("--lr 1e-4", "--cp-comm-type a2a --context-parallel-size 2"), (), "a2a"),
        (
            SCRIPT.replace("--lr 1e-4", "--num-layers 9"),
            (),
            "has --num-layers 8 and --num-layers 9",
        ),
        (SCRIPT.replace("--nnodes 2", "--nnodes 4"), (), "starts 16 ranks, and 8 devices"),
        (SCRIPT.replace("--nnodes 2", "--nnodes two"), (), "'two' times, or on so many nodes"),
        (SCRIPT, ("-s", "tp=2"), "--strategy tp=2: stands in run.sh"),
        (SCRIPT, ("--global-batch", "8"), "--global-batch 8: stands in run.sh"),
        (SCRIPT, ("--set", "TP"), "is not NAME=VALUE"),
        (SCRIPT, ("--model", "llama-3-8b"), "has --num-layers 8, and llama-3-8b 32"),
        ("if true; then\n  torchrun --num-layers 2\n", (), "cannot be read as a script of bash"),
    ],
)
def test_bad_files_are_one_line(text: str | None, more: tuple[str, ...], rule: str) -> None:
    Path("run.sh").unlink()
    if text is not None:
        Path("run.sh").write_text(text)
    found = cli("estimate", "run.sh", "-t", "tiny.yaml", *more)
    assert_one_error(found)
    assert rule in found.err


def test_settings_without_a_file_are_refused() -> None:
    assert_one_error(cli("estimate", "-t", "tiny.yaml", "--set", "TP=2"))
