"""A schedule as a job for the launcher, and what point-to-point messages can carry out of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from p2smt.errors import InputError
from p2smt.runtime.options import RunOptions
from p2smt.runtime.payload import DataType
from p2smt.runtime.schedules.rows import check_steps
from p2smt.runtime.schedules.values import WIDTH
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
        InputError: the backend is neither Gloo on CPUs nor the reference executor.
    """
    if (options.backend, options.device) not in (("gloo", "cpu"), ("reference", "cpu")):
        raise InputError(
            f"backend {options.backend} on device {options.device}",
            "does not run schedules",
            "use --backend gloo, or reference",
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
