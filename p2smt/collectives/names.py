"""The five collectives and how an instruction forms groups of devices.

Names only; what each collective does to state matrices is in :mod:`p2smt.programs.semantics`.
"""

from __future__ import annotations

from enum import Enum


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
        return self not in (RequestKind.ALL_TO_ALL, RequestKind.SEND)


DIRECT = {
    RequestKind.ALL_REDUCE: Collective.ALL_REDUCE,
    RequestKind.REDUCE_SCATTER: Collective.REDUCE_SCATTER,
    RequestKind.ALL_GATHER: Collective.ALL_GATHER,
}
"""The single collective over the whole group that answers a request: the baseline."""
