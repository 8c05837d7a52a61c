"""What runs on a worker of a Dask cluster: a cube is closed, and its result sent ahead.

Results travel as events of the coordinator's client, which Dask's scheduler forgets an hour after
that has gone; large ones are left to the future alone, since events are kept until then.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.parallel_search.engine import solve_subproblem
from p2smt.parallel_search.journal.record import ABSENT, tool_versions
from p2smt.parallel_search.subproblem import Closure, Member, OverBudget, Space, SubproblemTask

if TYPE_CHECKING:
    from distributed.worker_state_machine import TaskState


Worked = Closure | OverBudget
_RESULT = "p2smt-result"
_MOST_BYTES = 1 << 16


def closed_there(space: bytes, task: SubproblemTask, search: str, client: str) -> Worked:
    """Close a cube of a search, on a worker; ``client``: that of its coordinator."""
    from distributed import get_worker

    worker = get_worker()
    key = str(worker.get_current_task())
    signals = _Signals(search, key, worker.state.tasks)
    ended = solve_subproblem(
        _unpacked(space), task, signals, f"{socket.gethostname()}:{os.getpid()}"
    )
    packed = pickle.dumps(ended)
    if len(packed) <= _MOST_BYTES:
        worker.log_event(client, (_RESULT, key, packed))
    return ended


def result_of(event: object) -> tuple[str, Worked] | None:
    """The key of a future and its result, if an event is one.

    It came over the connection by which Dask sends results as well.
    """
    if isinstance(event, tuple | list) and event[:1] in ((_RESULT,), [_RESULT]):
        return event[1], pickle.loads(event[2])
    return None


@lru_cache(maxsize=2)
def _unpacked(space: bytes) -> Space:
    """The space, made once for all cubes of it: it may keep tables.

    The bytes came with the task, over the connection by which Dask sends code as well.
    """
    unpacked: Space = pickle.loads(space)
    return unpacked


@dataclass(frozen=True, slots=True)
class _Signals:
    """What a worker hears of a search, and whether the scheduler still wants the cube.

    The scheduler drops the cubes of a coordinator that has gone, and Dask marks them in the
    worker's own table of tasks: ``cancelled`` until the thread is through with it.
    """

    search: str
    key: str
    tasks: Mapping[object, TaskState]

    def stopped(self) -> bool:
        """Whether the search has ended, or its coordinator is gone."""
        task = self.tasks.get(self.key)
        return heard(self.search).stopped or task is None or task.state == "cancelled"

    def cutoff(self) -> Member | None:
        """The best cutoff that has arrived."""
        return heard(self.search).cutoff


def greeting() -> dict[str, str]:
    """The versions here; of Ctrl-C in a terminal only the coordinator takes notice from now on."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return worker_versions()


# What is asked of workers: one thread, and the versions of their coordinator.


CLUSTER = "distributed"


def worker_versions() -> dict[str, str]:
    """Of Python, p2smt and the solvers, and of dask.distributed, which talks to its like only."""
    try:
        return tool_versions() | {CLUSTER: version(CLUSTER)}
    except PackageNotFoundError:
        return tool_versions() | {CLUSTER: ABSENT}


def require_same(worker: str, theirs: Mapping[str, str] | BaseException) -> None:
    """Hold a worker's versions, or why it could not tell them, against those of this process.

    Raises:
        InputError: they differ.
    """
    remedy = "install the same on every worker, and start the workers again"
    if isinstance(theirs, BaseException):
        reason = f"{type(theirs).__name__}: {theirs}"
        raise InputError(f"worker {worker}", f"cannot tell its versions ({reason})", remedy)
    ours = worker_versions()
    names = [name for name in ours if theirs.get(name) != ours[name]]
    if names:
        has = ", ".join(f"{name} {theirs.get(name, ABSENT)}" for name in names)
        here = ", ".join(f"{name} {ours[name]}" for name in names)
        raise InputError(f"worker {worker}", f"has {has}, this process {here}", remedy)


def require_one_thread(worker: str, threads: int) -> None:
    """Hold that a worker closes one cube at a time.

    Raises:
        InputError: it has several threads.
    """
    if threads != 1:
        rule = "must have 1: a process closes one cube at a time"
        raise InputError(f"worker {worker} with {threads} threads", rule, "use --nthreads 1")


# What a process that works for searches has heard of each: the newest cutoff, whether it ended.


@dataclass(frozen=True, slots=True)
class Received:
    """The best cutoff that arrived, and whether the search has ended."""

    cutoff: Member | None = None
    stopped: bool = False

    def and_then(self, cutoff: Member | None, stopped: bool) -> Received:
        """Both together: messages may overtake each other, so the better cutoff stays."""
        known = [member for member in (self.cutoff, cutoff) if member is not None]
        return Received(min(known, default=None), self.stopped or stopped)


_NOTHING = Received()
_RECEIVED: dict[str, Received] = {}
"""By the search's name, as messages come to the process while a cube is being closed.  A thread
writes and another reads: each does it in one step."""


def hear(search: str, cutoff: Member | None, stopped: bool) -> None:
    """A message of a search's coordinator."""
    _RECEIVED[search] = heard(search).and_then(cutoff, stopped)


def heard(search: str) -> Received:
    """What is known of a search."""
    return _RECEIVED.get(search, _NOTHING)


def forget(search: str) -> None:
    """The search is over, and its name does not come again."""
    _RECEIVED.pop(search, None)
