"""An example for the test cluster: times one all-reduce over all ranks.  Started by torchrun."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

PAYLOAD_BYTES = 8 * 2**20

if __name__ == "__main__":
    dist.init_process_group("gloo")
    data = torch.ones(PAYLOAD_BYTES // 4)
    for _ in range(2):  # the first one sets up connections
        dist.barrier()
        start_s = time.perf_counter()
        dist.all_reduce(data)
        taken_s = torch.tensor([time.perf_counter() - start_s])
    # The slowest rank counts: one that hears late that the barrier is over starts its clock late.
    dist.all_reduce(taken_s, op=dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, 8 MiB each: all-reduce in {taken_s.item():.3f} s")
    dist.destroy_process_group()
