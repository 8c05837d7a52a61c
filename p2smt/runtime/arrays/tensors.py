"""What a move asks of PyTorch: tensors as bytes, messages, reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from p2smt.arrays.element import ReduceOp
from p2smt.errors import BackendError

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
