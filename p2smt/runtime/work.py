"""The kinds of work that ranks can be given, and a machine's share of it.

Who treats kinds differently matches all of them and ends with ``assert_never``: for a new kind the
type checker then names every place that must know it.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.schedules.schedule_job import ScheduleJob
from p2smt.runtime.transfers.transfer_job import TransferJob

Work = Job | ScheduleJob | ArrayJob | TransferJob
"""Programs for requests, a schedule, a redistribution, a transfer; ``ranks``: how many it takes."""


@dataclass(frozen=True, slots=True)
class NodeSetup:
    """What a machine is to run: ``local_ranks`` ranks from ``first_rank`` on.

    The first machine opens the port of the store (0: any free one) and tells which it is.
    """

    work: Work
    options: RunOptions
    first_rank: int
    local_ranks: int
    host: str
    port: int
