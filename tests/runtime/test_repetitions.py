"""A fault in one timed repetition is seen, and named; what is right stays right.

The library is made to err: in one rank, one call of one kind adds to the first element of what it
returns, or does nothing at all.  Everything else are real ranks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from p2smt.collectives.names import RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.runtime.job import Job, JobStep
from p2smt.runtime.payload import Cutting, DataType, RunOptions, spread, spread_whole_row
from p2smt.runtime.ranks.on_ranks import launch
from p2smt.runtime.ranks.run_schedule import run_schedule
from p2smt.runtime.schedules.schedule_job import schedule_job
from p2smt.runtime.summary import RunResult, summarize
from tests.runtime.schedules.tools import ring
from tests.runtime.tools import ALL, BLUE, GATHER, RAILS, program_request, request, whole
from tests.tiers import but_the_first

OPTIONS = RunOptions(repeat=4, warmup=1, time_limit_s=600)
# In each rank before the repetitions: a call per check (integers, random numbers).  Then each
# repetition has one in the program, one in the baseline, and one in the single steps.
FAULT = """
import os
import torch.distributed as dist

right, calls = dist.{function}, [0]

class Late:
    def __init__(self, work, tensor):
        self.work, self.tensor = work, tensor
    def wait(self):
        self.work and self.work.wait()
        if self.work:
            self.tensor.view(-1)[0] += 1

def wrong(*arguments, **more):
    calls[0] += 1
    if calls[0] != {call} or not dist.is_initialized() or dist.get_rank() != 1:
        return right(*arguments, **more)
    work = right(*arguments, **more)
    return Late(work, arguments[0])

dist.{function} = wrong
"""


def faulty(monkeypatch: pytest.MonkeyPatch, folder: Path, function: str, call: int) -> None:
    """Let a function of torch.distributed err once in rank 1."""
    (folder / "fault.py").write_text(FAULT.format(function=function, call=call))
    (folder / "sitecustomize.py").write_text(
        "import os, sys\n"
        "sys.path.insert(0, os.path.dirname(__file__))\n"
        "def started(): import fault\n"
        "os.register_at_fork(after_in_child=started)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")


def blue() -> RunResult:
    job = Job(4, (program_request(ALL, BLUE, (2, 2), 1000),))
    return summarize(job, launch(job, OPTIONS))


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.parametrize(
    "at",
    but_the_first(
        (6, "timed repetition 1 of 4, program"),
        (10, "timed repetition 2 of 4, "),
        (3, "warm-up 1 of 1, "),
    ),
)
def test_a_fault_in_one_repetition(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: tuple[int, str]
) -> None:
    call, where = at
    faulty(monkeypatch, tmp_path, "all_reduce", call)
    (found,) = blue().requests
    assert not found.verified
    assert found.errors
    assert all(f" (in {where}" in error for error in found.errors), found.errors


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_a_fault_in_a_schedule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Six receptions in a run of a ring of four; two checks and a warm-up come first."""
    faulty(monkeypatch, tmp_path, "irecv", 3 * 6 + 2 * 6 + 4)
    result = run_schedule(schedule_job(ring(4), 4000), OPTIONS)
    assert result is not None
    assert not result.verified
    assert all(" (in timed repetition 3 of 4)" in error for error in result.errors), result.errors
    assert result.repetitions_checked == 4


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.parametrize(
    "data_type", but_the_first(DataType.FLOAT32, DataType.BFLOAT16, DataType.INT64)
)
def test_every_turn_of_what_is_right_passes(data_type: DataType) -> None:
    """Rows in one run and in several, pieces, every kind, groups side by side."""
    pairs = ((0, 2), (1, 3))
    kinds: list[tuple[RequestKind, Operation]] = [
        (RequestKind.ALL_TO_ALL, RequestKind.ALL_TO_ALL),
        (RequestKind.SEND, RequestKind.SEND),
    ]
    job = Job(
        4,
        (
            program_request(ALL, BLUE, (2, 2), 1234),
            program_request(ALL, RAILS, (2, 2), 1234, chunks=3),
            program_request(GATHER, "all-gather parallel l1 in root; all-gather inside l1", (2, 2)),
            program_request(
                GATHER, "all-gather inside l1; all-gather parallel l1 in root", (2, 2), 700, 3
            ),
            program_request(
                RequestKind.REDUCE_SCATTER,
                "reduce-scatter inside l1; reduce-scatter parallel l1 in root",
                (2, 2),
                700,
                3,
            ),
            *(
                request(k, [JobStep(k.value, operation, of)], of, 96)
                for k, operation in kinds
                for of in (pairs, whole(4))
            ),
        ),
    )
    options = RunOptions(repeat=3, warmup=1, time_limit_s=600, data_type=data_type)
    result = summarize(job, launch(job, options))
    assert [found.errors for found in result.requests] == [()] * len(job.requests)
    assert [found.repetitions_checked for found in result.requests] == [3] * len(job.requests)


@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_rows_across_pieces(chunks: int) -> None:
    period, cutting = np.arange(1, 30), Cutting.of(4 * 29, DataType.FLOAT32, 3, chunks)
    flat = np.concatenate([spread(period, span, 3).ravel() for span in cutting.spans])
    rows = [spread_whole_row(period, cutting, row) for row in range(3)]
    assert np.concatenate(rows).tolist() == flat.tolist()
