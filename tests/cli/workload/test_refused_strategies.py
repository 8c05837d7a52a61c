"""What no trainer runs is refused in one line: what was given, the rule, and what would mend it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.tools import cli

MIXTURE = "--model qwen3-30b-a3b -t dgx-h100:2 --global-batch 128 --seq 4096"
DENSE = "--model llama-3-8b -t dgx-h100:1 --global-batch 64 --seq 4096"
OLDER = "--model llama-3-8b -t dgx-a100:1 --global-batch 64 --seq 4096"
UNLIKE = "--placement [[2,1],[1,8],[1,1],[1,1]] --expert-placement [[1,2],[1,1],[2,4],[1,1]]"


@pytest.mark.parametrize(
    ("command", "given", "rule", "remedy"),
    [
        (f"estimate {MIXTURE} -s dp=16,ep=3", "ep=3", "divide the 128 experts", "a divisor"),
        (f"estimate {MIXTURE} -s dp=16,ep=32", "ep=32,etp=1,dp=16", "dp * cp * tp", "take fewer"),
        (f"estimate {MIXTURE} -s dp=8,tp=2", "tp=2,sp=0", "sequence parallelism", "add sp=1"),
        (
            f"estimate {MIXTURE} -s dp=16,ep=8,overlap=1,recompute=full",
            "overlap=1,recompute=full",
            "neither full recomputation nor that of moe",
            "take overlap=0",
        ),
        (
            f"estimate {MIXTURE} -s dp=16,ep=8,shared_overlap=1",
            "shared_overlap=1,ep=8",
            "needs shared experts",
            "take shared_overlap=0",
        ),
        (f"estimate {OLDER} -s dp=8,dtype=fp8", "device a100", "no peak of fp8", "take a device"),
        (f"plan {OLDER} --dtype mxfp8", "device a100", "no peak of fp8", "take a device"),
        (f"plan {MIXTURE} --dtype mxfp8", "device h100", "mxfp8 is", "take dtype=fp8"),
        (f"estimate {MIXTURE} -s dp=16,dtype=mxfp8", "device h100", "mxfp8 is", "take dtype=fp8"),
        (
            f"estimate {MIXTURE} -s pp=2,dp=8,ep=8 {UNLIKE}",
            "[[2,1],[1,8],[1,1],[1,1]]",
            "the same row of pp, not [2, 1] and [1, 2]",
            "leave one out",
        ),
        (f"estimate {DENSE} -s dp=8,schedule=zbv", "schedule=zbv", "1F1B", "leave schedule out"),
        (
            f"plan {DENSE} --optimizer-bytes 8 --zero 0",
            "optimizer_bytes=8",
            "distributed optimizer",
            "add zero=1",
        ),
        (f"plan {DENSE} --fp8-attention 1", "fp8_attention=1,dtype=bf16", "8 bits", "dtype=fp8"),
        (f"plan {DENSE} --graphs partial --recompute full", "recompute=full", "no graphs", ""),
        (f"plan {DENSE} --imbalance 1.3", "imbalance=1.3", "llama-3-8b has none", "leave it out"),
        (f"estimate {DENSE} -s dp=8 --imbalance 1.3", "imbalance=1.3", "has none", "leave it out"),
        (f"estimate {DENSE} -s dp=8 --optimizer-bytes 99", "optimizer_bytes=99", "4 to 12", ""),
        (f"plan {DENSE} --fix offload=0.5", "offload=0.5", "not searched", "estimate --strategy"),
        (f"plan {DENSE} --fix optimizer_bytes=8", "", "not searched", "give --optimizer-bytes"),
    ],
)
def test_refused_in_one_line(command: str, given: str, rule: str, remedy: str) -> None:
    found = cli(*command.split())
    assert (found.code, found.out) == (2, "")
    (line,) = found.err.splitlines()
    for part in (given, rule, remedy):
        assert part in line


def test_a_config_without_a_key_names_it(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "deepseek_v3", "hidden_size": 1024}))
    about = "-t dgx-h100:2 --global-batch 64 --seq 4096 -s dp=16"
    found = cli("estimate", "--model", str(path), *about.split())
    assert (found.code, found.out) == (2, "")
    (line,) = found.err.splitlines()
    assert "num_hidden_layers: this key is missing; add it" in line


def test_where_nothing_fits_it_says_by_how_much_and_what_helps() -> None:
    text = "--model qwen-2.5-72b -t dgx-h100:1 --global-batch 64 --seq 4096 --optimizer-bytes 8"
    found = cli("plan", *text.split(), "--max-pp", "1")
    assert found.code == 4
    assert "lacks" in found.out
    assert "what would help" in found.out
