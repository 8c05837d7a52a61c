"""Which steps take an array from one layout to another, in at most so many?  As plain integers.

A layout is a place for each *digit* (a prime part of a mesh axis): a position in the list of a
dimension, or none.  The lists have no gaps.  What a step costs depends on its kind, on how many
digits of each *class* it moves (digits of a class are alike to the topology) and on how many digits
of each size shard before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

from p2smt.errors import InputError

REPLICATED = (-1, 0)
PARTIAL = (-2, 0)

Places = tuple[tuple[int, int], ...]
"""Dimension and position in its list, REPLICATED or PARTIAL; in a layout one for each digit."""


class Move(IntEnum):
    """What a layer does.  TURN is a permute to the destination's order of devices."""

    NOTHING = 0
    SLICE = 1
    GATHER = 2
    ALL_TO_ALL = 3
    PERMUTE = 4
    REDUCE_SCATTER = 5
    ALL_REDUCE = 6
    TURN = 7

    @property
    def permutes(self) -> bool:
        """Whether whole blocks change places."""
        return self in (Move.PERMUTE, Move.TURN)


Moves = tuple[tuple[Move, Places], ...]
"""An answer: each step's kind and the places after it."""


Price = TypeVar("Price", int, float)
"""Ticks in a problem; seconds until its tick is known."""


@dataclass(frozen=True, slots=True)
class MoveRow(Generic[Price]):
    """What a kind of step costs.

    ``moved``: digits that it moves, by class; ``sharding``: digits that shard before it, by class
    of size.  ``turned``: whether the devices have the destination's order.  ``packed``: with a
    buffer for packing; ``first``, ``later``: whether it may be the first step, or another one.
    """

    move: Move
    moved: tuple[int, ...]
    sharding: tuple[int, ...]
    turned: bool
    packed: bool
    first: bool
    later: bool
    price: Price


@dataclass(frozen=True, slots=True)
class ExactMove:
    """What a step between these places costs at least; ``turned`` as in a row, before it."""

    move: Move
    turned: bool
    before: Places
    after: Places
    ticks: int


@dataclass(frozen=True, slots=True)
class LevelCut(Generic[Price]):
    """What a permute costs at least by what it takes over a border between devices.

    ``digits`` tell the two sides apart, in the order of devices that ``turned`` says.  ``costs``
    are (crossing, sharding, price) for all of both, not falling with the crossing.  The crossing
    counts slots in which a digit of the border gives way to another one, or slots where it is the
    reverse, whichever are more; where two digits of the border change places, it is one more than
    there are digits.
    """

    digits: tuple[int, ...]
    turned: bool
    costs: tuple[tuple[int, tuple[int, ...], Price], ...]


@dataclass(frozen=True, slots=True)
class CostToGo:
    """What follows from costs by counts alone: bounds of what comes before and after a layer.

    ``roles`` are digits, ``bins`` dimensions (-2: partial).  ``rows`` are all that a layer may
    have: the digits of each role in each bin, role by role, then the ticks before and after.
    """

    roles: tuple[tuple[int, ...], ...]
    bins: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RedistributionProblem:
    """Steps from ``source`` to ``target`` at least cost.

    Of several answers the first is that of fewest steps, then by the places after each step in
    turn, in the order of ``places``.

    ``sizes`` are the digits', ``classes`` name those that are alike, ``shape`` is the array's.
    ``rows`` are all that a layer may do; ``exact`` are dearer costs of single steps, ``borders``
    those of permutes.  ``outlook`` follows from the rest.
    ``turns``: the destination's devices have another order.  ``merges``: two permutes in a row are
    never cheaper than one.  ``packs``: rows tell steps with a pack buffer from those without.
    ``at_most`` bounds the objective.
    """

    sizes: tuple[int, ...]
    classes: tuple[int, ...]
    shape: tuple[int, ...]
    source: Places
    target: Places
    max_steps: int
    rows: tuple[MoveRow[int], ...]
    exact: tuple[ExactMove, ...] = ()
    borders: tuple[LevelCut[int], ...] = ()
    outlook: CostToGo | None = None
    turns: bool = False
    merges: bool = False
    packs: bool = False
    at_most: int | None = None

    def __post_init__(self) -> None:
        digits = len(self.sizes)
        if not len(self.source) == len(self.target) == len(self.classes) == digits:
            raise InputError("places of a redistribution", "need one entry for each digit")
        if self.max_steps < 0:
            raise InputError(f"{self.max_steps} steps", "must not be negative")

    @property
    def dims(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size_classes(self) -> tuple[int, ...]:
        """The distinct sizes of digits, ascending: what ``MoveRow.sharding`` counts."""
        return tuple(sorted(set(self.sizes)))

    @property
    def places(self) -> Places:
        """All places: slots as many in each list as can divide the dimension, then none."""
        slots = []
        for dim in range(self.dims):
            room = sum(of_dims[dim] for _, _, of_dims in self.factors())
            slots += [(dim, k) for k in range(min(len(self.sizes), room))]
        return (*slots, REPLICATED, PARTIAL)

    def factors(self) -> tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]:
        """For each prime of a size: its exponents in the digits and in the dimensions."""
        primes = sorted({p for size in self.sizes for p in _primes(size)})
        return tuple(
            (
                p,
                tuple(_exponent(size, p) for size in self.sizes),
                tuple(_exponent(size, p) for size in self.shape),
            )
            for p in primes
        )


def _primes(number: int) -> list[int]:
    found, prime = [], 2
    while number > 1:
        if number % prime:
            prime += 1
        else:
            found.append(prime)
            number //= prime
    return found


def _exponent(number: int, prime: int) -> int:
    count = 0
    while number % prime == 0:
        number //= prime
        count += 1
    return count
