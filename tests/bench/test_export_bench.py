"""Exports of 65,536 ranks on 8,192 named hosts: the whole process, interpreter included."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.interop.launchers.plans import plan_data, topology

LEAVES, NODES, DEVICES = 128, 64, 8
STEP = {"instruction": "all-reduce", "payload_bytes": 1.0, "seconds": 0.0, "load_bytes": 0.0}
STEP |= {"algorithm": "ring", "protocol": "simple", "bottleneck": None}


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A plan whose requests say their groups, hosts of every leaf in a random order."""
    names = [f"n{i:04d}" for i in range(LEAVES * NODES)]
    random.Random(1).shuffle(names)
    where = topology([names[i : i + NODES] for i in range(0, len(names), NODES)], (DEVICES,))
    nodes = list(range(LEAVES * NODES))
    random.Random(2).shuffle(nodes)
    ranks = [node * DEVICES + i for node in nodes for i in range(DEVICES)]
    data = plan_data(where, {"dp": len(nodes), "tp": DEVICES}, ranks)
    groups = [ranks[i : i + DEVICES] for i in range(0, len(ranks), DEVICES)]
    data["requests"] *= 4
    data["requests"] = [{**one, "steps": [{**STEP, "groups": groups}]} for one in data["requests"]]
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(json.dumps(data))
    return str(path)


@pytest.mark.parametrize("to", ["csv", "slurm", "rankfile", "torchrun"])
def test_export_of_65536_ranks(to: str, big: str, benchmark: BenchmarkFixture) -> None:
    command = [sys.executable, "-m", "p2smt.cli", "export", big, "--to", to]

    def run() -> int:
        done = subprocess.run(command, capture_output=True, check=True, cwd=Path(big).parent)
        return done.stdout.count(b"\n")

    lines = benchmark.pedantic(run, rounds=3)
    assert lines == (LEAVES * NODES if to == "torchrun" else 65_536 + (to == "csv"))
