"""The engine of several processes on this machine, by :mod:`concurrent.futures`."""

from __future__ import annotations

import gc
import pickle
import queue
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future

from p2smt.errors import ExecutionError, InputError
from p2smt.skeletons.cube import Member
from p2smt.skeletons.engine import Ended, WorkerDied
from p2smt.skeletons.engines.board import BoardWriter, new_board
from p2smt.skeletons.engines.lane import Lane, NotedProcesses, Worked
from p2smt.skeletons.engines.tracker import start_tracker
from p2smt.skeletons.space import CubeTask, Space

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
        self._lanes: list[Lane] = []
        self._ended: queue.SimpleQueue[tuple[Lane, Future[Worked]]] = queue.SimpleQueue()

    @property
    def workers(self) -> int:
        """The number of processes."""
        return self._count

    @property
    def ahead(self) -> int:
        """None: a process could not give back what waits at it."""
        return 0

    def submit(self, task: CubeTask) -> None:
        """Hand a cube to a process that has none."""
        lane = next(lane for lane in self._lanes if lane.task is None)
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
                for lane in self._lanes:
                    lane.look()
            return found

    def tell(self, cutoff: Member) -> None:
        """Write the cutoff where all processes see it."""
        self._board.tell(cutoff)

    def stop(self) -> None:
        """Write that the search has ended."""
        self._board.stop()

    def __enter__(self) -> Processes:
        """Start all processes, and wait until they are set up.

        Raises:
            ExecutionError: they end before.
        """
        start_tracker()
        memory = new_board(NotedProcesses())
        self._board, space = BoardWriter(memory), pickle.dumps(self._space)
        try:
            for number in range(self._count):
                self._lanes.append(Lane(space, memory, f"process {number + 1}"))
            starts = [lane.start() for lane in self._lanes]
            for lane, start in zip(self._lanes, starts, strict=True):
                _await(lane, start)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End all processes."""
        _end(self._lanes)
        self._lanes.clear()
        self._ended = queue.SimpleQueue()  # what came late holds its lane
        gc.collect()  # semaphores of the pools end with them, also where this process ends at once

    def _result(self, lane: Lane, future: Future[Worked]) -> Ended:
        task, lane.task = lane.task, None
        if task is None:
            raise AssertionError("a process brought a cube that it was not given")
        try:
            return future.result()
        except BrokenExecutor:
            lane.renew()
            return WorkerDied(task.cube)


def _end(lanes: Sequence[Lane]) -> None:
    for lane in lanes:
        lane.kill()
    for lane in lanes:
        lane.join()


def _await(lane: Lane, start: Future[int]) -> None:
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
