"""This process as one of the ranks that mpirun (or srun with PMI) started."""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime import mpi
from p2smt.runtime.payload import RankReport, RunOptions, report_of
from p2smt.runtime.process_groups import GroupCache, Site, Tell
from p2smt.runtime.ranks.joined import within_limit
from p2smt.runtime.ranks.worker import report_work
from p2smt.runtime.work import Work
from p2smt.units import counted

_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""Where launchers say how many ranks they started."""
_VERSION = re.compile(r"(.*?)\s*(?:Version\s*:|v)?\s*([0-9]+(?:\.[0-9]+)+)")


def run_mpi_rank(work: Work, options: RunOptions) -> list[RankReport] | None:
    """Run work as one rank of MPI's; rank 0 gets the reports of all.

    Raises:
        InputError: there are not as many ranks as the work has; rank 0 alone says so.
        BackendError: MPI or mpi4py is missing, or mpirun is of another MPI.
        ExecutionError: the rank failed, or the time limit is reached.
    """
    world = mpi.mpi().COMM_WORLD
    rank, ranks = world.rank, world.size
    started = next((int(os.environ[name]) for name in _SIZES if name in os.environ), ranks)
    if started != ranks:
        text = f"mpirun started {counted(started, 'rank')}, of another MPI than {_library()}"
        raise BackendError(f"backend mpi: {text}, which mpi4py finds; put the latter's on PATH")
    if ranks != work.ranks:
        mpi.finish()
        if rank:
            return None  # a rank that fails before the first has spoken would end it unheard
        given = f"{counted(ranks, 'rank')} that mpirun started"
        raise InputError(given, f"the plan is for {work.ranks}", f"start {work.ranks}")

    def run(tell: Tell) -> list[RankReport] | None:
        return _run(work, options, Site(rank, ranks, torch.device("cpu"), GroupCache(ranks)), tell)

    return within_limit(f"rank {rank}", options.time_limit_s, run)


def _run(work: Work, options: RunOptions, site: Site, tell: Tell) -> list[RankReport] | None:
    torch.set_num_threads(1)
    mpi.register()
    dist.init_process_group(mpi.NAME, store=HashStore(), rank=site.rank, world_size=site.ranks)
    report = report_work(work, options, site, tell)
    report.machine["mpi"] = _library()
    tell("handing in the report")
    found = mpi.mpi().COMM_WORLD.gather(json.dumps(asdict(report)))
    dist.destroy_process_group()
    mpi.finish()
    return found and [report_of(json.loads(text)) for text in found]


def _library() -> str:
    """The name and version of the MPI."""
    text = mpi.mpi().Get_library_version()
    found = _VERSION.match(text)
    return f"{found[1]} {found[2]}" if found else text[:40]


def main() -> None:
    """Run the work of a file on this rank; rank 0 writes the reports, any rank its error."""
    folder = Path(sys.argv[1])
    work, options = pickle.loads((folder / "work").read_bytes())
    try:
        reports = run_mpi_rank(work, options)
    except (BackendError, ExecutionError, InputError) as error:
        kind = "backend" if isinstance(error, BackendError) else "execution"
        with (folder / "errors").open("a") as errors:
            errors.write(f"{kind} {' '.join(str(error).split())}\n")
        os._exit(1)  # without MPI_Finalize, which waits for all
    if reports is not None:
        (folder / "reports").write_bytes(pickle.dumps(reports))


if __name__ == "__main__":
    main()
