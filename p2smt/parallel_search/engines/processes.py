"""The engine of one machine: worker processes, what they share, and how each is fed."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, MutableSequence, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait as wait_for_ends
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from multiprocessing.queues import SimpleQueue
from typing import Any

from p2smt.errors import ExecutionError, InputError
from p2smt.parallel_search.engine import Ended, WorkerDied, solve_subproblem
from p2smt.parallel_search.subproblem import Closure, Member, OverBudget, Space, SubproblemTask

# The engine of several processes on this machine, by :mod:`concurrent.futures`.


_STARTS = 3


class Processes:
    """So many worker processes, each with one cube at a time.

    Raises:
        InputError: fewer than one.
    """

    def __init__(self, space: Space, processes: int) -> None:
        if processes < 1:
            raise InputError(f"processes {processes}", "must be at least 1")
        self._space, self._count = space, processes
        self._worker_slots: list[WorkerSlot] = []
        self._ended: queue.SimpleQueue[tuple[WorkerSlot, Future[Worked]]] = queue.SimpleQueue()

    @property
    def workers(self) -> int:
        """The number of processes."""
        return self._count

    @property
    def ahead(self) -> int:
        """None: a process could not give back what waits at it."""
        return 0

    def submit(self, task: SubproblemTask) -> None:
        """Hand a cube to a process that has none."""
        lane = next(lane for lane in self._worker_slots if lane.task is None)
        future = lane.submit(task)
        future.add_done_callback(lambda done: self._ended.put((lane, done)))

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        """What came back; the exception of a space is raised here."""
        found: list[Ended] = []
        try:
            found.append(self._result(*self._ended.get(timeout=max(0.0, timeout_s))))
            while True:
                found.append(self._result(*self._ended.get_nowait()))
        except queue.Empty:
            if not found:
                for lane in self._worker_slots:
                    lane.look()
            return found

    def tell(self, cutoff: Member) -> None:
        """Write the cutoff where all processes see it."""
        self._shared_cutoff.tell(cutoff)

    def stop(self) -> None:
        """Write that the search has ended."""
        self._shared_cutoff.stop()

    def __enter__(self) -> Processes:
        """Start all processes, and wait until they are set up.

        Raises:
            ExecutionError: they end before.
        """
        start_tracker()
        memory = new_board(NotedProcesses())
        self._shared_cutoff, space = BoardWriter(memory), pickle.dumps(self._space)
        try:
            for number in range(self._count):
                self._worker_slots.append(WorkerSlot(space, memory, f"process {number + 1}"))
            starts = [lane.start() for lane in self._worker_slots]
            for lane, start in zip(self._worker_slots, starts, strict=True):
                _await(lane, start)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End all processes."""
        _end(self._worker_slots)
        self._worker_slots.clear()
        self._ended = queue.SimpleQueue()  # what came late holds its lane
        gc.collect()  # semaphores of the pools end with them, also where this process ends at once

    def _result(self, lane: WorkerSlot, future: Future[Worked]) -> Ended:
        task, lane.task = lane.task, None
        if task is None:
            raise AssertionError("a process brought a cube that it was not given")
        try:
            return future.result()
        except BrokenExecutor:
            lane.renew()
            return WorkerDied(task.cube)


def _end(lanes: Sequence[WorkerSlot]) -> None:
    for lane in lanes:
        lane.kill()
    for lane in lanes:
        lane.join()


def _await(lane: WorkerSlot, start: Future[int]) -> None:
    """Wait until a process is set up; one that dies before is replaced, twice."""
    for again in range(_STARTS):
        try:
            (start if again == 0 else lane.start()).result()
            return
        except BrokenExecutor:
            lane.renew()
    raise ExecutionError(
        "the worker processes end before they start; a script that searches with several "
        'must do so below `if __name__ == "__main__":`'
    )


# One worker process after another: a pool of one, made anew when its process dies.
# A pool of several would lose the cubes of all its processes with the first that dies, and could
# not say whose cube it was; and it hands out more tasks than it has processes.


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


class WorkerSlot:
    """A worker for one cube at a time."""

    def __init__(self, space: bytes, shared_cutoff: MutableSequence[int], name: str) -> None:
        self._arguments = (space, shared_cutoff, name)
        self._context, self._pool = self._new_pool()
        self._future: Future[Worked] | None = None
        self._ended_s: float | None = None
        self.task: SubproblemTask | None = None

    def start(self) -> Future[int]:
        """Start the process: its id, once it is set up."""
        return _unsignalled(lambda: self._pool.submit(ready))

    def submit(self, task: SubproblemTask) -> Future[Worked]:
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


