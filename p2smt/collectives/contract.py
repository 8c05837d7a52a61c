"""What a collective is given and what it must produce, chunk by chunk.

A contribution is named (rank, chunk): what that rank's input chunk holds at the start.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Contribution(NamedTuple):
    """The data that a rank's input chunk holds at the start."""

    rank: int
    chunk: int

    def __str__(self) -> str:
        return f"rank {self.rank}'s chunk {self.chunk}"


class Goal(NamedTuple):
    """An output chunk of a rank, and the contributions it must be the sum of."""

    rank: int
    chunk: int
    parts: tuple[Contribution, ...]

    def multiset(self) -> Counter[Contribution]:
        """How often each contribution must be in the sum."""
        return Counter(self.parts)


@dataclass(frozen=True, slots=True)
class Contract:
    """Precondition and postcondition of a collective.

    collective: its name ("allreduce", .., or "custom").
    starts: per rank, the contribution in each input chunk (None: undefined at the start).
    goals: every output chunk that must hold something; other chunks may hold anything.
    in_place: input and output share memory: input chunk j of rank r is at place
        ``j + shift[r]`` of the shared memory if shift[r] >= 0, otherwise output chunk j is at
        place ``j - shift[r]``.
    shift: per rank; zeros out of place.
    """

    collective: str
    starts: tuple[tuple[Contribution | None, ...], ...]
    goals: tuple[Goal, ...]
    in_place: bool = False
    shift: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.in_place and len(self.shift) != len(self.starts):
            raise InputError(
                f"{len(self.shift)} shifts", f"there are {len(self.starts)} ranks", "give one each"
            )

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return len(self.starts)


def _own(ranks: int, chunks: int) -> tuple[tuple[Contribution, ...], ...]:
    return tuple(tuple(Contribution(r, c) for c in range(chunks)) for r in range(ranks))


def all_reduce(ranks: int, chunks: int, *, in_place: bool) -> Contract:
    """Every rank ends with the sum of all; ``chunks`` of input and of output."""
    sums = [tuple(Contribution(q, c) for q in range(ranks)) for c in range(chunks)]
    goals = [Goal(r, c, parts) for r in range(ranks) for c, parts in enumerate(sums)]
    return Contract(
        "allreduce", _own(ranks, chunks), tuple(goals), in_place, (0,) * ranks * in_place
    )


def reduce(ranks: int, chunks: int, *, in_place: bool, root: int = 0) -> Contract:
    """The root ends with the sum of all."""
    goals = [Goal(root, c, tuple(Contribution(q, c) for q in range(ranks))) for c in range(chunks)]
    return Contract("reduce", _own(ranks, chunks), tuple(goals), in_place, (0,) * ranks * in_place)


def broadcast(ranks: int, chunks: int, *, in_place: bool, root: int = 0) -> Contract:
    """Every rank ends with the root's input; the other inputs are undefined."""
    starts = tuple(
        tuple(Contribution(root, c) if r == root else None for c in range(chunks))
        for r in range(ranks)
    )
    goals = [Goal(r, c, (Contribution(root, c),)) for r in range(ranks) for c in range(chunks)]
    return Contract("broadcast", starts, tuple(goals), in_place, (0,) * ranks * in_place)


def all_gather(ranks: int, chunks: int, *, in_place: bool) -> Contract:
    """``chunks`` of input per rank; every rank ends with all, in rank order."""
    goals = [
        Goal(r, q * chunks + c, (Contribution(q, c),))
        for r in range(ranks)
        for q in range(ranks)
        for c in range(chunks)
    ]
    shift = tuple(r * chunks for r in range(ranks)) if in_place else ()
    return Contract("allgather", _own(ranks, chunks), tuple(goals), in_place, shift)


def reduce_scatter(ranks: int, chunks: int, *, in_place: bool) -> Contract:
    """``chunks`` of output per rank; rank r ends with the r-th part of the sum."""
    goals = [
        Goal(r, c, tuple(Contribution(q, r * chunks + c) for q in range(ranks)))
        for r in range(ranks)
        for c in range(chunks)
    ]
    shift = tuple(-r * chunks for r in range(ranks)) if in_place else ()
    return Contract("reduce_scatter", _own(ranks, ranks * chunks), tuple(goals), in_place, shift)


def all_to_all(ranks: int, chunks: int, *, in_place: bool) -> Contract:
    """``chunks`` from every rank to every rank; in place the input is overwritten."""
    goals = [
        Goal(r, q * chunks + c, (Contribution(q, r * chunks + c),))
        for r in range(ranks)
        for q in range(ranks)
        for c in range(chunks)
    ]
    starts = _own(ranks, ranks * chunks)
    return Contract("alltoall", starts, tuple(goals), in_place, (0,) * ranks * in_place)


def scatter(ranks: int, chunks: int, *, in_place: bool, root: int = 0) -> Contract:
    """The root's input has ``chunks`` for every rank; rank r ends with the r-th part."""
    starts = tuple(
        tuple(Contribution(root, c) if r == root else None for c in range(ranks * chunks))
        for r in range(ranks)
    )
    goals = [
        Goal(r, c, (Contribution(root, r * chunks + c),))
        for r in range(ranks)
        for c in range(chunks)
    ]
    shift = tuple(-r * chunks for r in range(ranks)) if in_place else ()
    return Contract("scatter", starts, tuple(goals), in_place, shift)


def gather(ranks: int, chunks: int, *, in_place: bool, root: int = 0) -> Contract:
    """``chunks`` of input per rank; the root ends with all, in rank order."""
    goals = [
        Goal(root, q * chunks + c, (Contribution(q, c),))
        for q in range(ranks)
        for c in range(chunks)
    ]
    shift = tuple(r * chunks for r in range(ranks)) if in_place else ()
    return Contract("gather", _own(ranks, chunks), tuple(goals), in_place, shift)


UNROOTED: Mapping[str, Callable[..., Contract]] = {
    "allreduce": all_reduce,
    "allgather": all_gather,
    "reduce_scatter": reduce_scatter,
    "alltoall": all_to_all,
}
ROOTED: Mapping[str, Callable[..., Contract]] = {
    "reduce": reduce,
    "broadcast": broadcast,
    "scatter": scatter,
    "gather": gather,
}
COLLECTIVES = (*UNROOTED, *ROOTED)


def contract(
    collective: str, ranks: int, chunks: int, *, in_place: bool = False, root: int = 0
) -> Contract:
    """The contract of a named collective.

    chunks: of the smaller buffer: input and output (allreduce, reduce, broadcast), input
        (allgather, gather), output (reduce_scatter, scatter), from each to each (alltoall).

    Raises:
        InputError: no such collective, or a root that is not a rank.
    """
    if collective in UNROOTED:
        return UNROOTED[collective](ranks, chunks, in_place=in_place)
    if collective not in ROOTED:
        raise InputError(
            f"collective {collective[:60]!r}", "is not known", f"one of {', '.join(COLLECTIVES)}"
        )
    if not 0 <= root < ranks:
        raise InputError(f"root {root}", f"the ranks are 0 to {ranks - 1}", "name one of them")
    return ROOTED[collective](ranks, chunks, in_place=in_place, root=root)
