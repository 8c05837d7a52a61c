"""The small-model theorem up to 8 levels, by the table of states on the real factors.

A lockstep by the semantics alone (test_small_model.py) would take days there.  The table on the
real factors, which rests on no property, is held against brute force where that ends
(tests/encodings/test_program_reachable.py).
"""

from __future__ import annotations

import pytest

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.encodings.program import reachable_search
from p2smt.encodings.program import reachable_search as reachable_contents
from p2smt.encodings.program.reachable import ReachableTable, build_table, exact_table
from p2smt.encodings.program.reachable_search import GOAL
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.check import ListChecker
from p2smt.programs.program import MODEL_DEPTH, SMALL_MODEL_LENGTH, Hierarchy, Program

KINDS = (RequestKind.ALL_REDUCE, RequestKind.REDUCE_SCATTER, RequestKind.ALL_GATHER)
FIVE = [
    (3, 2, 2, 2, 2),
    (2, 3, 2, 2, 2),
    (2, 2, 3, 2, 2),
    (2, 2, 2, 3, 2),
    (2, 2, 2, 2, 3),
    (4, 2, 2, 2, 2),
    (2, 2, 2, 2, 4),
    (2, 3, 5, 2, 2),
]
SIX = [(2,) * n + (3,) + (2,) * (5 - n) for n in range(6)]


def problem(factors: tuple[int, ...], length: int, kind: RequestKind) -> ProgramProblem:
    return ProgramProblem(demand_of(kind), factors, length, InstructionSet.of(len(factors)))


def difference(one: ReachableTable, other: ReachableTable, length: int) -> tuple[int, ...] | None:
    """A shortest word after which the tables differ in an instruction or its payload; or None."""
    layer = {(one.start, other.start): tuple[int, ...]()}
    for left in range(length, 0, -1):
        after: dict[tuple[int, int], tuple[int, ...]] = {}
        for (a, b), word in layer.items():
            ours = {(arc.instruction, arc.rows): arc.target for arc in one.steps(a, left)}
            theirs = {(arc.instruction, arc.rows): arc.target for arc in other.steps(b, left)}
            if ours.keys() != theirs.keys():
                return word
            for step, target in ours.items():
                after.setdefault((target, theirs[step]), (*word, step[0]))
        layer = after
    return None


@pytest.fixture(autouse=True)
def more_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable_search, "MAX_NODES", 4_000_000)
    monkeypatch.setattr(reachable_search, "MAX_HELD", 1 << 32)
    monkeypatch.setattr(reachable_contents, "MAX_BITS", 1 << 36)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("real", "length"),
    [
        (FIVE[0], 3),
        pytest.param(FIVE[4], 5, marks=pytest.mark.exhaustive),
        *(pytest.param(real, SMALL_MODEL_LENGTH, marks=pytest.mark.evidence) for real in FIVE),
    ],
)
def test_five_levels(real: tuple[int, ...], kind: RequestKind, length: int) -> None:
    task = problem(real, length, kind)
    assert task.small_model
    assert difference(build_table(task), exact_table(task), length) is None


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_four_levels(kind: RequestKind) -> None:
    task = problem((3, 2, 2, 2), SMALL_MODEL_LENGTH, kind)
    assert difference(build_table(task), exact_table(task), SMALL_MODEL_LENGTH) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("real", "length"),
    [
        (SIX[0], 2),
        pytest.param(SIX[2], 3, marks=pytest.mark.exhaustive),
        pytest.param((2,) * 7, 3, marks=pytest.mark.exhaustive),
        pytest.param((2,) * 8, 2, marks=pytest.mark.exhaustive),
        *(pytest.param(real, 4, marks=pytest.mark.evidence) for real in SIX),
        pytest.param(SIX[0], 5, marks=pytest.mark.evidence),
        pytest.param(SIX[5], 5, marks=pytest.mark.evidence),
        pytest.param((2,) * 7, 4, marks=pytest.mark.evidence),
        pytest.param((2,) * 7, 5, marks=pytest.mark.evidence),
        pytest.param((2,) * 8, 4, marks=pytest.mark.evidence),
    ],
)
def test_more_levels(real: tuple[int, ...], kind: RequestKind, length: int) -> None:
    """Put together from tables over merged levels."""
    assert len(real) > MODEL_DEPTH
    task = problem(real, length, kind)
    assert task.small_model
    assert difference(build_table(task), exact_table(task), length) is None


