"""The engine without workers of its own: cubes are closed one after another, in ``wait``."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.skeletons.closing import close_cube
from p2smt.skeletons.cube import Member
from p2smt.skeletons.engine import Ended
from p2smt.skeletons.space import CubeTask, Space

WORKER = "in-process"


class InProcess:
    """Closes cubes in the caller's thread; what it is told meanwhile comes with the next task."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._task: CubeTask | None = None
        self._cutoff: Member | None = None
        self._stopped = False

    @property
    def workers(self) -> int:
        """One: the caller."""
        return 1

    @property
    def ahead(self) -> int:
        """None: a cube is handed out in no time."""
        return 0

    def submit(self, task: CubeTask) -> None:
        """Keep a cube for the next ``wait``."""
        self._task = task

    def wait(self, timeout_s: float) -> Sequence[Ended]:  # noqa: ARG002 (the protocol's)
        """Close the cube that was submitted, however long it takes."""
        task, self._task = self._task, None
        if task is None:
            return ()
        return (close_cube(self._space, task, self, WORKER),)

    def tell(self, cutoff: Member) -> None:
        """Note the cutoff."""
        self._cutoff = cutoff

    def stop(self) -> None:
        """Forget what was submitted."""
        self._stopped, self._task = True, None

    def stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._stopped

    def cutoff(self) -> Member | None:
        """The cutoff of which it was told last."""
        return self._cutoff

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
