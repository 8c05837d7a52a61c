"""What a schedule needs of memory: on each real rank, and on the reference executor.

Both hold rows of one chunk each, for as long as they run:

* chunks: input, output and scratch (:func:`p2smt.runtime.schedules.rows.rows_of`);
* values: of the steps under way; one at a time in a chain, so the largest of each chain;
* messages: copies of what was sent and not received yet, on each connection.

A rank compares its output chunks one after the other with what they must hold, in 64 bits, and
keeps a copy of the right output.  What a process needs whatever it runs is not counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from p2smt.runtime.payload import PERIOD, DataType
from p2smt.runtime.schedules.chains import Chain, chains_of
from p2smt.runtime.schedules.job import ScheduleJob
from p2smt.runtime.schedules.rows import order_in_ranks, rows_of
from p2smt.runtime.schedules.values import contributions_of
from p2smt.schedules.model import Connection, Schedule

# Arrays of 64 bits while a chunk is compared (runtime/schedules/check.py).  As long as a chunk:
# what is found and right, now and for the chunk before, their difference, and what it may be.
_CHUNK_ARRAYS = 5
# As long as a period: of each contribution its values, their magnitudes, and these in one array;
# and what it takes to mix the bits of one, to sum, and to fill a chunk with whole periods.
_PERIOD_ARRAYS_PER_PART = 3
_PERIOD_ARRAYS = 10
_KEPT_BYTES = 64 << 20
"""What glibc may keep of freed arrays: twice the size up to which they lie on its heap (mallopt(3):
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD)."""


def ranks_bytes(job: ScheduleJob, data_type: DataType, ranks: Sequence[int]) -> int:
    """About the memory that these ranks, a process each, need together."""
    row_bytes = job.width(data_type) * data_type.item_bytes
    compared = [compared_bytes(job, job.width(data_type), rank) for rank in ranks]
    kept = sum(min(_KEPT_BYTES, each) for each in compared)
    right = sum(goal.rank in ranks for goal in job.schedule.contract.goals)
    return (held_rows(job, ranks) + right) * row_bytes + sum(compared) + kept


def reference_bytes(job: ScheduleJob) -> int:
    """About the memory that the reference executor needs for all ranks, in one process."""
    contract = job.schedule.contract
    compared = 1 + max((len(goal.parts) for goal in contract.goals), default=0)
    rows = held_rows(job, range(job.ranks)) + len(contributions_of(contract)) + compared
    return rows * job.reference_width * 8


def held_rows(job: ScheduleJob, ranks: Iterable[int]) -> int:
    """Rows of these ranks together: chunks, values and messages."""
    schedule, order = job.schedule, order_in_ranks(job.schedule)
    held = 0
    for rank in ranks:
        chains = chains_of(schedule, order, rank)
        held += rows_of(schedule, rank).total
        held += sum(max(schedule.steps[number].count for number in chain.steps) for chain in chains)
        held += _message_rows(schedule, chains, job.fifo_depth)
    return held


def compared_bytes(job: ScheduleJob, width: int, rank: int) -> int:
    """What a rank needs while it compares an output chunk of so many elements."""
    goals = job.schedule.contract.goals
    parts = max((len(goal.parts) for goal in goals if goal.rank == rank), default=0)
    of_period = _PERIOD_ARRAYS_PER_PART * parts + _PERIOD_ARRAYS
    return 8 * (_CHUNK_ARRAYS * width + of_period * min(PERIOD, width))


def _message_rows(schedule: Schedule, chains: Sequence[Chain], depth: int) -> int:
    """Chunks in messages of a rank; chains that wait for the same room each find it."""
    messages: Counter[Connection] = Counter()
    largest: Counter[Connection] = Counter()
    senders: dict[Connection, set[int]] = defaultdict(set)
    for place, chain in enumerate(chains):
        for step in (schedule.steps[number] for number in chain.steps):
            if step.send is not None:
                messages[step.send] += 1
                largest[step.send] = max(1, step.count, largest[step.send])
                senders[step.send].add(place)
    return sum(
        largest[each] * min(count, depth + len(senders[each]) - 1)
        for each, count in messages.items()
    )
