"""Deadlock: the steps that never get their turn, who waits for whom, and the depth that helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2smt.schedules.verify.competing import contested, stuck_run
from p2smt.schedules.verify.progress import run
from p2smt.schedules.verify.report import Kind, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.verify.progress import LocalOrder, Progress

# Links of a chain of waiting steps that a message shows.
_SHOWN = 8


def run_or_stick(
    index: Index, local: LocalOrder, depth: int | None, time_limit_s: float | None
) -> Progress:
    """A run; one that does not finish, if any interleaving does not.

    Raises:
        TooManyOutcomes: of competing waits, to try them all in time.
    """
    progress = run(index, local, depth)
    if progress.finished and contested(index):
        return stuck_run(index, local, depth, time_limit_s) or progress
    return progress


def smallest_depth(index: Index, local: LocalOrder, most: int) -> int | None:
    """The smallest connection depth, up to ``most``, with which every step gets its turn.

    Without competing waits more room never blocks anyone, so it can be found by bisection; most
    schedules need 1 or 2.  With them more room may let the wrong one win: none is named.
    """
    if contested(index):
        return None
    for depth in (1, 2):
        if depth <= most and run(index, local, depth).finished:
            return depth
    low, high = 3, most + 1
    while low < high:
        middle = (low + high) // 2
        if run(index, local, middle).finished:
            high = middle
        else:
            low = middle + 1
    return low if low <= most else None


def longest_queue(index: Index) -> int:
    """Messages on the busiest connection: a depth that never blocks."""
    return max([1, *map(len, index.sends.values())])


def deadlock(index: Index, progress: Progress) -> Violation:
    """The violation that a stuck run shows: a chain of steps that wait for each other."""
    chain, closed = _chain(index, progress)
    steps = index.schedule.steps
    parts = [f"{steps[a]} waits for {why}" for a, why in chain[:_SHOWN]]
    if len(chain) > _SHOWN:
        parts.append(f"and {len(chain) - _SHOWN} more")
    undone = len(steps) - len(progress.order)
    start = (
        f"{len(chain)} steps wait for each other in a circle" if closed else "a step is never done"
    )
    depth = f" with connections of depth {progress.depth}" if progress.depth is not None else ""
    text = f"{start}{depth}, {undone} steps are never done: {'; '.join(parts)}"
    numbers = tuple(step for step, _ in chain)
    return Violation(
        Kind.DEADLOCK, text, numbers, steps[numbers[0]].rank, order=tuple(progress.order)
    )


def _chain(index: Index, progress: Progress) -> tuple[list[tuple[int, str]], bool]:
    """Steps each waiting for the next; True if the last waits for the first."""
    done = set(progress.order)
    step = next(iter(progress.waiting()), min(set(range(len(progress.missing))) - done))
    chain: list[tuple[int, str]] = []
    place: dict[int, int] = {}
    while step not in place:
        place[step] = len(chain)
        blocker, why = _blocker(index, progress, step, done)
        chain.append((step, why))
        if blocker is None:
            return chain, False
        step = blocker
    return chain[place[step] :], True


def _blocker(index: Index, progress: Progress, step: int, done: set[int]) -> tuple[int | None, str]:
    """A step that must be done before this one can be, and in words what it is needed for."""
    steps = index.schedule.steps
    earlier = next((e for e in index.before(step) if e not in done), None)
    if earlier is not None:
        return earlier, f"{steps[earlier]} before it"
    if step in progress.arrived:
        absent = [m for m in progress.local.meeting[step] if m not in progress.arrived]
        return absent[0], f"{steps[absent[0]]} at barrier {steps[step].barrier}"
    this, lack = steps[step], progress.lacks(step)
    if lack == this.receive and this.receive is not None:
        return _first(index.sends[this.receive], done), f"a message from rank {this.receive.source}"
    if this.send is not None and lack == (this.send, "room"):
        held = _first(index.receives[this.send], done)
        return held, f"room on the connection {this.send}"
    if isinstance(lack, str):
        return _first(index.posts.get(lack, ()), done), lack
    return _packet_writer(index, lack, done), "a packet"


def _first(numbers: Sequence[int], done: set[int]) -> int | None:
    return next((n for n in numbers if n not in done), None)


def _packet_writer(index: Index, cell: object, done: set[int]) -> int | None:
    for number, step in enumerate(index.schedule.steps):
        for span in step.writes:
            if span.packet and cell in index.memory.cells(span) and number not in done:
                return number
    return None
