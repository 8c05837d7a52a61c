"""Effect of the collectives on many states at once, for the table of reachable states.

Matrices are numpy words: ``states[node, device, row]`` has bit c set when that row of the
device holds the contribution of device c.  ``counts[node, device]`` is the number of
non-empty rows that the device has on the *real* factors.  This file states the effects a
second time, on purpose: the checker (``p2smt.programs.semantics``) shares no code with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective

Words = npt.NDArray[np.unsignedinteger]
Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Layer:
    """Nodes of one depth: matrices (n, devices, rows) and real row counts (n, devices)."""

    states: Words
    counts: Counts


def _dtype(devices: int) -> type[np.unsignedinteger]:
    return np.uint8 if devices <= 8 else np.uint16 if devices <= 16 else np.uint64


def initial_layer(demand: Demand, devices: int, rows: int, one: int) -> Layer:
    """The start: ``rows`` real rows per device, or ``one`` where a device has its own alone."""
    alone = demand.start.chunks is Chunks.OWN
    whole = demand.start.givers is Givers.EVERY
    words = [(1 << devices) - 1 if whole else 1 << d for d in range(devices)]
    held = np.eye(devices, dtype=bool) if alone else np.ones((devices, devices), dtype=bool)
    states = held * np.array(words, dtype=_dtype(devices))[:, None]
    counts = np.full((1, devices), one if alone else rows, dtype=np.int64)
    return Layer(states[None], counts)


def goal_nodes(demand: Demand, states: Words) -> Flags:
    """Which states are all ones, or one complete row on each device, another on each."""
    devices = states.shape[1]
    full: Flags = np.equal(states, states.dtype.type((1 << devices) - 1))
    if demand.goal.chunks is not Chunks.ONE_EACH:
        return np.asarray(full.all(axis=(1, 2)))
    one_row = (full.sum(axis=2) == 1) & ((states != 0).sum(axis=2) == 1)
    distinct = full.sum(axis=1) == 1
    return np.asarray(one_row.all(axis=1) & distinct.all(axis=1))


@dataclass(frozen=True, slots=True)
class _View:
    """An instruction's groups: member words (n, groups, members, rows) and what is common."""

    words: Words
    filled: Flags
    union: Words

    @staticmethod
    def of(states: Words, groups: npt.NDArray[np.int64]) -> _View:
        words = states[:, groups]
        return _View(words, words != 0, np.bitwise_or.reduce(words, axis=2))

    def reducible(self) -> Flags:
        """C1: all members have the same rows, at least one, with disjoint contributors."""
        same = (self.filled == self.filled[:, :, :1]).all(axis=(1, 2, 3))
        some = np.any(self.filled[:, :, 0], axis=2).all(axis=1)
        parts = np.bitwise_count(self.words).sum(axis=2, dtype=np.int64)
        disjoint = (parts == np.bitwise_count(self.union)).all(axis=(1, 2))
        return np.asarray(same & some & disjoint)

    def gatherable(self) -> Flags:
        """C3: the members' rows are disjoint, the same positive number each."""
        sizes = self.filled.sum(axis=3)
        equal = ((sizes == sizes[:, :, :1]) & (sizes > 0)).all(axis=(1, 2))
        return np.asarray(equal & (self.filled.sum(axis=2) <= 1).all(axis=(1, 2)))

    def broadcastable(self) -> Flags:
        """C5: the first member's state strictly contains every other member's."""
        first, others = self.words[:, :, :1], self.words[:, :, 1:]
        contained = ((others & ~first) == 0).all(axis=(1, 2, 3))
        return np.asarray(contained & (others != first).any(axis=3).all(axis=(1, 2)))


def _scattered(view: _View, members: int) -> tuple[Flags, Words]:
    """C2: the number of rows divides by the group size; member i keeps the i-th run."""
    filled = view.filled[:, :, 0]
    total = filled.sum(axis=2)
    valid = view.reducible() & (total % members == 0).all(axis=1)
    run = np.maximum(total // members, 1)[..., None]
    owner = (np.cumsum(filled, axis=2) - 1) // run
    mine = owner[:, :, None, :] == np.arange(members)[None, None, :, None]
    return valid, np.where(mine & filled[:, :, None, :], view.union[:, :, None, :], 0)


def _effect(collective: Collective, view: _View) -> tuple[Flags, Words]:
    """Which nodes may take the step, and the members' words after it."""
    members = view.words.shape[2]
    spread = np.broadcast_to(view.union[:, :, None, :], view.words.shape)
    match collective:
        case Collective.ALL_REDUCE:
            return view.reducible(), spread
        case Collective.REDUCE_SCATTER:
            return _scattered(view, members)
        case Collective.ALL_GATHER:
            return view.gatherable(), spread
        case Collective.REDUCE:
            after = np.zeros_like(view.words)
            after[:, :, 0] = view.union
            return view.reducible(), after
        case Collective.BROADCAST:
            return view.broadcastable(), np.broadcast_to(view.words[:, :, :1], view.words.shape)


def _real_counts(
    collective: Collective, counts: Counts, members: int
) -> tuple[Flags, Counts, Counts]:
    """Real divisibility, members' real row counts after the step, each group's payload."""
    first = counts[:, :, :1]
    whole = np.ones(len(counts), dtype=bool)
    if collective is not Collective.BROADCAST:
        whole = (counts == first).all(axis=(1, 2))
    payload = first[:, :, 0]
    match collective:
        case Collective.REDUCE_SCATTER:
            whole &= (first % members == 0).all(axis=(1, 2))
            return whole, np.broadcast_to(first // members, counts.shape), payload
        case Collective.ALL_GATHER:
            return whole, np.broadcast_to(first * members, counts.shape), payload * members
        case Collective.REDUCE:
            after = np.zeros_like(counts)
            after[:, :, 0] = first[:, :, 0]
            return whole, after, payload
        case _:
            return whole, np.broadcast_to(first, counts.shape), payload


def step_nodes(
    layer: Layer, collective: Collective, groups: npt.NDArray[np.int64], real_members: int
) -> tuple[npt.NDArray[np.int64], Layer, Counts]:
    """Apply one instruction to every node: (kept node positions, nodes after, group payloads)."""
    view = _View.of(layer.states, groups)
    valid, words = _effect(collective, view)
    whole, counts, payload = _real_counts(collective, layer.counts[:, groups], real_members)
    kept = np.flatnonzero(valid & whole)
    states, real = layer.states[kept], layer.counts[kept]
    states[:, groups] = words[kept]
    real[:, groups] = counts[kept]
    return kept, Layer(states, real), payload[kept]
