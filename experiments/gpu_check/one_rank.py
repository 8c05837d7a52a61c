"""Every collective on a communicator of one rank: that the library itself works on this device.

    python -m experiments.gpu_check.one_rank BACKEND DEVICE

A process of its own, so that a library that hangs can be ended.  Prints a JSON list of rows.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist

ELEMENTS = 10_007
TYPES = ("float32", "float16", "bfloat16", "int64")


def collectives() -> dict[str, Callable[[torch.Tensor, torch.Tensor], object]]:
    """By name: from an input to an output that does not hold it yet."""

    def in_place(call: Callable[[torch.Tensor], object]) -> Callable[..., object]:
        def run(taken: torch.Tensor, found: torch.Tensor) -> None:
            found.copy_(taken)
            call(found)

        return run

    return {
        "all-reduce": in_place(dist.all_reduce),
        "reduce": in_place(lambda tensor: dist.reduce(tensor, 0)),
        "broadcast": in_place(lambda tensor: dist.broadcast(tensor, 0)),
        "reduce-scatter": lambda taken, found: dist.reduce_scatter_tensor(found, taken),
        "all-gather": lambda taken, found: dist.all_gather_into_tensor(found, taken),
        "all-to-all": lambda taken, found: dist.all_to_all_single(found, taken),
    }


def rows(device: torch.device) -> Iterator[dict[str, str]]:
    """What became of each collective in each type: of one contribution every result is itself."""
    for kind in TYPES:
        for name, call in collectives().items():
            dtype: torch.dtype = getattr(torch, kind)
            taken = (torch.arange(ELEMENTS) % 97).to(device, dtype)
            found = torch.full_like(taken, 101)
            try:
                call(taken, found)
                wrong = int((found != taken).sum())
                said = f"{wrong} of {ELEMENTS} elements are wrong" if wrong else ""
            except (dist.DistError, RuntimeError, ValueError) as error:
                said = " ".join(str(error).split())[:300]
            yield {"case": name, "data_type": kind, "reason": said}


def main(backend: str, device_name: str) -> int:
    """Make the communicator, print the rows."""
    device = torch.device(device_name)
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)
    with tempfile.TemporaryDirectory() as folder:
        store = f"file://{folder}/store"
        dist.init_process_group(backend, init_method=store, rank=0, world_size=1)
        print(json.dumps(list(rows(device))))
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
