"""Where the messages of a schedule land when their senders write them into the receiver's memory.

A message that is only stored can be written to its destination at once, if whoever else accesses
those chunks on the receiver, and is done before the receive, is also done before the send.  Any
other message gets scratch of its own, in which nothing else is ever written.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.schedules.model import Buffer, Sizes, Span
from p2smt.schedules.order.clocks import order_of
from p2smt.schedules.order.happens_before import edges_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from p2smt.schedules.index import Index


@dataclass(frozen=True, slots=True)
class Landing:
    """A message: the steps that send and receive it, and the memory that it is written to.

    scratch: it is memory of its own, from which the receiver takes it.
    """

    send: int
    receive: int
    place: Span
    scratch: bool


@dataclass(frozen=True, slots=True)
class Landings:
    """All messages by their sending and by their receiving step, and the buffers they need."""

    sent: Mapping[int, Landing]
    received: Mapping[int, Landing]
    sizes: tuple[Sizes, ...]


def landings_of(index: Index) -> Landings:
    """Where every message of a schedule that is sound lands.

    Raises:
        InputError: steps wait for each other.
    """
    steps = index.schedule.steps
    straight = _straight(index)
    used = [sizes.scratch for sizes in index.schedule.sizes]
    found = []
    for send, receive in _messages(index):
        step = steps[receive]
        if receive in straight:
            found.append(Landing(send, receive, step.writes[0], scratch=False))
        else:
            place = Span(step.rank, Buffer.SCRATCH, used[step.rank], step.count)
            used[step.rank] += step.count
            found.append(Landing(send, receive, place, scratch=True))
    sizes = zip(index.schedule.sizes, used, strict=True)
    return Landings(
        {landing.send: landing for landing in found},
        {landing.receive: landing for landing in found},
        tuple(size._replace(scratch=scratch) for size, scratch in sizes),
    )


def check_sound(index: Index) -> None:
    """Raise InputError unless messages have two ends of one length, and memory and steps exist."""
    steps = index.schedule.steps
    for step in steps:
        if not all(map(index.memory.contains, (*step.reads, *step.writes))):
            raise _broken(f"{step}", "uses memory that does not exist")
        if any(index.number(step.rank, ref) is None for ref in step.waits):
            raise _broken(f"{step}", "waits for a step that does not exist")
    for connection in dict.fromkeys((*index.sends, *index.receives)):
        ends = [which.get(connection, ()) for which in (index.sends, index.receives)]
        sent, taken = ([steps[number].count for number in end] for end in ends)
        if sent != taken:
            raise _broken(f"connection {connection}", "has messages that are not received as sent")


def _broken(given: str, rule: str) -> InputError:
    return InputError(given, rule, "verify the schedule first")


def _messages(index: Index) -> Iterator[tuple[int, int]]:
    for connection, sends in index.sends.items():
        yield from zip(sends, index.receives[connection], strict=True)


def _straight(index: Index) -> set[int]:
    """The receives whose messages may be written to their destination by the sender."""
    steps = index.schedule.steps
    accesses = _accesses(index)
    asked: list[tuple[int, int]] = []
    owner: list[int] = []
    plain = [
        (send, receive)
        for send, receive in _messages(index)
        if len(steps[receive].writes) == 1 and not steps[receive].reads
    ]
    for send, receive in plain:
        cells = index.memory.cells(steps[receive].writes[0])
        others = {other for cell in cells for other in accesses[cell]} - {receive}
        for other in sorted(others):
            asked += [(receive, other), (other, send)]
            owner.append(receive)
    answers = _before(index, asked)
    late = {
        receive
        for place, receive in enumerate(owner)
        if not (answers[2 * place] or answers[2 * place + 1])
    }
    return {receive for _, receive in plain} - late


def _accesses(index: Index) -> dict[int, list[int]]:
    """The steps that read or write each cell."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, step in enumerate(index.schedule.steps):
        for span in (*step.reads, *step.writes):
            for cell in index.memory.cells(span):
                found[cell].append(number)
    return found


def _before(index: Index, pairs: Sequence[tuple[int, int]]) -> Sequence[bool]:
    """For each pair of steps: is the first surely complete before the second starts?"""
    edges = edges_of(index)
    try:
        order = order_of(edges.nodes.total, edges.visible)
    except ValueError:
        given = f"schedule {index.schedule.name[:60]!r}"
        raise _broken(given, "has steps that wait for each other") from None
    answers: list[bool] = order.before(pairs).tolist()
    return answers
