"""experiments/gpu_check: on a GPU if there is one, else its parts, and all of it on CPUs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from experiments.gpu_check.cases import Case, cases
from experiments.gpu_check.checking import Checker, options_on
from experiments.gpu_check.gpu_check import main
from experiments.gpu_check.table import data, markdown
from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import ExecutionError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RunOptions
from p2smt.runtime.programs.reference_run import run_reference
from p2smt.runtime.summary import RunResult, summarize

REFERENCE = RunOptions(backend="reference")
WRONG = "all-reduce on 2x2: all-reduce inside l1; all-reduce parallel l1 in root"


def on_reference(job: Job, options: RunOptions) -> RunResult:
    return summarize(job, run_reference(job, options))


def test_the_cases_touch_everything() -> None:
    steps = [step for case in cases(4) for step in case.request.steps]
    assert {step.operation for step in steps} >= {*Collective, *RequestKind} - {
        RequestKind.ALL_REDUCE,
        RequestKind.REDUCE_SCATTER,
        RequestKind.ALL_GATHER,
    }
    requests = [case.request for case in cases(4)]
    assert {request.kind for request in requests} == set(RequestKind)
    assert {len(request.steps) for request in requests} == {1, 2, 3}
    assert any(request.chunks > 1 for request in requests)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_case_is_right(ranks: int) -> None:
    every = cases(ranks)
    rows = Checker(on_reference, REFERENCE).rows(every)
    assert [row.case for row in rows] == [case.name for case in every]
    assert len({row.case for row in rows}) == len(rows)
    assert all(row.reason is None for row in rows)


def test_a_case_that_breaks_its_launch_is_found() -> None:
    def run(job: Job, options: RunOptions) -> RunResult:
        if any(request.name == WRONG for request in job.requests):
            raise ExecutionError("rank 3: was killed\nby SIGSEGV")
        return on_reference(job, options)

    rows = Checker(run, REFERENCE).rows(cases(4))
    assert [(row.case, row.reason) for row in rows if row.reason] == [
        (WRONG, "rank 3: was killed by SIGSEGV")
    ]
    found = data(rows, [{"gpu": "Model | 1"}])
    assert not found["verified"]
    assert f"| reference | 4 | float32 | {WRONG} | rank 3: was killed by SIGSEGV |" in markdown(
        found
    )


def test_a_wrong_result_is_a_row() -> None:
    first, *others = cases(4)
    steps = first.request.steps
    broken = Case("twice", 4, replace(first.request, steps=(*steps, *steps)))
    rows = Checker(on_reference, REFERENCE).rows([first, broken, *others])
    assert [row.case for row in rows if row.reason] == ["twice"]
    assert rows[1].reason is not None
    assert "wrong value" in rows[1].reason


def test_nothing_more_is_tried_where_nothing_runs() -> None:
    launches = []

    def run(job: Job, _: RunOptions) -> RunResult:
        launches.append(job)
        raise ExecutionError("no")

    rows = Checker(run, REFERENCE).rows(cases(2))
    assert len(launches) == 1
    assert [row.reason for row in rows] == ["no"] + ["not tried: no"] * (len(rows) - 1)


@pytest.mark.parametrize(
    ("ranks", "gpus", "each"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (4, 2, 2), (4, 3, 2), (4, 8, 1)]
)
def test_ranks_share_gpus_only_where_they_must(ranks: int, gpus: int, each: int) -> None:
    options = RunOptions(backend="nccl", device="cuda")
    assert options_on(options, ranks, gpus).ranks_per_gpu == each


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path)]) == 5
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "finds no CUDA GPU" in err
    assert not list(tmp_path.iterdir())


def run_script(tmp_path: Path, *arguments: str) -> None:
    code = main(["--dtype", "float32", "--out", str(tmp_path), *arguments])
    found = json.loads((tmp_path / "results.json").read_text())
    assert [case for case in found["cases"] if not case["verified"]] == []
    assert (code, found["verified"]) == (0, True)


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_on_cpus(tmp_path: Path) -> None:
    run_script(tmp_path, "--backend", "gloo", "--device", "cpu", "--ranks", "2", "--ranks", "4")


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_on_gpus(tmp_path: Path, backend: str) -> None:
    run_script(tmp_path, "--backend", backend)
