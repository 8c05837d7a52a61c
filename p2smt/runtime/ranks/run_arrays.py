"""Runs a planned redistribution on the backend that is asked for, and joins what ranks report."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.runtime.arrays.block_values import ArrayValues
from p2smt.runtime.arrays.rank_steps import ArrayJob, predicted_bytes
from p2smt.runtime.numpy_reference import run_arrays_reference
from p2smt.runtime.payload import RankReport, RunOptions
from p2smt.runtime.ranks.memory_check import check_memory
from p2smt.runtime.ranks.on_ranks import on_ranks
from p2smt.runtime.summary import CheckedRun, Times, slowest

_MOST_ERRORS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRunResult(CheckedRun):
    """A redistribution on all ranks.

    ``memory_bytes``: the most that a rank held of the array (None: not measured),
    ``predicted_bytes``: what the plan says.
    """

    job: ArrayJob
    steps: tuple[Times, ...]
    memory_bytes: int | None

    @property
    def predicted_bytes(self) -> int:
        """Input, output and pack buffer of the dearest step."""
        return predicted_bytes(self.job)


def run_arrays(job: ArrayJob, options: RunOptions, *, port: int = 0) -> ArrayRunResult | None:
    """Run a redistribution; None on every rank but 0 of ranks that existed already.

    Raises:
        InputError: more memory than there is, or other ranks than a launcher started.
        BackendError, ExecutionError: as for :func:`p2smt.runtime.ranks.on_ranks.on_ranks`.
    """
    if options.backend == "reference":
        return _on_reference(job, options)
    reports = on_ranks(job, options, port=port)
    return None if reports is None else _joined(job, reports)


def _joined(job: ArrayJob, reports: Sequence[RankReport]) -> ArrayRunResult:
    runs = [report.requests[0] for report in reports]
    return ArrayRunResult(
        job=job,
        errors=tuple(error for run in runs for error in run.errors),
        checked=all(run.checked for run in runs),
        float_checked=all(run.float_checked for run in runs),
        repetitions_checked=min(run.repetitions_checked for run in runs),
        total=slowest([run.total_s for run in runs]),
        steps=tuple(slowest([run.steps_s[i] for run in runs]) for i in range(len(job.steps))),
        memory_bytes=max(
            (run.memory_bytes for run in runs if run.memory_bytes is not None), default=None
        ),
        machines=tuple(report.machine for report in reports),
    )


def _on_reference(job: ArrayJob, options: RunOptions) -> ArrayRunResult:
    """By the definitions of the steps, on 64-bit numbers."""
    check_memory(job, options, range(job.ranks))
    values = ArrayValues.of(job.frame, job.start, job.end, options.seed)
    make = values.integers if job.reduces else values.bits
    held = {device: make(job.start, device) for device in range(job.ranks)}
    found = run_arrays_reference(job, held)
    wrong = [d for d in held if not np.array_equal(found[d], make(job.end, d))]
    errors = [f"rank {device}: its block is wrong" for device in wrong]
    machine = {"host": platform.node(), "python": platform.python_version(), "device": "numpy"}
    none = tuple(Times(()) for _ in job.steps)
    shown = tuple(errors[:_MOST_ERRORS])
    return ArrayRunResult(
        job=job,
        errors=shown,
        checked=True,
        float_checked=False,
        repetitions_checked=0,
        total=Times(()),
        steps=none,
        memory_bytes=None,
        machines=(machine,) * job.ranks,
    )
