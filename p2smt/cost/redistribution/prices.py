"""Time of the steps of a redistribution: all groups at once, priced like every other collective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import ArrayStep, StepKind
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.alpha_beta import step_model
from p2smt.cost.loads.footprint_explicit import explicit_send
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.loads.sources import nearest_sources
from p2smt.cost.rank_list import groups_model
from p2smt.cost.redistribution.blocks import BlockNumbers
from p2smt.cost.redistribution.permutes import (
    PermuteLoads,
    counted_footprint,
    counts_suffice,
    one_suffices,
)
from p2smt.cost.redistribution.senders import SenderChoice, Senders
from p2smt.cost.step_time import StepCostModel, StepTime
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray

_OPERATIONS: dict[StepKind, Operation] = {
    StepKind.ALL_GATHER: Collective.ALL_GATHER,
    StepKind.ALL_TO_ALL: RequestKind.ALL_TO_ALL,
    StepKind.REDUCE_SCATTER: Collective.REDUCE_SCATTER,
    StepKind.ALL_REDUCE: Collective.ALL_REDUCE,
}

_SAME = 1e-12


class StepPrices:
    """Prices of the steps of one frame on a topology; what steps share is found once.

    A collective's price depends on its kind, the set of moved digits, the order of devices and the
    payload; members of a group are in the order of mesh positions.

    ``all_proved``: of every permute priced until now no choice of senders is faster than the one
    that was priced, so far as latency goes.  ``least``: permutes have the price that no choice
    beats, whether one has it or not.

    Raises:
        InputError: the topology lacks a device of the mesh.
    """

    def __init__(self, topology: Topology, frame: Frame, *, least: bool = False) -> None:
        _check_devices(topology, frame)
        self.topology, self.frame, self._least = topology, frame, least
        self._models: dict[tuple[StepKind, tuple[int, ...], int], StepCostModel] = {}
        self._blocks = BlockNumbers(frame)
        self._loads = None
        if counts_suffice(topology):
            self._loads = PermuteLoads(topology, self._blocks.devices)
        self._sends: dict[object, StepCostModel] = {}
        self._choice = SenderChoice(topology, self._blocks.devices)
        self._chosen: dict[tuple[bytes, bytes, int], Senders] = {}
        self.all_proved = True

    @cached_property
    def one_permute_suffices(self) -> bool:
        """Whether two permutes in a row are never cheaper than one that does what both do."""
        return one_suffices(self.topology)

    def collective(
        self, kind: StepKind, digits: tuple[int, ...], payload_bytes: float, order: int = 0
    ) -> StepTime:
        """Time of a collective over the groups of these (ascending) digits."""
        key = (kind, digits, order)
        found = self._models.get(key)
        if found is None:
            groups = self.frame.groups(digits, order)
            found = self._models[key] = groups_model(self.topology, [groups], _OPERATIONS[kind])
        return found.time(payload_bytes)

    def permute(self, before: ArrayState, after: ArrayState) -> StepTime:
        """Time of a permute, by the fastest choice of senders known."""
        payload = self.frame.local_bytes(before)
        if self._choice.matters:
            chosen = self._senders(before, after)
            return replace(chosen.time, seconds=chosen.least_s) if self._least else chosen.time
        if self._loads is None:
            return self.explicit_send_model(before, after).time(payload)
        blocks, held = self._blocks.count(before), self._blocks.of(before)
        loads = self._loads.loads(held, self._blocks.of(after)[None, :], blocks)
        return self._counted_send(loads[0]).time(payload)

    def permutes(self, before: ArrayState, afters: Sequence[ArrayState]) -> FloatArray:
        """Seconds of permutes from one state to each of several."""
        if self._loads is None or self._choice.matters or not afters:
            return np.array([self.permute(before, after).seconds for after in afters])
        blocks, held = self._blocks.count(before), self._blocks.of(before)
        loads = self._loads.loads(held, self._blocks.of_many(afters), blocks)
        rows = loads.reshape(len(loads), -1)
        kinds, where = np.unique(rows, axis=0, return_inverse=True)
        payload = self.frame.local_bytes(before)
        models = (self._counted_send(kind.reshape(2, -1)) for kind in kinds)
        return np.array([model.time(payload).seconds for model in models])[where.ravel()]

    def _counted_send(self, loads: FloatArray) -> StepCostModel:
        key = loads.tobytes()
        found = self._sends.get(key)
        if found is None:
            footprint = counted_footprint(self.topology, loads)
            found = self._sends[key] = step_model(self.topology, footprint, RequestKind.SEND)
        return found

    def _senders(self, before: ArrayState, after: ArrayState) -> Senders:
        """The senders where others than the nearest may be faster."""
        held, taken = self._blocks.of(before), self._blocks.of(after)
        payload = self.frame.local_bytes(before)
        key = (held.tobytes(), taken.tobytes(), payload)
        found = self._chosen.get(key)
        if found is None:
            found = self._chosen[key] = self._choice.fastest(held, taken, payload)
            self.all_proved &= found.time.seconds <= found.least_s * (1 + _SAME)
        return found

    def explicit_send_model(self, before: ArrayState, after: ArrayState) -> StepCostModel:
        """What the messages of a permute cost, found message by message."""
        source, target = self.messages(before, after)
        apart = source != target
        footprint = explicit_send(self.topology, source[apart], target[apart])
        found = self._sends.get(footprint)
        if found is None:
            found = self._sends[footprint] = step_model(self.topology, footprint, RequestKind.SEND)
        return found

    def messages(self, before: ArrayState, after: ArrayState) -> tuple[IntArray, IntArray]:
        """Who sends to whom in a permute: devices, a message to each (some send to themselves).

        Receivers are ascending.
        """
        devices = self._blocks.devices
        if self._choice.matters:
            return self._senders(before, after).sources, devices
        held, taken = self._blocks.of(before), self._blocks.of(after)
        return nearest_sources(self.topology, devices, held, taken), devices

    def step(self, step: ArrayStep) -> StepTime:
        """Time of any step; a slice takes none."""
        if step.kind is StepKind.PERMUTE:
            return self.permute(step.before, step.after)
        if step.kind is StepKind.SLICE:
            silent = (0.0,) * len(self.topology.levels)
            return StepTime(0.0, 0.0, "none", "", None, 0.0, 0.0, silent)
        return self.collective(
            step.kind, step.moved, payload_bytes(self.frame, step), step.before.order
        )


def _check_devices(topology: Topology, frame: Frame) -> None:
    lacking = sorted(set(frame.orders[0]) - topology.places)
    if lacking:
        given = f"a mesh on device {lacking[0]}"
        rule = f"{topology.name} has {topology.installed} devices, and this is none of them"
        raise InputError(given, rule, "give a mesh of its devices, or more of the topology")


def payload_bytes(frame: Frame, step: ArrayStep) -> int:
    """What the cost model takes for a step: :func:`moved_bytes` of the largest local arrays."""
    before, after = frame.local_bytes(step.before), frame.local_bytes(step.after)
    return moved_bytes(step.kind, frame.ways(step.moved), before, after)


def moved_bytes(kind: StepKind, ways: int, before: int, after: int) -> int:
    """What the cost model takes for a step of groups of so many ways; a slice: 0.

    An all-gather's output, a permute's block, else the input.  Of uneven chunks the largest counts
    for each member: a group takes as long as its busiest, and one without elements of its own
    receives all the others'.
    """
    match kind:
        case StepKind.SLICE:
            return 0
        case StepKind.ALL_GATHER:
            return max(after, ways * before)
        case StepKind.REDUCE_SCATTER:
            return max(before, ways * after)
        case StepKind.ALL_TO_ALL:
            return max(before, after)
        case StepKind.PERMUTE | StepKind.ALL_REDUCE:
            return before
