"""Schedules of one size as a space: any of them is sought, or a proof that there is none.

A member is a schedule, written as its messages.  Leave out messages that are of no use: those of a
chunk to a rank from which it cannot come to a goal any more, or that are a part of nothing; and
number chunks that are alike so that their decisions never grow (``decisions``).  That leaves a
schedule, which obeys one cube of a partition.  In each cube only such schedules are sought, as far
as its decisions tell; so if all are empty, there is no schedule at all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby, islice
from typing import Any

from p2smt.errors import InputError, TooLarge
from p2smt.fabric.fabric import Fabric
from p2smt.files.json_text import loads
from p2smt.files.plain import from_plain, to_plain
from p2smt.parallel_search.engine import SearchOutcome
from p2smt.parallel_search.parallel_options import SearchTerms, Spread, run_spread
from p2smt.parallel_search.subproblem import (
    Closure,
    Member,
    OverBudget,
    SearchKind,
    Signals,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.problems.schedule import (
    AllReduceProblem,
    ChunkSent,
    ChunkThere,
    DisseminationProblem,
    ScheduleClass,
    SumSchedule,
)
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.solvers.ask import Solver, solver_of, stopping_when
from p2smt.synthesis.schedule_replay import all_reduce, all_reduce_problem
from p2smt.synthesis.setting import (
    MAX_PAIRS,
    NO_SYMMETRY,
    ScheduleSize,
    SynthesisSetting,
    broken_synthesis,
    chunk_count,
    copied_as,
    copy_problem,
    too_many_pairs,
)
from p2smt.synthesis.symmetry_search import ScheduleSearch, Trial

_ROOT_DECISIONS = 4


@dataclass(frozen=True, slots=True)
class ScheduleSpace:
    """The schedules that a setting without symmetry asks for, of a size.

    Those of sums at one rank are decided as the copies that they are backwards.
    """

    setting: SynthesisSetting
    size: ScheduleSize
    solver: Solver = Solver.CPSAT

    @staticmethod
    def of(setting: SynthesisSetting, size: ScheduleSize, solver: Solver) -> ScheduleSpace:
        """That of a question, of its fabric what answers depend on, and the name."""
        made = setting.fabric
        fabric = Fabric(made.name, made.ranks, made.capacities, made.edges)
        return ScheduleSpace(replace(setting, fabric=fabric), size, solver)

    @property
    def skeleton(self) -> SearchKind:
        """Any one is sought."""
        return SearchKind.DECIDE

    @property
    def names(self) -> tuple[str, ...]:
        """What is decided, in this order."""
        return _names(self.setting, self.size)

    def description(self) -> Mapping[str, object]:
        """Fabric, collective, size, messages, class and solver."""
        setting = self.setting
        family = ScheduleClass.PARTIAL_SUMS.value if setting.adds else None
        return {
            "fabric": to_plain(setting.fabric),
            "collective": setting.collective,
            "root": setting.root,
            "size": to_plain(self.size),
            "messages": setting.messages,
            "class": family,
            "solver": self.solver.value,
        }

    def roots(self) -> tuple[Subproblem, ...]:
        """All cubes of the first few decisions."""
        cubes: tuple[Subproblem, ...] = (Subproblem(),)
        for _ in range(_ROOT_DECISIONS):
            cubes = tuple(part for cube in cubes for part in self.split(cube) or (cube,))
        return cubes

    def split(self, cube: Subproblem) -> tuple[Subproblem, ...]:
        """One decision more, if there is one."""
        depth = len(cube.path)
        return tuple(
            cube.under(f"{n}={yes}") for n in self.names[depth : depth + 1] for yes in "10"
        )

    def bound(self, cube: Subproblem) -> int:
        """Nothing is bounded here: 0."""
        check_path(cube.path, self.names)
        return 0

    def close(self, task: SubproblemTask, signals: Signals) -> Closure | OverBudget:
        """Find a schedule of the cube, which is replayed, or prove that there is none."""
        started_s = time.monotonic()
        budget_s = task.budget_s if self.split(task.cube) else None
        left = [limit for limit in (budget_s, task.deadline_s) if limit is not None]
        limits = SearchLimits(min(left, default=None), None, task.seed, task.threads)
        with stopping_when(lambda _: signals.stopped()):
            found = self.find(task.cube, limits)
        if found.value is not None:
            member = Member(0, (), messages_text(found.value))
            return Closure(task.cube, SubproblemVerdict.SOLVED, 0, (member,))
        if found.status is Status.INFEASIBLE:
            return Closure(task.cube, SubproblemVerdict.EMPTY)
        late = task.deadline_s is not None and time.monotonic() - started_s >= task.deadline_s
        if budget_s is not None and not (late or signals.stopped()):
            return OverBudget(task.cube)
        return Closure(task.cube, SubproblemVerdict.UNKNOWN)

    def find(self, cube: Subproblem, limits: SearchLimits) -> Result[SumSchedule]:
        """A schedule of a cube: FEASIBLE; INFEASIBLE: there is none; UNKNOWN.

        Raises:
            TooLarge: the problem exceeds a limit of the encoding.
        """
        if self.setting.adds:
            whole = _all_reduce(self.setting, self.size)
            return all_reduce(decided_sent(whole, cube.path), limits, self.solver)
        copies = decided_there(copy_problem(self.setting, self.size, ()), cube.path)
        return copied_as(self.setting, copies, limits, self.solver)

    def member(self, witness: str) -> Member:
        """The schedule of a text of its messages, replayed."""
        broken = broken_synthesis(self.setting, self.size, messages_of(witness))
        if broken:
            raise InputError(f"schedule {witness[:60]!r}", f"is none of this question: {broken}")
        return Member(0, (), witness)


@lru_cache(maxsize=2)
def _names(setting: SynthesisSetting, size: ScheduleSize) -> tuple[str, ...]:
    if setting.adds:
        return sent_names(_all_reduce(setting, size))
    return there_names(copy_problem(setting, size, ()))


def _all_reduce(setting: SynthesisSetting, size: ScheduleSize) -> AllReduceProblem:
    asked = setting.fabric, size.chunks, size.steps, size.rounds
    return all_reduce_problem(*asked, messages=setting.messages)


def schedule_space(data: Mapping[str, Any]) -> ScheduleSpace:
    """The space of a description.

    Raises:
        InputError: it is none.
    """
    try:
        fabric, size = from_plain(Fabric, data["fabric"]), from_plain(ScheduleSize, data["size"])
        collective, root, messages = data["collective"], data["root"], data["messages"]
        setting = SynthesisSetting(fabric, collective, root, False, messages)
        _check_size(setting, size)
        return ScheduleSpace(setting, size, solver_of(data["solver"]))
    except (KeyError, TypeError, AttributeError):
        raise InputError("the description of a space", "is none of schedules") from None


def _check_size(setting: SynthesisSetting, size: ScheduleSize) -> None:
    """Refuse what no search began with: its decisions alone would take all memory."""
    if large := too_many_pairs(setting, size.chunks):
        raise InputError(*large)
    places = chunk_count(setting, size.chunks) * max(
        setting.fabric.ranks, len(setting.fabric.edges)
    )
    if places * size.steps * setting.messages > MAX_PAIRS:
        given = f"{size.chunks} chunks in {size.steps} steps on {setting.fabric.ranks} ranks"
        raise InputError(given, f"are more than {MAX_PAIRS} decisions", "give a journal of p2smt")


# What the cubes of a search for a schedule decide, in an order that the question alone sets.
# Where chunks are only copied: whether a rank holds a chunk after a step, ``c0.r3.s1``; at times at
# which it can, and is of use there.  In an all-reduce: whether a message of a chunk goes over an
# edge in a step, ``c0.e3.s1``.  Chunks, ranks, edges are numbered from 0, steps from 1.
#
# One chunk is decided after the other, each from the first step on.  So the chunks that are not
# decided yet stay alike where they were, which the solver makes use of.  And of chunks that are
# alike (the same root, the same goals) those with the greater decisions, as words of 0 and 1, come
# first: whatever is sought can have its chunks so numbered.  In a cube no chunk may come before one
# that is decided and alike.


DecisionPoint = tuple[int, int, int]
"""Chunk, rank or edge, step of a decision."""
MOST = 4096
"""Decisions after which a cube is not split any more."""


def there_names(problem: DisseminationProblem) -> tuple[str, ...]:
    """The decisions about a problem of copies, at most ``MOST``."""
    return tuple(f"c{c}.r{v}.s{s}" for c, v, s in islice(_open_times(problem), MOST))


def _open_times(problem: DisseminationProblem) -> Iterator[tuple[int, int, int]]:
    """(chunk, rank, step) where both are possible, as far as distances tell."""
    near = cache(lambda root: problem.distances([root]))
    left = cache(lambda goals: problem.distances(goals, back=True))
    for c, chunk in enumerate(problem.chunks):
        spans = list(zip(near(chunk.root), left(chunk.goals), strict=True))
        for s in range(1, problem.steps + 1):
            for v, (come, go) in enumerate(spans):
                known = v == chunk.root or (s == problem.steps and v in chunk.goals)
                reached = come is not None and go is not None and come <= s <= problem.steps - go
                if reached and not known:
                    yield c, v, s


def sent_names(problem: AllReduceProblem) -> tuple[str, ...]:
    """The decisions about an all-reduce, at most ``MOST``."""
    every = (
        f"c{c}.e{e}.s{s}"
        for c in range(problem.chunks)
        for s in range(1, problem.steps + 1)
        for e in range(len(problem.edges))
    )
    return tuple(islice(every, MOST))


def decided_there(problem: DisseminationProblem, path: Sequence[str]) -> DisseminationProblem:
    """The problem of copies, narrowed to the cube of a path.

    Raises:
        InputError: it decides something else, or out of order.
    """
    read = tuple(_read(path, there_names(problem)))
    alike = [
        [d for d in range(c + 1, len(problem.chunks)) if problem.chunks[d] == chunk]
        for c, chunk in enumerate(problem.chunks)
    ]
    return replace(
        problem,
        decided=tuple(ChunkThere(*at, yes) for at, yes in read),
        excluded=tuple(
            tuple(ChunkThere(*at, True) for at in some) for some in _too_early(read, alike)
        ),
    )


def decided_sent(problem: AllReduceProblem, path: Sequence[str]) -> AllReduceProblem:
    """The problem of an all-reduce, narrowed to the cube of a path.

    Raises:
        InputError: it decides something else, or out of order.
    """
    read = tuple(_read(path, sent_names(problem)))
    alike = [list(range(c + 1, problem.chunks)) for c in range(problem.chunks)]
    return replace(
        problem,
        decided=tuple(ChunkSent(c, e, s - 1, yes) for (c, e, s), yes in read),
        excluded=tuple(
            tuple(ChunkSent(c, e, s - 1, True) for c, e, s in some)
            for some in _too_early(read, alike)
        ),
    )


def _too_early(
    read: Sequence[tuple[DecisionPoint, bool]], alike: Sequence[Sequence[int]]
) -> Iterator[tuple[DecisionPoint, ...]]:
    """Decisions that, all with yes, would make a chunk greater than a decided one before it.

    It is greater where that has a 0, if until there it has a 1 wherever that has one.
    """
    for chunk, own in groupby(read, lambda one: one[0][0]):
        ones: list[tuple[int, int]] = []
        greater: list[tuple[tuple[int, int], ...]] = []
        for (_, place, step), yes in own:
            if yes:
                ones.append((place, step))
            else:
                greater.append((*ones, (place, step)))
        for other in alike[chunk]:
            yield from (tuple((other, *at) for at in some) for some in greater)


def check_path(path: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a path that is none of a cube.

    Raises:
        InputError: it decides something that has not these names, or out of order.
    """
    for _ in _read(path, names):
        pass


