"""Whole answers: the command line, a plan of 1,024 devices, and 65,536 devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

import p2smt
from p2smt.plans.check.check_plan import check_plan
from p2smt.plans.file import plan_data, read_plan
from tests.strategies.clusters import switches

COMMAND = (
    *("solve", "--topology", "azure-ndv4:4", "--axes", "dp=8,tp=4"),
    *("--reduce", "dp=1GiB", "--reduce", "tp=64MiB*128", "--json"),
)


def test_solve_command(benchmark: BenchmarkFixture) -> None:
    """The whole process, interpreter included."""

    def run() -> dict[str, object]:
        code = "from p2smt.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *COMMAND], capture_output=True, check=True
        )
        return dict(json.loads(done.stdout))

    assert benchmark.pedantic(run, rounds=5, warmup_rounds=1)["status"] == "optimal"


def test_check_plan_of_1024_devices(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """A three-step all-reduce over 4 x 256 devices, device by device with packed bits."""
    topology = switches(("node", 4, 1e9), ("gpu", 256, 1e11), latency_s=0.0)
    problem = p2smt.Problem(topology, p2smt.parse_axes("dp=1024"), (p2smt.reduce("dp=1GiB"),))
    solution = p2smt.solve(problem, top=1)
    assert solution.best is not None
    assert len(solution.best.requests[0].program or ()) == 3
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_data(solution, solution.best)))
    report = benchmark.pedantic(lambda: check_plan(read_plan(str(path)), "plan"), rounds=3)
    assert report.valid
    assert report.checked_on == ("devices",)
