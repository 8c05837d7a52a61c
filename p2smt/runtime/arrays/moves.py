"""Carries out the steps of a redistribution on the local tensor of a rank.

What moves, moves as bytes, so every element type arrives bit for bit.  Parts are packed in the
order of a group's members, exchanged by one call, and unpacked.  At no time are there more bytes
than :mod:`p2smt.resharding.steps` says: a step's input, its output and one pack buffer; but Gloo
copies the input of a reduce-scatter whose parts follow each other.  Uneven dimensions come
last.
"""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import torch
import torch.distributed as dist

from p2smt.errors import BackendError, InputError
from p2smt.resharding.steps import StepKind
from p2smt.resharding.types import ReduceOp
from p2smt.runtime.arrays.rank_steps import Members, RankStep, cut_dim, cut_indices, ways
from p2smt.runtime.process_groups import connect


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
            return (gathered if step.uneven else _gathered)(local, step, groups)
        case StepKind.ALL_TO_ALL:
            return (exchanged if step.uneven else _exchanged)(local, step, groups)
        case StepKind.REDUCE_SCATTER:
            return (reduced if step.uneven else _reduced)(local, step, groups)
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


# Process groups whose members stand in the order of mesh positions.


@dataclass(slots=True)
class ArrayGroups:
    """Groups by their members in order, each made once.

    torch keeps groups alive until ``destroy_process_group``; here they are not, for one that
    outlived it would be freed by the interpreter's end, while its threads run.  So that Gloo closes
    their connections where a job is aborted, none is the default group, which a DeviceMesh keeps.
    Every rank calls ``make`` with the same groups in the same order, those without it too.
    ``new_group`` would sort the members: a mesh whose ranks do not ascend would then get its
    blocks in another order than its positions say.
    """

    known: dict[Members, weakref.ref[dist.ProcessGroup] | None] = field(default_factory=dict)

    def make(self, every: Iterable[Members]) -> None:
        """Make the groups that do not exist yet; single ranks need none.

        That of all ranks comes first: messages between two go through it.
        """
        for members in (tuple(range(dist.get_world_size())), *every):
            if len(members) > 1 and members not in self.known:
                self.known[members] = _made(members)

    def of(self, members: Members) -> dist.ProcessGroup:
        """The group of these ranks, of which the caller is one."""
        kept = self.known.get(members)
        if kept is None:
            raise RuntimeError(f"a rank asked for a group {members} that it is no member of")
        found = kept()
        if found is None:
            raise RuntimeError(f"the group of ranks {members} has been destroyed")
        return found

    @property
    def of_all(self) -> dist.ProcessGroup:
        """The group of all ranks."""
        return self.of(tuple(range(dist.get_world_size())))


def _made(members: Members) -> weakref.ref[dist.ProcessGroup] | None:
    made = _new_group(list(members))
    if not isinstance(made, dist.ProcessGroup):
        return None
    connect(made)
    return weakref.ref(made)


def _new_group(ranks: list[int]) -> object:
    """A group whose members stand in this order; torch 2.11 can only sort them.

    Raises:
        BackendError: this torch cannot do that.
    """
    if ranks == sorted(ranks):
        return dist.new_group(ranks)
    if "sort_ranks" not in inspect.signature(dist.new_group).parameters:
        raise BackendError(
            f"ranks {ranks}: torch {torch.__version__} sorts the ranks of a group, which would mix "
            "up the blocks of this mesh; use torch 2.13, or a mesh whose devices ascend"
        )
    return dist.new_group(ranks, sort_ranks=False)


# What a move asks of PyTorch: tensors as bytes, messages, reductions.


# The names of old versions of torch, which new ones warn of, are for those that lack the new.
_reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor

_OPS = {
    ReduceOp.SUM: dist.ReduceOp.SUM,
    ReduceOp.AVG: dist.ReduceOp.SUM,  # divided afterwards: Gloo has no average
    ReduceOp.PRODUCT: dist.ReduceOp.PRODUCT,
    ReduceOp.MIN: dist.ReduceOp.MIN,
    ReduceOp.MAX: dist.ReduceOp.MAX,
}
_OPS_OF_BOOL = {**_OPS, ReduceOp.SUM: dist.ReduceOp.MAX, ReduceOp.PRODUCT: dist.ReduceOp.MIN}
"""Libraries reduce truth values as bytes: true plus true must stay true."""


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a contiguous tensor: what a library moves without a look at its type.

    Without elements, or with one, a tensor is contiguous whatever its strides are, those of an
    expanded gradient too, and views keep them.
    """
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def exchange(
    sent: Sequence[tuple[int, torch.Tensor]],
    taken: Sequence[tuple[int, torch.Tensor]],
    group: dist.ProcessGroup,
) -> None:
    """Send tensors to ranks and take others from ranks, all at once; empty ones do not travel.

    Gloo's messages are from and to the host's memory; its collectives see to that themselves.
    """
    host = dist.get_backend(group) == dist.Backend.GLOO
    outgoing = [(rank, data.cpu() if host else data) for rank, data in sent if data.numel()]
    incoming = [(rank, data.cpu() if host else data, data) for rank, data in taken if data.numel()]
    operations = [
        *(dist.P2POp(dist.isend, data, rank, group) for rank, data in outgoing),
        *(dist.P2POp(dist.irecv, data, rank, group) for rank, data, _ in incoming),
    ]
    if operations:
        for work in dist.batch_isend_irecv(operations):
            work.wait()
    for _, found, data in incoming:
        if found is not data:
            data.copy_(found)


def gather(blocks: torch.Tensor, block: torch.Tensor, group: dist.ProcessGroup) -> None:
    """Put the blocks of a group's members one after the other."""
    _all_gather(as_bytes(blocks), as_bytes(block), group)


def reduce_all(found: torch.Tensor, op: ReduceOp, group: dist.ProcessGroup) -> None:
    """Reduce over a group in place.

    Raises:
        BackendError: the library does not reduce this element type.
    """
    dist.all_reduce(found, _op(found, op, group), group)


def reduce_parts(
    found: torch.Tensor, parts: torch.Tensor, op: ReduceOp, group: dist.ProcessGroup, *, own: bool
) -> None:
    """Reduce the parts over a group, each member its own into ``found``.

    ``own``: the parts may be overwritten.  Gloo reduces all parts of a copy: what it may overwrite
    needs none.

    Raises:
        BackendError: the library does not reduce this element type.
    """
    how = _op(found, op, group)
    if own and dist.get_backend(group) == dist.Backend.GLOO:
        dist.all_reduce(parts, how, group)
        found.view(-1).copy_(parts.view(group.size(), -1)[group.rank()])
    else:
        _reduce_scatter(found.view(-1), parts.view(-1), how, group)


def _op(tensor: torch.Tensor, op: ReduceOp, group: dist.ProcessGroup) -> Any:
    if tensor.dtype is torch.int16:
        text = "reduces no int16; choose another dtype, or --backend reference"
        raise BackendError(f"backend {dist.get_backend(group)}: {text}")
    return (_OPS_OF_BOOL if tensor.dtype is torch.bool else _OPS)[op]


# Collectives over one mesh axis whose members have parts of different lengths.
# The pack buffer of a reduce-scatter is padded here to the longest part for each member.


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
