"""This process as one rank among those that torchrun, srun or somebody's script started."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from p2smt.errors import BackendError, ExecutionError, InputError
from p2smt.runtime.payload import RankReport, RunOptions, in_short
from p2smt.runtime.process_groups import Tell
from p2smt.runtime.ranks.place import Place
from p2smt.runtime.ranks.worker import run_worker, start_limit
from p2smt.runtime.work import Work
from p2smt.units import plain

_RETRY_S = 0.2


def run_joined(work: Work, options: RunOptions, place: Place) -> list[RankReport] | None:
    """Run work as one rank; rank 0 gets the reports of all.

    Raises:
        BackendError, ExecutionError: as for :func:`p2smt.runtime.ranks.worker.run_worker`; also if
            the connection to another rank is lost, or the time limit is reached.
    """

    def run(tell: Tell) -> list[RankReport] | None:
        _reach_rank_0(place, start_limit(options).total_seconds())
        return run_worker(work, options, place, tell)

    return within_limit(f"rank {place.rank}", options.time_limit_s, run)


def within_limit(
    where: str, limit_s: float, rank: Callable[[Tell], list[RankReport] | None]
) -> list[RankReport] | None:
    """What a rank finds, run in a thread of its own that is left behind after the limit.

    Raises:
        BackendError, ExecutionError, InputError: the rank's; any other fault is an ExecutionError.
    """
    doing = ["its start"]
    outcome: list[list[RankReport] | Exception | None] = []

    def run() -> None:
        try:
            outcome.append(rank(lambda text: doing.append(text)))
        except Exception as error:  # handed to the caller's thread
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(limit_s)
    if not outcome:
        text = f"no result within {plain(limit_s, 6)} s (it was at {doing[-1]})"
        raise ExecutionError(f"{where}: {text}")
    result = outcome[0]
    if isinstance(result, BackendError | ExecutionError | InputError):
        raise result
    if isinstance(result, Exception):
        text = f"{type(result).__name__} during {doing[-1]}: {in_short(result)}"
        raise ExecutionError(f"{where}: {text}")
    return result


def _reach_rank_0(place: Place, limit_s: float) -> None:
    """Wait until the store can be reached: torch's own attempts may take twice their limit."""
    end = time.monotonic() + limit_s
    while place.listen_fd is None:
        try:
            left_s = max(0.1, end - time.monotonic())
            socket.create_connection((place.host, place.port), left_s).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                where = f"{place.host}:{place.port} ({error.strerror or error})"
                text = f"rank 0 did not answer within {plain(limit_s, 6)} s at {where}"
                raise ExecutionError(f"rank {place.rank}: {text}") from None
            time.sleep(_RETRY_S)
