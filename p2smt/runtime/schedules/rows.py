"""Where the chunks of a rank lie, and what comes before what inside a rank.

Worked out here from the schedule alone: execution shares nothing with the checker but the
schedule itself, so that each is a check of the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.schedules.model import Buffer, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.model import Schedule, Span, Step


_REPAIR = "correct the schedule; p2smt verify says more"


@dataclass(frozen=True, slots=True)
class RankRows:
    """The memory of a rank: a row per chunk; ``first`` row of each buffer, and how many in all.

    In place, input and output share rows.
    """

    first: Mapping[Buffer, int]
    total: int

    def of(self, span: Span) -> slice:
        """The rows of a span, which must be in bounds."""
        start = self.first[span.buffer] + span.start
        return slice(start, start + span.count)

    def row(self, buffer: Buffer, chunk: int) -> int:
        """The row of a chunk."""
        return self.first[buffer] + chunk


def rows_of(schedule: Schedule, rank: int) -> RankRows:
    """The memory of a rank."""
    sizes = schedule.sizes[rank]
    if not schedule.in_place:
        first = (0, sizes.input, sizes.input + sizes.output)
    else:
        shift = schedule.contract.shift[rank]
        inputs, outputs = (shift, 0) if shift >= 0 else (0, -shift)
        first = (inputs, outputs, max(inputs + sizes.input, outputs + sizes.output))
    names = (Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH)
    return RankRows(dict(zip(names, first, strict=True)), first[2] + sizes.scratch)


@dataclass(frozen=True, slots=True)
class OrderInRanks:
    """Order inside ranks, by step number (position in ``schedule.steps``).

    before: steps that must be complete first.  after: the other way round.
    meeting: all steps that meet at the barrier of a step.
    """

    before: Sequence[Sequence[int]]
    after: Sequence[Sequence[int]]
    meeting: Mapping[int, Sequence[int]]


def order_in_ranks(schedule: Schedule) -> OrderInRanks:
    """The order inside ranks; references must be known to exist (:func:`check_steps`)."""
    known = _numbers(schedule)
    before = [sorted(set(_before(step, known))) for step in schedule.steps]
    after: list[list[int]] = [[] for _ in before]
    for number, earlier in enumerate(before):
        for one in earlier:
            after[one].append(number)
    return OrderInRanks(before, after, _meetings(schedule))


def _numbers(schedule: Schedule) -> dict[tuple[int, int, int], int]:
    return {(s.rank, s.block, s.index): number for number, s in enumerate(schedule.steps)}


def _before(step: Step, known: Mapping[tuple[int, int, int], int]) -> Iterator[int]:
    if step.after is None and step.index:
        yield known[step.rank, step.block, step.index - 1]
    for ref in (*(step.after or ()), *step.waits):
        yield known[step.rank, ref.block, ref.index]


def _meetings(schedule: Schedule) -> dict[int, Sequence[int]]:
    """The n-th steps of the blocks of a rank that name a barrier meet."""
    seen: dict[tuple[int, int, str], int] = defaultdict(int)
    meetings: dict[tuple[int, str, int], list[int]] = defaultdict(list)
    for number, step in enumerate(schedule.steps):
        if step.barrier is not None:
            count = seen[step.rank, step.block, step.barrier]
            seen[step.rank, step.block, step.barrier] += 1
            meetings[step.rank, step.barrier, count].append(number)
    return {number: steps for steps in meetings.values() for number in steps}


def check_steps(schedule: Schedule) -> None:
    """Refuse what cannot be carried out at all, whether it would be right or not.

    Raises:
        InputError: a span outside its buffer or of another size than its step, a peer that is
            no rank, a step that waits for one that does not exist, buffers that are too small.
    """
    known = _numbers(schedule)
    for step in schedule.steps:
        for span in (*step.reads, *step.writes):
            _check_span(schedule, step, span)
        for connection in (step.send, step.receive):
            ends = () if connection is None else (connection.source, connection.target)
            if any(not 0 <= end < schedule.ranks for end in ends):
                raise InputError(str(step), f"names {connection}, which has no peer", _REPAIR)
        for ref in (*(step.after or ()), *step.waits):
            if (step.rank, ref.block, ref.index) not in known:
                missing = f"block {ref.block} step {ref.index}"
                raise InputError(str(step), f"waits for {missing}, which does not exist", _REPAIR)
    _check_buffers(schedule)


def _check_span(schedule: Schedule, step: Step, span: Span) -> None:
    inside = 0 <= span.rank < schedule.ranks and span.start >= 0
    if not inside or span.start + span.count > schedule.sizes[span.rank].of(span.buffer):
        raise InputError(str(step), f"uses {span}, which is out of bounds", _REPAIR)
    if span.count != step.count:
        raise InputError(str(step), f"has {step.count} chunks, but {span} {span.count}", _REPAIR)


def _check_buffers(schedule: Schedule) -> None:
    contract = schedule.contract
    for rank, given in enumerate(contract.starts):
        if len(given) > schedule.sizes[rank].input:
            text = f"has {schedule.sizes[rank].input} input chunks, {len(given)} are given"
            raise InputError(f"rank {rank}", text, _REPAIR)
    for goal in contract.goals:
        if goal.chunk >= schedule.sizes[goal.rank].output:
            text = f"has no output chunk {goal.chunk}, which {contract.collective} asks for"
            raise InputError(f"rank {goal.rank}", text, _REPAIR)


# The steps of a rank cut into chains that run side by side.
# A chain is a sequence of steps each of which may only start when the one before it is complete:
# running a chain in order waits for nothing that the schedule does not wait for.  A thread block in
# program order is one chain.


@dataclass(frozen=True, slots=True)
class Chain:
    """``waits``: for each step, the steps of other chains that must be complete before it.

    ``foreground``: how many of the steps it takes until only background steps are left.
    """

    steps: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    foreground: int


def chains_of(schedule: Schedule, order: OrderInRanks, rank: int) -> list[Chain]:
    """The chains of a rank; every step is in one."""
    chains: list[list[int]] = []
    ends: dict[int, int] = {}
    for number, step in enumerate(schedule.steps):
        if step.rank != rank:
            continue
        own = [p for p in order.before[number] if p in ends]
        own.sort(key=lambda p: (schedule.steps[p].block != step.block, p))
        if own:
            place = ends.pop(own[0])
            chains[place].append(number)
        else:
            place = len(chains)
            chains.append([number])
        ends[number] = place
    return [_chain(schedule, order, steps) for steps in chains]


def _chain(schedule: Schedule, order: OrderInRanks, steps: Sequence[int]) -> Chain:
    members = {number: place for place, number in enumerate(steps)}
    waits = tuple(
        tuple(p for p in order.before[number] if members.get(p, len(steps)) >= place)
        for place, number in enumerate(steps)
    )
    last = (place for place, n in enumerate(steps, start=1) if not schedule.steps[n].background)
    return Chain(tuple(steps), waits, max(last, default=0))
