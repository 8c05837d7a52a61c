"""Runs a planned transfer on the backend that is asked for, and joins what its ranks report."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.runtime.numpy_reference import run_transfer_reference
from p2smt.runtime.payload import RankReport, RunOptions
from p2smt.runtime.ranks.memory_check import check_memory
from p2smt.runtime.ranks.on_ranks import on_ranks
from p2smt.runtime.summary import CheckedRun, Times, slowest
from p2smt.runtime.transfers.transfer_job import TransferJob
from p2smt.transfer.check import check_transfer, question_of
from p2smt.transfer.file_model import TransferModel
from p2smt.transfer.plan_file import pieces_of

_MOST_ERRORS = 5
_GPU_BLOCK = 512
"""Bytes in whose multiples torch gives out the memory of a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRunResult(CheckedRun):
    """A transfer on all ranks.

    ``staged_bytes``: the most that a rank staged (None: unknown); ``block_bytes``: in multiples of
    which memory is given out.
    """

    job: TransferJob
    staged_bytes: int | None
    block_bytes: int = 1

    @property
    def overstaged(self) -> bool:
        """Whether a rank staged more than the plan promises."""
        promised = -(-self.job.staging_bytes // self.block_bytes) * self.block_bytes
        return self.staged_bytes is not None and self.staged_bytes > promised

    @property
    def verified(self) -> bool:
        """Whether every rank had the right result, in every run, and none staged too much."""
        return self.checked and not self.errors and not self.overstaged


def transfer_job(model: TransferModel, source: str, *, unverified: bool = False) -> TransferJob:
    """The job of a plan file, which is verified first unless it is to run whatever it is.

    Raises:
        InputError: the plan is not right, or nothing that ranks could begin with.
    """
    if not unverified:
        report = check_transfer(model, source)
        if not report.valid:
            remedy = "p2smt verify says more; --unverified runs it all the same"
            raise InputError(source, f"is not right ({report.faults[0]})", remedy)
    question = question_of(model, source)
    return TransferJob(
        question.moves,
        question.before,
        question.after,
        tuple(model.source_devices),
        tuple(model.target_devices),
        pieces_of(model),
        model.item_bytes,
        model.buckets,
        model.staging_bytes,
        model.bandwidth_s + model.fill_s,
    )


def run_transfer(
    job: TransferJob, options: RunOptions, *, port: int = 0
) -> TransferRunResult | None:
    """Run a transfer; None on every rank but 0 of ranks that existed already.

    Raises:
        InputError: more memory than there is, or other ranks than a launcher started.
        BackendError, ExecutionError: as for :func:`p2smt.runtime.ranks.on_ranks.on_ranks`.
    """
    if options.backend == "reference":
        return _on_reference(job, options)
    reports = on_ranks(job, options, port=port)
    block = _GPU_BLOCK if options.device == "cuda" else 1
    return None if reports is None else _joined(job, reports, block)


def _joined(job: TransferJob, reports: Sequence[RankReport], block: int) -> TransferRunResult:
    runs = [report.requests[0] for report in reports]
    return TransferRunResult(
        job=job,
        errors=tuple(error for run in runs for error in run.errors),
        checked=all(run.checked for run in runs),
        float_checked=False,
        repetitions_checked=min(run.repetitions_checked for run in runs),
        total=slowest([run.total_s for run in runs]),
        staged_bytes=max(
            (run.memory_bytes for run in runs if run.memory_bytes is not None), default=None
        ),
        block_bytes=block,
        machines=tuple(report.machine for report in reports),
    )


def _on_reference(job: TransferJob, options: RunOptions) -> TransferRunResult:
    """Piece by piece, element by element."""
    check_memory(job, options, range(job.ranks))
    machine = {"host": platform.node(), "python": platform.python_version(), "device": "numpy"}
    return TransferRunResult(
        job=job,
        errors=tuple(run_transfer_reference(job)[:_MOST_ERRORS]),
        checked=True,
        float_checked=False,
        repetitions_checked=0,
        total=Times(()),
        staged_bytes=None,
        machines=(machine,) * job.ranks,
    )
