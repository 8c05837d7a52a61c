"""What a machine is told to run."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.runtime.job import Job
from p2smt.runtime.options import RunOptions


@dataclass(frozen=True, slots=True)
class NodeSetup:
    """What a machine is to run: ``local_ranks`` ranks from ``first_rank`` on.

    The first machine opens the port of the store (0: any free one) and tells which it is.
    """

    job: Job
    options: RunOptions
    first_rank: int
    local_ranks: int
    host: str
    port: int
