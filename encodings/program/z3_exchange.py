"""All-to-alls on symbolic state matrices, for the constraints of ``z3.py``.

Row r of device d is here the set of blocks that d holds for rank r, by their sources: nothing is
added up.  On the real factors, and by the definition of an all-to-all alone: a rank sends every
member its share of what it holds, the blocks whose destinations lie on that member's side.
Goal, precondition and effect are those of C2, C5 and C8 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import z3

Rows: TypeAlias = tuple[z3.BitVecRef, ...]
Group: TypeAlias = tuple[int, ...]


def delivered(rows: Sequence[Rows]) -> z3.BoolRef:
    """C2: each device holds the blocks of all sources for it, and none for others."""
    full = 2 ** len(rows) - 1
    cells = [(row, d == r) for d, device in enumerate(rows) for r, row in enumerate(device)]
    return z3.And([row == (full if own else 0) for row, own in cells])


def alike(rows: Sequence[Rows], group: Group, groups: Sequence[Group]) -> z3.BoolRef:
    """C5: each member holds for every member what it holds for any other, but for the destination.

    Destinations on two members' sides pair off by the groups that they are in.  So each member is
    sent as many blocks; and where members are, they are such blocks, in all states that steps lead
    to: the digits of a rank's blocks at a level are all there are, or one.
    """
    pairs = [(every[0], other) for every in groups for other in every[1:]]
    return z3.And([rows[d][first] == rows[d][other] for d in group for first, other in pairs])


def exchanged(rows: Sequence[Rows], group: Group, groups: Sequence[Group]) -> tuple[Rows, ...]:
    """C8: the rows of all members, each at the member on its side."""
    none = z3.BitVecVal(0, len(rows))
    joined = [
        reduce(lambda a, b: a | b, column) for column in zip(*(rows[d] for d in group), strict=True)
    ]
    sides = ({every[at] for every in groups} for at in range(len(group)))
    return tuple(
        tuple(row if r in side else none for r, row in enumerate(joined)) for side in sides
    )
