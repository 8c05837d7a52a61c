"""How a search is spread over workers, as a user asks for it, and the search run so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from p2smt.errors import InputError
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.engine import (
    Ended,
    Engine,
    SearchOutcome,
    SearchProgress,
    solve_subproblem,
)
from p2smt.parallel_search.subproblem import Member, Space, SubproblemTask
from p2smt.result import StopWatch

if TYPE_CHECKING:
    from p2smt.parallel_search.journal.journal import Journal


IN_PROCESS, PROCESSES, DASK = "in-process", "processes", "dask"
ENGINES = (IN_PROCESS, PROCESSES, DASK)
MAX_PROCESSES = 4096


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the parts of a search are closed, and what is kept of it.

    Attributes:
        processes: workers, with one cube at a time each; those of a ``scheduler`` are its own.
        engine: ``in-process``, ``processes`` or ``dask``; None: this process for one worker,
            others of this machine for more.
        scheduler: the address of a running Dask scheduler; None: a cluster on this machine.
        journal: the file that the search is written to, and goes on from.
        budget_s: seconds after which a part is cut into its parts; None: never.
        progress: told about twice a second, and at the end; with the seconds of a tick, None where
            nothing is measured in ticks.
        told: is told what a journal had on record already, in words.

    Raises:
        InputError: an option is out of range, or does not go with another.
    """

    processes: int = 1
    engine: str | None = None
    scheduler: str | None = None
    journal: str | None = None
    budget_s: float | None = None
    progress: Callable[[SearchProgress, float | None], None] | None = field(
        default=None, compare=False
    )
    told: Callable[[str], None] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.processes <= MAX_PROCESSES:
            raise InputError(f"processes {self.processes}", f"must be 1 to {MAX_PROCESSES}")
        if self.engine is not None and self.engine not in ENGINES:
            raise InputError(f"engine {self.engine[:40]!r}", f"must be one of {', '.join(ENGINES)}")
        if self.scheduler == "":
            raise InputError("scheduler ''", "is no address", "give one, or leave the option out")
        if self.scheduler is not None and self.engine != DASK:
            remedy = "give --engine dask as well"
            raise InputError(f"scheduler {self.scheduler[:60]!r}", "is one of Dask", remedy)
        if self.scheduler is not None and self.processes > 1:
            given = f"scheduler {self.scheduler[:60]!r} with {self.processes} processes"
            raise InputError(given, "has workers of its own", "leave one of the two out")
        if self.engine == IN_PROCESS and self.processes > 1:
            rule = "is one process"
            raise InputError(f"engine {IN_PROCESS} with {self.processes} processes", rule)
        if self.budget_s is not None and not self.budget_s > 0:
            raise InputError(f"budget {self.budget_s} s", "must be above 0 seconds")

    @property
    def chosen(self) -> str:
        """The engine by name."""
        return self.engine or (IN_PROCESS if self.processes == 1 else PROCESSES)

    def engine_for(self, space: Space) -> Engine:
        """The engine for a space.

        Raises:
            BackendError: Dask is not installed.
            InputError: the scheduler cannot be used.
        """
        if self.chosen == IN_PROCESS:
            return InProcess(space)
        if self.chosen == PROCESSES:
            from p2smt.parallel_search.engines.processes import Processes

            return Processes(space, self.processes)
        from p2smt.parallel_search.engines.dask import DaskEngine

        return DaskEngine(space, self.processes, self.scheduler)

    def options(self, watch: StopWatch) -> Mapping[str, object]:
        """What a journal says of how it was searched."""
        own, keys = {"engine": self.chosen}, ("time_limit_s", "seed", "workers")
        own |= {key: getattr(self, key) for key in ("processes", "budget_s")}
        return own | {key: getattr(watch.limits, key) for key in keys}


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What a journal says of a search: ``name`` leads to the space, ``scale`` says what a tick is,
    ``cube_rule`` how it is cut, in words; ``tick_s`` are the seconds of a tick.
    """

    name: str
    top: int = 1
    scale: str = ""
    cube_rule: str = ""
    tick_s: float | None = None


def run_spread(
    space: Space,
    terms: SearchTerms,
    spread: Spread,
    watch: StopWatch,
    table: str | None = None,
) -> SearchOutcome:
    """Search a space as a user asks for it; seed and threads are those of the watch's limits.

    ``table``: where the workers tell each other what they find; it outlives them.

    Raises:
        InputError: the journal or the scheduler cannot be used.
        BackendError: Dask is not installed.
    """
    engine, limits, told = spread.engine_for(space), watch.limits, spread.progress

    def show(progress: SearchProgress) -> None:
        if told is not None:
            told(progress, terms.tick_s)

    with _journal(space, terms, spread, watch) as journal:
        if journal is not None and journal.found and spread.told is not None:
            spread.told(journal.found)
        return search(
            space,
            engine,
            top=terms.top,
            budget_s=spread.budget_s,
            seed=limits.seed,
            threads=limits.workers,
            table=table,
            journal=journal,
            watch=watch,
            progress=None if told is None else show,
        )


def _journal(
    space: Space, terms: SearchTerms, spread: Spread, watch: StopWatch
) -> Journal | nullcontext[None]:
    if spread.journal is None:
        return nullcontext(None)
    from p2smt.parallel_search.journal.journal import Journal
    from p2smt.parallel_search.journal.record import header_of

    header = header_of(
        space,
        terms.name,
        top=terms.top,
        scale=terms.scale,
        cube_rule=terms.cube_rule,
        options=spread.options(watch),
    )
    return Journal(spread.journal, header, space.member)


# The engine without workers of its own: cubes are closed one after another, in ``wait``.


WORKER = "in-process"


class InProcess:
    """Closes cubes in the caller's thread; what it is told meanwhile comes with the next task."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._task: SubproblemTask | None = None
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

    def submit(self, task: SubproblemTask) -> None:
        """Keep a cube for the next ``wait``."""
        self._task = task

    def wait(self, timeout_s: float) -> Sequence[Ended]:  # noqa: ARG002 (the protocol's)
        """Close the cube that was submitted, however long it takes."""
        task, self._task = self._task, None
        if task is None:
            return ()
        return (solve_subproblem(self._space, task, self, WORKER),)

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
