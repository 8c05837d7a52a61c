"""The steps of a redistribution on numpy arrays, all ranks in one process, by their definitions.

A device's new block is made of the parts of others' old blocks that lie in it: no packing, no
order of members.  Elements are 64 bits wide, whatever the array's type is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2smt.errors import ExecutionError
from p2smt.resharding.states import Frame
from p2smt.resharding.steps import ArrayStep, StepKind
from p2smt.resharding.types import ElementType, ReduceOp
from p2smt.runtime.arrays.block_values import ArrayBlock, block_of
from p2smt.runtime.arrays.rank_steps import ArrayJob

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
