"""Collectives over one mesh axis whose members have parts of different lengths.

The pack buffer of a reduce-scatter is padded here to the longest part for each member.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.distributed as dist

from p2smt.arrays.element import ReduceOp
from p2smt.runtime.arrays.groups import ArrayGroups
from p2smt.runtime.arrays.rank_steps import RankStep, cut_dim
from p2smt.runtime.arrays.tensors import as_bytes, exchange, reduce_parts


def gathered(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    """All members' blocks, one after the other in the dimension that is gathered."""
    dim = cut_dim(step.lost)
    shapes = _shapes(step.before, dim, _lengths(step.lost_lengths, step, step.after[dim]))
    memory = local.new_empty(sum(map(math.prod, shapes)))
    blocks = _views(memory, shapes)
    blocks[step.index].copy_(local)
    others = [(rank, i) for i, rank in enumerate(step.members) if rank != step.rank]
    exchange(
        [(rank, as_bytes(local)) for rank, _ in others],
        [(rank, as_bytes(blocks[i])) for rank, i in others],
        groups.of_all,
    )
    if math.prod(step.after[:dim]) == 1:
        return memory.view(step.after)
    return torch.cat(blocks, dim)


def exchanged(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    """A part of the own block for each member, and theirs, by split sizes."""
    cut, joined = cut_dim(step.gained), cut_dim(step.lost)
    sent = _shapes(step.before, cut, _lengths(step.gained_lengths, step, step.before[cut]))
    lengths = _lengths(step.lost_lengths, step, step.after[joined])
    taken = _shapes(step.after, joined, lengths)
    packed, memory = _packed(local, sent, cut), local.new_empty(math.prod(step.after))
    dist.all_to_all_single(
        as_bytes(memory),
        as_bytes(packed),
        [math.prod(shape) * local.element_size() for shape in taken],
        [math.prod(shape) * local.element_size() for shape in sent],
        group=groups.of(step.members),
    )
    del packed  # its room is the output's
    return torch.cat(_views(memory, taken), joined)


def reduced(local: torch.Tensor, step: RankStep, groups: ArrayGroups) -> torch.Tensor:
    """The own part of the result; the parts are padded to equal lengths for the library."""
    dim = cut_dim(step.gained)
    lengths = _lengths(step.gained_lengths, step, step.before[dim])
    shape = [*step.before]
    shape[dim] = max(lengths)
    packed = local.new_zeros((len(lengths), *shape))
    _pad(packed, torch.split(local, list(lengths), dim), dim)
    found = local.new_empty(shape)
    reduce_parts(found, packed, step.op, groups.of(step.members), own=True)
    del packed
    kept = found.narrow(dim, 0, step.after[dim]).contiguous()
    return kept.div_(len(step.members)) if step.op is ReduceOp.AVG else kept


def _packed(local: torch.Tensor, shapes: Sequence[tuple[int, ...]], dim: int) -> torch.Tensor:
    """The parts of these shapes, one after the other."""
    packed = local.new_empty(local.numel())
    parts = torch.split(local, [shape[dim] for shape in shapes], dim)
    for view, part in zip(_views(packed, shapes), parts, strict=True):
        view.copy_(part)
    return packed


def _pad(packed: torch.Tensor, parts: Sequence[torch.Tensor], dim: int) -> None:
    """Lay each part at the beginning of a member's room."""
    for room, part in zip(packed, parts, strict=True):
        room.narrow(dim, 0, part.shape[dim]).copy_(part)


def _lengths(given: tuple[int, ...] | None, step: RankStep, size: int) -> tuple[int, ...]:
    count = len(step.members)
    return (size // count,) * count if given is None else given


def _shapes(shape: Sequence[int], dim: int, lengths: Sequence[int]) -> list[tuple[int, ...]]:
    """The shape with each length in a dimension."""
    return [(*shape[:dim], length, *shape[dim + 1 :]) for length in lengths]


def _views(memory: torch.Tensor, shapes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    """Blocks of these shapes, one after the other in a flat memory."""
    parts = torch.split(memory, [math.prod(shape) for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
