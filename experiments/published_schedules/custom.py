"""What the examples of MSCCLang with a collective of their own must produce.

Their XML says ``custom``; the programs say in Python what they mean, and this is the same again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contribution, Goal

if TYPE_CHECKING:
    from p2smt.schedules.model import Schedule


@dataclass(frozen=True, slots=True)
class Custom:
    """A collective of a program's own.

    read_as: the collective whose buffers are as large as its.
    back: rank r ends with the input of rank r - back; ranks for which there is none, with nothing.
    root: instead, every other rank ends with the input of this one.
    """

    read_as: str
    back: int = 0
    root: int | None = None

    def source(self, rank: int, ranks: int) -> int | None:
        """Whose input a rank ends with."""
        found = rank - self.back if self.root is None else self.root
        return found if 0 <= found < ranks and found != rank else None


CUSTOM = {
    "to the next": Custom("sendrecv", back=1),
    "to the one before": Custom("sendrecv", back=-1),
    "from rank 0": Custom("broadcast", root=0),
}


def demanded(schedule: Schedule, custom: Custom) -> Schedule:
    """A schedule read as ``custom.read_as``, with what its collective demands instead."""
    chunks = [len(start) for start in schedule.contract.starts]
    pairs = [(rank, custom.source(rank, schedule.ranks)) for rank in range(schedule.ranks)]
    goals = tuple(
        Goal(rank, chunk, (Contribution(source, chunk),))
        for rank, source in pairs
        if source is not None
        for chunk in range(chunks[source])
    )
    contract = replace(schedule.contract, collective="custom", goals=goals)
    return replace(schedule, contract=contract)
