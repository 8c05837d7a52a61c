"""Uses an exported device mesh with DTensor on real processes over Gloo.

``python -m tests.interop.meshes.dtensor_ranks RANKS MODULE OUT``: writes what each rank found to
``OUT/rank.json``: its coordinate, and whether tensors came back whole from every placement.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Placement, Replicate, Shard, distribute_tensor

from tests.pages import script
from tests.runtime.forked import fork_ranks, join


def run_rank(rank: int, ranks: int, module: str, out: Path) -> None:
    join(rank, ranks, out / "store")
    mesh = script(Path(module)).device_mesh("cpu")
    found = {
        "coordinate": mesh.get_coordinate(),
        "names": mesh.mesh_dim_names,
        "whole": comes_back(mesh),
    }
    (out / f"{rank}.json").write_text(json.dumps(found))


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
    ranks, path, folder = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    sys.exit(fork_ranks(ranks, lambda rank: run_rank(rank, ranks, path, folder)))
