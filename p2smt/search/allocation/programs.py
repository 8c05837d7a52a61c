"""Programs for requests on a rank list: sought on a small regular group, kept where they hold.

The groups of a rank list are cut unequally, so no encoding describes them.  Every program of the
instructions that all groups can follow is listed on a group that each level splits two ways
(docs/small-model.md), priced on the real groups, and the cheapest that the semantics accept there
is taken.  The list may lack a program that is valid on the real groups alone, so nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from p2smt.collectives.demand import Chunks, demand_of
from p2smt.collectives.names import Collective
from p2smt.cost.pipeline import Pipelined
from p2smt.errors import InputError
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.restrictions import broken_rules
from p2smt.plans.rank_answer import rank_answer
from p2smt.plans.rank_program import check_on_ranks, rank_program_answer
from p2smt.plans.rank_scene import RankScene
from p2smt.plans.solution import SAME, Alternative, RequestAnswer, Solution, objective
from p2smt.problems.program import ProgramProblem
from p2smt.programs.parts import CutGroup, UnevenSlicesError, common_hierarchy
from p2smt.programs.program import (
    SMALL_MODEL_LENGTH,
    Hierarchy,
    Instruction,
    Program,
)
from p2smt.programs.semantics import MAX_DEVICES
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.allocation.orders import host_order, sorted_hosts
from p2smt.search.programs import Task, checked_listing
from p2smt.search.programs_pipelined import LISTED_DEPTH
from p2smt.solvers.solver import Solver, solver_of
from p2smt.units import format_time

MAX_SOUGHT = 20_000
"""Programs that are listed for a request at most."""
MAX_TRIED = 200
"""Of the cheapest that are not valid on the real groups, so many are tried."""


def with_programs(
    problem: Problem,
    ranks: RankList,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
) -> Alternative:
    """The rank list with the best program found for each request, or its one collective.

    ``objective_s`` is that of these programs; its status is FEASIBLE: other programs may be faster.
    ``problem.topology`` names its hosts, all of which have ranks.

    Raises:
        InputError: the topology names no hosts, or the ranks do not fit it.
    """
    ranks.check(problem.topology)
    watch, chosen = StopWatch.start(limits or SearchLimits()), solver_of(solver)
    answers = tuple(_answer(problem, request, ranks, watch, chosen) for request in problem.requests)
    total_s = objective(problem, tuple(answer.seconds for answer in answers))
    return Alternative(None, answers, total_s, Status.FEASIBLE, ranks)


def sorted_note(
    found: Solution, seconds: float, limits: SearchLimits, solver: Solver
) -> tuple[str, ...]:
    """Says so if the hosts of an answer, sorted by their switches, are faster with programs.

    ``seconds``: what the answer takes with its own.  That an order is the best with one collective
    per request does not make it so with programs.
    """
    problem, best = found.problem, found.best
    hosts = problem.topology.hosts
    if hosts is None or best is None:
        return ()
    devices = host_order(problem, sorted_hosts(problem, hosts.names)).ravel().tolist()
    ranks = RankList(tuple(devices), problem.axis_sizes)
    if ranks == best.rank_list or any(broken_rules(problem, ranks)):
        return ()
    other_s = with_programs(problem, ranks, limits, solver).objective_s
    if other_s >= seconds * (1 - SAME):
        return ()
    text = f"with programs of their own the hosts sorted by switch take {format_time(other_s)}"
    return (f"{text}, this order {format_time(seconds)}",)


def _answer(
    problem: Problem, request: Request, ranks: RankList, watch: StopWatch, solver: Solver
) -> RequestAnswer:
    single, scene = rank_answer(problem, request, ranks), RankScene.of(problem, request, ranks)
    if not request.kind.has_programs or not 1 < scene.size <= MAX_DEVICES or watch.expired():
        return single
    for program, timed in _cheapest(scene, single.seconds, watch, solver):
        found = _checked(scene, ranks, program, timed)
        if found is not None:
            return found if found.seconds < single.seconds * (1 - SAME) else single
        if watch.expired():
            break
    return single


def _checked(
    scene: RankScene, ranks: RankList, program: Program, timed: Pipelined
) -> RequestAnswer | None:
    """A program as the answer, if it is valid on the real groups."""
    trace = check_on_ranks(scene, program).trace
    if trace.violation is not None:
        return None
    timed = scene.timed(program, trace.payload_rows)
    return rank_program_answer(scene, ranks, program, trace, timed)


def _cheapest(
    scene: RankScene, below_s: float, watch: StopWatch, solver: Solver
) -> Iterator[tuple[Program, Pipelined]]:
    """Programs of the list that take less time, the fastest first; a limited number."""
    priced = []
    for program in _listed(scene, watch, solver):
        rows = _payload_rows(scene, program)
        if rows is not None:
            timed = scene.timed(program, rows)
            if timed.seconds < below_s * (1 - SAME):
                priced.append((program, timed))
        if watch.expired():
            break
    priced.sort(key=lambda one: (one[1].seconds, len(one[0]), str(one[0])))
    yield from priced[:MAX_TRIED]


def _listed(scene: RankScene, watch: StopWatch, solver: Solver) -> Sequence[Program]:
    """Every program of the small regular group of instructions that the real ones can follow."""
    problem, request = scene.problem, scene.request
    hierarchy = _small(scene)
    task = Task(
        request.kind,
        hierarchy,
        min(problem.max_length, SMALL_MODEL_LENGTH),
        problem.forbidden_forms,
        problem.step_limits,
        solver,
    )
    asked = task.problem()
    asked = replace(asked, forbidden=asked.forbidden | _impossible(scene, task, asked))
    limits = replace(watch.left(), max_answers=MAX_SOUGHT)
    result, _ = checked_listing(task, asked, hierarchy, limits)
    return [task.program(asked, indices) for indices in result.value or ()]


def _small(scene: RankScene) -> Hierarchy:
    """Levels that split some group, each two ways; the outermost ones merged if there are many."""
    hierarchy = common_hierarchy(scene.cut)
    if hierarchy.depth <= LISTED_DEPTH:
        return hierarchy
    kept = range(1 + hierarchy.depth - LISTED_DEPTH, hierarchy.depth)
    merged = hierarchy.merged(tuple(kept))
    return replace(merged, factors=(2,) * merged.depth)


def _impossible(scene: RankScene, task: Task, problem: ProgramProblem) -> set[int]:
    """Instructions, by number, that some group's slices are too uneven for."""
    distinct = tuple(dict.fromkeys(scene.cut))
    return {
        number
        for number, item in enumerate(problem.instructions.items)
        if not _possible(distinct, task.hierarchy.instruction(*item))
    }


