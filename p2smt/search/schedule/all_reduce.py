"""Schedules of all-reduces over a fabric."""

from __future__ import annotations

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.errors import EncodingBug
from p2smt.problems.schedule import ScheduleSymmetry
from p2smt.problems.sums import AllReduceProblem, ChunkSent, ScheduleClass, SumSchedule
from p2smt.result import Result, SearchLimits
from p2smt.search.schedule.sums_replay import broken_sum_rule, sum_demands
from p2smt.solvers.ask import ask
from p2smt.solvers.questions import Witness
from p2smt.solvers.solver import Solver


def all_reduce_problem(
    fabric: Fabric,
    chunks: int,
    steps: int,
    rounds: int,
    family: ScheduleClass = ScheduleClass.PARTIAL_SUMS,
    messages: int = 1,
    symmetries: tuple[ScheduleSymmetry, ...] = (),
) -> AllReduceProblem:
    """The question whether chunks can be added over all ranks in so many steps and rounds."""
    return AllReduceProblem(
        fabric.ranks,
        fabric.edge_rows,
        fabric.bandwidths,
        chunks,
        steps,
        rounds,
        family,
        messages,
        symmetries,
    )


def all_reduce(
    problem: AllReduceProblem,
    limits: SearchLimits | None = None,
    solver: Solver = Solver.CPSAT,
) -> Result[SumSchedule]:
    """A schedule, replayed: FEASIBLE; INFEASIBLE: its class has none with the symmetries; UNKNOWN.

    Raises:
        InputError: z3 is asked for another class than that of partial sums.
        TooLarge: the problem exceeds a limit of the encoding.
        EncodingBug: the solver's schedule breaks a rule.
    """
    found = ask(problem, Witness(), solver, limits or SearchLimits())
    if found.value is not None and (broken := broken_answer(problem, found.value)):
        raise EncodingBug(broken, problem, found.value)
    return found


def broken_answer(problem: AllReduceProblem, schedule: SumSchedule) -> str | None:
    """The first rule that a schedule breaks, in words; None if it answers the problem."""
    steps, rounds = len(schedule.steps), sum(step.rounds for step in schedule.steps)
    if (steps, rounds) != (problem.steps, problem.rounds):
        return f"it has {steps} steps and {rounds} rounds"
    demands = sum_demands("allreduce", problem.ranks, problem.chunks)
    if otherwise := _decided_otherwise(problem, schedule):
        return otherwise
    once = problem.family is not ScheduleClass.PARTIAL_SUMS
    messages = 1 if once else problem.messages
    return broken_sum_rule(schedule, problem.edges, problem.capacities, demands, messages)


def _decided_otherwise(problem: AllReduceProblem, schedule: SumSchedule) -> str | None:
    """What is not as the problem has it decided."""
    sent = {(s.chunk, s.edge, n) for n, step in enumerate(schedule.steps) for s in step.sends}

    def true(one: ChunkSent) -> bool:
        return ((one.chunk, one.edge, one.step) in sent) is one.sent

    for one in problem.decided:
        if not true(one):
            where = f"over edge {one.edge} in step {one.step + 1}"
            return f"chunk {one.chunk} {where} is decided otherwise"
    for wrong in problem.excluded:
        if all(map(true, wrong)):
            return f"chunk {wrong[0].chunk} is as was excluded"
    return None
