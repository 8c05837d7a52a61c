"""What a search needs to know of its space, and what a worker is told of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from p2smt.skeletons.cube import Closure, Cube, Member, OverBudget


class Skeleton(Enum):
    """What is asked of a space."""

    ENUMERATE = "enumerate"  # all members, counted
    OPTIMISE = "optimise"  # the best members
    DECIDE = "decide"  # any member, or that there is none


@dataclass(frozen=True, slots=True)
class CubeTask:
    """One cube to close.

    ``top`` best members are sought in the whole space; ``known`` are the best so far, at most
    ``top`` of them, in order.  Above ``budget_s`` seconds the worker gives the cube back, if it
    can be split; above ``deadline_s`` in any case, as unknown.  None: no limit.  ``table`` is the
    path of a :class:`~p2smt.skeletons.shared_table.SharedTable` of the workers of this machine;
    None: there is none.
    """

    cube: Cube
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
    def skeleton(self) -> Skeleton:
        """What is asked of it."""
        ...

    def description(self) -> Mapping[str, object]:
        """The question as JSON data, from which the space can be made again."""
        ...

    def roots(self) -> tuple[Cube, ...]:
        """The first cubes, which partition the space."""
        ...

    def split(self, cube: Cube) -> tuple[Cube, ...]:
        """All children of a cube, which partition it; none where it is not split."""
        ...

    def bound(self, cube: Cube) -> int:
        """Ticks that no member of the cube is below, by a formula (0: nothing is known)."""
        ...

    def close(self, task: CubeTask, signals: Signals) -> Closure | OverBudget:
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

    def tie_bound(self, cube: Cube) -> tuple[int, ...]:
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
