"""The one door to the solvers: a problem, what is asked about it, by whom, within which limits.

All of it and the result is frozen and can be pickled.  Answers are not checked here.
"""

from __future__ import annotations

from typing import Any, Literal, assert_never, overload

from p2smt.errors import InputError
from p2smt.parallelism.placement import Matrix
from p2smt.problems.allocation import AllocationProblem, Counts
from p2smt.problems.claim import Claim
from p2smt.problems.crossing import Coefficients, CrossingProblem, Refutation
from p2smt.problems.placement import PlacementProblem
from p2smt.problems.program import Indices, ProgramProblem
from p2smt.problems.race import RaceAnswer, RaceProblem
from p2smt.problems.redistribution import Moves, RedistributionProblem
from p2smt.problems.schedule import DisseminationProblem, StepSends
from p2smt.problems.sums import AllReduceProblem, SumSchedule
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch
from p2smt.solvers.load import (
    all_reduce_encoding,
    allocation_encoding,
    claim_encoding,
    crossing_encoding,
    dissemination_encoding,
    placement_encoding,
    program_encoding,
    race_encoding,
    redistribution_encoding,
)
from p2smt.solvers.questions import (
    Best,
    Conflict,
    CostKeys,
    Every,
    Multipliers,
    Optimum,
    Proof,
    Question,
    Witness,
)
from p2smt.solvers.solver import Solver

AnyProblem = (
    PlacementProblem
    | ProgramProblem
    | RaceProblem
    | Claim
    | AllocationProblem
    | RedistributionProblem
    | CrossingProblem
    | DisseminationProblem
    | AllReduceProblem
)


@overload
def ask(
    problem: PlacementProblem, question: Optimum, solver: Solver, limits: SearchLimits
) -> Result[Matrix]: ...


@overload
def ask(
    problem: PlacementProblem, question: Every, solver: Solver, limits: SearchLimits
) -> Result[tuple[Matrix, ...]]: ...


@overload
def ask(
    problem: PlacementProblem, question: Conflict, solver: Solver, limits: SearchLimits
) -> Result[tuple[int, ...]]: ...


@overload
def ask(
    problem: ProgramProblem, question: Optimum, solver: Solver, limits: SearchLimits
) -> Result[Indices]: ...


@overload
def ask(
    problem: ProgramProblem, question: Every | Best, solver: Solver, limits: SearchLimits
) -> Result[tuple[Indices, ...]]: ...


@overload
def ask(
    problem: ProgramProblem, question: CostKeys, solver: Solver, limits: SearchLimits
) -> Result[tuple[tuple[int, int], ...]]: ...


@overload
def ask(
    problem: RaceProblem, question: Witness, solver: Literal[Solver.Z3], limits: SearchLimits
) -> Result[RaceAnswer]: ...


@overload
def ask(
    problem: AllocationProblem, question: Optimum, solver: Solver, limits: SearchLimits
) -> Result[Counts]: ...


@overload
def ask(
    problem: RedistributionProblem, question: Optimum, solver: Solver, limits: SearchLimits
) -> Result[Moves]: ...


@overload
def ask(
    problem: Claim, question: Proof, solver: Literal[Solver.Z3], limits: SearchLimits
) -> Result[bool]: ...


@overload
def ask(
    problem: CrossingProblem, question: Witness, solver: Literal[Solver.Z3], limits: SearchLimits
) -> Result[Coefficients]: ...


@overload
def ask(
    problem: CrossingProblem,
    question: Multipliers,
    solver: Literal[Solver.Z3],
    limits: SearchLimits,
) -> Result[Refutation]: ...


@overload
def ask(
    problem: DisseminationProblem, question: Witness, solver: Solver, limits: SearchLimits
) -> Result[tuple[StepSends, ...]]: ...


@overload
def ask(
    problem: AllReduceProblem, question: Witness, solver: Solver, limits: SearchLimits
) -> Result[SumSchedule]: ...


