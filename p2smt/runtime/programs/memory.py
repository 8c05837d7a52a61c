"""What a job needs of memory on each rank: as much as its largest request."""

from __future__ import annotations

from p2smt.runtime.job import Job
from p2smt.runtime.options import RunOptions

_COPIES = 3  # payload, its source, and buffers of rows that are not in one run
_CHECKED_BYTES = 48  # per element: what is found, expected and allowed is held in 64 bits each


def largest_payload_bytes(job: Job) -> int:
    """The largest payload of a rank."""
    return max((request.payload_bytes for request in job.requests), default=0)


def rank_bytes(job: Job, options: RunOptions) -> int:
    """About the memory that each rank needs."""
    copies = _CHECKED_BYTES // options.data_type.item_bytes if options.check else _COPIES
    return copies * largest_payload_bytes(job)
