"""Redistributions, and then transfers, all ranks in one process, by their definitions.

The steps of a redistribution are taken on numpy arrays: a device's new block is made of the parts
of others' old blocks that lie in it: no packing, no order of members. Elements are 64 bits wide,
whatever the array's type is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2smt.errors import ExecutionError
from p2smt.resharding.states import Frame
from p2smt.resharding.steps import ArrayStep, StepKind
from p2smt.resharding.types import ElementType, ReduceOp
from p2smt.runtime.arrays.block_values import ArrayBlock, block_of
from p2smt.runtime.arrays.rank_steps import ArrayJob
from p2smt.runtime.transfers.transfer_job import TransferJob, runs_of
from p2smt.transfer.classes import ranges
from p2smt.transfer.layouts import IndexBox
from p2smt.transfer.plan import TreePiece, index_of

LocalArrays = Mapping[int, NDArray[Any]]
"""The block that each device has."""

_REDUCE = {
    ReduceOp.SUM: np.add,
    ReduceOp.AVG: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
}
_REDUCE_BOOL = {**_REDUCE, ReduceOp.SUM: np.maximum}


def run_arrays_reference(job: ArrayJob, held: LocalArrays) -> LocalArrays:
    """The blocks after all steps.

    Raises:
        ExecutionError: a step leaves an element of a block without a value.
    """
    for step, senders in zip(job.steps, job.sources, strict=True):
        held = _after(job.frame, step, senders, held)
    return held


def _after(frame: Frame, step: ArrayStep, senders: Sequence[int], held: LocalArrays) -> LocalArrays:
    if step.kind is StepKind.PERMUTE:
        return {device: held[sender].copy() for device, sender in enumerate(senders)}
    old = {device: block_of(frame, step.before, device) for device in held}
    new = {device: block_of(frame, step.after, device) for device in held}
    found: dict[int, NDArray[Any]] = {}
    for group in frame.groups(step.moved, step.before.order).tolist():
        for device in group:
            members = [device] if step.kind is StepKind.SLICE else group
            parts = [(old[member], held[member]) for member in members]
            if step.reduced:
                found[device] = _reduced(frame, new[device], parts)
            else:
                found[device] = _joined(step, device, new[device], parts)
    return found


def _joined(
    step: ArrayStep, device: int, new: ArrayBlock, parts: Sequence[tuple[ArrayBlock, NDArray[Any]]]
) -> NDArray[Any]:
    found = np.zeros(new.shape, dtype=parts[0][1].dtype)
    written = np.zeros(new.shape, dtype=bool)
    for old, values in parts:
        here, there = _overlap(new, old), _overlap(old, new)
        found[here] = values[there]
        written[here] = True
    if not written.all():
        raise ExecutionError(f"rank {device}: {step.kind.value} leaves a part of its block empty")
    return found


def _reduced(
    frame: Frame, new: ArrayBlock, parts: Sequence[tuple[ArrayBlock, NDArray[Any]]]
) -> NDArray[Any]:
    """Every member has all of the new block; an average divides by their number."""
    found: NDArray[Any] | None = None
    reduce = (_REDUCE_BOOL if frame.element is ElementType.BOOL else _REDUCE)[frame.op]
    for old, values in parts:
        part = values[_overlap(old, new)]
        found = part.copy() if found is None else reduce(found, part)
    assert found is not None
    return found / len(parts) if frame.op is ReduceOp.AVG else found


def _overlap(inside: ArrayBlock, other: ArrayBlock) -> tuple[slice, ...]:
    """Where the common part of two blocks lies in the first."""
    found = []
    for first, length, begin, size in zip(
        inside.first, inside.shape, other.first, other.shape, strict=True
    ):
        low, high = max(first, begin), min(first + length, begin + size)
        found.append(slice(low - first, max(low, high) - first))
    return tuple(found)


# A transfer by definition, all devices in one process: pieces go edge by edge, in their order.
#
# Followed is every element of every tensor: who has it by then.  Neither buckets nor rounds nor the
# packing of ranks have a part in it.


def run_transfer_reference(job: TransferJob) -> list[str]:
    """Carry out all pieces; what is wrong, of each rank the first, in words."""
    held = _Held(job)
    for piece in job.pieces:
        held.send(piece)
    found = ((rank, device, held.lacking(device)) for rank, device in enumerate(job.devices))
    return [f"rank {rank}, device {device}: {lacks}" for rank, device, lacks in found if lacks]


class _Held:
    """Which elements of every tensor every device has."""

    def __init__(self, job: TransferJob) -> None:
        self.job = job
        self.arrays: dict[tuple[int, str], NDArray[np.bool_]] = {}
        for device in job.devices:
            for name, boxes in job.had(device).items():
                for box in boxes:
                    self.of(device, name)[_slices(box)] = True

    def of(self, device: int, name: str) -> NDArray[np.bool_]:
        """What a device has of a tensor."""
        if (device, name) not in self.arrays:
            self.arrays[device, name] = np.zeros(self.job.before.tensors[name].shape, dtype=bool)
        return self.arrays[device, name]

    def send(self, piece: TreePiece) -> None:
        """Send a piece along its edges."""
        runs = list(_runs(self.job, piece))
        for source, target in piece.edges:
            for name, where in runs:
                self.of(target, name)[where] |= self.of(source, name)[where]

    def lacking(self, device: int) -> str:
        """The first element that a device lacks; "": none."""
        for name, boxes in self.job.wanted(device).items():
            for box in boxes:
                found = self.of(device, name)[_slices(box)]
                if not found.all():
                    index = index_of(box, int(np.argmin(found)))
                    return f"element {index} of tensor {name[:80]!r} did not arrive"
        return ""


def _runs(job: TransferJob, piece: TreePiece) -> Iterator[tuple[str, tuple[slice, ...]]]:
    for name, cell, low, high in ranges(job.moves, piece.number, piece.start, piece.stop):
        for run in runs_of(cell, low, high):
            yield name, _slices(run)


def _slices(box: IndexBox) -> tuple[slice, ...]:
    return tuple(slice(*ends) for ends in box)
