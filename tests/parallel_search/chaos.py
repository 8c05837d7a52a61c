"""An engine as bad as one may be, and a record in memory that can break off at any line."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from p2smt.parallel_search.engine import Ended, NotBegun, WorkerDied
from p2smt.parallel_search.subproblem import Closure, Member, Space, Subproblem, SubproblemTask


class Chaos:
    """Several workers that answer in any order, twice, late, after they were called dead.

    No cube dies three times.  Cutoffs arrive late or never: ``cutoff`` is any that was told.
    """

    def __init__(self, space: Space, workers: int, seed: int) -> None:
        self._space, self._count = space, workers
        self._draw = random.Random(seed)
        self._tasks: list[SubproblemTask] = []
        self._late: list[Ended] = []
        self._died: dict[Subproblem, int] = {}
        self._cutoffs: list[Member | None] = [None]

    @property
    def workers(self) -> int:
        return self._count

    @property
    def ahead(self) -> int:
        return self._count

    def submit(self, task: SubproblemTask) -> None:
        # Perhaps one more than there is room for: a late answer frees a worker still at the cube.
        self._tasks.append(task)

    def wait(self, timeout_s: float) -> Sequence[Ended]:  # noqa: ARG002
        found: list[Ended] = []
        if self._tasks:
            task = self._tasks.pop(self._draw.randrange(len(self._tasks)))
            found += self._answer(task)
        while self._late and self._draw.random() < 0.3:
            found.append(self._late.pop(self._draw.randrange(len(self._late))))
        return found

    def tell(self, cutoff: Member) -> None:
        last = self._cutoffs[-1]
        assert last is None or cutoff < last
        self._cutoffs.append(cutoff)

    def stop(self) -> None:
        self._tasks.clear()

    def stopped(self) -> bool:
        return False

    def cutoff(self) -> Member | None:
        return self._draw.choice(self._cutoffs)

    def __enter__(self) -> Chaos:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    @property
    def deaths(self) -> int:
        """How many of its workers it has called dead."""
        return sum(self._died.values())

    def _answer(self, task: SubproblemTask) -> list[Ended]:
        closed = self._space.close(task, self)
        if self._draw.random() < 0.3 and self._died.get(task.cube, 0) < 2:
            self._died[task.cube] = self._died.get(task.cube, 0) + 1
            self._late.append(closed)
            return [WorkerDied(task.cube)]
        if self._draw.random() < 0.1:
            return [NotBegun(task.cube)]
        if self._draw.random() < 0.3:
            self._late.append(closed)
        return [closed]


@dataclass
class Notes:
    """A record in memory; after ``lines`` more lines an interrupt comes, before or after one."""

    lines: int | None = None
    closures: list[Closure] = field(default_factory=list)
    splits: list[tuple[Subproblem, tuple[Subproblem, ...]]] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    resumed: Notes | None = None

    def split(
        self,
        cube: Subproblem,
        children: tuple[Subproblem, ...],
        seconds: float,  # noqa: ARG002 (of the protocol)
        worker: str,  # noqa: ARG002 (of the protocol)
    ) -> None:
        self._perhaps_interrupt(lambda: self.splits.append((cube, children)))

    def closed(self, closure: Closure) -> None:
        self._perhaps_interrupt(lambda: self.closures.append(closure))

    def incumbent(self, member: Member) -> None:
        self._perhaps_interrupt(lambda: self.members.append(member))

    def again(self, lines: int | None) -> Notes:
        """The record of the next run, which goes on from this one."""
        return Notes(lines, self.closures, self.splits, self.members, self)

    def _perhaps_interrupt(self, write: Callable[[], None]) -> None:
        if self.lines is not None:
            self.lines -= 1
            if self.lines < 0:
                if self.lines % 2:
                    write()
                raise KeyboardInterrupt
        write()
