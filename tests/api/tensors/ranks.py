"""Runs the checks of ``cases`` on real processes over Gloo.

``python -m tests.api.tensors.ranks RANKS OUT NAME..``: a rank whose check fails prints its
traceback, and the exit code is not 0.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from tests.api.tensors import cases, failing, shards

CASES = {**cases.CASES, **shards.CASES, **failing.CASES}


def main(ranks: int, out: Path, names: Sequence[str]) -> int:
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            os._exit(run_rank(rank, ranks, out, names))
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def run_rank(rank: int, ranks: int, out: Path, names: Sequence[str]) -> int:
    try:
        torch.set_num_threads(1)
        for name in names:
            if not dist.is_initialized():  # some cases end the job
                join(rank, ranks, out / f"{name}-store")
            marks = out / f"{name}-marks"
            marks.mkdir(exist_ok=True)
            os.environ["MARKS"] = str(marks)
            CASES[name]()
        if dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def join(rank: int, ranks: int, store: Path) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(minutes=10),
    )


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