def ask(
    problem: AnyProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    """The solver's answer, with what is proved of it.

    Raises:
        InputError: this is no question about this problem, or the solver has no encoding of it.
        TooLarge: the problem exceeds a limit of the encoding.
        EncodingBug: the solver rejects the encoding.
        KeyboardInterrupt: after the search has been stopped.
    """
    match problem:
        case PlacementProblem():
            return _placement(problem, question, solver, limits)
        case ProgramProblem():
            return _program(problem, question, solver, limits)
        case RaceProblem():
            return _race(problem, question, solver, limits)
        case Claim():
            return _claim(problem, question, solver, limits)
        case AllocationProblem():
            return _allocation(problem, question, solver, limits)
        case RedistributionProblem():
            return _redistribution(problem, question, solver, limits)
        case CrossingProblem():
            return _crossing(problem, question, solver, limits)
        case DisseminationProblem():
            return _dissemination(problem, question, solver, limits)
        case AllReduceProblem():
            return _all_reduce(problem, question, solver, limits)
        case _:
            assert_never(problem)


def _placement(
    problem: PlacementProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    encoding = placement_encoding(solver)
    match question:
        case Optimum():
            return encoding.optimal_placement(problem, limits)
        case Every():
            return encoding.enumerate_placements(problem, limits)
        case Conflict():
            return encoding.conflicting_rules(problem, limits)
        case Best() | CostKeys() | Witness() | Proof() | Multipliers():
            raise _no_question(question, "a placement", "Optimum, Every or Conflict")
        case _:
            assert_never(question)


def _program(
    problem: ProgramProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    encoding = program_encoding(solver)
    match question:
        case Optimum():
            return encoding.optimal_program(problem, limits)
        case Every():
            return encoding.enumerate_programs(problem, limits)
        case Best(count):
            return encoding.best_programs(problem, limits, count)
        case CostKeys():
            watch = StopWatch.start(limits)
            keys = encoding.cost_keys(problem, limits)
            stats = SolveStats(solver.value, watch.elapsed_s(), calls=0)
            if keys is None:
                return Result(Status.UNKNOWN, stats=stats)
            return Result(Status.COMPLETE, tuple(keys), stats=stats)
        case Conflict() | Witness() | Proof() | Multipliers():
            raise _no_question(question, "a program", "Optimum, Every, Best or CostKeys")
        case _:
            assert_never(question)


def _race(
    problem: RaceProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    match question:
        case Witness():
            return race_encoding(solver).wrong_order(problem, limits)
        case Optimum() | Every() | Best() | CostKeys() | Conflict() | Proof() | Multipliers():
            raise _no_question(question, "a race", "Witness")
        case _:
            assert_never(question)


def _claim(claim: Claim, question: Question, solver: Solver, limits: SearchLimits) -> Result[Any]:
    match question:
        case Proof():
            return claim_encoding(solver).prove_claim(claim, limits)
        case Optimum() | Every() | Best() | CostKeys() | Conflict() | Witness() | Multipliers():
            raise _no_question(question, "a claim", "Proof")
        case _:
            assert_never(question)


def _allocation(
    problem: AllocationProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    match question:
        case Optimum():
            return allocation_encoding(solver).optimal_allocation(problem, limits)
        case Every() | Best() | CostKeys() | Conflict() | Witness() | Proof() | Multipliers():
            raise _no_question(question, "an allocation", "Optimum")
        case _:
            assert_never(question)


def _redistribution(
    problem: RedistributionProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    match question:
        case Optimum():
            return redistribution_encoding(solver).optimal_redistribution(problem, limits)
        case Every() | Best() | CostKeys() | Conflict() | Witness() | Proof() | Multipliers():
            raise _no_question(question, "a redistribution", "Optimum")
        case _:
            assert_never(question)


def _crossing(
    problem: CrossingProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    match question:
        case Witness():
            return crossing_encoding(solver).cheaper_somewhere(problem, limits)
        case Multipliers():
            return crossing_encoding(solver).refuted_everywhere(problem, limits)
        case Optimum() | Every() | Best() | CostKeys() | Conflict() | Proof():
            raise _no_question(question, "a crossing", "Witness or Multipliers")
        case _:
            assert_never(question)


def _dissemination(
    problem: DisseminationProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    match question:
        case Witness():
            return dissemination_encoding(solver).any_schedule(problem, limits)
        case Optimum() | Every() | Best() | CostKeys() | Conflict() | Proof() | Multipliers():
            raise _no_question(question, "a dissemination", "Witness")
        case _:
            assert_never(question)


def _all_reduce(
    problem: AllReduceProblem, question: Question, solver: Solver, limits: SearchLimits
) -> Result[Any]:
    match question:
        case Witness():
            return all_reduce_encoding(problem.family, solver).any_schedule(problem, limits)
        case Optimum() | Every() | Best() | CostKeys() | Conflict() | Proof() | Multipliers():
            raise _no_question(question, "an all-reduce", "Witness")
        case _:
            assert_never(question)


def _no_question(question: Question, what: str, known: str) -> InputError:
    return InputError(f"question {question}", f"is none about {what}", f"ask for {known}")
