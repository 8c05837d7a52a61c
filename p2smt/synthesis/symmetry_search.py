"""Tries groups from the largest down, classes from the narrowest up, in growing slices of effort.

A turn gives every search that is open a slice; the next turn gives all that are still open a longer
one, if it came to them: a turn may end early.  Wider classes and small groups, which cost more and
seldom find what the others cannot, begin in later turns.  Slices are of the solver's own effort, so
that answers do not depend on the machine.  The last search that is open has no slice, but all the
time that is left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, zip_longest
from typing import NamedTuple

from p2smt.errors import TooLarge
from p2smt.problems.schedule import ScheduleClass, ScheduleSymmetry, SumSchedule
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.group_order import ThresholdMemory
from p2smt.synthesis.schedule_replay import all_reduce, all_reduce_problem
from p2smt.synthesis.setting import (
    Attempt,
    GroupChoice,
    ScheduleSize,
    SynthesisSetting,
    copied,
    rungs,
    too_many_pairs,
)
from p2smt.units import roughly

FIRST_SLICE: Mapping[Solver, int] = {Solver.CPSAT: 1000, Solver.Z3: 5_000_000}
"""Effort (:class:`~p2smt.result.SearchLimits`) of the first slice: about a second."""
GROWTH = 4
"""How many times longer each slice is than the one before."""
SMALLER = 4
"""Groups so many times smaller than the largest begin a turn later, and so on."""
WIDER = (ScheduleClass.ACCUMULATORS, ScheduleClass.PARTIAL_SUMS)
"""Classes that begin in the second turn, with slices of a part of it."""
WIDER_PART = 4
VAIN_PART = 100
"""A search that ends without a schedule counts as so small a part of a slice, however soon."""
STATED = 8
"""So many variables take as long to state as a unit of effort."""


class Trial(NamedTuple):
    """A group and a class to try, from which turn on."""

    rung: GroupChoice
    family: ScheduleClass | None
    start: int = 0

    @property
    def complete(self) -> bool:
        """Whether all schedules with the group that are asked about are in the class."""
        return self.family in (None, ScheduleClass.PARTIAL_SUMS)

    def __str__(self) -> str:
        order = self.rung.order
        how = "without symmetry" if order == 1 else f"with a group of {roughly(order)}"
        return how if self.family is None else f"{how}, {self.family.value}"


TrialSearch = Callable[[Trial, SearchLimits], Result[SumSchedule]]


@dataclass(slots=True)
class ScheduleSearch:
    """What is known of one size: ``sums`` once found; of every trial the last attempt.

    ``waiting`` are the trials that are open, ``put_off`` how many turns each is behind, as these
    ended before it; ``spent``: effort on searches without a schedule.
    ``unsettled``: groups that are not refuted in the widest class, of those seen so far;
    ``listed``: whether all were seen.
    """

    waiting: Iterable[Trial]
    search: TrialSearch
    first_slice: int
    turns: int = 0
    put_off: Counter[Trial] = field(default_factory=Counter)
    spent: int = 0
    known: dict[Trial, Attempt] = field(default_factory=dict)
    unsettled: set[Trial] = field(default_factory=set)
    listed: bool = False
    sums: SumSchedule | None = None
    over: bool = False
    interrupted: bool = False

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The last attempt of every trial, in the order in which they ended."""
        return tuple(self.known.values())

    @property
    def refuted(self) -> bool:
        """Whether it is proved that there is no schedule."""
        return any(attempt.refutes_all for attempt in self.known.values())

    @property
    def groups_refuted(self) -> bool:
        """Whether every group was searched to the end, in the widest class, and has no schedule."""
        groups = [a for a in self.known.values() if a.order > 1 and a.complete]
        return self.listed and not self.unsettled and bool(groups)

    def finish(self, watch: StopWatch) -> None:
        """Turn after turn, until a schedule is found, nothing is open, or the time is over."""
        while not self.over and not watch.expired():
            self.turn(watch, to_the_end=True)

    def turn(
        self,
        watch: StopWatch,
        enough: Callable[[], bool] = lambda: False,
        *,
        to_the_end: bool = False,
    ) -> None:
        """One slice for every trial that is open; ``to_the_end``: all the time for the last one.

        Where to state one of the widest class takes more effort than its slice, those after it wait
        for the next turn.  No search is begun after the time is over, or ``enough`` was tried.
        Then the next turn gives this turn's slice to one that it did not come to, a longer one to
        one that it did, and so on.  A search that the time cut counts as its whole slice.
        On KeyboardInterrupt it is ``over`` and ``interrupted``.
        """
        try:
            again = self._tried(watch, enough, to_the_end)
        except KeyboardInterrupt:
            self.over = self.interrupted = True
            return
        self.over = self.over or not again
        self.waiting, self.turns = again, self.turns + 1

    def _tried(
        self, watch: StopWatch, enough: Callable[[], bool], to_the_end: bool
    ) -> Iterable[Trial]:
        """The open trials: by turns one that the turn did not come to, and one that it did."""
        again, large = list[Trial](), False
        waiting = with_last(self.waiting)
        for trial, last in waiting:
            if watch.expired() or enough():
                rest = map(self._later, chain([trial], (one for one, _ in waiting)))
                return filter(None, chain.from_iterable(zip_longest(rest, again)))
            alone = last and not again and to_the_end
            self.listed = self.listed or last
            if trial.rung.order > 1 and trial.complete:
                self.unsettled.add(trial)
            effort = self._slice(trial)
            waits = effort is None or (large and trial.family is WIDER[-1])
            if waits and not alone:
                again.append(trial)
                continue
            limits = replace(watch.left(), effort=None if alone else effort)
            found, late = self._try(trial, limits)
            if found.value is not None or self.known[trial].refutes_all:
                self.sums, self.over = found.value, True
                return []
            if late:
                again.append(trial)
            stated = dict(found.stats.counters).get("variables", 0) // STATED
            vain = (limits.effort if late else None) or self.first_slice // VAIN_PART
            self.spent += stated + vain
            large |= trial.family is WIDER[-1] and stated > (effort or math.inf)
        return again

    def _slice(self, trial: Trial) -> int | None:
        """The effort of a trial in this turn; None: it is not its turn."""
        part = WIDER_PART if trial.family in WIDER else 1
        turns = self.turns - trial.start - self.put_off[trial]
        return None if turns < 0 else int(self.first_slice // part * GROWTH**turns)

    def _later(self, trial: Trial) -> Trial:
        """The trial, a turn behind."""
        self.put_off[trial] += 1
        return trial

    def _try(self, trial: Trial, limits: SearchLimits) -> tuple[Result[SumSchedule], bool]:
        """The answer of one search, and whether more time could give another one."""
        self.known.pop(trial, None)
        found: Result[SumSchedule]
        try:
            found = self.search(trial, limits)
            late = found.status is Status.UNKNOWN
        except TooLarge as error:
            found = Result(Status.UNKNOWN, stats=SolveStats("none", reason=str(error)))
            late = False
        self.known[trial] = _attempt(trial, found)
        if found.status is Status.INFEASIBLE:
            self.unsettled.discard(trial)
        return found, late


def symmetry_search_of(
    setting: SynthesisSetting,
    size: ScheduleSize,
    solver: Solver,
    tell: Callable[[str], None],
    watch: StopWatch | None = None,
    memory: ThresholdMemory | None = None,
) -> ScheduleSearch:
    """The trials of one size; ``tell``: what is tried; ``watch``, ``memory``: of the groups."""
    large = too_many_pairs(setting, size.chunks, solver)

    def search(trial: Trial, limits: SearchLimits) -> Result[SumSchedule]:
        tell(str(trial))
        if large:
            raise TooLarge(*large)
        if trial.family is None:
            return copied(setting, size, trial.rung.symmetries, limits, solver)
        return summed(setting, size, trial.family, trial.rung.symmetries, limits, solver)

    waiting = trials(setting, size, solver, watch, memory)
    return ScheduleSearch(waiting, search, FIRST_SLICE[solver])


def trials(
    setting: SynthesisSetting,
    size: ScheduleSize,
    solver: Solver,
    watch: StopWatch | None = None,
    memory: ThresholdMemory | None = None,
) -> Iterator[Trial]:
    """Every group with the first class, then with the next."""
    families = CLASSES[solver] if setting.adds else (None,)
    groups: list[tuple[GroupChoice, int]] = []
    largest = 1
    for rung in rungs(setting, size.chunks, watch, memory, solver):
        largest = max(largest, 0 if rung.apart else rung.order)
        later = 0 if rung.apart else int(math.log(largest / rung.order, SMALLER) + 1e-9)
        groups.append((rung, later))
        yield Trial(rung, families[0], later)
    for family in families[1:]:
        yield from (Trial(rung, family, max(1, later)) for rung, later in groups)


def with_last(every: Iterable[Trial]) -> Iterator[tuple[Trial, bool]]:
    """Each trial, and whether it is the last."""
    for one, after in pairwise(chain(every, [None])):
        if one is not None:
            yield one, after is None


def _attempt(trial: Trial, found: Result[SumSchedule]) -> Attempt:
    order, stats = trial.rung.order, found.stats
    return Attempt(order, trial.family, found.status, stats.wall_s, stats.reason)


# Schedules of all-reduces, from the search in one class.


CLASSES = {Solver.CPSAT: tuple(ScheduleClass), Solver.Z3: (ScheduleClass.PARTIAL_SUMS,)}
"""The classes that a solver has encodings of, in the order in which they are tried."""


def summed(
    setting: SynthesisSetting,
    size: ScheduleSize,
    family: ScheduleClass,
    symmetries: tuple[ScheduleSymmetry, ...],
    limits: SearchLimits,
    solver: Solver,
) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: none of the class with these symmetries; UNKNOWN.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    problem = all_reduce_problem(
        setting.fabric,
        size.chunks,
        size.steps,
        size.rounds,
        family,
        setting.messages,
        symmetries,
    )
    return all_reduce(problem, limits, solver)
