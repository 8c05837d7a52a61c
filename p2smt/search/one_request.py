"""Solves one request on one scene: the best program, or the one fixed step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from p2smt.collectives.demand import plain_kind
from p2smt.collectives.dispatch import AnyKind
from p2smt.collectives.names import DIRECT
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import Pipelined, program_s
from p2smt.errors import EncodingBug, OutOfTimeError, TooLarge
from p2smt.parallelism.request import DEFAULT_LENGTH, Problem, Request
from p2smt.plans.solution import RequestAnswer, fixed_answer, program_answer
from p2smt.programs.check import Checked
from p2smt.programs.program import (
    Grouping,
    Hierarchy,
    Instruction,
    Program,
    parse_program,
    small_model_length,
)
from p2smt.result import PROVED_WITHIN, SAME, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.program_synthesis import Found, Priced, Task, best_program, price, program_task
from p2smt.search.programs_pipelined import (
    LISTED_DEPTH,
    Catalogs,
    ChunkedProgram,
    SoughtProgram,
    best_pipelined,
    choices,
    first_choice,
)
from p2smt.solvers.ask import Solver

_Key = tuple[AnyKind, int, tuple[Digits, ...]]


@dataclass(frozen=True, slots=True)
class RequestAnswers:
    """Answers of a problem's requests, each found once; ``len``: how many were found.

    Requests that differ in ``times`` only share one, since it is of one execution.  One that the
    time limit cut short is sought again if there is time again.
    """

    problem: Problem
    solver: Solver
    listings: Catalogs
    _found: dict[_Key, RequestAnswer | None] = field(default_factory=dict)
    _cut_short: set[_Key] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._found)

    def of(self, request: Request, scene: Scene, limits: SearchLimits) -> RequestAnswer | None:
        """As :func:`answer_request`."""
        key = (request.kind, request.payload_bytes, scene.digits)
        if key not in self._found or (key in self._cut_short and limits.time_limit_s):
            watch = StopWatch.start(limits)
            found = answer_request(self.problem, request, scene, limits, self.solver, self.listings)
            self._found[key] = found
            self._cut_short.discard(key)
            if watch.expired() and found is not None and found.status is not Status.OPTIMAL:
                self._cut_short.add(key)
        answer = self._found[key]
        return answer and replace(answer, request=request)


def answer_request(
    problem: Problem,
    request: Request,
    scene: Scene,
    limits: SearchLimits,
    solver: Solver,
    listings: Catalogs,
) -> RequestAnswer | None:
    """The best way to run a request on a scene; None if the restrictions leave no program.

    Beyond the range in which a program is proved best, the best one over merged levels has
    status FEASIBLE.  Where there is none, or the time runs out, the best nest
    (:mod:`p2smt.search.nests`; the single collective is one) stands in, checked, with
    status UNKNOWN, if the restrictions allow one.

    Raises:
        OutOfTimeError: neither a program nor a proof was found, and nothing may stand in.
    """
    if request.kind.has_exchanges:
        return _exchanged(problem, request, scene, limits, solver)
    task = _task(problem, request, scene.hierarchy, solver)
    if task is None:
        return fixed_answer(request, scene)
    sought = SoughtProgram(task, scene, request.payload_bytes, problem.pipeline, listings)
    found = _best(sought, limits)
    if found.status is Status.INFEASIBLE:
        return None
    best = found.best or _nest(sought)
    if best is None:
        raise OutOfTimeError
    return _searched(request, scene, best, found)


def _nest(sought: SoughtProgram) -> Priced | None:
    from p2smt.search.nests import priced_nest  # which proofs in range do without

    return priced_nest(sought)


def _exchanged(
    problem: Problem, request: Request, scene: Scene, limits: SearchLimits, solver: Solver
) -> RequestAnswer:
    """The best way to run an all-to-all: in one step, unless several take less.

    A solver is asked only where they might.  Several run in one chunk.
    """
    single = fixed_answer(request, scene)
    least_s = scene.least_s(request)
    if problem.max_length == 1 or least_s >= single.seconds * (1 - SAME):
        return single
    task = program_task(problem, request, scene.hierarchy, solver)
    try:
        found = best_program(task, scene, request.payload_bytes, limits)
    except TooLarge:  # for z3: what CP-SAT finds is not proved by it
        found = best_program(
            replace(task, solver=Solver.CPSAT), scene, request.payload_bytes, limits
        )
        found = replace(found, status=Status.FEASIBLE, bound_s=0.0)
    if found.best is None or len(found.best.program) == 1:
        proved = found.status is Status.OPTIMAL
        return single if proved else replace(single, status=found.status, bound_s=least_s)
    return _searched(request, scene, found.best, found)


def known_answer(
    request: Request,
    scene: Scene,
    text: str,
    status: Status,
    bound_s: float,
    checked: Checked | None = None,
) -> RequestAnswer:
    """The answer that a search elsewhere came to, with no restrictions: checked and timed anew.

    That nothing takes less than ``bound_s`` is taken over, and so is what it was ``checked`` on
    there, if that is given.

    Raises:
        InputError: the text is no program of these levels.
        EncodingBug: the program is not valid, or takes less than its bound; or more, although it
            is called the best.
    """
    hierarchy = scene.hierarchy
    task = Task(plain_kind(request.kind), hierarchy, DEFAULT_LENGTH)
    program = hierarchy.canonical(parse_program(text))
    if checked is None:
        best = price(task, program, scene, request.payload_bytes)
    else:
        steps = scene.program_times(program, checked.trace.payload_rows, request.payload_bytes)
        best = Priced(program, program_s(steps, 1), steps, checked)
    if best.seconds < bound_s:
        raise EncodingBug(f"a program takes less than its bound {bound_s} s", str(scene), text)
    if status is Status.OPTIMAL and best.seconds > bound_s * (1 + PROVED_WITHIN):
        raise EncodingBug(f"a best program takes more than its bound {bound_s} s", str(scene), text)
    return _searched(request, scene, best, Found(status, best, bound_s, SolveStats(task.solver)))


def single_answer(
    problem: Problem, request: Request, scene: Scene, solver: Solver
) -> RequestAnswer | None:
    """The single collective, checked, with status UNKNOWN; None if the restrictions forbid it."""
    task = _task(problem, request, scene.hierarchy, solver)
    if task is None:
        return fixed_answer(request, scene)
    best = _single(task, scene, request.payload_bytes)
    if best is None:
        return None
    unproved = Found(Status.UNKNOWN, best, 0.0, SolveStats(solver))
    return _searched(request, scene, best, unproved)


def _task(problem: Problem, request: Request, hierarchy: Hierarchy, solver: Solver) -> Task | None:
    """The program synthesis of a request; None where there is one fixed step, or nothing to do."""
    if hierarchy.size == 1 or not request.kind.has_programs:
        return None
    return program_task(problem, request, hierarchy, solver)


def _best(sought: SoughtProgram, limits: SearchLimits) -> Found:
    """The best program with proof where there is one; else the better of all that were found."""
    watch, weaker = StopWatch.start(limits), None
    deep = sought.pipeline != 1 and sought.task.hierarchy.depth > LISTED_DEPTH
    if deep or not sought.task.problem().small_model:
        weaker = best_merged_levels(
            sought, limits
        )  # the proof may take all the time, or be refused
    try:
        if sought.pipeline == 1:
            found = best_program(sought.task, sought.scene, sought.payload_bytes, watch.left())
        else:
            found = best_pipelined(sought, watch.left())
    except TooLarge:  # this scene is left unproved; the others need not be
        return weaker or best_merged_levels(sought, limits)
    if weaker is None or weaker.best is None or found.status.settled:
        return found
    if found.best is not None and found.best.seconds <= weaker.best.seconds:
        return found
    return replace(weaker, bound_s=min(found.bound_s, weaker.best.seconds))


def _single(task: Task, scene: Scene, payload_bytes: int) -> Priced | None:
    """The single collective over the whole group as a checked program, if it is allowed."""
    instruction = _whole(task)
    if not task.allows(instruction):
        return None
    return price(task, Program((instruction,)), scene, payload_bytes)


def _whole(task: Task) -> Instruction:
    """The single collective over the whole group."""
    return task.hierarchy.instruction(DIRECT[task.kind], Grouping(0, task.hierarchy.depth))


def _searched(request: Request, scene: Scene, best: Priced, found: Found) -> RequestAnswer:
    """The answer with what the search proved of it."""
    pipelined = Pipelined(best.chunks, best.seconds, best.steps)
    answer = program_answer(request, scene, best.program, best.checked, pipelined)
    return replace(answer, status=found.status, bound_s=max(found.bound_s, answer.bound_s))


# Programs for requests beyond the range in which one is proved best (docs/small-model.md).
# The best nest is one (:mod:`p2smt.search.nests`).  And a program over a hierarchy with
# neighbouring levels merged forms groups of the whole hierarchy.  So it is sought there, within the
# range of the small-model theorem, with the costs of the real scene, and checked and costed on the
# real hierarchy.  That no other program is better is not proved.


LISTED_LENGTH = 5
"""Longest programs over merged levels: all of them are listed once, for all scenes."""


def best_merged_levels(sought: SoughtProgram, limits: SearchLimits) -> Found:
    """The best nest, program on merged levels, or of a length in range: FEASIBLE; UNKNOWN if none.

    It is always sought by CP-SAT, since z3 takes few devices only.
    """
    watch, task = StopWatch.start(limits), sought.task
    nest, best = _nest(sought), _listed(sought, watch)
    known = small_model_length(task.hierarchy.depth)
    if sought.pipeline == 1 and known and not watch.expired():
        length = min(task.max_length, known)
        short = replace(task, max_length=length, solver=Solver.CPSAT)
        other = best_program(short, sought.scene, sought.payload_bytes, watch.left()).best
        if other is not None and (best is None or other.seconds < best.seconds):
            best = other
    if nest is not None and (best is None or nest.seconds < best.seconds):
        best = nest
    status = Status.UNKNOWN if best is None else Status.FEASIBLE
    return Found(status, best, 0.0, SolveStats(task.solver, watch.elapsed_s()))


def _listed(sought: SoughtProgram, watch: StopWatch) -> Priced | None:
    """The best of all short programs over each way to merge levels; checked on the whole."""
    best: tuple[Task, ChunkedProgram] | None = None
    for merged in _merged_tasks(sought.task, watch, sought.listings):
        _, programs = sought.listings.of(merged, watch.left())
        found = list(choices(replace(sought, task=merged), programs))
        if found:
            choice = first_choice(found)
            if best is None or choice.seconds < best[1].seconds:
                best = merged, choice
        if watch.expired():
            break
    if best is None:
        return None
    merged, choice = best
    program = merged.program(merged.problem(), choice.program)
    return price(sought.task, program, sought.scene, sought.payload_bytes, choice.chunks)


def _merged_tasks(task: Task, watch: StopWatch, listings: Catalogs) -> Iterator[Task]:
    """The task over every choice of levels to keep apart, as many as programs are listed over.

    Under a time limit fewer levels come first, whose lists are short; they hold nothing that the
    longer lists lack.
    """
    length, depth = min(task.max_length, LISTED_LENGTH), task.hierarchy.depth
    base = replace(task, max_length=length, solver=Solver.CPSAT)
    most = min(depth, LISTED_DEPTH)
    full = list(_cut(base, most))
    if watch.remaining_s() is not None and not listings.has(full[0]):
        for levels in range(1, most):
            yield from _cut(base, levels)
    yield from full


def _cut(task: Task, levels: int) -> Iterator[Task]:
    """The task with its hierarchy merged to so many levels, in every way."""
    for cuts in combinations(range(1, task.hierarchy.depth), levels - 1):
        yield replace(task, hierarchy=task.hierarchy.merged(cuts))
