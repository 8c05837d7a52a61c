"""A worker process: it has its own space, reads the board, and ends with its parent.

Ctrl-C at a terminal reaches all processes; what follows from it is the coordinator's to say.  A
coordinator that is killed says nothing: so each worker watches it, from before it loads anything
that takes long.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import MutableSequence
from dataclasses import dataclass

from p2smt.skeletons.closing import close_cube
from p2smt.skeletons.cube import Closure, OverBudget
from p2smt.skeletons.engines.board import BoardReader
from p2smt.skeletons.space import CubeTask, Space

_ORPHANED = 1


@dataclass(slots=True)
class _Worker:
    """What this process is; the space is loaded when it is first needed."""

    pickled: bytes
    signals: BoardReader
    name: str
    loaded: Space | None = None

    def space(self) -> Space:
        if self.loaded is None:
            self.loaded = pickle.loads(self.pickled)
        return self.loaded


_workers: list[_Worker] = []  # one, once it is set up


def set_up(space: bytes, board: MutableSequence[int], name: str) -> None:
    """Become a worker for a space, which comes pickled from the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    _workers.append(_Worker(space, BoardReader(board), name))


def ready() -> int:
    """The worker's process id, once it has its space.

    Raises:
        Exception: what loading the space raises.
    """
    _workers[0].space()
    return os.getpid()


def work(task: CubeTask) -> Closure | OverBudget:
    """Close a cube, in a worker.

    Raises:
        Exception: of the space; one that would not come out of another process whole is worded
            as a RuntimeError.
    """
    worker = _workers[0]
    try:
        return close_cube(worker.space(), task, worker.signals, worker.name)
    except Exception as error:
        if _travels(error):
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


def _travels(error: Exception) -> bool:
    """Whether pickling gives an exception back: else it would end the whole pool."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its own methods raise
        return False
    return True


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(_ORPHANED)
