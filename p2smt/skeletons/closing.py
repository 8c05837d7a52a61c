"""What a worker does with a task, on every engine."""

from __future__ import annotations

import time
from dataclasses import replace

from p2smt.errors import EncodingBug
from p2smt.skeletons.cube import Closure, OverBudget
from p2smt.skeletons.space import CubeTask, Signals, Space


def close_cube(space: Space, task: CubeTask, signals: Signals, worker: str) -> Closure | OverBudget:
    """Close a task's cube; the wall seconds that it took, seed and worker are filled in here.

    Raises:
        EncodingBug: the space closed another cube.
    """
    started_s = time.monotonic()
    ended = space.close(task, signals)
    seconds = time.monotonic() - started_s
    if ended.cube != task.cube:
        raise EncodingBug("another cube was closed", repr(task.cube), repr(ended.cube))
    if isinstance(ended, OverBudget):
        return replace(ended, seconds=seconds, worker=worker)
    return replace(ended, seconds=seconds, worker=worker, seed=task.seed)
