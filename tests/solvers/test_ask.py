"""The one door to the solvers: what each question answers, and that all of it is plain data."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, assert_type, cast

import pytest

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.problems.placement import (
    CostTable,
    Indices,
    InstructionSet,
    LevelTerm,
    PlacementProblem,
    ProgramProblem,
    StepLimit,
)
from p2smt.problems.race import (
    Access,
    Claim,
    Counting,
    Operator,
    Packet,
    Prefix,
    RaceAnswer,
    RaceProblem,
    Read,
    Source,
    Sum,
    infix,
    named,
    whole,
)
from p2smt.problems.redistribution import Move, MoveRow, RedistributionProblem
from p2smt.result import Result, SearchLimits, Status
from p2smt.solvers.ask import (
    Best,
    CostKeys,
    Every,
    Optimum,
    Proof,
    Question,
    Solver,
    Witness,
    ask,
    solver_of,
)
from tests.interpreter import assert_silent

if TYPE_CHECKING:
    from p2smt.solvers.ask import AnyProblem

LIMITS = SearchLimits()
TABLE = CostTable((LevelTerm(0, (0,)),), {(1,): 5, (2,): 3, (4,): 4})
PLACEMENT = PlacementProblem(
    (4, 4), (4, 4), (AxisRule(1, 0, False), FixedEntry(0, 0, 2)), (TABLE,), excluded=frozenset()
)
PROGRAM = ProgramProblem(
    demand_of(RequestKind.ALL_REDUCE),
    (2,),
    2,
    InstructionSet.of(1),
    limits=(StepLimit(frozenset({0}), 1),),
    costs={(i, rows): i + rows for i in range(5) for rows in (1, 2)},
)
RACE = RaceProblem(
    (0, 0, 0),
    (Access(0, True, 0), Access(1, True, 0), Access(2, False, 0)),
    (Read(2, (Source(0, Sum(((0, 1),))), Source(1, Sum(((1, 1),))))),),
    Sum((), ((0, 1),)),
    ((0, 1),),
    (Counting(0, (0,), (2,)),),
    (Packet(2, (1,)),),
    Prefix((1, 1, 1), (0, 1, 2), (), (2,), None, 3),
)
REDISTRIBUTION = RedistributionProblem(
    (2,),
    (0,),
    (4, 4),
    ((0, 0),),
    ((1, 0),),
    2,
    (MoveRow(Move.ALL_TO_ALL, (1,), (1,), False, False, True, True, 7),),
)
CLAIM = Claim(
    "x",
    "n",
    (infix(Operator.AT_LEAST, named("n"), whole(2)),),
    infix(Operator.MORE, named("n"), whole(1)),
)

ASKED: list[tuple[AnyProblem, Question, tuple[Status, ...]]] = [
    (PLACEMENT, Optimum(), (Status.OPTIMAL,)),
    (PLACEMENT, Every(), (Status.COMPLETE,)),
    (PROGRAM, Optimum(), (Status.OPTIMAL,)),
    (PROGRAM, Every(), (Status.COMPLETE,)),
    (PROGRAM, Best(2), (Status.COMPLETE,)),
    (PROGRAM, CostKeys(), (Status.COMPLETE,)),
    (RACE, Witness(), (Status.FEASIBLE,)),
    (CLAIM, Proof(), (Status.COMPLETE,)),
    (REDISTRIBUTION, Optimum(), (Status.OPTIMAL,)),
]
QUESTIONS: list[Question] = [Optimum(), Every(), Best(2), CostKeys(), Witness(), Proof()]


def asked(problem: AnyProblem, question: Question, solver: Solver) -> Result[Any]:
    """Without the types that rule out what has no answer."""
    return cast(Any, ask)(problem, question, solver, LIMITS)  # type: ignore[no-any-return]


def solvers(problem: AnyProblem) -> list[Solver]:
    """Those with an encoding of the problem."""
    if isinstance(problem, RedistributionProblem):
        return [Solver.CPSAT]
    return [Solver.Z3] if isinstance(problem, RaceProblem | Claim) else list(Solver)


CASES = [(p, q, s, solver) for p, q, s in ASKED for solver in solvers(p)]


@pytest.mark.parametrize(("problem", "question", "statuses", "solver"), CASES)
def test_every_question_is_answered(
    problem: AnyProblem, question: Question, statuses: tuple[Status, ...], solver: Solver
) -> None:
    result = asked(problem, question, solver)
    assert result.status in statuses
    assert result.value is not None
    assert result.stats.solver == solver.value


def answered(problem: AnyProblem) -> list[Question]:
    """The questions that there are about a problem."""
    return [question for one, question, _ in ASKED if one is problem]


@pytest.mark.parametrize("question", [Optimum(), Every(), Best(2)])
@pytest.mark.parametrize("problem", [PLACEMENT, PROGRAM])
def test_solvers_agree(problem: AnyProblem, question: Question) -> None:
    if problem is not PROGRAM and question not in answered(problem):
        return
    first, second = (asked(problem, question, solver) for solver in Solver)
    assert (first.status, first.value, first.bound) == (second.status, second.value, second.bound)


@pytest.mark.parametrize("problem", [PLACEMENT, PROGRAM, RACE, CLAIM, REDISTRIBUTION])
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_cannot_be_asked_is_refused(problem: AnyProblem, question: Question) -> None:
    if any(problem is p and question == q for p, q, _ in ASKED):
        return
    with pytest.raises(InputError, match=r"^question .*: is none about a .*; ask for "):
        asked(problem, question, solvers(problem)[-1])


@pytest.mark.parametrize(("problem", "question"), [(RACE, Witness()), (CLAIM, Proof())])
def test_a_solver_without_an_encoding_is_refused(problem: AnyProblem, question: Question) -> None:
    with pytest.raises(InputError, match=r"^solver 'cpsat' for (races|claims): must be z3$"):
        asked(problem, question, Solver.CPSAT)


def test_no_time_leaves_the_keys_of_a_cost_table_unknown() -> None:
    unseen = replace(PROGRAM, factors=(3, 5), max_length=7, instructions=InstructionSet.of(2))
    result = ask(unseen, CostKeys(), Solver.CPSAT, SearchLimits(time_limit_s=0.0))
    assert (result.status, result.value) == (Status.UNKNOWN, None)


def test_the_type_of_an_answer_follows_from_the_question() -> None:
    """Held by the type checker."""
    z3: Solver = Solver.CPSAT
    assert_type(ask(PLACEMENT, Optimum(), z3, LIMITS), Result[Matrix])
    assert_type(ask(PLACEMENT, Every(), z3, LIMITS), Result[tuple[Matrix, ...]])
    assert_type(ask(PROGRAM, Optimum(), z3, LIMITS), Result[Indices])
    assert_type(ask(PROGRAM, Every(), z3, LIMITS), Result[tuple[Indices, ...]])
    assert_type(ask(PROGRAM, Best(1), z3, LIMITS), Result[tuple[Indices, ...]])
    assert_type(ask(PROGRAM, CostKeys(), z3, LIMITS), Result[tuple[tuple[int, int], ...]])
    assert_type(ask(RACE, Witness(), Solver.Z3, LIMITS), Result[RaceAnswer])
    assert_type(ask(CLAIM, Proof(), Solver.Z3, LIMITS), Result[bool])


def parts(value: object) -> list[object]:
    """A value and all that it holds."""
    found = [value]
    if is_dataclass(value):
        found += [p for field in fields(value) for p in parts(getattr(value, field.name))]
    elif isinstance(value, tuple | frozenset):
        found += [p for part in value for p in parts(part)]
    return found


@pytest.mark.parametrize(("problem", "question", "_statuses", "solver"), CASES)
def test_all_of_it_can_be_pickled_and_is_frozen(
    problem: AnyProblem, question: Question, _statuses: tuple[Status, ...], solver: Solver
) -> None:
    result = asked(problem, question, solver)
    whole_question = (problem, question, solver, LIMITS, result)
    assert pickle.loads(pickle.dumps(whole_question)) == whole_question
    loose = [p for p in parts(whole_question) if is_dataclass(p) and not _frozen(p)]
    assert loose == []
    assert not [p for p in parts(whole_question) if isinstance(p, list | set)]


def _frozen(value: object) -> bool:
    return bool(getattr(type(value), "__dataclass_params__").frozen)  # noqa: B009


def test_solvers_by_name() -> None:
    assert [solver_of("cpsat"), solver_of("z3"), solver_of(Solver.Z3)] == [*Solver, Solver.Z3]
    for name, shown in (("gurobi", "gurobi"), ("CPSAT", "CPSAT"), ("x" * 99, "x" * 20), ("", "")):
        with pytest.raises(InputError, match=f"^solver '{shown}': must be one of cpsat, z3$"):
            solver_of(name)


@pytest.mark.parametrize(("used", "unused"), [("CPSAT", "z3"), ("Z3", "ortools")])
def test_only_the_solver_that_is_asked_is_loaded(used: str, unused: str) -> None:
    code = (
        "import sys\n"
        "from p2smt.problems.placement import PlacementProblem\n"
        "from p2smt.result import SearchLimits\n"
        "from p2smt.solvers.ask import ask\n"
        "from p2smt.solvers.ask import Every\n"
        "from p2smt.solvers.ask import Solver\n"
        "assert not {'z3', 'ortools'} & set(sys.modules)\n"
        f"ask(PlacementProblem((2,), (2,)), Every(), Solver.{used}, SearchLimits())\n"
        f"sys.exit({unused!r} in sys.modules)"
    )
    assert_silent(code)
