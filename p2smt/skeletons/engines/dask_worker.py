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
from typing import TYPE_CHECKING

from p2smt.skeletons.closing import close_cube
from p2smt.skeletons.cube import Closure, Member, OverBudget
from p2smt.skeletons.engines.heard import heard
from p2smt.skeletons.engines.versions import worker_versions
from p2smt.skeletons.space import CubeTask, Space

if TYPE_CHECKING:
    from distributed.worker_state_machine import TaskState

Worked = Closure | OverBudget
_RESULT = "p2smt-result"
_MOST_BYTES = 1 << 16


def closed_there(space: bytes, task: CubeTask, search: str, client: str) -> Worked:
    """Close a cube of a search, on a worker; ``client``: that of its coordinator."""
    from distributed import get_worker

    worker = get_worker()
    key = str(worker.get_current_task())
    signals = _Signals(search, key, worker.state.tasks)
    ended = close_cube(_unpacked(space), task, signals, f"{socket.gethostname()}:{os.getpid()}")
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
