"""What an engine is: it takes subproblems, and gives outcomes, each with its record."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from p2smt.errors import EncodingBug
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    Signals,
    Space,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.result import Status

# Where cubes are closed: the small protocol behind which processes and clusters lie.


@dataclass(frozen=True, slots=True)
class WorkerDied:
    """The worker that was at this cube is gone; the cube was not closed."""

    cube: Subproblem


@dataclass(frozen=True, slots=True)
class NotBegun:
    """A worker had this cube at hand and will not close it: it is gone, or the search is over."""

    cube: Subproblem


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

    def submit(self, task: SubproblemTask) -> None:
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


# What a search over cubes returns, and what it tells while it runs: data, worded elsewhere.


VerdictCounts = tuple[tuple[SubproblemVerdict, int], ...]
"""How many cubes were closed with each verdict, in the order of :class:`SubproblemVerdict`."""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """Where a search ended.

    Settled, its status, ``best``, ``bound``, ``count`` and ``digest`` depend on the space and
    ``top`` alone: not on the engine, the number of workers, budgets, seeds or chance.  Of a
    decision that holds for the status; the member is the first one that was met.

    status: of an optimisation OPTIMAL (also with fewer than ``top`` members, if there are no
    more), FEASIBLE, INFEASIBLE or UNKNOWN; of an enumeration COMPLETE or TRUNCATED; of a decision
    OPTIMAL (a member), INFEASIBLE or UNKNOWN.
    best: at most ``top`` members, in order; of a space with a cutoff of its own all up to that.
    bound: of an optimisation, ticks that no member is below; None if there is nothing to bound.
    closed: how the cubes were closed, which does depend on chance.
    count, digest: of an enumeration, the members listed (see :mod:`p2smt.parallel_search.best`).
    open_subproblems: what was not closed, in order.
    unknown_subproblems: those closed without proof, in order.
    interrupted: whether a KeyboardInterrupt ended it.
    reason: why nothing is proved, in words; "" where something is.
    splits, deaths: cubes that were replaced by their children, workers that died at a cube.
    given_up: of the unknown cubes those at which too many workers died, each with how many.
    """

    status: Status
    best: tuple[Member, ...] = ()
    bound: int | None = None
    closed: VerdictCounts = ()
    count: int | None = None
    digest: str | None = None
    open_subproblems: tuple[Subproblem, ...] = ()
    unknown_subproblems: tuple[Subproblem, ...] = ()
    interrupted: bool = False
    reason: str = ""
    splits: int = 0
    deaths: int = 0
    elapsed_s: float = 0.0
    given_up: tuple[tuple[Subproblem, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search has come.

    ``gap`` is how far the incumbent's value lies above the bound, as a part of that value.
    ``to_go_s`` is what the open cubes will take if they are like those that were worked on, and
    none is pruned or split: a guess, None before there is anything to guess from.
    """

    open_subproblems: int
    in_flight: int
    closed: VerdictCounts
    incumbent: Member | None
    bound: int | None
    gap: float | None
    count: int | None
    workers: int
    elapsed_s: float
    to_go_s: float | None


# What a search writes down as it goes, and reads when it continues: seen from the search.


class Recorded(Protocol):
    """What an earlier run has written down; what is late or double in it does no harm."""

    @property
    def closures(self) -> Iterable[Closure]:
        """Cubes that were closed."""
        ...

    @property
    def splits(self) -> Iterable[tuple[Subproblem, tuple[Subproblem, ...]]]:
        """Cubes that were replaced, and their children."""
        ...

    @property
    def members(self) -> Iterable[Member]:
        """The best members that were found."""
        ...


class Record(Protocol):
    """Where a search writes what became of its cubes; each call is on disk when it returns."""

    @property
    def resumed(self) -> Recorded | None:
        """What an earlier run of the same search has left, None if this is the first."""
        ...

    def split(
        self, cube: Subproblem, children: tuple[Subproblem, ...], seconds: float, worker: str
    ) -> None:
        """A cube was replaced by all its children; a worker had it for so many seconds."""
        ...

    def closed(self, closure: Closure) -> None:
        """A cube was closed."""
        ...

    def incumbent(self, member: Member) -> None:
        """A member entered the best ones; before the closure that it came with."""
        ...


# What a worker does with a task, on every engine.


def solve_subproblem(
    space: Space, task: SubproblemTask, signals: Signals, worker: str
) -> Closure | OverBudget:
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
