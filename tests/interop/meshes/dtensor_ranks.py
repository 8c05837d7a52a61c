"""Uses an exported device mesh with DTensor on real processes over Gloo.

``python -m tests.interop.meshes.dtensor_ranks RANKS MODULE OUT``: writes what each rank found to
``OUT/rank.json``: its coordinate, and whether tensors came back whole from every placement.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard, distribute_tensor

from tests.interop.meshes.modules import load


def main(ranks: int, module: str, out: Path) -> int:
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            os._exit(run_rank(rank, ranks, module, out))
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def run_rank(rank: int, ranks: int, module: str, out: Path) -> int:
    try:
        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", init_method=f"file://{out}/store", rank=rank, world_size=ranks
        )
        mesh = load(module).device_mesh("cpu")
        found = {
            "coordinate": mesh.get_coordinate(),
            "names": mesh.mesh_dim_names,
            "whole": comes_back(mesh),
        }
        (out / f"{rank}.json").write_text(json.dumps(found))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def comes_back(mesh: DeviceMesh) -> bool:
    """Whether a tensor is whole again from every placement, and after a change to the next."""
    given = torch.arange(2 * mesh.size() * 3).reshape(-1, 3)
    kinds: list[Placement] = [Shard(0), Replicate()]
    every = [*itertools.product(kinds, repeat=mesh.ndim), (Shard(1),) * mesh.ndim]
    right = True
    for before, after in zip(every, [*every[1:], every[0]], strict=True):
        one = distribute_tensor(given, mesh, before)
        right &= bool((one.full_tensor() == given).all())
        right &= bool((one.redistribute(mesh, after).full_tensor() == given).all())
    return right


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
