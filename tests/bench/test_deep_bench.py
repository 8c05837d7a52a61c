"""Many levels: whole answers of the command line, interpreter included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

NAMES = ("dc", "pod", "rack", "node", "gpu")
LINKS = {
    "dc": "bandwidth: 5 GB/s, latency: 20 us",
    "pod": "bandwidth: 12 GB/s, latency: 10 us",
    "rack": "bandwidth: 25 GB/s, latency: 5 us",
    "node": "bandwidth: 50 GB/s, latency: 5 us",
    "gpu": "bandwidth: 300 GB/s, latency: 3 us",
}
FOUR = ("--reduce", "dp=1GiB", "--reduce", "tp=64MiB*128", "--reduce", "cp=128MiB*16")
SEND = ("--send", "pp=16MiB*32")
SIX = (*FOUR, *SEND, "--all-to-all", "ep=32MiB*64", "--reduce", "dp+cp=512MiB")
CASES = {
    "32-5": ((2, 2, 2, 2, 2), ("--axes", "dp=32", "--reduce", "dp=1GiB")),
    "1024-4": ((4, 4, 8, 8), ("--axes", "dp=8,cp=4,ep=4,pp=2,tp=4", *SIX)),
    "4096-4": ((4, 8, 16, 8), ("--axes", "dp=16,cp=4,ep=8,pp=2,tp=4", *SIX)),
    "2048-5": ((2, 2, 4, 16, 8), ("--axes", "dp=32,cp=4,pp=4,tp=4", *FOUR, *SEND)),
}


def topology(sizes: tuple[int, ...]) -> str:
    """A tree of switches, as a file."""
    levels = [
        f"  - {{name: {name}, size: {size}, link: {{kind: switch, {LINKS[name]}}}}}"
        for name, size in zip(NAMES[-len(sizes) :], sizes, strict=True)
    ]
    return "\n".join(["name: deep", "library: nccl-2.20", "levels:", *levels]) + "\n"


@pytest.mark.parametrize("case", CASES)
def test_solve_on_many_levels(benchmark: BenchmarkFixture, case: str, tmp_path: Path) -> None:
    sizes, question = CASES[case]
    path = tmp_path / "deep.yaml"
    path.write_text(topology(sizes))

    def run() -> dict[str, object]:
        code = "from p2smt.cli import main; main()"
        command = [sys.executable, "-c", code, "solve", "-t", str(path), *question, "--json"]
        done = subprocess.run(command, capture_output=True, check=True)
        return dict(json.loads(done.stdout))

    assert benchmark.pedantic(run, rounds=3, warmup_rounds=1)["status"] == "optimal"
