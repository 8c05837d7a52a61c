"""Blocks and whole arrays of ranks, differentiable: what gradcheck puts around a redistribution."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.distributed as dist

from p2smt.resharding.states import ArrayState, Frame
from p2smt.runtime.arrays.block_values import block_of, part_of


def index_of(frame: Frame, state: ArrayState, rank: int) -> tuple[Any, ...]:
    """Where a rank's block lies in (a size for each partial digit, the array's shape)."""
    block = block_of(frame, state, rank)
    cuts = (slice(a, a + n) for a, n in zip(block.first, block.shape, strict=True))
    return (*part_of(frame, state, rank), *cuts)


def stacked_shape(frame: Frame, state: ArrayState) -> tuple[int, ...]:
    return (*(frame.digits[digit].size for digit in state.partial), *frame.shape)


def assembled(frame: Frame, state: ArrayState, local: torch.Tensor) -> torch.Tensor:
    """All contributions, from every rank's block; blocks that several have must be equal."""
    blocks: list[torch.Tensor] = [local] * dist.get_world_size()
    dist.all_gather_object(blocks, local.detach().clone())
    whole = torch.full(stacked_shape(frame, state), torch.nan, dtype=local.dtype)
    for rank, block in enumerate(blocks):
        index = index_of(frame, state, rank)
        known = whole[index]
        assert bool((known.isnan() | (known == block)).all()), f"rank {rank} has another block"
        whole[index] = block
    assert not bool(whole.isnan().any())
    return whole


class _Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, whole: torch.Tensor, frame: Frame, state: ArrayState) -> torch.Tensor:
        ctx.frame, ctx.state = frame, state
        return whole[index_of(frame, state, dist.get_rank())].clone(
            memory_format=torch.contiguous_format
        )

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """The gradient is replicated over what was partial: each contribution has its own."""
        blocks = ArrayState(ctx.state.dims, (), ctx.state.order)
        whole = assembled(ctx.frame, blocks, gradient)
        return whole.expand(stacked_shape(ctx.frame, ctx.state)).clone(), None, None


class _Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: torch.Tensor, frame: Frame, state: ArrayState) -> torch.Tensor:
        ctx.frame, ctx.state = frame, state
        whole = assembled(frame, state, local)
        return whole.sum(tuple(range(len(state.partial)))) if state.partial else whole

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        blocks = ArrayState(ctx.state.dims, (), ctx.state.order)
        return gradient[index_of(ctx.frame, blocks, dist.get_rank())], None, None


def split(whole: torch.Tensor, frame: Frame, state: ArrayState) -> torch.Tensor:
    """This rank's block."""
    return cast(torch.Tensor, _Split.apply(whole, frame, state))  # type: ignore[no-untyped-call]


def joined(local: torch.Tensor, frame: Frame, state: ArrayState) -> torch.Tensor:
    """The whole array, sums made."""
    return cast(torch.Tensor, _Joined.apply(local, frame, state))  # type: ignore[no-untyped-call]
