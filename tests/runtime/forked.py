"""Ranks of a job over Gloo, all forked from one process, so that torch is loaded once."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def fork_ranks(ranks: int, work: Callable[[int], None]) -> int:
    """The worst exit code of the ranks; one whose work fails prints its traceback."""
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            os._exit(_run_rank(rank, work))
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def _run_rank(rank: int, work: Callable[[int], None]) -> int:
    try:
        torch.set_num_threads(1)
        work(rank)
        if dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def join(rank: int, ranks: int, store: Path) -> None:
    """Become a rank of the job that meets at a file."""
    limit = timedelta(minutes=10)
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=limit
    )