def _read(path: Sequence[str], names: Sequence[str]) -> Iterator[tuple[DecisionPoint, bool]]:
    """The three numbers of each decision, and whether it is yes."""
    if len(path) > len(names):
        raise InputError(f"a cube of {len(path)} decisions", f"there are {len(names)}")
    for decision, name in zip(path, names, strict=False):
        if decision not in (f"{name}=0", f"{name}=1"):
            raise InputError(f"decision {decision[:60]!r}", f"is not {name}=0 or {name}=1")
        first, second, third = (int(part[1:]) for part in name.split("."))
        yield (first, second, third), decision.endswith("1")


# The complete search for a schedule of one size, in parts.


CUBE_RULE = {
    False: "whether a rank holds a chunk after a step (c0.r3.s1), chunk by chunk, step by step; "
    "like chunks by falling decisions",
    True: "whether a chunk goes over an edge in a step (c0.e3.s1), chunk by chunk, step by step; "
    "chunks by falling decisions",
}
"""How cubes are cut, in words; True: of an all-reduce."""


def symmetry_search_in_parts(
    setting: SynthesisSetting,
    size: ScheduleSize,
    solver: Solver,
    spread: Spread,
    watch: StopWatch,
) -> ScheduleSearch:
    """The one trial without symmetry, in the widest class, as a climb that is over.

    Raises:
        InputError: the journal or the engine cannot be used.
        BackendError: Dask is not installed.
        EncodingBug: what a solver found breaks a rule.
    """
    space = ScheduleSpace.of(setting, size, solver)
    trial = Trial(NO_SYMMETRY, ScheduleClass.PARTIAL_SUMS if setting.adds else None)
    stopped = False

    def searched(_: Trial, limits: SearchLimits) -> Result[SumSchedule]:
        nonlocal stopped
        check_size(space)
        terms = SearchTerms("synthesize", cube_rule=CUBE_RULE[setting.adds])
        outcome = run_spread(space, terms, spread, StopWatch.start(limits))
        stopped = outcome.interrupted
        return _result(outcome)

    climb = ScheduleSearch([trial], searched, 0)
    climb.turn(watch, to_the_end=True)
    climb.over, climb.interrupted = True, climb.interrupted or stopped
    return climb


