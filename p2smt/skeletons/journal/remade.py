"""A space made again from a journal's header, with what verifies a search of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.errors import InputError
from p2smt.skeletons.cube import Cube
from p2smt.skeletons.space import Space

Share = Callable[[Cube], Fraction]
"""How much of all there is lies in a cube: a number of things, or a part of the whole.

Things are counted by their cubes' decisions whether they are members or not, and by other code
than that which makes the cubes.  Cubes of which neither is a part of the other share nothing, so
cubes without such a pair are everything if their shares add up to that of the cube without
decisions.  It raises InputError for a cube with a decision that there is not.
"""


HALVES = "space of decisions"
"""What :func:`boolean_share` counts, in words: the whole is 1."""


@dataclass(frozen=True, slots=True)
class RemadeSpace:
    """What a verification needs.

    Attributes:
        space: the space, as it was searched.
        share: the independent count of its cubes.
        counted: what that counts, in words ("matrices").
        exact: whether it counts the members of the space, and nothing else.
        other: the same space, its cubes closed by another solver; None: there is no other.
        solver: which one closes cubes again: that of ``other``, or else of ``space``.
    """

    space: Space
    share: Share
    counted: str
    exact: bool = False
    other: Space | None = None
    solver: str = ""


def boolean_share(names: Sequence[str]) -> Share:
    """The share of a prefix of yes/no decisions, written ``name=1`` or ``name=0``: 2^-depth.

    ``names`` are decided in this order in every cube.
    """

    def share(cube: Cube) -> Fraction:
        for depth, decision in enumerate(cube.path):
            known = [f"{name}={value}" for name in names[depth : depth + 1] for value in (0, 1)]
            if decision not in known:
                rule = "is decided out of order, or not by 0 or 1"
                raise InputError(f"decision {decision[:60]!r}", rule)
        return Fraction(1, 2 ** len(cube.path))

    return share
