"""Every legal step of small frames on Gloo ranks, each compared on every rank.

    python -m tests.runtime.arrays.every_step PORT [MOST]

One process per rank; prints how many steps were right, or ends with an error.  ``MOST``: of each
frame so many steps, by chance.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from p2smt.resharding.endpoints import Ends
from p2smt.resharding.steps import ArrayStep
from p2smt.resharding.types import Uneven
from p2smt.runtime.arrays.array_rank import RankArrays
from p2smt.runtime.arrays.block_values import ArrayValues
from p2smt.runtime.arrays.moves import ArrayGroups, run_steps
from p2smt.runtime.arrays.rank_steps import rank_steps
from tests.oracles.redistributions import all_steps
from tests.runtime.arrays.tools import ends, senders

RANKS = 8
MIXED = (3, 1, 2, 0, 7, 5, 4, 6)


def frames() -> list[Ends]:
    """Frames of eight devices: even with both orders of devices, uneven, and with empty blocks."""
    both = "R,R;P(a);P(b)"
    return [
        ends("a=2,b=4", (16, 24), both, "R,R", dtype="i64"),
        ends("a=2,b=2,c=2", (8, 8), "R,R;P(a);P(b);P(c)", "R,R", dtype="i64"),
        ends(
            "a=2,b=4", (8, 8), both, "R,R", dtype="i32", devices=MIXED, to_devices=tuple(range(8))
        ),
        ends("a=8", (8, 8, 8), "R,R,R", "R,R,R", dtype="u8"),
        ends("a=2,b=4", (9, 7), both, "R,R", dtype="i32", devices=MIXED, uneven=Uneven.NESTED),
        ends("a=2,b=2,c=2", (5, 7), "R,R;P(c)", "R,R", dtype="i64", uneven=Uneven.NESTED),
        ends("a=2,b=4", (3, 2), both, "R,R", dtype="i64", uneven=Uneven.NESTED),
        ends("a=2,b=2,c=2", (1, 3), "R,R;P(b)", "R,R", dtype="i32", uneven=Uneven.NESTED),
        ends("a=8", (5, 2, 3), "R,R,R;P(a)", "R,R,R", dtype="u8", uneven=Uneven.NESTED),
    ]


def chosen_steps(most: int | None) -> list[tuple[Ends, ArrayStep]]:
    """Steps of each frame, the same on every rank."""
    chosen = list[tuple[Ends, ArrayStep]]()
    for found in frames():
        every = [s for one in all_steps(found.frame, found.source.partial).values() for s in one]
        random.Random(0).shuffle(every)
        chosen += [(found, step) for step in every[:most]]
    return chosen


def run_all(rank: int, chosen: Sequence[tuple[Ends, ArrayStep]]) -> int:
    """Steps that were right on this rank; the default process group must exist."""
    groups = ArrayGroups()
    for found, step in chosen:
        groups.make(step.groups(found.frame))
        _run_one(found, step, groups, rank)
    return len(chosen)


def _run_one(found: Ends, step: ArrayStep, groups: ArrayGroups, rank: int) -> None:
    values = ArrayValues.of(found.frame, step.before, step.after, 1)
    arrays = RankArrays(values, rank, torch.device("cpu"))
    make = arrays.exact if step.reduced else arrays.moved
    source = make(step.before)
    own = rank_steps(found.frame, [step], [senders(found.frame, step)], rank)
    after = run_steps(source, own, groups)
    wrong = arrays.wrong_bits(after, make(step.after), step.after)
    wrong = wrong or arrays.wrong_bits(source, make(step.before), step.before)
    if wrong:
        raise SystemExit(f"{step.text(found.frame)} from {step.before}: {wrong}")


def main() -> None:
    """Fork the ranks and wait for them."""
    port, most = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    chosen = chosen_steps(most)  # before the ranks are there, which would each take as long
    children = [pid for rank in range(RANKS) if (pid := _forked(rank, port, chosen))]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    raise SystemExit(max(codes, key=abs))


def _forked(rank: int, port: int, chosen: Sequence[tuple[Ends, ArrayStep]]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        address = f"tcp://127.0.0.1:{port}"
        limit = timedelta(minutes=10)
        dist.init_process_group(
            "gloo", init_method=address, rank=rank, world_size=RANKS, timeout=limit
        )
        count = run_all(rank, chosen)
        dist.barrier()
        if rank == 0:
            print(f"{count} steps right", flush=True)
        code = 0
    except SystemExit as wrong:
        print(wrong, file=sys.stderr, flush=True)
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
