"""What a reduction program means: the specification that every answer is checked against.

A device's state is a k x k Boolean matrix: row = chunk of the payload, column = device
whose contribution that chunk holds (P2, state matrices).  The states of all k devices are
one array of packed bits, ``state[device, row, word]``, bit c of the words for device c.
Nothing here is shared with the encodings but the demand, as data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective
from p2smt.errors import InputError, TooLarge
from p2smt.parallelism.placement import IntArray
from p2smt.programs.preconditions import (
    State,
    Violation,
    ViolationKind,
    broken_rule,
    check_groups,
    first_true,
)

__all__ = [
    "MAX_DEVICES",
    "State",
    "Step",
    "Trace",
    "Violation",
    "ViolationKind",
    "apply",
    "initial_state",
    "is_goal",
    "run",
]

MAX_DEVICES = 1024
"""Largest reduction group whose states are checked device by device (128 MiB of bits)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One collective on groups of positions 0..k-1: shape (groups, members), device order.

    ``others`` are groups of other sizes, an array for each, which run at the same time.
    """

    collective: Collective
    groups: IntArray
    others: tuple[IntArray, ...] = ()

    @property
    def every(self) -> tuple[IntArray, ...]:
        """All groups, those of one size in one array."""
        return (self.groups, *self.others)


@dataclass(frozen=True, slots=True)
class Trace:
    """A program's run.

    ``payload_rows`` per step (largest over its groups: rows of a member before it,
    all-gather after it), ``peak_rows`` the most rows a device ever holds, ``shards`` the row
    that each device ends with (where it is one each), all only up to a violation.
    """

    violation: Violation | None
    payload_rows: tuple[int, ...] = ()
    peak_rows: int = 0
    shards: tuple[int, ...] | None = None


def initial_state(demand: Demand, devices: int) -> State:
    """All rows of every device, or row d of device d: complete, or with column d alone.

    Raises:
        InputError: the demand is none for programs.
        TooLarge: more devices than MAX_DEVICES.
    """
    if not demand.has_programs:
        raise InputError(f"request {demand}", "has a goal that no state matrices stand for")
    if devices > MAX_DEVICES:
        raise TooLarge(
            f"a reduction group of {devices} devices",
            f"state matrices are checked up to {MAX_DEVICES} devices",
        )
    words = -(-devices // 64)
    everyone = np.arange(devices)
    state = np.zeros((devices, devices, words), dtype=np.uint64)
    device = everyone[:, None]
    row = device if demand.start.chunks is Chunks.OWN else everyone[None]
    if demand.start.givers is Givers.EVERY:
        state[device, row] = _full(devices)
    else:
        state[device, row, device // 64] = np.uint64(1) << (device % 64).astype(np.uint64)
    return state


def _full(devices: int) -> State:
    """The words of a row that holds every device's contribution."""
    left = np.clip(devices - 64 * np.arange(-(-devices // 64)), 0, 64)
    return np.array([(1 << int(n)) - 1 for n in left], dtype=np.uint64)


def is_goal(demand: Demand, state: State) -> bool:
    """All ones, or one distinct full row on each device and nothing else."""
    full = (state == _full(len(state))).all(axis=2)
    if demand.goal.chunks is not Chunks.ONE_EACH:
        return bool(full.all())
    rows = _filled(state)
    alone = (rows.sum(axis=1) == 1).all() and (full == rows).all()
    return bool(alone and (full.sum(axis=0) == 1).all())


def _filled(words: State) -> npt.NDArray[np.bool_]:
    return np.asarray((words != 0).any(axis=-1))


def apply(state: State, step: Step, number: int) -> Violation | int:
    """Apply one step in place; returns its payload in rows, or the first broken rule."""
    if broken := check_groups(step.every, len(state), number):
        return broken
    payload = 0
    for block in _blocks(step.every, state):
        outcome = _apply_block(state, step.collective, block, number)
        if isinstance(outcome, Violation):
            return outcome
        payload = max(payload, outcome)
    return payload


def _blocks(every: Sequence[IntArray], state: State) -> Iterator[IntArray]:
    """The groups in blocks that are small enough to hold copies of their states."""
    for groups in every:
        per_group = groups.shape[1] * state[0].size
        count = max(1, 2**22 // per_group)
        yield from (groups[at : at + count] for at in range(0, len(groups), count))


def _apply_block(
    state: State, collective: Collective, groups: IntArray, number: int
) -> Violation | int:
    words = state[groups]
    rows = _filled(words)
    broken = broken_rule(collective, words, rows)
    if broken is not None:
        kind, group, rank, chunk, message = broken
        members = tuple(groups[group].tolist())
        device = None if rank is None else members[rank]
        text = f"step {number} ({collective.value}): {message}"
        return Violation(kind, number, members, device, chunk, text)
    _write(state, collective, groups, words, rows)
    held = rows[:, 0].sum(axis=1).max()
    return int(held) * (groups.shape[1] if collective is Collective.ALL_GATHER else 1)


def _write(
    state: State,
    collective: Collective,
    groups: IntArray,
    words: State,
    rows: npt.NDArray[np.bool_],
) -> None:
    """Write the members' states after a collective whose precondition holds."""
    match collective:
        case Collective.ALL_REDUCE | Collective.ALL_GATHER:
            state[groups] = _union(words)[:, None]
        case Collective.REDUCE_SCATTER:
            state[groups] = np.where(_runs(rows)[..., None], _union(words)[:, None], 0)
        case Collective.REDUCE:
            state[groups] = 0
            state[groups[:, 0]] = _union(words)
        case Collective.BROADCAST:
            state[groups] = words[:, :1]
        case _:
            assert_never(collective)


def _union(words: State) -> State:
    """The contributions of all members of a group, row by row."""
    return np.asarray(np.bitwise_or.reduce(words, axis=1))


def _runs(rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which rows each member keeps: the i-th run of the non-empty rows goes to member i."""
    shared = rows[:, 0]
    order = np.cumsum(shared, axis=1) - 1
    per_member = shared.sum(axis=1) // rows.shape[1]
    owner = order // per_member[:, None]
    members = np.arange(rows.shape[1])
    return np.asarray((owner[:, None] == members[None, :, None]) & shared[:, None])


def run(demand: Demand, devices: int, steps: Sequence[Step | None]) -> Trace:
    """Run a program on ``devices`` devices; the trace names the first broken rule, if any.

    None is a step that none of these devices takes part in: nothing happens, to 0 rows.
    """
    state = initial_state(demand, devices)
    payloads: list[int] = []
    peak = int(_filled(state).sum(axis=1).max())
    for number, step in enumerate(steps, start=1):
        if step is None:
            payloads.append(0)
            continue
        if is_goal(demand, state):
            text = f"step {number}: the goal is reached before it"
            broken = Violation(ViolationKind.AFTER_GOAL, number, (), None, None, text)
            return Trace(broken, tuple(payloads), peak)
        outcome = apply(state, step, number)
        if isinstance(outcome, Violation):
            return Trace(outcome, tuple(payloads), peak)
        payloads.append(outcome)
        peak = max(peak, int(_filled(state).sum(axis=1).max()))
    if missed := _missed_goal(demand, state, len(steps)):
        return Trace(missed, tuple(payloads), peak)
    shards = None
    if demand.goal.chunks is Chunks.ONE_EACH:
        shards = tuple(int(row) for row in _filled(state).argmax(axis=1))
    return Trace(None, tuple(payloads), peak, shards)


def _missed_goal(demand: Demand, state: State, steps: int) -> Violation | None:
    if is_goal(demand, state):
        return None
    full = (state == _full(len(state))).all(axis=2)
    at = first_true(~full) or (None, None)
    text = f"after step {steps} device {at[0]} still lacks contributions to chunk {at[1]}"
    if demand.goal.chunks is Chunks.ONE_EACH:
        text = f"after step {steps} the devices do not hold one distinct complete chunk each"
        at = (None, None)
    return Violation(ViolationKind.GOAL_MISSED, steps, (), at[0], at[1], text)
