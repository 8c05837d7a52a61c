"""Parts of a search space, members of it, and what became of a part."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, order=True)
class Cube:
    """A part of a space: the decisions that its members share, outermost first.

    A decision is text, such as ``tp=8,pp=1,dp=64`` or ``dp:8,4``.  Without any it is the whole.
    """

    path: tuple[str, ...] = ()

    def within(self, other: Cube) -> bool:
        """Whether it is the other one or a part of it."""
        return self.path[: len(other.path)] == other.path

    def under(self, decision: str) -> Cube:
        """Its part with one more decision."""
        return Cube((*self.path, decision))


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """A member of a space, or rather what it is compared by; members are ordered best first.

    ``value`` is its cost in ticks, ``tie`` its place among those of that cost, ``witness`` a
    text from which the space makes the member again.
    """

    value: int
    tie: tuple[int, ...]
    witness: str


class CubeVerdict(Enum):
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

    cube: Cube
    verdict: CubeVerdict
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

    cube: Cube
    best: tuple[Member, ...] = ()
    seconds: float = 0.0
    worker: str = ""
