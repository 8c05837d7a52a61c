"""This process as one rank among those that torchrun, srun or somebody's script started."""

from __future__ import annotations

import threading

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.job import Job
from p2smt.runtime.options import RankReport, RunOptions, in_short
from p2smt.runtime.place import Place
from p2smt.runtime.worker import run_worker


def run_joined(job: Job, options: RunOptions, place: Place) -> list[RankReport] | None:
    """Run a job as one rank; rank 0 gets the reports of all.

    Raises:
        BackendError, ExecutionError: as for :func:`p2smt.runtime.worker.run_worker`; also if
            the connection to another rank is lost, or the time limit is reached.
    """
    doing = ["its start"]
    outcome: list[list[RankReport] | Exception | None] = []

    def work() -> None:
        try:
            outcome.append(run_worker(job, options, place, lambda text: doing.append(text)))
        except Exception as error:  # handed to the caller's thread
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(options.time_limit_s)
    where = f"rank {place.rank}"
    if not outcome:
        text = f"no result within {options.time_limit_s:g} s (it was at {doing[-1]})"
        raise ExecutionError(f"{where}: {text}")
    result = outcome[0]
    if isinstance(result, BackendError | ExecutionError | InputError):
        raise result
    if isinstance(result, Exception):
        text = f"{type(result).__name__} during {doing[-1]}: {in_short(result)}"
        raise ExecutionError(f"{where}: {text}")
    return result
