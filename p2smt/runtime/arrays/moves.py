"""Carries out the steps of a redistribution on the local tensor of a rank.

What moves, moves as bytes, so every element type arrives bit for bit.  Parts are packed in the
order of a group's members, exchanged by one call, and unpacked.  At no time are there more bytes
than :mod:`p2smt.arrays.memory` says: a step's input, its output and one pack buffer; but Gloo
copies the input of a reduce-scatter whose parts follow each other.  Uneven dimensions are in
:mod:`p2smt.runtime.arrays.uneven`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import torch
import torch.distributed as dist

from p2smt.arrays.element import ReduceOp
from p2smt.arrays.steps import StepKind
from p2smt.errors import InputError
from p2smt.runtime.arrays import uneven
from p2smt.runtime.arrays.groups import ArrayGroups
from p2smt.runtime.arrays.rank_steps import RankStep, cut_indices, ways
from p2smt.runtime.arrays.tensors import as_bytes, exchange, gather, reduce_all, reduce_parts


def run_steps(
    local: torch.Tensor,
    steps: Iterable[RankStep],
    groups: ArrayGroups,
    *,
    keep_source: bool = True,
) -> torch.Tensor:
    """The local tensor after the steps; every rank of the default group calls it.

    ``groups`` must know all groups of the steps.  ``keep_source``: ``local`` keeps its values; else
    a first all-reduce overwrites it.  Without steps the result is ``local`` itself.

    Raises:
        InputError: ``local`` is not contiguous, or not of the shape that the steps say.
    """
    found = local
    for number, step in enumerate(steps):
        if keep_source and number == 0 and step.kind is StepKind.ALL_REDUCE:
            check_local(found, step)
            found = found.clone()
        found = run_step(found, step, groups)
    return found


def check_local(local: torch.Tensor, step: RankStep) -> None:
    """Raise InputError unless a tensor is what a step takes."""
    if tuple(local.shape) != step.before:
        rule = f"step {step.kind.value} takes {step.before} on rank {step.rank}"
        raise InputError(f"a local tensor of shape {tuple(local.shape)}", rule)
    if not local.is_contiguous():
        raise InputError(
            f"a local tensor with strides {tuple(local.stride())}",
            "must be contiguous",
            "call contiguous() first",
        )


def run_step(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    """The local tensor after one step; an all-reduce overwrites ``local``.

    Raises:
        InputError: as for :func:`run_steps`.
    """
    check_local(local, step)
    match step.kind:
        case StepKind.SLICE:
            return _sliced(local, step)
        case StepKind.PERMUTE:
            return _permuted(local, step, groups)
        case StepKind.ALL_GATHER:
            return (uneven.gathered if step.uneven else _gathered)(local, step, groups)
        case StepKind.ALL_TO_ALL:
            return (uneven.exchanged if step.uneven else _exchanged)(local, step, groups)
        case StepKind.REDUCE_SCATTER:
            return (uneven.reduced if step.uneven else _reduced)(local, step, groups)
        case StepKind.ALL_REDUCE:
            reduce_all(local, step.op, groups.of(step.members))
            return _averaged(local, step)
        case _:
            assert_never(step.kind)


def _sliced(local: torch.Tensor, step: RankStep) -> torch.Tensor:
    """The rank's own part: always a copy, which later steps may overwrite."""
    part = local
    for dim, index in cut_indices(step):
        lengths = step.gained_lengths
        first = index * step.after[dim] if lengths is None else sum(lengths[:index])
        part = part.narrow(dim, first, step.after[dim])
    return part.clone(memory_format=torch.contiguous_format)


def _permuted(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    found = local.new_empty(step.after)
    if step.source == step.rank:
        found.copy_(local.view(step.after))
    sent = [(target, as_bytes(local)) for target in step.targets]
    taken = [] if step.source == step.rank else [(step.source, as_bytes(found))]
    exchange(sent, taken, groups.of_all)
    return found


def _gathered(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    blocks = local.new_empty((*step.sizes, *step.before))
    gather(blocks, local, groups.of(step.members))
    return _unpacked(blocks, step).reshape(step.after).contiguous()


def _exchanged(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    packed = _parts(local, step).contiguous()
    blocks = torch.empty_like(packed)
    dist.all_to_all_single(as_bytes(blocks), as_bytes(packed), group=groups.of(step.members))
    del packed  # its room is the output's
    return _unpacked(blocks, step).reshape(step.after).contiguous()


def _reduced(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    found, parts = local.new_empty(step.after), _parts(local, step).contiguous()
    own = parts.data_ptr() != local.data_ptr()
    reduce_parts(found, parts, step.op, groups.of(step.members), own=own)
    return _averaged(found, step)


def _averaged(found: torch.Tensor, step: RankStep) -> torch.Tensor:
    return found.div_(len(step.members)) if step.op is ReduceOp.AVG else found


def _parts(local: torch.Tensor, step: RankStep) -> torch.Tensor:
    """A view whose leading dimensions number the members, and whose others are a member's part."""
    shape: list[int] = []
    axes, rest = {}, []
    for size, digits in zip(local.shape, step.gained, strict=True):
        for digit in digits:
            axes[digit] = len(shape)
            shape.append(step.sizes[digit])
        rest.append(len(shape))
        shape.append(size // ways(step, digits))
    return local.view(shape).permute([*(axes[digit] for digit in sorted(axes)), *rest])


def _unpacked(blocks: torch.Tensor, step: RankStep) -> torch.Tensor:
    """Blocks of all members (a dimension per digit, then those of a block) laid side by side.

    Each dimension's digits stand before it: it only remains to merge them.
    """
    digits_count = len(step.sizes)
    order: list[int] = []
    for dim, digits in enumerate(step.lost):
        order += [*digits, digits_count + dim]
    return blocks.permute(order)
