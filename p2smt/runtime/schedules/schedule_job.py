"""A schedule as a job for the launcher, and what point-to-point messages can carry out of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from p2smt.errors import InputError
from p2smt.runtime.payload import PERIOD, DataType, RunOptions
from p2smt.runtime.schedules.rows import Chain, chains_of, check_steps, order_in_ranks, rows_of
from p2smt.runtime.schedules.values import WIDTH, contributions_of
from p2smt.schedules.model import DEFAULT_DEPTH, Connection, Schedule, Step

DEFAULT_PAYLOAD_BYTES = 1 << 20
_REMEDY = "run it with --backend reference"


@dataclass(frozen=True, slots=True)
class ScheduleJob:
    """A schedule for as many ranks as it has; ``fifo_depth``: messages that a connection holds.

    ``payload_bytes``: size of the larger of input and output on each rank, rounded up so that all
    chunks are of the same size; None: as much as the backend takes by default.
    """

    schedule: Schedule
    payload_bytes: int | None
    fifo_depth: int

    @property
    def ranks(self) -> int:
        """Ranks that it takes."""
        return self.schedule.ranks

    def width(self, data_type: DataType) -> int:
        """Elements in a chunk on real ranks."""
        return self._width(self.payload_bytes or DEFAULT_PAYLOAD_BYTES, data_type.item_bytes)

    @property
    def reference_width(self) -> int:
        """Integers of 64 bits in a chunk on the reference executor."""
        return WIDTH if self.payload_bytes is None else self._width(self.payload_bytes, 8)

    def _width(self, payload_bytes: int, item_bytes: int) -> int:
        chunks = max(max(sizes.input, sizes.output) for sizes in self.schedule.sizes)
        return max(1, -(-payload_bytes // (max(1, chunks) * item_bytes)))


def schedule_job(
    schedule: Schedule, payload_bytes: int | None = None, fifo_depth: int = DEFAULT_DEPTH
) -> ScheduleJob:
    """The job of a schedule.

    Raises:
        InputError: it cannot be carried out at all, or the depth is below 1.
    """
    if fifo_depth < 1:
        raise InputError(f"depth {fifo_depth}", "must be at least 1")
    check_steps(schedule)
    return ScheduleJob(schedule, payload_bytes, fifo_depth)


def check_backend(options: RunOptions) -> None:
    """Refuse backends that cannot carry schedules.

    NCCL pays no regard to tags, which tell the messages of different connections apart.

    Raises:
        InputError: the backend is neither Gloo or MPI on CPUs nor the reference executor.
    """
    if options.backend == "nccl" or options.device != "cpu":
        raise InputError(
            f"backend {options.backend} on device {options.device}",
            "does not run schedules",
            "use --backend gloo, mpi or reference",
        )


def check_two_sided(schedule: Schedule) -> None:
    """Refuse schedules that need more than messages between ranks.

    Raises:
        InputError: naming the first step that does, with its line in the file.
    """
    users: dict[str, set[int]] = defaultdict(set)
    for step in schedule.steps:
        for counter in (*step.posts, *step.awaits):
            users[counter].add(step.rank)
    shared = {counter for counter, ranks in users.items() if len(ranks) > 1}
    for step in schedule.steps:
        for found in _beyond_messages(step, shared):
            raise InputError(str(step), f"{found}, which needs more than messages", _REMEDY)
    _check_sizes(schedule)


def _beyond_messages(step: Step, shared: set[str]) -> Iterator[str]:
    """What a step does that point-to-point messages cannot."""
    for verb, spans in (("reads", step.reads), ("writes", step.writes)):
        for span in spans:
            if span.rank != step.rank:
                yield f"{verb} {span}"
            if span.packet:
                yield f"{verb} {span} as packets"
    for verb, counters in (("raises", step.posts), ("awaits", step.awaits)):
        yield from (f"{verb} {c}, a signal between ranks" for c in counters if c in shared)
    for connection, own in ((step.send, 0), (step.receive, 1)):
        if connection is not None and connection[own] != step.rank:
            yield f"uses {connection}, which does not {('begin', 'end')[own]} at its rank"


def _check_sizes(schedule: Schedule) -> None:
    """A message must fit what is receiving it: libraries abort where it does not."""
    ends: dict[Connection, tuple[list[Step], list[Step]]] = defaultdict(lambda: ([], []))
    for step in schedule.steps:
        for connection, side in ((step.send, 0), (step.receive, 1)):
            if connection is not None:
                ends[connection][side].append(step)
    for connection, (sends, receives) in ends.items():
        for send, receive in zip_longest(sends, receives):
            if send and receive and send.count != receive.count:
                text = f"takes {receive.count} chunks from {connection}, {send} sends {send.count}"
                raise InputError(str(receive), text, _REMEDY)


# What a schedule needs of memory: on each real rank, and on the reference executor.
# Both hold rows of one chunk each, for as long as they run:
#
# * chunks: input, output and scratch (:func:`p2smt.runtime.schedules.rows.rows_of`);
# * values: of the steps under way; one at a time in a chain, so the largest of each chain;
# * messages: copies of what was sent and not received yet, on each connection.
#
# A rank compares its output chunks one after the other with what they must hold, in 64 bits, and
# keeps a copy of the right output.  What a process needs whatever it runs is not counted.


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
