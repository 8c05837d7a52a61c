"""What a redistribution needs of memory: on each real rank, and on the reference executor."""

from __future__ import annotations

import math

from p2smt.arrays.memory import peak_bytes, peak_step_bytes
from p2smt.runtime.arrays.job import ArrayJob

_COMPARED_BYTES = 64  # per element: numbers, bits, what is found and what is right, in 64 bits each
_REFERENCE_BYTES = 40


def predicted_bytes(job: ArrayJob) -> int:
    """Input, output and pack buffer of the dearest step, with the source where it is kept."""
    if not job.steps:
        return job.frame.local_bytes(job.start)
    return peak_step_bytes(job.frame, job.steps, job.keep_source)


def array_rank_bytes(job: ArrayJob) -> int:
    """About the memory that each rank needs: for the steps, and to compare the result."""
    return predicted_bytes(job) + 2 * _largest(job) * (
        _COMPARED_BYTES + job.frame.element.item_bytes
    )


def array_reference_bytes(job: ArrayJob) -> int:
    """About the memory that the reference executor needs for all ranks, in one process."""
    return job.ranks * _largest(job) * _REFERENCE_BYTES


def _largest(job: ArrayJob) -> int:
    """Elements of the largest local array."""
    states = [job.start, *(step.after for step in job.steps)]
    largest = peak_bytes(job.frame, states) // job.frame.element.item_bytes
    return max(1, math.ceil(largest))
