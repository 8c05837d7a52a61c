"""One worker process after another: a pool of one, made anew when its process dies.

A pool of several would lose the cubes of all its processes with the first that dies, and could
not say whose cube it was; and it hands out more tasks than it has processes.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, MutableSequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from multiprocessing.connection import wait as wait_for_ends
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.queues import SimpleQueue
from typing import Any

from p2smt.skeletons.cube import Closure, OverBudget
from p2smt.skeletons.engines.process_worker import ready, set_up, work
from p2smt.skeletons.space import CubeTask

Worked = Closure | OverBudget
_NOTICED_S = 1.0
"""A pool that has not noticed the end of its process for so long is stuck."""
_END_S = 5.0


class NotedProcesses(SpawnContext):
    """Makes what the context of that name does, and knows its last process and queue."""

    def __init__(self) -> None:
        super().__init__()
        self.process: SpawnProcess | None = None
        self.results: SimpleQueue[Any] | None = None

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override] # noqa: N802
        """A process; a class in the base, called the same way."""
        self.process = SpawnProcess(*args, **kwargs)
        return self.process

    def SimpleQueue(self) -> SimpleQueue[Any]:  # noqa: N802
        """A queue: a pool has one, for results."""
        self.results = super().SimpleQueue()
        return self.results

    def ended(self, timeout_s: float = 0.0) -> bool:
        """Whether the process, once begun, has ended; waits so long for it."""
        if self.process is None or self.process.pid is None:
            return False
        return bool(wait_for_ends([self.process.sentinel], timeout_s))


class Lane:
    """A worker for one cube at a time."""

    def __init__(self, space: bytes, board: MutableSequence[int], name: str) -> None:
        self._arguments = (space, board, name)
        self._context, self._pool = self._new_pool()
        self._future: Future[Worked] | None = None
        self._ended_s: float | None = None
        self.task: CubeTask | None = None

    def start(self) -> Future[int]:
        """Start the process: its id, once it is set up."""
        return _unsignalled(lambda: self._pool.submit(ready))

    def submit(self, task: CubeTask) -> Future[Worked]:
        """Hand out a cube; a process that died idle is replaced first."""
        self.task = task
        try:
            self._future = _unsignalled(lambda: self._pool.submit(work, task))
        except BrokenExecutor:
            self.renew()
            self._future = _unsignalled(lambda: self._pool.submit(work, task))
        return self._future

    def renew(self) -> None:
        """Replace a process that died."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._context, self._pool = self._new_pool()
        self._ended_s = None

    def look(self) -> None:
        """See to it that the end of the process is noticed."""
        if self._future is None or self._future.done() or not self._context.ended():
            return
        now_s = time.monotonic()
        self._ended_s = self._ended_s or now_s
        if now_s - self._ended_s >= _NOTICED_S:
            self._unblock()

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        process = self._context.process
        if process is not None and process.pid is not None:
            process.kill()

    def join(self) -> None:
        """Wait until nothing of this lane is left."""
        self._context.ended(_END_S)
        if self._future is not None and not wait_for([self._future], _NOTICED_S).done:
            self._unblock()
        self._pool.shutdown(wait=True)

    def _unblock(self) -> None:
        """Let a pool that reads a result see that no more of it comes."""
        if self._context.results is not None:
            self._context.results.close()

    def _new_pool(self) -> tuple[NotedProcesses, ProcessPoolExecutor]:
        context = NotedProcesses()
        pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=set_up, initargs=self._arguments
        )
        return context, pool


def _unsignalled(start: Callable[[], Future[Any]]) -> Future[Any]:
    """Start a process that Ctrl-C does not reach, not even before it can ignore it.

    A process inherits which signals are blocked.  One that comes here meanwhile is taken after.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
