"""Whether a device's memory suffices, by parts of it that are fitted to runs that failed or ran.

What is counted is what a framework's allocator has given out at the peak.  CUDA's context and
libraries' buffers lie outside of it, its blocks are never all in use, and a framework keeps copies
that no formula has.  How much of a device that leaves is told by runs that ran out of memory and
runs that did not: experiments/training_runs/memory.md.
"""

from __future__ import annotations

from enum import Enum

FITS_PERCENT = 77
"""Of a device's memory: runs that are predicted to need no more have fitted."""
USABLE_PERCENT = 92
"""Of a device's memory: runs that are predicted to need more have mostly failed."""


class MemoryVerdict(Enum):
    """What is said of a run's memory: between the two parts some runs failed and some ran."""

    FITS = "fits"
    TIGHT = "tight"
    NOT = "does not fit"


def usable_bytes(device_bytes: int) -> int:
    """Bytes of a device that a training may take: all but the reserve."""
    return device_bytes * USABLE_PERCENT // 100


def memory_verdict(needed_bytes: int, capacity_bytes: int) -> MemoryVerdict:
    """The verdict on a run that may take ``capacity_bytes``, which leave the reserve out."""
    if needed_bytes > capacity_bytes:
        return MemoryVerdict.NOT
    tight = needed_bytes * USABLE_PERCENT > capacity_bytes * FITS_PERCENT
    return MemoryVerdict.TIGHT if tight else MemoryVerdict.FITS