# What the coordinator tells its worker processes: memory that all see, and only it writes.
# Without locks: a worker that is killed would leave one held.  What is read while it is written
# fails its checksum, and counts as not yet there.
#
# Layout: a byte that says to stop; then, from byte 8 on, number of the message, length of the text
# and CRC-32 over both and the text (each 8 bytes), and the text, a member in JSON.


_HEAD = struct.Struct("<QQQ")
_AT = 8
_TEXT_AT = _AT + _HEAD.size
SIZE = 1 << 16
"""Bytes; a member that is too long for them is not told, which costs time only."""


def new_board(context: BaseContext) -> MutableSequence[int]:
    """Memory for a board, zero; it goes to a worker among the arguments of its process."""
    memory: MutableSequence[int] = context.RawArray("B", SIZE)
    return memory


class BoardWriter:
    """The coordinator's side."""

    def __init__(self, memory: MutableSequence[int]) -> None:
        self._memory, self._number = memory, 0

    def tell(self, cutoff: Member) -> None:
        """Write a new cutoff."""
        text = json.dumps([cutoff.value, cutoff.tie, cutoff.witness]).encode()
        if _TEXT_AT + len(text) <= SIZE:
            self._number += 1
            check = _check(self._number, text)
            message = _HEAD.pack(self._number, len(text), check) + text
            self._memory[_AT : _AT + len(message)] = message

    def stop(self) -> None:
        """Write that the search has ended."""
        self._memory[0] = 1


class CutoffReader:
    """A worker's side: its signals."""

    def __init__(self, memory: MutableSequence[int]) -> None:
        self._memory, self._number = memory, 0
        self._cutoff: Member | None = None

    def stopped(self) -> bool:
        """Whether the search has ended."""
        return bool(self._memory[0])

    def cutoff(self) -> Member | None:
        """The last cutoff that was read whole."""
        number, length, check = _HEAD.unpack(bytes(self._memory[_AT:_TEXT_AT]))
        if number != self._number:
            text = bytes(self._memory[_TEXT_AT : _TEXT_AT + length])
            if _check(number, text) == check:
                value, tie, witness = json.loads(text)
                self._number, self._cutoff = number, Member(value, tuple(tie), witness)
        return self._cutoff


def _check(number: int, text: bytes) -> int:
    return zlib.crc32(text, zlib.crc32(struct.pack("<QQ", number, len(text))))


# A worker process: it has its own space, reads the board, and ends with its parent.
# Ctrl-C at a terminal reaches all processes; what follows from it is the coordinator's to say.  A
# coordinator that is killed says nothing: so each worker watches it, from before it loads anything
# that takes long.


_ORPHANED = 1


@dataclass(slots=True)
class _Worker:
    """What this process is; the space is loaded when it is first needed."""

    pickled: bytes
    signals: CutoffReader
    name: str
    loaded: Space | None = None

    def space(self) -> Space:
        if self.loaded is None:
            self.loaded = pickle.loads(self.pickled)
        return self.loaded


_workers: list[_Worker] = []
"""One, once it is set up: a pool calls functions by name, and hands on nothing that it set up."""


def set_up(space: bytes, shared_cutoff: MutableSequence[int], name: str) -> None:
    """Become a worker for a space, which comes pickled from the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    _workers.append(_Worker(space, CutoffReader(shared_cutoff), name))


def ready() -> int:
    """The worker's process id, once it has its space.

    Raises:
        Exception: what loading the space raises.
    """
    _workers[0].space()
    return os.getpid()


def work(task: SubproblemTask) -> Closure | OverBudget:
    """Close a cube, in a worker.

    Raises:
        Exception: of the space; one that would not come out of another process whole is worded
            as a RuntimeError.
    """
    worker = _workers[0]
    try:
        return solve_subproblem(worker.space(), task, worker.signals, worker.name)
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


# Python's tracker of semaphores, which outlives a coordinator that is killed.
# It then frees what that has left, which is its work, and would print a warning of leaks into the
# terminal of a user who has just killed a search.


_RULE = "ignore:resource_tracker:UserWarning"


def start_tracker() -> None:
    """Start the tracker, if it does not run yet, so that it frees what is left without a word.

    It is a process of its own, which is started with the warning options of this one.
    """
    sys.warnoptions.append(_RULE)
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(_RULE)
