"""Which rows of the payload the members of a group hold from step to step.

A request over k members cuts the payload into k rows; members are numbered in the order of the
plan's devices.  Every reduction group of a parallelism matrix does the same, so one is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.collectives.demand import Chunks, demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray

MAX_ROWS = 2**22
"""Most numbers of rows that the members of one step may hold together, each set counted once."""


@dataclass(frozen=True, slots=True)
class GroupRows:
    """What a group works on in a step.

    ``members`` ascend.  ``parts[i]`` are the rows that member i keeps (reduce-scatter) or brings
    (all-gather); for the other collectives each has all that the group works on.
    """

    members: tuple[int, ...]
    parts: tuple[IntArray, ...]


@dataclass(frozen=True, slots=True)
class ProgramRows:
    """The groups of every step, and the rows that members end with; None: nothing."""

    steps: tuple[tuple[GroupRows, ...], ...]
    ends: tuple[IntArray | None, ...]


Steps = Sequence[tuple[Collective, Sequence[Sequence[int]]]]
"""Collectives, and the members of each of their groups, ascending."""


def program_rows(kind: RequestKind, size: int, steps: Steps) -> ProgramRows:
    """The rows of a program over ``size`` members.

    Raises:
        InputError: a step cannot be carried out, or rows are too many to write down.
    """
    sets = _RowSets()
    held: list[int | None]
    if demand_of(kind).start.chunks is Chunks.OWN:
        held = [sets.number(np.array([member], dtype=np.int64)) for member in range(size)]
    else:
        held = [sets.number(np.arange(size, dtype=np.int64))] * size
    found = []
    for number, (collective, groups) in enumerate(steps, start=1):
        given = f"step {number} ({collective.value})"
        found.append(tuple(_group(given, collective, tuple(g), held, sets) for g in groups))
    ends = tuple(None if at is None else sets.rows[at] for at in held)
    return ProgramRows(tuple(found), ends)


class _RowSets:
    """Sets of rows, each kept once and known by a number."""

    def __init__(self) -> None:
        self.rows: list[IntArray] = []
        self._known: dict[bytes, int] = {}
        self._made: dict[tuple[object, ...], list[int]] = {}
        self._total = 0

    def number(self, rows: IntArray) -> int:
        key = rows.tobytes()
        if key not in self._known:
            self._total += len(rows)
            if self._total > MAX_ROWS:
                rule = "its ranks hold rows in more ways than can be written down"
                raise InputError("a program", rule, "export a smaller plan")
            self._known[key] = len(self.rows)
            self.rows.append(rows)
        return self._known[key]

    def split(self, number: int, parts: int) -> list[int]:
        """The runs that a reduce-scatter leaves, one for each member."""
        key = ("split", number, parts)
        if key not in self._made:
            self._made[key] = [self.number(part) for part in np.split(self.rows[number], parts)]
        return self._made[key]

    def union(self, numbers: tuple[int, ...]) -> int:
        """What an all-gather leaves."""
        key = ("union", *numbers)
        if key not in self._made:
            joined = np.unique(np.concatenate([self.rows[number] for number in numbers]))
            self._made[key] = [self.number(joined)]
        return self._made[key][0]


def _group(
    given: str,
    collective: Collective,
    members: tuple[int, ...],
    held: list[int | None],
    sets: _RowSets,
) -> GroupRows:
    """What a group works on; ``held`` becomes what its members have afterwards."""
    first = held[members[0]]
    own = tuple(held[member] for member in members)
    if first is None or (collective is not Collective.BROADCAST and None in own):
        raise _impossible(given, "a member holds nothing that it could give")
    if collective is Collective.BROADCAST:
        left: Sequence[int | None] = [first] * len(members)
        parts = [first] * len(members)
    elif collective is Collective.ALL_GATHER:
        parts = [number for number in own if number is not None]
        whole = sets.union(tuple(parts))
        if len(sets.rows[whole]) != len(members) * len(sets.rows[first]):
            raise _impossible(given, "its members do not bring other rows each, and as many")
        left = [whole] * len(members)
    else:
        if set(own) != {first}:
            raise _impossible(given, "its members reduce different rows")
        left, parts = _reduced(given, collective, first, len(members), sets)
    for member, number in zip(members, left, strict=True):
        held[member] = number
    return GroupRows(members, tuple(sets.rows[number] for number in parts))


def _reduced(
    given: str, collective: Collective, rows: int, members: int, sets: _RowSets
) -> tuple[list[int | None], list[int]]:
    """What members hold after a reduction, and their parts of it."""
    if collective is Collective.REDUCE:
        return [rows, *[None] * (members - 1)], [rows] * members
    if collective is Collective.ALL_REDUCE:
        return [rows] * members, [rows] * members
    if len(sets.rows[rows]) % members:
        raise _impossible(given, "its rows do not split evenly over the members")
    parts = sets.split(rows, members)
    return list(parts), parts


def _impossible(given: str, rule: str) -> InputError:
    return InputError(given, f"cannot be carried out: {rule}", "verify the plan")
