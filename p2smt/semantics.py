"""What a reduction program means: the specification that every answer is checked against.

A device's state is a k x k Boolean matrix: row = chunk of the payload, column = device
whose contribution that chunk holds (P2, state matrices).  The states of all k devices are
one array of packed bits, ``state[device, row, word]``, bit c of the words for device c.
Nothing here is shared with the encodings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from p2smt.collective import Collective, RequestKind
from p2smt.errors import TooLarge
from p2smt.placement import IntArray

State = npt.NDArray[np.uint64]
MAX_DEVICES = 1024
"""Largest reduction group whose states are checked device by device (128 MiB of bits)."""


class ViolationKind(Enum):
    """The rule that a program breaks."""

    GROUP_SHAPE = "group-shape"  # a group of one device, or a device in two groups
    ROWS_DIFFER = "rows-differ"  # reducing members hold different chunks
    NO_ROWS = "no-rows"  # the members hold nothing
    DOUBLED = "doubled-contribution"  # two members hold the same contribution to a chunk
    NOT_DIVISIBLE = "not-divisible"  # the chunks do not split evenly over the group
    ROWS_OVERLAP = "rows-overlap"  # gathered chunks are held by two members
    COUNTS_DIFFER = "counts-differ"  # gathering members hold different numbers of chunks
    NOT_CONTAINED = "not-contained"  # a broadcast would lose a member's data or gain nothing
    AFTER_GOAL = "after-goal"  # a step follows the goal state
    GOAL_MISSED = "goal-missed"  # the program ends short of the goal


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: at which step (from 1), in which group, on which device and chunk."""

    kind: ViolationKind
    step: int
    group: tuple[int, ...]
    rank: int | None
    chunk: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """One collective on groups of positions 0..k-1: shape (groups, members), device order."""

    collective: Collective
    groups: IntArray


@dataclass(frozen=True, slots=True)
class Trace:
    """A program's run.

    ``payload_rows`` per step (largest over its groups: rows of a member before it,
    all-gather after it), ``peak_rows`` the most rows a device ever holds, ``shards`` the row
    that each device ends with (reduce-scatter requests), all only up to a violation.
    """

    violation: Violation | None
    payload_rows: tuple[int, ...] = ()
    peak_rows: int = 0
    shards: tuple[int, ...] | None = None


