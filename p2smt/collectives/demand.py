"""Start and goal of a request, as data that hold for groups of every size.

The checker (:mod:`p2smt.programs.semantics`), each encoding and the executors expand them by code
of their own; what a schedule must do chunk by chunk is in :mod:`p2smt.collectives.contract`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError


class Chunks(Enum):
    """Which of k chunks each of k devices holds; chunks and devices count from 0 alike."""

    EVERY = "every chunk"
    OWN = "the chunk of its own number"
    ONE_EACH = "one chunk, another on each device"


class Givers(Enum):
    """Whose contributions to its chunks a device holds."""

    EVERY = "of every device"
    OWN = "of its own"
    BEFORE = "of the device before it"


@dataclass(frozen=True, slots=True)
class Held:
    """What each of k devices holds, whatever k is: exact sets of (chunk, contributor).

    summed: the contributions to a chunk are added up; otherwise they lie side by side.
    """

    chunks: Chunks
    givers: Givers
    summed: bool = True

    def __str__(self) -> str:
        apart = "" if self.summed else ", side by side"
        return f"{self.chunks.value}, {self.givers.value}{apart}"


@dataclass(frozen=True, slots=True)
class Demand:
    """What the k devices of a group start with, and what they must end with: that and no more.

    It holds for every k, so that the same demand can be put to the real devices and to a small
    model of them.  The checker, each encoding and the executors expand it by code of their own.
    Of a goal ``ONE_EACH`` any order of the chunks will do; a send asks nothing of the device that
    has none before it.
    """

    start: Held
    goal: Held

    def __post_init__(self) -> None:
        start = self.start
        known = start.chunks is not Chunks.ONE_EACH and start.givers is not Givers.BEFORE
        if not known or not start.summed:
            rule = "must be every chunk or the own one, of every device or of its own"
            raise InputError(f"a start with {start}", rule)

    @property
    def has_programs(self) -> bool:
        """Whether reduction programs can answer it: all they do is complete chunks by sums.

        Which device gets which chunk is not asked of them.
        """
        goal = self.goal
        complete = goal.givers is Givers.EVERY and goal.summed
        return complete and goal.chunks is not Chunks.OWN

    @property
    def has_exchanges(self) -> bool:
        """Whether all-to-alls can answer it: blocks find their way, and nothing is summed."""
        return self == _DEMANDS[RequestKind.ALL_TO_ALL]

    def __str__(self) -> str:
        named = (kind.value for kind, demand in _DEMANDS.items() if demand == self)
        return next(named, f"from {self.start} to {self.goal}")


_CONTRIBUTIONS = Held(Chunks.EVERY, Givers.OWN)
_SHARDS = Held(Chunks.OWN, Givers.EVERY)
_REPLICAS = Held(Chunks.EVERY, Givers.EVERY)
_DEMANDS = {
    RequestKind.ALL_REDUCE: Demand(_CONTRIBUTIONS, _REPLICAS),
    RequestKind.REDUCE_SCATTER: Demand(_CONTRIBUTIONS, Held(Chunks.ONE_EACH, Givers.EVERY)),
    RequestKind.ALL_GATHER: Demand(_SHARDS, _REPLICAS),
    RequestKind.ALL_TO_ALL: Demand(_CONTRIBUTIONS, Held(Chunks.OWN, Givers.EVERY, summed=False)),
    RequestKind.SEND: Demand(_CONTRIBUTIONS, Held(Chunks.EVERY, Givers.BEFORE)),
}


def demand_of(kind: AnyKind) -> Demand:
    """The start and the goal of a request, for groups of any size.

    Raises:
        InputError: it is a dispatch, whose routing says what goes where.
    """
    return _DEMANDS[plain_kind(kind)]


def plain_kind(kind: AnyKind, rule: str = "has no programs: it is one exchange") -> RequestKind:
    """The kind, if it is none with numbers of its own.

    Raises:
        InputError: it is a dispatch, to which the ``rule`` applies.
    """
    if isinstance(kind, Dispatch):
        raise InputError(f"a dispatch {kind}", rule, "leave it out")
    return kind
