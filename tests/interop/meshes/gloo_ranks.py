"""Runs exported modules for torch.distributed on real processes over Gloo.

``python -m tests.interop.meshes.gloo_ranks RANKS CASES OUT``: CASES is a JSON list of {module,
name, elements}, OUT a folder for the results, ``case.rank.npy``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.interop.meshes.payloads import payload
from tests.pages import script
from tests.runtime.forked import fork_ranks, join


def run_rank(rank: int, ranks: int, cases: list[dict[str, Any]], out: Path) -> None:
    join(rank, ranks, out / "store")
    known: dict[str, Any] = {}
    for number, case in enumerate(cases):
        path = case["module"]
        if path not in known:
            known[path] = script(Path(path))
            known[path].make_groups()
        tensor = torch.from_numpy(payload(number, rank, case["elements"]))
        result = getattr(known[path], case["name"])(tensor)
        if result is not None:
            np.save(out / f"{number}.{rank}.npy", result.numpy())


if __name__ == "__main__":
    ranks, folder = int(sys.argv[1]), Path(sys.argv[3])
    given = json.loads(Path(sys.argv[2]).read_text())
    sys.exit(fork_ranks(ranks, lambda rank: run_rank(rank, ranks, given, folder)))
