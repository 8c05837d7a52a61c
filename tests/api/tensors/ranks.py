"""Runs the checks of ``cases`` on real processes over Gloo.

``python -m tests.api.tensors.ranks RANKS OUT NAME..``: a rank whose check fails prints its
traceback, and the exit code is not 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch.distributed as dist

from tests.api.tensors import cases, failing, shards
from tests.runtime.forked import fork_ranks, join

CASES = {**cases.CASES, **shards.CASES, **failing.CASES}


def run_rank(rank: int, ranks: int, out: Path, names: Sequence[str]) -> None:
    for name in names:
        if not dist.is_initialized():  # some cases end the job
            join(rank, ranks, out / f"{name}-store")
        marks = out / f"{name}-marks"
        marks.mkdir(exist_ok=True)
        os.environ["MARKS"] = str(marks)
        CASES[name]()


if __name__ == "__main__":
    ranks, folder, names = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    sys.exit(fork_ranks(ranks, lambda rank: run_rank(rank, ranks, folder, names)))