def check_size(space: ScheduleSpace) -> None:
    """Refuse what no solver of the space could be asked, before any part of it is.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
    """
    if large := too_many_pairs(space.setting, space.size.chunks):
        raise TooLarge(*large)
    space.find(Subproblem(), SearchLimits(0.0))


def _result(outcome: SearchOutcome) -> Result[SumSchedule]:
    """The outcome as that of a search in one piece."""
    stats = SolveStats("parts", outcome.elapsed_s, reason=outcome.reason)
    match outcome.status:
        case Status.OPTIMAL:
            return Result(Status.FEASIBLE, messages_of(outcome.best[0].witness), stats=stats)
        case Status.INFEASIBLE:
            return Result(Status.INFEASIBLE, stats=stats)
        case _:
            return Result(Status.UNKNOWN, stats=stats)


# Schedules as the texts that stand for members: JSON without blanks, in the one way there is.


def messages_text(sums: SumSchedule) -> str:
    """The messages and results of a schedule."""
    return json.dumps(to_plain(sums), separators=(",", ":"))


def messages_of(text: str) -> SumSchedule:
    """The schedule of a text that :func:`messages_text` wrote.

    Raises:
        InputError: it is none, or is written in another way.
    """
    given = f"schedule {text[:60]!r}"
    try:
        found = from_plain(SumSchedule, loads(text))
    except (ValueError, RecursionError):
        raise InputError(given, "is no JSON") from None
    if messages_text(found) != text:
        raise InputError(given, "is not written in the one way there is")
    return found
