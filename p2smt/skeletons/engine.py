"""Where cubes are closed: the small protocol behind which processes and clusters lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from p2smt.skeletons.cube import Closure, Cube, Member, OverBudget
from p2smt.skeletons.space import CubeTask


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """The worker that was at this cube is gone; the cube was not closed."""

    cube: Cube


@dataclass(frozen=True, slots=True)
class NotBegun:
    """A worker had this cube at hand and will not close it: it is gone, or the search is over."""

    cube: Cube


Ended = Closure | OverBudget | WorkerDied | NotBegun
"""What comes back of a cube."""


class Engine(Protocol):
    """Workers for one space, one cube at a time each; a context manager that leaves none behind.

    The search enters it, once.  What is handed out comes back once, as a closure, over budget or
    dead; what comes back late or double all the same does no harm.
    """

    @property
    def workers(self) -> int:
        """How many cubes it can close at the same time, now."""
        ...

    @property
    def ahead(self) -> int:
        """How many cubes more it takes, so that workers have the next one at hand."""
        ...

    def submit(self, task: CubeTask) -> None:
        """Hand out a cube."""
        ...

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        """What came back since the last call; waits so long for the first of it.

        An exception of a worker is raised here.
        """
        ...

    def tell(self, cutoff: Member) -> None:
        """Broadcast a new cutoff to all workers (see :meth:`Signals.cutoff`)."""
        ...

    def stop(self) -> None:
        """Let the workers give up what they do; no cube is handed out after it."""
        ...

    def __enter__(self) -> Engine:
        """Start the workers."""
        ...

    def __exit__(self, *exc: object) -> None:
        """End them, whatever they do."""
        ...
