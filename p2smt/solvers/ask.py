"""The one door to the solvers: a problem, what is asked about it, by whom, within which limits.

All of it and the result is frozen and can be pickled.  Answers are not checked here.  ``DOORS`` is
the list of all encodings: ``encodings/FOLDER/SOLVER.py`` has the functions that a row names, and is
imported when it is first asked, for solver libraries are heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from p2smt.encodings import cpsat_library, interruptible
from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from p2smt.parallelism.placement import Matrix
    from p2smt.problems.allocation import AllocationProblem, Counts
    from p2smt.problems.crossing import Coefficients, CrossingProblem, Refutation
    from p2smt.problems.flow import FlowPrices, FlowProblem
    from p2smt.problems.packing import PackingProblem, PackingShares
    from p2smt.problems.placement import Indices, PlacementProblem, ProgramProblem
    from p2smt.problems.race import Claim, RaceAnswer, RaceProblem
    from p2smt.problems.redistribution import Moves, RedistributionProblem
    from p2smt.problems.schedule import (
        AllReduceProblem,
        DisseminationProblem,
        StepSends,
        SumSchedule,
    )
    from p2smt.problems.transfer import PieceFlows, PieceProblem, TransferFlows, TransferProblem
    from p2smt.result import Result, SearchLimits

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
        | PieceProblem
    )

# What can be asked about a problem, as frozen data: the second half of a question to a solver.


@dataclass(frozen=True, slots=True)
class Optimum:
    """The answer of least cost; of several, the first in the order of the problem's answers.

    OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN.
    """


@dataclass(frozen=True, slots=True)
class Every:
    """All answers, each once, in order: COMPLETE (an empty tuple if there is none), TRUNCATED."""


@dataclass(frozen=True, slots=True)
class Best:
    """The ``count`` answers of least cost in order (all, if there are fewer).

    COMPLETE if the order is proved, else TRUNCATED.
    """

    count: int


@dataclass(frozen=True, slots=True)
class CostKeys:
    """The (instruction, payload rows) pairs, sorted, that a program's cost table must cover.

    COMPLETE, or UNKNOWN if the time ran out before they were known.
    """


@dataclass(frozen=True, slots=True)
class Conflict:
    """Rules of a placement that leave no answer together: INFEASIBLE with their indices.

    Excluded matrices and costs play no part.  FEASIBLE without a value: they have an answer; or
    UNKNOWN.
    """


@dataclass(frozen=True, slots=True)
class Witness:
    """One answer, whichever: FEASIBLE; INFEASIBLE: proved that there is none; UNKNOWN."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a claim holds: COMPLETE with True, or UNKNOWN; never a proof of the contrary."""


@dataclass(frozen=True, slots=True)
class Multipliers:
    """Farkas multipliers that refute every answer: COMPLETE; INFEASIBLE: there is one; UNKNOWN."""


Question = Optimum | Every | Best | CostKeys | Conflict | Witness | Proof | Multipliers


# The solvers by name.


class Solver(StrEnum):
    """Which solver answers; encodings of one problem give the same proved answers for each."""

    CPSAT = "cpsat"
    Z3 = "z3"


def solver_of(name: str) -> Solver:
    """The solver with this name.

    Raises:
        InputError: there is none.
    """
    if name not in list(Solver):
        raise InputError(f"solver {name[:20]!r}", f"must be one of {', '.join(Solver)}")
    return Solver(name)


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
    problem: RedistributionProblem,
    question: Optimum,
    solver: Literal[Solver.CPSAT],
    limits: SearchLimits,
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


@overload
def ask(
    problem: PieceProblem, question: Optimum, solver: Solver, limits: SearchLimits
) -> Result[PieceFlows]: ...


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
    door = _door(problem)
    function = door.functions.get(type(question))
    if function is None:
        known = " or ".join(", ".join(kind.__name__ for kind in door.functions).rsplit(", ", 1))
        raise InputError(f"question {question}", f"is none about {door.one}", f"ask for {known}")
    more = (question.count,) if isinstance(question, Best) else ()
    answer: Result[Any] = getattr(_encoding(door, solver), function)(problem, limits, *more)
    return answer


@dataclass(frozen=True, slots=True)
class Door:
    """The encodings of a problem: their folder, the solvers that have one, functions by question.

    ``one`` and ``all`` name the problem in messages.
    """

    one: str
    all: str
    folder: str
    solvers: tuple[Solver, ...]
    functions: Mapping[type[Question], str]


_CPSAT, _Z3, _BOTH = (Solver.CPSAT,), (Solver.Z3,), tuple(Solver)
_ANY_SCHEDULE: Mapping[type[Question], str] = {Witness: "any_schedule"}