def initial_state(kind: RequestKind, devices: int) -> State:
    """All-gather: device d holds the complete row d.  Otherwise: its own column, all rows."""
    if devices > MAX_DEVICES:
        raise TooLarge(
            f"a reduction group of {devices} devices",
            f"state matrices are checked up to {MAX_DEVICES} devices",
        )
    words = -(-devices // 64)
    everyone = np.arange(devices)
    state = np.zeros((devices, devices, words), dtype=np.uint64)
    if kind is RequestKind.ALL_GATHER:
        state[everyone, everyone] = _full(devices)
    else:
        bit = np.uint64(1) << (everyone % 64).astype(np.uint64)
        state[everyone, :, everyone // 64] = bit[:, None]
    return state


def _full(devices: int) -> State:
    """The words of a row that holds every device's contribution."""
    left = np.clip(devices - 64 * np.arange(-(-devices // 64)), 0, 64)
    return np.array([(1 << int(n)) - 1 for n in left], dtype=np.uint64)


def is_goal(kind: RequestKind, state: State) -> bool:
    """Reduce-scatter: one distinct full row each, nothing else.  Otherwise: all ones."""
    full = (state == _full(len(state))).all(axis=2)
    if kind is not RequestKind.REDUCE_SCATTER:
        return bool(full.all())
    rows = _filled(state)
    alone = (rows.sum(axis=1) == 1).all() and (full == rows).all()
    return bool(alone and (full.sum(axis=0) == 1).all())


def _filled(words: State) -> npt.NDArray[np.bool_]:
    return np.asarray((words != 0).any(axis=-1))


def check_groups(groups: IntArray, devices: int, step: int) -> Violation | None:
    """Groups have at least two members, and no device is in two of them."""
    count = np.bincount(groups.ravel(), minlength=devices)
    twice = np.flatnonzero(count > 1)
    if groups.shape[1] < 2 or len(twice) or len(count) > devices:
        rank = int(twice[0]) if len(twice) else None
        return Violation(
            ViolationKind.GROUP_SHAPE,
            step,
            tuple(groups[0].tolist()),
            rank,
            None,
            "groups need two members or more, each device in one group at most",
        )
    return None


def apply(state: State, step: Step, number: int) -> Violation | int:
    """Apply one step in place; returns its payload in rows, or the first broken rule."""
    if broken := check_groups(step.groups, len(state), number):
        return broken
    payload = 0
    for at in _blocks(step.groups, state):
        outcome = _apply_block(state, step.collective, step.groups[at], number)
        if isinstance(outcome, Violation):
            return outcome
        payload = max(payload, outcome)
    return payload


def _blocks(groups: IntArray, state: State) -> list[slice]:
    """Slices of groups that are small enough to hold copies of their states."""
    per_group = groups.shape[1] * state[0].size
    count = max(1, 2**22 // per_group)
    return [slice(at, at + count) for at in range(0, len(groups), count)]


def _apply_block(
    state: State, collective: Collective, groups: IntArray, number: int
) -> Violation | int:
    words = state[groups]
    rows = _filled(words)
    broken = _broken_rule(collective, words, rows)
    if broken is not None:
        kind, group, rank, chunk, message = broken
        members = tuple(groups[group].tolist())
        device = None if rank is None else members[rank]
        text = f"step {number} ({collective.value}): {message}"
        return Violation(kind, number, members, device, chunk, text)
    _write(state, collective, groups, words, rows)
    held = rows[:, 0].sum(axis=1).max()
    return int(held) * (groups.shape[1] if collective is Collective.ALL_GATHER else 1)


Broken = tuple[ViolationKind, int, int | None, int | None, str]


def _first(where: npt.NDArray[np.bool_] | np.bool_) -> tuple[int, ...] | None:
    found = np.argwhere(where)
    return tuple(int(i) for i in found[0]) if len(found) else None


def _broken_rule(
    collective: Collective, words: State, rows: npt.NDArray[np.bool_]
) -> Broken | None:
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


def _reduce_rules(words: State, rows: npt.NDArray[np.bool_]) -> Broken | None:
    if at := _first(rows != rows[:, :1]):
        return ViolationKind.ROWS_DIFFER, at[0], at[1], at[2], "the members hold different chunks"
    if at := _first(~rows[:, 0].any(axis=1)):
        return ViolationKind.NO_ROWS, at[0], None, None, "the members hold no chunk"
    union = np.bitwise_or.reduce(words, axis=1)
    parts = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    if at := _first((parts != np.bitwise_count(union)).any(axis=2)):
        text = "two members hold the same contribution to a chunk, which would be added twice"
        return ViolationKind.DOUBLED, at[0], None, at[1], text
    return None


def _divisible(rows: npt.NDArray[np.bool_]) -> Broken | None:
    members = rows.shape[1]
    if at := _first(rows[:, 0].sum(axis=1) % members != 0):
        count = int(rows[at[0], 0].sum())
        text = f"{count} chunks do not split over {members} members"
        return ViolationKind.NOT_DIVISIBLE, at[0], None, None, text
    return None


def _gather_rules(rows: npt.NDArray[np.bool_]) -> Broken | None:
    counts = rows.sum(axis=2)
    if at := _first(counts == 0):
        return ViolationKind.NO_ROWS, at[0], at[1], None, "a member holds no chunk"
    if at := _first(counts != counts[:, :1]):
        text = "the members hold different numbers of chunks"
        return ViolationKind.COUNTS_DIFFER, at[0], at[1], None, text
    if at := _first(rows.sum(axis=1) > 1):
        return ViolationKind.ROWS_OVERLAP, at[0], None, at[1], "two members hold the same chunk"
    return None


def _broadcast_rules(words: State) -> Broken | None:
    first, others = words[:, :1], words[:, 1:]
    if at := _first((others & ~first).any(axis=3)):
        text = "a member holds a contribution that the first member lacks"
        return ViolationKind.NOT_CONTAINED, at[0], at[1] + 1, at[2], text
    if at := _first((others == first).all(axis=(2, 3))):
        text = "a member already holds all that the first member has"
        return ViolationKind.NOT_CONTAINED, at[0], at[1] + 1, None, text
    return None


def _write(
    state: State,
    collective: Collective,
    groups: IntArray,
    words: State,
    rows: npt.NDArray[np.bool_],
) -> None:
    """Write the members' states after a collective whose precondition holds."""
    if collective is Collective.BROADCAST:
        state[groups] = words[:, :1]
        return
    union = np.bitwise_or.reduce(words, axis=1)
    if collective is Collective.REDUCE:
        state[groups] = 0
        state[groups[:, 0]] = union
    elif collective is Collective.REDUCE_SCATTER:
        state[groups] = np.where(_runs(rows)[..., None], union[:, None], 0)
    else:
        state[groups] = union[:, None]


def _runs(rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which rows each member keeps: the i-th run of the non-empty rows goes to member i."""
    shared = rows[:, 0]
    order = np.cumsum(shared, axis=1) - 1
    per_member = shared.sum(axis=1) // rows.shape[1]
    owner = order // per_member[:, None]
    members = np.arange(rows.shape[1])
    return np.asarray((owner[:, None] == members[None, :, None]) & shared[:, None])


def run(kind: RequestKind, devices: int, steps: Sequence[Step]) -> Trace:
    """Run a program on ``devices`` devices; the trace names the first broken rule, if any."""
    state = initial_state(kind, devices)
    payloads: list[int] = []
    peak = int(_filled(state).sum(axis=1).max())
    for number, step in enumerate(steps, start=1):
        if is_goal(kind, state):
            text = f"step {number}: the goal is reached before it"
            broken = Violation(ViolationKind.AFTER_GOAL, number, (), None, None, text)
            return Trace(broken, tuple(payloads), peak)
        outcome = apply(state, step, number)
        if isinstance(outcome, Violation):
            return Trace(outcome, tuple(payloads), peak)
        payloads.append(outcome)
        peak = max(peak, int(_filled(state).sum(axis=1).max()))
    if missed := _missed_goal(kind, state, len(steps)):
        return Trace(missed, tuple(payloads), peak)
    shards = None
    if kind is RequestKind.REDUCE_SCATTER:
        shards = tuple(int(row) for row in _filled(state).argmax(axis=1))
    return Trace(None, tuple(payloads), peak, shards)


def _missed_goal(kind: RequestKind, state: State, steps: int) -> Violation | None:
    if is_goal(kind, state):
        return None
    full = (state == _full(len(state))).all(axis=2)
    at = _first(~full) or (None, None)
    text = f"after step {steps} device {at[0]} still lacks contributions to chunk {at[1]}"
    if kind is RequestKind.REDUCE_SCATTER:
        text = f"after step {steps} the devices do not hold one distinct complete chunk each"
        at = (None, None)
    return Violation(ViolationKind.GOAL_MISSED, steps, (), at[0], at[1], text)
