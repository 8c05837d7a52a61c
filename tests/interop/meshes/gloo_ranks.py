"""Runs exported modules for torch.distributed on real processes over Gloo.

``python -m tests.interop.meshes.gloo_ranks RANKS CASES OUT``: CASES is a JSON list of {module,
name, elements}, OUT a folder for the results, ``case.rank.npy``.  All ranks are forked from here,
so torch is loaded once.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from tests.interop.meshes.modules import load
from tests.interop.meshes.payloads import payload


def main(ranks: int, cases: list[dict[str, Any]], out: Path) -> int:
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            os._exit(run_rank(rank, ranks, cases, out))
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def run_rank(rank: int, ranks: int, cases: list[dict[str, Any]], out: Path) -> int:
    try:
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", init_method=f"file://{out}/store", rank=rank, world_size=ranks
        )
        known: dict[str, Any] = {}
        for number, case in enumerate(cases):
            path = case["module"]
            if path not in known:
                known[path] = load(path)
                known[path].make_groups()
            tensor = torch.from_numpy(payload(number, rank, case["elements"]))
            result = getattr(known[path], case["name"])(tensor)
            if result is not None:
                np.save(out / f"{number}.{rank}.npy", result.numpy())
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    folder = Path(sys.argv[3])
    sys.exit(main(int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), folder))