DOORS: Mapping[str, Door] = {
    "PlacementProblem": Door(
        *("a placement", "placements", "placement", _BOTH),
        {
            Optimum: "optimal_placement",
            Every: "enumerate_placements",
            Conflict: "conflicting_rules",
        },
    ),
    "ProgramProblem": Door(
        *("a program", "programs", "program", _BOTH),
        {
            Optimum: "optimal_program",
            Every: "enumerate_programs",
            Best: "best_programs",
            CostKeys: "cost_keys",
        },
    ),
    "RaceProblem": Door("a race", "races", "race", _Z3, {Witness: "wrong_order"}),
    "Claim": Door("a claim", "claims", "claim", _Z3, {Proof: "prove_claim"}),
    "AllocationProblem": Door(
        *("an allocation", "allocations", "allocation", _BOTH), {Optimum: "optimal_allocation"}
    ),
    "RedistributionProblem": Door(
        *("a redistribution", "redistributions", "redistribution", _CPSAT),
        {Optimum: "optimal_redistribution"},
    ),
    "CrossingProblem": Door(
        *("a crossing", "crossings", "crossing", _Z3),
        {Witness: "cheaper_somewhere", Multipliers: "refuted_everywhere"},
    ),
    "DisseminationProblem": Door(
        *("a dissemination", "disseminations", "schedule.dissemination", _BOTH), _ANY_SCHEDULE
    ),
    "PieceProblem": Door(
        *("a transfer of pieces", "transfers of pieces", "transfer", _BOTH),
        {Optimum: "best_pieces"},
    ),
}
"""By the class of the problem; its module is not imported here."""
ALL_REDUCE_DOORS: Mapping[str, Door] = {
    family: Door(
        "an all-reduce", f"all-reduces of class {family!r}", folder, solvers, _ANY_SCHEDULE
    )
    for family, folder, solvers in (
        ("trees", "schedule.trees", _CPSAT),
        ("accumulators", "schedule.accumulators", _CPSAT),
        ("partial-sums", "schedule.partials", _BOTH),
    )
}
"""One problem by its class of schedules, each with a model of its own."""


def _door(problem: AnyProblem) -> Door:
    door = DOORS.get(type(problem).__name__)
    return door or ALL_REDUCE_DOORS[cast("AllReduceProblem", problem).family]


def _encoding(door: Door, solver: Solver) -> Any:
    if solver not in door.solvers:
        given, known = f"solver {solver.value!r} for {door.all}", ", ".join(door.solvers)
        raise InputError(given, f"must be {known}")
    if solver is Solver.CPSAT:
        cpsat_library.load_cpsat()
    return import_module(f"p2smt.encodings.{door.folder}.{solver.value}")


def ask_prices(problem: FlowProblem, limits: SearchLimits) -> Result[FlowPrices]:
    """The prices of the greatest bound: OPTIMAL; INFEASIBLE: some way is too long; UNKNOWN.

    A linear program, for which there is one solver, so nobody chooses.  The prices are floats:
    nothing is proved by them as they are.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
        KeyboardInterrupt: after the search has been stopped.
    """
    import p2smt.encodings.schedule.flow.glop as glop

    return glop.best_prices(problem, limits)


def ask_flows(problem: TransferProblem, limits: SearchLimits) -> Result[TransferFlows]:
    """The least time of a transfer's averages, with shares and prices: OPTIMAL or UNKNOWN.

    A linear program, for which there is one solver, so nobody chooses.  Shares and prices are
    floats: nothing is proved by them as they are.

    Raises:
        TooLarge: the problem exceeds a limit of the encoding.
        KeyboardInterrupt: after the search has been stopped.
    """
    import p2smt.encodings.transfer.glop as glop

    return glop.least_time(problem, limits)


def ask_packing(problem: PackingProblem, limits: SearchLimits) -> Result[PackingShares]:
    """Weights of trees that load the busiest capacity least, with prices: OPTIMAL or UNKNOWN.

    A linear program, for which there is one solver, so nobody chooses.  Weights and prices are
    floats: nothing is proved by them as they are.

    Raises:
        KeyboardInterrupt: after the search has been stopped.
    """
    import p2smt.encodings.schedule.packing.glop as glop

    return glop.least_load(problem, limits)


def stopping_when(useless: Callable[[int | None], bool]) -> AbstractContextManager[None]:
    """Within it, solvers that this thread asks are stopped as soon as ``useless`` says so.

    It is asked before each solve and about every 50 ms, with the lower bound in ticks that the
    solve has proved so far, rounded down (None: nothing is known, or no ticks are minimised).  A
    solve that is stopped answers as if its time had run out: FEASIBLE, UNKNOWN or TRUNCATED, with
    the bound that it has proved.
    """
    return interruptible.stopping_when(useless)
