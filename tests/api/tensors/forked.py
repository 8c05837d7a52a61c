"""Runs a script on forked ranks, which import PyTorch but once: torchrun for few cores.

``python -m tests.api.tensors.forked --standalone --nproc-per-node=N SCRIPT``.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from importlib import import_module

from tests.runtime.processes import free_port

USED = ("torch.distributed.tensor", "p2smt.api.tensors", "p2smt.resharding.plan_file")
"""Modules that ranks use, imported before there are any."""


def main(script: str, ranks: int) -> int:
    """The first exit code that is not 0, if there is one."""
    for name in USED:
        import_module(name)
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    os.environ.update(told, WORLD_SIZE=str(ranks))
    children = []
    for rank in range(ranks):
        child = os.fork()
        if not child:
            os._exit(run_rank(script, rank))
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)


def run_rank(script: str, rank: int) -> int:
    """Run it as the main program of a rank."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    try:
        runpy.run_path(script, run_name="__main__")
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    (count,) = (word for word in sys.argv if word.startswith("--nproc-per-node="))
    sys.exit(main(sys.argv[-1], int(count.partition("=")[2])))
