"""When a collective may run: its precondition on state matrices, as named rules.

Part of the specification (:mod:`p2smt.programs.semantics`).  ``words[group, member, row, word]``
are the packed states of the members of each group, ``rows[group, member, row]`` which rows are not
empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from p2smt.collectives.names import Collective
from p2smt.parallelism.placement import IntArray

State = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]


class ViolationKind(Enum):
    """The rule that a program breaks."""

    GROUP_SHAPE = "group-shape"  # a group is too small or out of order, or two share a device
    ROWS_DIFFER = "rows-differ"  # reducing members hold different chunks
    NO_ROWS = "no-rows"  # the members hold nothing
    DOUBLED = "doubled-contribution"  # two members hold the same contribution to a chunk
    NOT_DIVISIBLE = "not-divisible"  # the chunks do not split evenly over the group
    ROWS_OVERLAP = "rows-overlap"  # gathered chunks are held by two members
    COUNTS_DIFFER = "counts-differ"  # gathering members hold different numbers of chunks
    NOT_CONTAINED = "not-contained"  # a broadcast would lose a member's data or gain nothing
    AFTER_GOAL = "after-goal"  # a step follows the goal state
    GOAL_MISSED = "goal-missed"  # the program ends short of the goal
    UNEVEN_BLOCKS = "uneven-blocks"  # an all-to-all would send members different numbers of blocks
    UNEVEN_SLICES = "uneven-slices"  # an instruction needs slices of one size


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: at which step (from 1), in which group, on which device and chunk."""

    kind: ViolationKind
    step: int
    group: tuple[int, ...]
    rank: int | None
    chunk: int | None
    message: str


def check_groups(every: Sequence[IntArray], devices: int, step: int) -> Violation | None:
    """Groups have at least two members in device order, and no device is in two of them.

    ``every``: those of one size each, shape (groups, members).
    """
    for groups in every:
        outside = ((groups < 0) | (groups >= devices)).any(axis=1)
        unordered = (np.diff(groups, axis=1) <= 0).any(axis=1)
        wrong = np.flatnonzero(outside | unordered | (groups.shape[1] < 2))
        if len(wrong) or not len(groups):
            text = f"groups need two members or more of 0 to {devices - 1}, in device order"
            return _shape(step, groups[wrong[:1]], None, text)
    members = np.concatenate([groups.ravel() for groups in every])
    twice = np.flatnonzero(np.bincount(members) > 1)
    if len(twice):
        having = [row for groups in every for row in groups if twice[0] in row]
        second = having[min(1, len(having) - 1)]
        return _shape(step, second, int(twice[0]), f"device {twice[0]} is in two groups")
    return None


def _shape(step: int, group: IntArray, rank: int | None, text: str) -> Violation:
    members = tuple(group.ravel().tolist())
    return Violation(ViolationKind.GROUP_SHAPE, step, members, rank, None, f"step {step}: {text}")


Broken = tuple[ViolationKind, int, int | None, int | None, str]
"""A broken rule: kind, and the indices of group, member and row, and what is wrong."""


def first_true(where: Flags | np.bool_) -> tuple[int, ...] | None:
    """The first index at which an array is true."""
    found = np.argwhere(where)
    return tuple(int(i) for i in found[0]) if len(found) else None


def broken_rule(collective: Collective, words: State, rows: Flags) -> Broken | None:
    """The first rule that a collective's precondition breaks in some group."""
    match collective:
        case Collective.ALL_GATHER:
            return _gather_rules(rows)
        case Collective.BROADCAST:
            return _broadcast_rules(words)
        case Collective.REDUCE_SCATTER:
            return _reduce_rules(words, rows) or _divisible(rows)
        case _:
            return _reduce_rules(words, rows)


def _reduce_rules(words: State, rows: Flags) -> Broken | None:
    if at := first_true(rows != rows[:, :1]):
        return ViolationKind.ROWS_DIFFER, at[0], at[1], at[2], "the members hold different chunks"
    if at := first_true(~rows[:, 0].any(axis=1)):
        return ViolationKind.NO_ROWS, at[0], None, None, "the members hold no chunk"
    union = np.bitwise_or.reduce(words, axis=1)
    parts = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    if at := first_true((parts != np.bitwise_count(union)).any(axis=2)):
        text = "two members hold the same contribution to a chunk, which would be added twice"
        return ViolationKind.DOUBLED, at[0], _second(words[at[0], :, at[1]]), at[1], text
    return None


def _second(parts: State) -> int:
    """The first member that holds something which a member before it holds too."""
    before = np.bitwise_or.accumulate(parts, axis=0)[:-1]
    return 1 + int((parts[1:] & before).any(axis=1).argmax())


def _divisible(rows: Flags) -> Broken | None:
    members = rows.shape[1]
    if at := first_true(rows[:, 0].sum(axis=1) % members != 0):
        count = int(rows[at[0], 0].sum())
        text = f"{count} chunks do not split over {members} members"
        return ViolationKind.NOT_DIVISIBLE, at[0], None, None, text
    return None


def _gather_rules(rows: Flags) -> Broken | None:
    counts = rows.sum(axis=2)
    if at := first_true(counts == 0):
        return ViolationKind.NO_ROWS, at[0], at[1], None, "a member holds no chunk"
    if at := first_true(counts != counts[:, :1]):
        text = "the members hold different numbers of chunks"
        return ViolationKind.COUNTS_DIFFER, at[0], at[1], None, text
    if at := first_true(rows.sum(axis=1) > 1):
        second = int(np.flatnonzero(rows[at[0], :, at[1]])[1])
        return ViolationKind.ROWS_OVERLAP, at[0], second, at[1], "two members hold the same chunk"
    return None


def _broadcast_rules(words: State) -> Broken | None:
    first, others = words[:, :1], words[:, 1:]
    if at := first_true((others & ~first).any(axis=3)):
        text = "a member holds a contribution that the first member lacks"
        return ViolationKind.NOT_CONTAINED, at[0], at[1] + 1, at[2], text
    if at := first_true((others == first).all(axis=(2, 3))):
        text = "a member already holds all that the first member has"
        return ViolationKind.NOT_CONTAINED, at[0], at[1] + 1, None, text
    return None
