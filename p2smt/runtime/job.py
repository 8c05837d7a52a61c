"""What ranks execute: requests lowered to steps over groups of ranks.

A rank is a device, numbered in hierarchy order of the topology; a launcher that starts the
ranks node by node gives each process that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.parallelism.request import MAX_CHUNKS

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class JobStep:
    """One operation on all ``groups`` at the same time; ``name`` is for people, and
    for the cost model where it is the text of an instruction.

    ``predicted_s`` is the cost model's time of the step (of one chunk, where the request has
    several); None: not predicted.
    """

    name: str
    operation: Operation | Dispatch
    groups: Groups
    predicted_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request over reduction groups of equal size, and the steps that answer it.

    ``payload_bytes`` is the whole vector per rank (:class:`p2smt.parallelism.request.Request`),
    ``chunks`` the number of pieces that the steps are pipelined over, ``shards`` the row that each
    member of a group is claimed to end with (reduce-scatter; None: any), ``units`` the ranks
    under an entity of each level, from the outermost (dispatch).
    """

    name: str
    kind: AnyKind
    groups: Groups
    steps: tuple[JobStep, ...]
    payload_bytes: int
    times: int = 1
    chunks: int = 1
    shards: tuple[int, ...] | None = None
    predicted_s: float | None = None
    baseline_predicted_s: float | None = None
    units: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.groups or len({len(group) for group in self.groups}) != 1:
            raise InputError(f"request {self.name}", "its groups are not of one size")
        if not 1 <= self.chunks <= MAX_CHUNKS:
            raise InputError(f"{self.chunks} chunks", f"must be 1 to {MAX_CHUNKS}")
        if self.shards is not None and len(self.shards) != self.size:
            text = f"names {len(self.shards)} shards, a group has {self.size} ranks"
            raise InputError(f"request {self.name}", text)
        _check_groups(f"request {self.name}", self.groups)
        for number, step in enumerate(self.steps, start=1):
            _check_groups(f"request {self.name}, step {number}", step.groups)

    @property
    def size(self) -> int:
        """Ranks in a reduction group; the payload has as many rows."""
        return len(self.groups[0])

    def single(self) -> JobStep | None:
        """The one collective that answers the request alone; None: it is no program's rival."""
        if isinstance(self.kind, Dispatch):
            return None
        operation: Operation | None = DIRECT.get(self.kind)
        if self.kind is RequestKind.ALL_TO_ALL and len(self.steps) > 1:
            operation = self.kind
        if operation is None:
            return None
        return JobStep(self.kind.value, operation, self.groups, self.baseline_predicted_s)


@dataclass(frozen=True, slots=True)
class Job:
    """Requests that so many ranks run one after the other."""

    ranks: int
    requests: tuple[JobRequest, ...]

    def __post_init__(self) -> None:
        for request in self.requests:
            for groups in (request.groups, *(step.groups for step in request.steps)):
                _check_range(request.name, groups, self.ranks)


def ordered(groups: Iterable[Sequence[int]]) -> Groups:
    """Groups with ascending members: the order on which all rules about members rely."""
    return tuple(tuple(sorted(group)) for group in groups)


def _check_groups(where: str, groups: Groups) -> None:
    if not groups or not all(groups):
        raise InputError(where, "has no groups, or an empty one", "give each group its ranks")
    members = [rank for group in groups for rank in group]
    if len(set(members)) != len(members):
        raise InputError(where, "a rank is in two groups, or twice in one", "make them disjoint")
    if any(list(group) != sorted(group) for group in groups):
        raise InputError(where, "a group's ranks are not ascending", "sort them")


def _check_range(where: str, groups: Groups, ranks: int) -> None:
    for group in groups:
        if not 0 <= group[0] <= group[-1] < ranks:
            wrong = group[0] if group[0] < 0 else group[-1]
            raise InputError(f"request {where}", f"rank {wrong} is not among 0 to {ranks - 1}")
