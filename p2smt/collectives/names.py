"""What is asked of groups of devices: names of collectives, and start and goal of each request.

Three vocabularies name collectives: instructions of programs (:class:`Collective`), requests of
users (:class:`RequestKind`), and files of schedules (``COLLECTIVES``).  The table between them
stands here and nowhere else.  What a collective does to state matrices is in
:mod:`p2smt.programs.semantics`, what a schedule must do chunk by chunk in
:mod:`p2smt.collectives.contract`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from p2smt.errors import InputError


class Collective(Enum):
    """A collective operation inside one group of devices."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    REDUCE = "reduce"
    BROADCAST = "broadcast"


class Form(Enum):
    """How a slice of the hierarchy forms groups (P2, the reduction language)."""

    INSIDE_GROUP = "inside"
    PARALLEL = "parallel"
    MASTER = "master"


class RequestKind(Enum):
    """What a user asks for along some axes."""

    ALL_REDUCE = "all-reduce"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_GATHER = "all-gather"
    ALL_TO_ALL = "all-to-all"
    SEND = "send"

    @property
    def has_programs(self) -> bool:
        """Whether programs are synthesized for it; the others are one fixed step."""
        return demand_of(self).has_programs


class _Named(NamedTuple):
    """One collective in every vocabulary; None: it has no name there."""

    schedule: str
    mscclpp: str
    request: RequestKind | None
    instruction: Collective | None


_TABLE = (
    _Named("allreduce", "allreduce", RequestKind.ALL_REDUCE, Collective.ALL_REDUCE),
    _Named("allgather", "allgather", RequestKind.ALL_GATHER, Collective.ALL_GATHER),
    _Named(
        "reduce_scatter", "reducescatter", RequestKind.REDUCE_SCATTER, Collective.REDUCE_SCATTER
    ),
    _Named("alltoall", "alltoall", RequestKind.ALL_TO_ALL, None),
    _Named("reduce", "reduce", None, Collective.REDUCE),
    _Named("broadcast", "broadcast", None, Collective.BROADCAST),
    _Named("scatter", "scatter", None, None),
    _Named("gather", "gather", None, None),
)

COLLECTIVES = tuple(row.schedule for row in _TABLE)
"""The names in schedules and their files; a contract of no such name is ``CUSTOM``."""

CUSTOM = "custom"

MSCCL_NAMES = ("allreduce", "allgather", "reduce", "broadcast", "alltoall", "reduce_scatter")
"""Those of ``COLLECTIVES`` that MSCCL XML has, under the same names."""

MSCCLPP_NAMES = {row.schedule: row.mscclpp for row in _TABLE}
"""The names in MSCCL++ execution plans, by those in schedules."""

SCHEDULE_NAMES = {row.request: row.schedule for row in _TABLE if row.request}
"""The name in schedules of what a request asks for; a send has none."""

DIRECT = {row.request: row.instruction for row in _TABLE if row.request and row.instruction}
"""The single collective over the whole group that answers a request: the baseline."""


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


def demand_of(kind: RequestKind) -> Demand:
    """The start and the goal of a request, for groups of any size."""
    return _DEMANDS[kind]
