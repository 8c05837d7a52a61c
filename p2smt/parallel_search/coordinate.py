"""The coordinator: hands cubes to an engine until none is open, and says what that proves.

Cubes go out by bound.  One that exceeds its budget is replaced by all its children; one whose
worker died goes out again, twice; one whose bound lies beyond the worst of the best members is
closed without a worker.  Whatever comes back is checked: members are made again from their
witnesses, verdicts must be such as were asked for, and what is late or double counts for nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from p2smt.errors import InputError
from p2smt.parallel_search.engine import (
    Ended,
    Engine,
    NotBegun,
    Record,
    SearchOutcome,
    SearchProgress,
    WorkerDied,
)
from p2smt.parallel_search.state import SearchState
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Space,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.result import OUT_OF_TIME, SearchLimits, Status, StopWatch

MOST_DEATHS = 3
"""A cube with which so many workers died is closed without proof."""
_POLL_S = 0.25
_GRACE_S = 1.0
"""How long workers that are told to give up may take before they are ended."""
_NEARLY = 0.9
"""A solver's clock may run ahead: from this part of its deadline on, a cube was cut by it."""


def search(
    space: Space,
    engine: Engine,
    *,
    top: int = 1,
    budget_s: float | None = None,
    seed: int = 0,
    threads: int = 1,
    table: str | None = None,
    journal: Record | None = None,
    watch: StopWatch | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> SearchOutcome:
    """Search a space for its ``top`` best members, all of them, or one, as its skeleton says.

    The engine is one for this space, not yet entered: it is entered if there is anything to do,
    and left in any case.  ``budget_s``: seconds after which a cube is split, if it can be.
    ``threads``: of each solver.  ``table``: as :class:`SubproblemTask` has it.  ``journal``: where
    everything is written, and read to continue.  ``progress`` is told about twice a second, and at
    the end.

    Raises:
        KeyboardInterrupt: before the cubes of the space were known; later ones end the search.
        InputError: an option is out of range, or the journal is of another search.
        EncodingBug: a worker's answer failed its check.
    """
    _check_options(top, budget_s, threads)
    top = 1 if space.skeleton is SearchKind.DECIDE else top
    run = _Run(space, top, journal, watch or StopWatch.start(SearchLimits()), progress)
    template = SubproblemTask(
        Subproblem(), top, budget_s=budget_s, seed=seed, threads=threads, table=table
    )
    run.state.open_roots()
    try:
        if run.goes_on():
            with engine:
                run.work(engine, template)
    except KeyboardInterrupt:
        run.interrupted = True
    return run.outcome()


class _Run:
    """One run of a search."""

    def __init__(
        self,
        space: Space,
        top: int,
        journal: Record | None,
        watch: StopWatch,
        progress: Callable[[SearchProgress], None] | None,
    ) -> None:
        self.state = SearchState(space, top, journal)
        self.interrupted = False
        self._skeleton = space.skeleton
        self._optimises = space.skeleton is SearchKind.OPTIMISE
        self._watch, self._progress = watch, progress
        self._deaths: Counter[Subproblem] = Counter()
        self._whole: set[Subproblem] = set()  # cubes that cannot be split, so have no budget
        self._deadlines: dict[Subproblem, float | None] = {}
        self._told: Member | None = None
        self._shown_s, self._ending = 0.0, False

    def goes_on(self) -> bool:
        """Whether something is to be done, and time is left to do it."""
        self.state.first()  # closes what it can
        done = self.state.decided() or not self.state.frontier.bounds
        return not done and not self._watch.expired()

    def work(self, engine: Engine, template: SubproblemTask) -> None:
        """Work until all is closed, the time is up, or an interrupt comes."""
        try:
            while self.goes_on():
                self._hand_out(engine, template)
                for ended in engine.wait(self._patience_s()):
                    self._take(ended)
                self._broadcast(engine)
                self._show(engine.workers)
        except KeyboardInterrupt:
            self.interrupted = True
        self._ending = True
        engine.stop()
        self._gather(engine)

    def outcome(self) -> SearchOutcome:
        """What the run has proved."""
        self._show(0, last=True)
        deaths = sum(self._deaths.values())
        return concluded(self.state, self._skeleton, self.interrupted, deaths, self._watch)

    def _hand_out(self, engine: Engine, template: SubproblemTask) -> None:
        """Give every free worker the first cube that waits.

        While more cubes wait than there are workers, each may have its next one at hand.  Not under
        a time limit, which a worker counts from when it begins; nor after a death: one that dies as
        it begins with a cube may not have told yet that it closed the one before.
        """
        frontier, workers = self.state.frontier, engine.workers
        limited = self._watch.remaining_s() is not None
        ahead = 0 if limited or self._deaths else engine.ahead
        while found := self.state.first():
            many = len(frontier.bounds) - len(frontier.away) > workers
            if len(frontier.away) >= workers + (ahead if many else 0):
                break
            frontier.take(found)
            task = self._task(found.cube, template)
            self._deadlines[task.cube] = task.deadline_s
            engine.submit(task)

    def _task(self, cube: Subproblem, template: SubproblemTask) -> SubproblemTask:
        return replace(
            template,
            cube=cube,
            known=self.state.best.told if self._optimises else (),
            budget_s=None if cube in self._whole else template.budget_s,
            deadline_s=self._watch.remaining_s(),
        )

    def _gather(self, engine: Engine) -> None:
        """Take what the workers still bring, if they give up soon."""
        if self.state.decided():
            return
        until_s = time.monotonic() + _GRACE_S
        while self.state.frontier.away:
            came = engine.wait(max(0.0, until_s - time.monotonic()))
            if not came:
                return
            for ended in came:
                self._take(ended)

    def _take(self, ended: Ended) -> None:
        """Note what became of a cube; of one that is not open any more, nothing."""
        if ended.cube not in self.state.frontier:
            return
        match ended:
            case WorkerDied(cube):
                self._bury(cube)
            case NotBegun(cube):
                if cube in self.state.frontier.away:
                    self.state.frontier.again(cube)
            case OverBudget():
                self._over_budget(ended)
            case Closure():
                self._closed(ended)

    def _bury(self, cube: Subproblem) -> None:
        """A worker died: its cube goes out again, or is given up."""
        if cube not in self.state.frontier.away:
            return
        self._deaths[cube] += 1
        if self._deaths[cube] < MOST_DEATHS:
            self.state.frontier.again(cube)
        else:
            self.state.give_up(cube, self._deaths[cube])

    def _over_budget(self, ended: OverBudget) -> None:
        """A cube took too long: its children take its place, or it goes out without a budget."""
        self.state.offer(ended.best)
        if not self.state.split(ended.cube, ended.seconds, ended.worker):
            self._whole.add(ended.cube)
            self.state.frontier.again(ended.cube)

    def _closed(self, closure: Closure) -> None:
        """A cube was closed; one that was cut by the end of the search stays open."""
        if closure.verdict is SubproblemVerdict.UNKNOWN and self._cut(closure):
            self.state.offer(closure.best)
            self.state.frontier.again(closure.cube, closure.bound)
        else:
            self.state.close(closure)

    def _cut(self, closure: Closure) -> bool:
        deadline_s = self._deadlines.get(closure.cube)
        at_deadline = deadline_s is not None and closure.seconds >= _NEARLY * deadline_s
        return self._ending or at_deadline

    def _broadcast(self, engine: Engine) -> None:
        """Tell the workers of a new cutoff."""
        cutoff = self.state.best.cutoff
        if self._optimises and cutoff is not None and cutoff != self._told:
            engine.tell(cutoff)
            self._told = cutoff

    def _patience_s(self) -> float:
        left_s = self._watch.remaining_s()
        return _POLL_S if left_s is None else min(_POLL_S, left_s)

    def _show(self, workers: int, last: bool = False) -> None:
        now_s = time.monotonic()
        if self._progress and (last or now_s - self._shown_s >= 2 * _POLL_S):
            self._shown_s = now_s
            self._progress(progress_of(self.state, workers, self._watch))


def _check_options(top: int, budget_s: float | None, threads: int) -> None:
    if top < 1:
        raise InputError(f"top {top}", "the number of best members must be at least 1")
    if budget_s is not None and not budget_s > 0:
        raise InputError(f"budget {budget_s} s", "the budget of a cube must be above 0 seconds")
    if threads < 1:
        raise InputError(f"threads {threads}", "the number of solver threads must be at least 1")


# What the state of a search proves, and how far it has come.


INTERRUPTED = "it was interrupted"


def concluded(
    state: SearchState, skeleton: SearchKind, interrupted: bool, deaths: int, watch: StopWatch
) -> SearchOutcome:
    """The outcome that follows from what was closed and found."""
    status = status_of(state, skeleton)
    lists = skeleton is SearchKind.ENUMERATE
    return SearchOutcome(
        status,
        state.best.members,
        state.bound(),
        state.counts(),
        state.count() if lists else None,
        state.digest() if lists else None,
        state.open_subproblems(),
        state.unknown_subproblems(),
        interrupted,
        "" if status.settled else _reason(state, interrupted),
        state.splits,
        deaths,
        watch.elapsed_s(),
        state.given_up(),
    )


def status_of(state: SearchState, skeleton: SearchKind) -> Status:
    """A proof only if no cube is left that could say otherwise."""
    found, blocked = bool(state.best.members), state.blocked()
    match skeleton:
        case SearchKind.ENUMERATE:
            return Status.TRUNCATED if blocked else Status.COMPLETE
        case SearchKind.DECIDE if found:
            return Status.OPTIMAL
        case _ if not blocked:
            return Status.OPTIMAL if found else Status.INFEASIBLE
        case _:
            return Status.FEASIBLE if found else Status.UNKNOWN


def progress_of(state: SearchState, workers: int, watch: StopWatch) -> SearchProgress:
    """How far a search has come, now."""
    best, bound = state.best.members[:1], state.bound()
    incumbent = best[0] if best else None
    open_subproblems = len(state.frontier.bounds)
    gap = None
    if incumbent is not None and bound is not None:
        gap = (incumbent.value - bound) / (abs(incumbent.value) or 1)
    return SearchProgress(
        open_subproblems,
        len(state.frontier.away),
        state.counts(),
        incumbent,
        bound,
        gap,
        state.count(),
        workers,
        watch.elapsed_s(),
        _to_go_s(state, open_subproblems, workers),
    )


def _to_go_s(state: SearchState, open_subproblems: int, workers: int) -> float | None:
    if not open_subproblems:
        return 0.0
    if not state.worked or not workers:
        return None
    return open_subproblems * state.busy_s / state.worked / workers


def _reason(state: SearchState, interrupted: bool) -> str:
    if interrupted:
        return INTERRUPTED
    if state.open_subproblems():
        return OUT_OF_TIME
    count = len(state.unknown_subproblems()) - len(state.given_up())
    other = f"{_cubes(count)} closed without a proof" if count else ""
    return "; ".join(filter(None, (given_up_words(state.given_up()), other)))


def given_up_words(given_up: Sequence[tuple[Subproblem, int]]) -> str:
    """Which cubes were given up, in words; "": none was."""
    deaths = sum(many for _, many in given_up)
    return f"{_cubes(len(given_up))} given up after {deaths} deaths of workers" if given_up else ""


def _cubes(count: int) -> str:
    return f"{count:,} {'cube was' if count == 1 else 'cubes were'}"
