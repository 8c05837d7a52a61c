"""The table of reachable states against brute force on the real factors.

In the range of the small-model theorem the table is built on factors of two, so that these are
also tests of the property.
"""

from __future__ import annotations

import pytest

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.encodings.program.reachable import ReachableTable, build_table, exact_table
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.program import Hierarchy, parse_program
from tests.oracles.programs import Oracle, Program, all_programs

KINDS = (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER)
GOAL = 0  # the node of the goal, see ReachableTable
COUNTEREXAMPLE = (
    "reduce-scatter inside l2; reduce-scatter parallel l2 in l1; all-gather inside l2; "
    "all-gather master l2 in l1; reduce-scatter parallel l1 in root; broadcast inside l2; "
    "all-gather parallel l1 in root"
)


def problem(
    factors: tuple[int, ...], length: int, kind: RequestKind = RequestKind.ALL_REDUCE
) -> ProgramProblem:
    return ProgramProblem(demand_of(kind), factors, length, InstructionSet.of(len(factors)))


def paths(table: ReachableTable, length: int) -> dict[Program, tuple[int, ...]]:
    """Programs of the table with the payload rows of their steps."""
    found: dict[Program, tuple[int, ...]] = {}

    def walk(node: int, program: Program, rows: tuple[int, ...], left: int) -> None:
        if node == GOAL:
            assert program not in found
            found[program] = rows
            return
        for arc in table.steps(node, left):
            walk(arc.target, (*program, arc.instruction), (*rows, arc.rows), left - 1)

    walk(table.start, (), (), length)
    return found


CASES = [
    ((2,), 6),
    ((5,), 6),
    ((2, 2), 6),
    ((3, 2), 6),
    ((2, 3), 6),
    ((4, 3), 6),
    ((3, 9), 5),
    ((3,), 7),
    ((3, 2), 8),
    pytest.param((3, 4), 12, marks=pytest.mark.exhaustive),
    ((2, 2, 2), 6),
    ((3, 2, 2), 6),
    pytest.param((2, 3, 2), 6, marks=pytest.mark.exhaustive),
    pytest.param((2, 2, 3), 6, marks=pytest.mark.exhaustive),
    pytest.param((4, 2, 2), 6, marks=pytest.mark.exhaustive),
    pytest.param((3, 2, 5), 4, marks=pytest.mark.exhaustive),
    pytest.param((2, 2, 2, 2), 3, marks=pytest.mark.exhaustive),
    pytest.param((2, 3, 2, 2), 3, marks=pytest.mark.exhaustive),
    pytest.param((3, 2, 5), 6, marks=pytest.mark.exhaustive),
    pytest.param((3, 3, 3), 6, marks=pytest.mark.exhaustive),
    pytest.param((2, 2, 2, 2), 4, marks=pytest.mark.exhaustive),
    pytest.param((3, 2, 2, 2), 4, marks=pytest.mark.exhaustive),
    pytest.param((2, 2, 2, 3), 4, marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("factors", "length"), CASES)
def test_paths_are_the_programs_of_brute_force(
    factors: tuple[int, ...], length: int, kind: RequestKind
) -> None:
    task = problem(factors, length, kind)
    assert task.small_model
    assert paths(build_table(task), length) == all_programs(task)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("factors", "length"),
    [
        ((3, 2, 2), 7),
        pytest.param((2, 2, 2), 8, marks=pytest.mark.exhaustive),
        pytest.param((2, 2, 3), 7, marks=pytest.mark.exhaustive),
    ],
)
def test_longer_programs_on_the_real_factors(
    factors: tuple[int, ...], length: int, kind: RequestKind
) -> None:
    task = problem(factors, length, kind)
    assert task.model_factors == factors
    assert paths(build_table(task), length) == all_programs(task)


SHORT = [((3,), 2), ((3, 2), 3), ((2, 2, 2), 4), ((2, 2, 2, 2), 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("factors", "most"), SHORT)
def test_short_lengths(factors: tuple[int, ...], most: int, kind: RequestKind) -> None:
    """What is dropped before the last step is another thing at each length."""
    every = all_programs(problem(factors, most, kind))
    for length in range(1, most + 1):
        shorter = {p: rows for p, rows in every.items() if len(p) <= length}
        assert paths(build_table(problem(factors, length, kind)), length) == shorter


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_five_levels(kind: RequestKind) -> None:
    task = problem((2, 2, 2, 2, 2), 3, kind)
    assert paths(build_table(task), 3) == all_programs(task)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factors", [(2, 2), (3, 2)])
def test_the_table_on_the_real_factors(factors: tuple[int, ...], kind: RequestKind) -> None:
    task = problem(factors, 4, kind)
    assert paths(exact_table(task), 4) == all_programs(task)


def test_numbers_of_programs() -> None:
    counts = {(2, 2): 61, (2, 2, 2): 848}
    assert len(paths(build_table(problem((2, 2, 2, 2), 5)), 5)) == 3611
    for factors, count in counts.items():
        assert len(paths(build_table(problem(factors, 5)), 5)) == count
        assert len(all_programs(problem(factors, 5))) == count
    assert len(all_programs(problem((2, 2, 2), 3))) == 51


def counterexample() -> Program:
    """Instruction indices of the program at which the small-model theorem ends."""
    hierarchy, items = Hierarchy.plain((2, 2, 2)), InstructionSet.of(3).items
    steps = parse_program(COUNTEREXAMPLE).instructions
    return tuple(items.index((i.collective, hierarchy.grouping(i))) for i in steps)


@pytest.mark.exhaustive
def test_where_the_small_model_ends() -> None:
    program = counterexample()
    for factors, valid in {(2, 2, 2): True, (2, 3, 2): True, (3, 2, 2): False}.items():
        task = problem(factors, 7)
        assert (program in paths(build_table(task), 7)) is valid
        assert (program in all_programs(task)) is valid


def test_the_counterexample_fails_at_step_six() -> None:
    oracle = Oracle(problem((3, 2, 2), 7))
    state, taken = oracle.start, 0
    for instruction in counterexample():
        after = {step.instruction: step.after for step in oracle.steps(state)}
        if instruction not in after:
            break
        state, taken = after[instruction], taken + 1
    assert taken == 5


def test_forbidden_instructions_are_left_out() -> None:
    task = problem((2, 3), 4)
    forbidden = frozenset(range(0, 20, 3))
    found = build_table(
        ProgramProblem(task.demand, task.factors, 4, task.instructions, forbidden=forbidden)
    )
    allowed = {p: rows for p, rows in all_programs(task).items() if not forbidden & set(p)}
    assert paths(found, 4) == allowed


def test_need_is_the_least_number_of_steps() -> None:
    task = problem((2, 2), 4)
    table = build_table(task)
    least = min(map(len, all_programs(task)))
    assert table.need[table.start] == least
    for node, arcs in table.arcs.items():
        assert table.need[node] == 1 + min(table.need[a.target] for a in arcs)


@pytest.mark.parametrize("kind", KINDS)
def test_one_device_needs_no_step(kind: RequestKind) -> None:
    assert paths(build_table(problem((), 3, kind)), 3) == all_programs(problem((), 3, kind))