def _possible(cut: Sequence[CutGroup], instruction: Instruction) -> bool:
    try:
        groups = [parts.groups(instruction) for parts in cut]
    except (UnevenSlicesError, InputError):
        return False
    return any(groups)


def _payload_rows(scene: RankScene, program: Program) -> tuple[int, ...] | None:
    """Payload of each step, by how many rows members hold; None where one cannot run.

    What members hold follows from numbers alone as long as the program is valid, which is checked
    afterwards.
    """
    start = demand_of(scene.request.kind).start.chunks
    first = 1 if start is Chunks.OWN else scene.size
    most = [0] * len(program)
    for parts in dict.fromkeys(scene.cut):
        held = [first] * scene.size
        for number, instruction in enumerate(program.instructions):
            for group in parts.groups(instruction):
                rows = _moved(instruction.collective, group, held)
                if rows is None:
                    return None
                most[number] = max(most[number], rows)
    return tuple(most)


def _moved(collective: Collective, group: Sequence[int], held: list[int]) -> int | None:
    """Rows that a group works on; ``held`` becomes what its members have afterwards."""
    rows, members = held[group[0]], len(group)
    if collective is Collective.ALL_GATHER:
        rows *= members
    after = rows
    if collective is Collective.REDUCE_SCATTER:
        after, uneven = divmod(rows, members)
        if uneven:
            return None
    for number, member in enumerate(group):
        held[member] = 0 if collective is Collective.REDUCE and number else after
    return rows
