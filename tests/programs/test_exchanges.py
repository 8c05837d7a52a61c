"""The meaning of an all-to-all's programs, against every block moved by hand; both encodings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, product
from typing import Literal

import pytest

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Form, RequestKind
from p2smt.errors import InputError
from p2smt.problems.placement import InstructionSet
from p2smt.programs.check import check_program, list_checker
from p2smt.programs.exchanges import exchange_trace, is_delivered, start_places
from p2smt.programs.preconditions import ViolationKind
from p2smt.programs.program import Grouping, Hierarchy, Program, parse_program
from p2smt.result import SearchLimits, Status
from p2smt.search.program_synthesis import Task, list_programs
from p2smt.solvers.ask import Best, CostKeys, Optimum, Solver, ask
from tests.tiers import but_the_first

KIND: Literal[RequestKind.ALL_TO_ALL] = RequestKind.ALL_TO_ALL
DEMAND = demand_of(KIND)
Digits = tuple[int, ...]
Block = tuple[Digits, Digits]


def delivered(factors: Sequence[int], steps: Sequence[Grouping]) -> bool:
    """Whether library all-to-alls deliver every block, in the order of its source.

    By hand: buffers are lists; the message to a member are the blocks whose destination has its
    digits, in the order of the buffer, and must be as many for all, as all_to_all_single wants it;
    what is received fills the gaps in the order of the members.
    """
    ranks: list[Digits] = list(product(*map(range, factors)))
    held: dict[Digits, list[Block]] = {r: [(r, d) for d in ranks] for r in ranks}
    for step in steps:
        span = slice(step.outer, step.inner)
        sent: dict[tuple[Digits, Digits], list[Block]] = {}
        gaps: dict[tuple[Digits, Digits], list[int]] = {}
        for rank in ranks:
            members = [m for m in ranks if _apart(rank, span) == _apart(m, span)]
            for member in members:
                mine = [n for n, (_, d) in enumerate(held[rank]) if d[span] == member[span]]
                if len(mine) * len(members) != len(ranks):
                    return False
                sent[rank, member] = [held[rank][n] for n in mine]
                gaps[rank, member] = mine
        for (rank, member), places in gaps.items():
            for place, block in zip(places, sent[member, rank], strict=True):
                held[rank][place] = block
    return all(held[d] == [(s, d) for s in ranks] for d in ranks)


def _apart(rank: Digits, span: slice) -> Digits:
    return rank[: span.start] + rank[span.stop :]


def orders(depth: int) -> Iterator[tuple[Grouping, ...]]:
    """Every sequence of up to ``depth`` steps, valid or not; of up to two levels one more."""
    every = [g for _, g in InstructionSet.of_exchanges(depth).items]
    longest = depth if depth > 2 else depth + 1
    return chain.from_iterable(product(every, repeat=n) for n in range(1, longest + 1))


def program_of(hierarchy: Hierarchy, steps: Sequence[Grouping]) -> Program:
    return Program(tuple(hierarchy.instruction(KIND, step) for step in steps))


@pytest.mark.parametrize("factors", but_the_first((3, 2), (2, 2, 2), (2, 3, 2), (6,), (2, 4)))
def test_every_sequence_of_steps_means_what_the_blocks_do(factors: Digits) -> None:
    hierarchy = Hierarchy.plain(factors)
    outcomes = set[bool]()
    for steps in orders(len(factors)):
        trace = exchange_trace(hierarchy, program_of(hierarchy, steps), factors)
        early = any(delivered(factors, steps[:n]) for n in range(len(steps)))
        assert (trace.violation is None) is (delivered(factors, steps) and not early)
        outcomes.add(trace.violation is None)
        if trace.violation is None:
            assert trace.payload_rows == (math.prod(factors),) * len(steps)
            assert trace.peak_rows == 2 * math.prod(factors)
    assert outcomes == ({True, False} if len(factors) > 1 else {True, False} & outcomes)


def listed(factors: Digits, solver: Solver, length: int = 5) -> set[str]:
    task = Task(KIND, Hierarchy.plain(factors), length, solver=solver)
    result, _ = list_programs(task, SearchLimits())
    assert result.status is Status.COMPLETE
    return set(map(str, result.value or ()))


def brute_force(factors: Digits, length: int) -> set[str]:
    hierarchy, found = Hierarchy.plain(factors), set[str]()
    for steps in orders(len(factors)):
        early = any(delivered(factors, steps[:n]) for n in range(len(steps)))
        if len(steps) <= length and delivered(factors, steps) and not early:
            found.add(str(program_of(hierarchy, steps)))
    return found


@pytest.mark.parametrize("factors", but_the_first((2, 3), (2,), (3, 2), (2, 2, 2), (3, 2, 2)))
@pytest.mark.parametrize("length", [1, 2, 5])
def test_both_encodings_list_what_brute_force_finds(factors: Digits, length: int) -> None:
    expected = brute_force(factors, length)
    for solver in Solver:
        assert listed(factors, solver, length) == expected


@pytest.mark.parametrize(("depth", "count"), [(1, 1), (2, 3), (3, 11), (4, 49), (5, 261)])
def test_programs_are_the_ordered_tilings_of_the_levels(depth: int, count: int) -> None:
    assert len(listed((2,) * depth, Solver.CPSAT)) == count


@pytest.mark.parametrize("limit", [0, 1])
def test_restrictions_are_of_several_steps_alone(limit: int) -> None:
    task = Task(KIND, Hierarchy.plain((2, 3)), 5, frozenset({Form.PARALLEL}), (("l1", limit),))
    for solver in Solver:
        one = Task(task.kind, task.hierarchy, 5, task.forbidden_forms, task.step_limits, solver)
        result, _ = list_programs(one, SearchLimits())
        assert [str(program) for program in result.value or ()] == ["all-to-all inside root"]


@pytest.mark.parametrize("tied", [False, True])
def test_encodings_agree_on_the_best_and_on_the_order(tied: bool) -> None:
    problem = Task(KIND, Hierarchy.plain((2, 2, 2)), 3).problem()
    keys = ask(problem, CostKeys(), Solver.CPSAT, SearchLimits()).value or ()
    assert keys == tuple((i, 8) for i in range(len(problem.instructions.items)))
    costs = {key: 3 if tied else 7 + 5 * n % 11 for n, key in enumerate(keys)}
    priced = replace(problem, costs=costs)
    for question in (Optimum(), Best(4)):
        one, other = (ask(priced, question, solver, SearchLimits()) for solver in Solver)
        assert (one.status, one.value) == (other.status, other.value)


def test_many_ranks_are_checked_on_twos() -> None:
    hierarchy = Hierarchy.plain((64, 8, 4))
    text = "all-to-all inside l1; all-to-all parallel l1 in root"
    checked = check_program(DEMAND, hierarchy, parse_program(text, KIND))
    assert checked.trace.violation is None
    assert (checked.how, checked.trace.payload_rows) == ("quotient 2x2x2", (2048, 2048))
    real = Hierarchy.plain((16, 8))
    checked = check_program(DEMAND, real, parse_program(text, KIND))
    assert (checked.how, checked.trace.violation) == ("devices", None)


@pytest.mark.parametrize("factors", [(3, 2), (3, 3, 2)])
def test_twos_say_the_same(factors: Digits) -> None:
    hierarchy, twos = Hierarchy.plain(factors), (2,) * len(factors)
    for steps in orders(len(factors)):
        program = program_of(hierarchy, steps)
        real, small = (exchange_trace(hierarchy, program, f).violation for f in (factors, twos))
        assert (real and (real.kind, real.step)) == (small and (small.kind, small.step))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("all-to-all inside l1; all-to-all inside l1", ViolationKind.UNEVEN_BLOCKS),
        ("all-to-all inside l1; all-to-all inside root", ViolationKind.UNEVEN_BLOCKS),
        ("all-to-all inside l1", ViolationKind.GOAL_MISSED),
        ("", ViolationKind.GOAL_MISSED),
        ("all-to-all inside root; all-to-all inside l1", ViolationKind.AFTER_GOAL),
        ("all-to-all master l1 in root; all-to-all inside l1", ViolationKind.GROUP_SHAPE),
    ],
)
def test_broken_rules_are_named(text: str, kind: ViolationKind) -> None:
    hierarchy = Hierarchy.plain((2, 3))
    broken = list_checker(DEMAND, hierarchy, 5).violation(parse_program(text, KIND))
    assert broken is not None
    assert broken.kind is kind


def test_instructions_keep_to_their_kind() -> None:
    with pytest.raises(InputError, match="collectives are all-reduce"):
        parse_program("all-to-all inside l1")
    with pytest.raises(InputError, match="collectives are all-to-all"):
        parse_program("all-reduce inside l1", KIND)
    program = parse_program("all-to-all inside root", KIND)
    with pytest.raises(InputError, match="only of the programs of an all-to-all"):
        check_program(demand_of(RequestKind.ALL_REDUCE), Hierarchy.plain((2, 3)), program)


def test_the_goal_is_every_block_in_the_order_of_sources() -> None:
    goal = start_places(6).T
    assert is_delivered(goal)
    assert not is_delivered(start_places(6))
    assert not is_delivered(goal[:, [1, 0, 2, 3, 4, 5]])


def test_sequences_cover_more_than_tilings() -> None:
    """The oracle's own sequences hold steps that overlap, or leave levels out."""
    many = [s for s in orders(2) if len(s) == 2]
    assert any(a.inner > b.outer and b.inner > a.outer for s in many for a, b in pairwise(s))
