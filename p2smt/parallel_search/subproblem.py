"""Parts of a search space, members of it, what became of a part, and what parts share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar, runtime_checkable

Shelf = TypeVar("Shelf")


@dataclass(frozen=True, slots=True, order=True)
class Subproblem:
    """A part of a space: the decisions that its members share, outermost first.

    A decision is text, such as ``tp=8,pp=1,dp=64`` or ``dp:8,4``.  Without any it is the whole.
    """

    path: tuple[str, ...] = ()

    def within(self, other: Subproblem) -> bool:
        """Whether it is the other one or a part of it."""
        return self.path[: len(other.path)] == other.path

    def under(self, decision: str) -> Subproblem:
        """Its part with one more decision."""
        return Subproblem((*self.path, decision))


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """A member of a space, or rather what it is compared by; members are ordered best first.

    ``value`` is its cost in ticks, ``tie`` its place among those of that cost, ``witness`` a
    text from which the space makes the member again.
    """

    value: int
    tie: tuple[int, ...]
    witness: str


class SubproblemVerdict(Enum):
    """How a cube was closed."""

    EMPTY = "empty"  # it has no member: a proof
    SOLVED = "solved"  # ``best`` are its best members, in order: a proof
    BOUNDED = "bounded"  # none of its members is among the best that are sought: a proof
    LISTED = "listed"  # it was enumerated
    UNKNOWN = "unknown"  # no proof; its bound still counts


@dataclass(frozen=True, slots=True)
class Closure:
    """A closed cube.

    ``bound``: no member costs less, in ticks.  ``best``: the best members found in it, in order.
    ``by_formula``: the bound is that of :meth:`Space.bound`, which anyone can compute again
    without a solver.  ``count`` and ``digest``: of the members, where it was enumerated.
    ``seed``, ``seconds`` and ``worker`` say how it was done, and are no part of the answer.
    ``deaths``: of an unknown one that was given up, how many workers died at it; 0: it was not.
    """

    cube: Subproblem
    verdict: SubproblemVerdict
    bound: int | None = None
    best: tuple[Member, ...] = ()
    by_formula: bool = False
    count: int | None = None
    digest: str | None = None
    seed: int = 0
    seconds: float = 0.0
    worker: str = ""
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class OverBudget:
    """A cube that its budget did not close; ``best`` of its members were found on the way."""

    cube: Subproblem
    best: tuple[Member, ...] = ()
    seconds: float = 0.0
    worker: str = ""


# What a search needs to know of its space, and what a worker is told of the search.


class SearchKind(Enum):
    """What is asked of a space."""

    ENUMERATE = "enumerate"  # all members, counted
    OPTIMISE = "optimise"  # the best members
    DECIDE = "decide"  # any member, or that there is none


@dataclass(frozen=True, slots=True)
class SubproblemTask:
    """One cube to close.

    ``top`` best members are sought in the whole space; ``known`` are the best so far, at most
    ``top`` of them, in order.  Above ``budget_s`` seconds the worker gives the cube back, if it
    can be split; above ``deadline_s`` in any case, as unknown.  None: no limit.  ``table`` is the
    path of a :class:`~p2smt.parallel_search.shared_table.SharedTable` of the workers of this
    machine; None: there is none.
    """

    cube: Subproblem
    top: int = 1
    known: tuple[Member, ...] = ()
    budget_s: float | None = None
    deadline_s: float | None = None
    seed: int = 0
    threads: int = 1
    table: str | None = None


class Signals(Protocol):
    """What a worker hears while it closes a cube."""

    def stopped(self) -> bool:
        """Whether to give up: the search has ended."""
        ...

    def cutoff(self) -> Member | None:
        """The worst of the best members so far, if there are ``top``: only those before it count.

        It may be an old one, which costs time only.
        """
        ...


class Space(Protocol):
    """A finite search space that splits into cubes: frozen, and picklable.

    All values are ticks of one scale for the whole search.
    """

    @property
    def skeleton(self) -> SearchKind:
        """What is asked of it."""
        ...

    def description(self) -> Mapping[str, object]:
        """The question as JSON data, from which the space can be made again."""
        ...

    def roots(self) -> tuple[Subproblem, ...]:
        """The first cubes, which partition the space."""
        ...

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """All children of a cube, which partition it; none where it is not split."""
        ...

    def bound(self, cube: Subproblem) -> int:
        """Ticks that no member of the cube is below, by a formula (0: nothing is known)."""
        ...

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        """Close a cube, with solvers: their answers are checked and costed again."""
        ...

    def member(self, witness: str) -> Member:
        """The member that a text stands for, checked and costed anew.

        Raises:
            InputError: it is no member of this space.
        """
        ...


@runtime_checkable
class TieBounded(Protocol):
    """A space that also bounds ties: then a cube whose bound is the cutoff's value may be closed
    without a solver.  No space must."""

    def tie_bound(self, cube: Subproblem) -> tuple[int, ...]:
        """A tie that no member of the cube with the value of :meth:`Space.bound` precedes."""
        ...


@runtime_checkable
class OwnCutoff(Protocol):
    """A space that says itself which members are sought: not the best ``top``, but those not after
    a cutoff that the best ones set.  No space must."""

    def cutoff_of(self, members: Sequence[Member], top: int) -> Member | None:
        """What members must not come after, given the best so far; None: all are sought.

        It never rises when members are added, and none of them sets one before itself.
        """
        ...


# What the cubes of a space share in a process.


_KEPT: dict[Hashable, Any] = {}
"""That of the last space that this process met.  Cubes come one by one, each with no more than its
space, and another process may close the next: nothing that is handed on could hold it."""


def kept(space: Hashable, make: Callable[[], Shelf]) -> Shelf:
    """What the cubes of a space share, made where this process has it not; always of one class."""
    if space not in _KEPT:
        keep(space, make())
    found: Shelf = _KEPT[space]
    return found


def keep(space: Hashable, shared_cache: object) -> None:
    """Let the cubes of a space share this, and forget what those of another one did."""
    _KEPT.clear()
    _KEPT[space] = shared_cache


def forget(space: Hashable) -> None:
    """Let the next cube of a space begin anew."""
    _KEPT.pop(space, None)
