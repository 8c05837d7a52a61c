"""Does every step get its turn: whole, or chunk by chunk where packets let it?

A whole step waits for all of its packets before it writes any, which is more than its chunks do: if
whole steps get their turn, so do the chunks.  If they do not, the chunks are tried *in sequence*:
those of a step one after the other, and all of them before the next step.  A thread handles its
elements in that order and waits for no more than that, so if this ends, every run does.  If not
even chunks that wait for nothing but their own packets get their turn, nothing does.  In between
it depends on how many elements a thread handles, which a schedule does not say.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from p2smt.schedules.index import index_of
from p2smt.schedules.verify.deadlock import run_or_stick
from p2smt.schedules.verify.progress import LocalOrder, local_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.schedules.index import Index
    from p2smt.schedules.order.chunkwise import Pieces
    from p2smt.schedules.verify.progress import Progress

DEPENDS = (
    "whole steps wait for each other, and their chunks, which wait for their own packets only, do "
    "not: whether every run ends depends on how many chunks a thread handles, and in which order"
)


@dataclass(frozen=True, slots=True)
class Turns:
    """A run as far as it gets; of steps, or of pieces in some order inside the ranks."""

    index: Index
    local: LocalOrder
    progress: Progress
    depth: int

    @property
    def finished(self) -> bool:
        """Whether everything got its turn."""
        return self.progress.finished


def turns_of(
    index: Index, depth: int, time_limit_s: float | None, local: LocalOrder | None = None
) -> Turns:
    """A run; one that does not finish, if any interleaving does not.

    local: the order inside ranks, if it is not that of the schedule.

    Raises:
        TooManyOutcomes: of competing waits, to try them all in time.
    """
    local = local or local_order(index)
    return Turns(index, local, run_or_stick(index, local, depth, time_limit_s), depth)


def in_sequence(whole: Index, pieces: Pieces, index: Index) -> LocalOrder:
    """The order inside ranks, with the pieces of a step in sequence and before the next step.

    index: that of the pieces.
    """
    parts: dict[int, list[int]] = defaultdict(list)
    for number, origin in enumerate(pieces.origin):
        parts[origin].append(number)
    order = local_order(index)
    after, before = [list(later) for later in order.after], list(order.before)
    for step, own in parts.items():
        earlier = [(parts[e][-1], own[0]) for e in whole.before(step)]
        for a, b in (*earlier, *pairwise(own)):
            after[a].append(b)
            before[b] += 1
    return LocalOrder(after, before, order.meeting)


def turns_of_pieces(
    whole: Index, pieces: Pieces, depth: int, time_limit_s: float | None
) -> Sequence[Turns]:
    """Runs of the pieces: in sequence; and if that does not finish, in no more order than theirs.

    Raises:
        TooManyOutcomes: as above.
    """
    index = index_of(pieces.schedule)
    strict = turns_of(index, depth, time_limit_s, in_sequence(whole, pieces, index))
    return [strict] if strict.finished else [strict, turns_of(index, depth, time_limit_s)]
