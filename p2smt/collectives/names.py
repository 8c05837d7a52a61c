"""Names of collectives, and the one table between their vocabularies.

Instructions of programs (:class:`Collective`), requests of users (:class:`RequestKind`), and files
of schedules (``COLLECTIVES``) name collectives.  What a request starts from and must end with is in
:mod:`p2smt.collectives.demand`; what a collective does to state matrices in
:mod:`p2smt.programs.semantics`.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Literal, NamedTuple


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
        """Whether reduction programs are synthesized for it; the others are one fixed step, an
        all-to-all also several of its own kind (``has_exchanges``)."""
        return self in DIRECT

    @property
    def has_exchanges(self) -> bool:
        """Whether it can be answered by all-to-alls over levels, one after the other."""
        return self is RequestKind.ALL_TO_ALL


Operation = Collective | Literal[RequestKind.ALL_TO_ALL, RequestKind.SEND]
"""What groups do in one step."""
ProgramOperation = Collective | Literal[RequestKind.ALL_TO_ALL]
"""What an instruction of a program has groups do: a collective of a reduction program, or an
all-to-all, of which alone the programs of an all-to-all consist."""
CALL_NAMES = tuple(dict.fromkeys(kind.value for kind in (*Collective, *RequestKind)))
"""Operations that are called: what the cost of a call, or an error, can be measured for."""


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
    _Named("sendrecv", "sendrecv", None, None),
)

COLLECTIVES = tuple(row.schedule for row in _TABLE)
"""The names in schedules and their files; a contract of no such name is ``CUSTOM``."""

CUSTOM = "custom"

_MARKS = re.compile(
    r"^(?:.*[./])?(?:[nr]ccl|mpi|lax)?|(?:intotensor|tensor|single|base|test|perf(?:mpi)?)*$"
)
_BY_PLAIN_NAME = {row.schedule.replace("_", ""): row for row in _TABLE}
_BY_PLAIN_NAME |= {
    alias: _BY_PLAIN_NAME[name]
    for name, aliases in {
        "allreduce": ("psum",),
        "reducescatter": ("psumscatter",),
        "broadcast": ("bcast",),
        "sendrecv": ("send", "ppermute", "collectivepermute"),
    }.items()
    for alias in aliases
}
_STEPS: dict[str, Operation] = {
    "alltoall": RequestKind.ALL_TO_ALL,
    "sendrecv": RequestKind.SEND,
}


def _row_named(text: str) -> _Named | None:
    plain = re.sub(r"[-_\s]", "", text).lower()
    return _BY_PLAIN_NAME.get(_MARKS.sub("", plain))


def collective_named(text: str) -> str | None:
    """The one of ``COLLECTIVES`` that people mean by a name; None: none.

    Hyphens, underscores and capitals do not count, nor that it is the name of a library's function
    or test, with a path or without: all_reduce, AllReduce, ncclAllReduce, MPI_Allreduce, lax.psum
    and ./build/all_reduce_perf are one, as are all_gather_into_tensor and allgather.
    """
    row = _row_named(text)
    return row.schedule if row else None


def operation_named(text: str) -> Operation | None:
    """What groups do in one step by a name as :func:`collective_named` reads it; None: nothing."""
    row = _row_named(text)
    if row is None:
        return None
    return row.instruction or _STEPS.get(row.schedule)


MSCCL_NAMES = ("allreduce", "allgather", "reduce", "broadcast", "alltoall", "reduce_scatter")
"""Those of ``COLLECTIVES`` that MSCCL XML has, under the same names."""

MSCCLPP_NAMES = {row.schedule: row.mscclpp for row in _TABLE}
"""The names in MSCCL++ execution plans, by those in schedules."""

SCHEDULE_NAMES = {row.request: row.schedule for row in _TABLE if row.request}
"""The name in schedules of what a request asks for; a send has none."""

DIRECT = {row.request: row.instruction for row in _TABLE if row.request and row.instruction}
"""The single collective over the whole group that answers a request: the baseline."""