Lines = frozenset[tuple[int, int]]
"""Of a program: from where groups begin to where they end, as depths."""


def drawn(task: ProgramProblem, table: ReachableTable) -> dict[int, set[Lines]]:
    """The lines of the programs of each length."""
    layer, found = {(table.start, Lines())}, dict[int, set[Lines]]()
    for step in range(1, task.max_length + 1):
        after = set()
        for node, lines in layer:
            for arc in table.steps(node, task.max_length - step + 1):
                _, grouping = task.instructions.items[arc.instruction]
                after.add((arc.target, lines | {(grouping.outer, grouping.inner)}))
        found[step] = {lines for node, lines in after if node == GOAL}
        layer = {(node, lines) for node, lines in after if node != GOAL}
    return found


def joined(lines: Lines, depth: int) -> bool:
    """Whether the lines join all their ends, both ends of the hierarchy among them."""
    reached, left = {0}, set(lines)
    while touching := {line for line in left if reached & {*line}}:
        reached.update(*touching)
        left -= touching
    return not left and depth in reached


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("depth", "length"),
    [
        (3, 6),
        (4, 4),
        pytest.param(4, 6, marks=pytest.mark.exhaustive),
        pytest.param(5, 5, marks=pytest.mark.exhaustive),
        pytest.param(6, 4, marks=pytest.mark.exhaustive),
        pytest.param(5, 6, marks=pytest.mark.evidence),
        pytest.param(6, 5, marks=pytest.mark.evidence),
        pytest.param(7, 4, marks=pytest.mark.evidence),
        pytest.param(7, 5, marks=pytest.mark.evidence),
        pytest.param(8, 4, marks=pytest.mark.evidence),
    ],
)
def test_a_program_tells_no_more_levels_apart_than_it_has_steps(
    depth: int, length: int, kind: RequestKind
) -> None:
    """Tables of all levels at once, which put nothing together."""
    task = problem((2,) * depth, length, kind)
    found = drawn(task, exact_table(task))
    most = 0
    for step, programs in found.items():
        assert [lines for lines in programs if not joined(lines, depth)] == []
        apart = {len({end for line in lines for end in line}) - 1 for lines in programs}
        assert max(apart, default=0) <= step
        most = max(most, *apart, 0)
    assert most == min(depth, length)


def test_a_difference_is_found() -> None:
    """Programs of 5 steps that a table for 4 lacks, and other payloads."""
    long, short, other = (
        exact_table(problem(factors, length, RequestKind.ALL_REDUCE))
        for factors, length in (((2, 2, 2), 5), ((2, 2, 2), 4), ((3, 2, 2), 5))
    )
    assert difference(long, long, 5) is None
    assert difference(long, short, 4) is None
    assert difference(long, short, 5) is not None
    assert difference(long, other, 5) == ()


@pytest.mark.evidence
@pytest.mark.parametrize("real", FIVE[:5])
def test_every_program_of_five_levels_is_valid_by_the_semantics(real: tuple[int, ...]) -> None:
    task = problem(real, 5, RequestKind.ALL_REDUCE)
    table, hierarchy, checked = build_table(task), Hierarchy.plain(real), 0
    checker = ListChecker(task.demand, hierarchy)
    paths: list[tuple[int, Program]] = [(table.start, Program(()))]
    for left in range(task.max_length, 0, -1):
        onward = []
        for node, program in paths:
            for arc in table.steps(node, left):
                step = hierarchy.instruction(*task.instructions.items[arc.instruction])
                onward.append((arc.target, Program((*program.instructions, step))))
        done = [program for node, program in onward if node == GOAL]
        assert [str(p) for p in done if checker.violation(p) is not None] == []
        checked += len(done)
        paths = [path for path in onward if path[0] != GOAL]
    assert checked == 9717
