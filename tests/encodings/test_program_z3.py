"""The direct z3 encoding against brute force on sets, optima and side constraints."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.encodings.program import cpsat as program_cpsat
from p2smt.encodings.program import z3 as program_z3
from p2smt.encodings.program.z3 import Z3Search, build
from p2smt.errors import InputError, OutOfTimeError, TooLarge
from p2smt.problems.placement import InstructionSet, ProgramProblem, StepLimit
from p2smt.result import SearchLimits, Status
from tests.oracles.programs import Program, all_programs, ranked
from tests.tiers import but_the_first, examples_of

NO_LIMIT = SearchLimits()
REDUCE, SCATTER, GATHER = (
    RequestKind.ALL_REDUCE,
    RequestKind.REDUCE_SCATTER,
    RequestKind.ALL_GATHER,
)
KINDS = (REDUCE, SCATTER, GATHER)


def problem(
    factors: tuple[int, ...], length: int, kind: RequestKind = REDUCE, depth: int | None = None
) -> ProgramProblem:
    return ProgramProblem(
        demand_of(kind), factors, length, InstructionSet.of(depth or len(factors))
    )


PRICES = {(i, rows): 40 - 2 * i + rows for i in range(20) for rows in range(1, 5)}
PRICED = replace(problem((3,), 3), costs=PRICES)
PRICED_LONGER = replace(problem((2, 2), 3), costs=PRICES)


def answers(task: ProgramProblem) -> list[Program]:
    """What an enumeration must give, in its order."""
    return sorted((p for _, p in ranked(task)), key=lambda p: (len(p), p))


def enumerated(task: ProgramProblem, limits: SearchLimits = NO_LIMIT) -> list[Program]:
    result = program_z3.enumerate_programs(task, limits)
    assert result.status is Status.COMPLETE
    assert result.value is not None
    return list(result.value)


SETS = [
    ((2,), 4),
    ((3,), 3),
    ((5,), 3),
    ((2, 2), 1),
    ((2, 2), 5),
    ((2, 3), 3),
    pytest.param((2, 3), 4, marks=pytest.mark.exhaustive),
    pytest.param((3, 2), 4, marks=pytest.mark.exhaustive),
    pytest.param((2, 2, 2), 2, marks=pytest.mark.exhaustive),
    pytest.param((3, 2), 6, marks=pytest.mark.exhaustive),
    pytest.param((4, 2), 5, marks=pytest.mark.exhaustive),
    pytest.param((3, 4), 3, marks=pytest.mark.exhaustive),
    pytest.param((2, 2, 2), 3, marks=pytest.mark.evidence),
    pytest.param((2, 3, 2), 2, marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("factors", "length"), SETS)
def test_it_finds_every_program_once(
    factors: tuple[int, ...], length: int, kind: RequestKind
) -> None:
    task = problem(factors, length, kind)
    assert enumerated(task) == answers(task)


def test_numbers_of_programs() -> None:
    assert len(enumerated(problem((2, 2), 5))) == 61
    assert [len(enumerated(problem((2,), 3, kind))) for kind in KINDS] == [3, 1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_one_device_needs_no_program(kind: RequestKind) -> None:
    assert enumerated(problem((), 2, kind)) == answers(problem((), 2, kind)) == [()]
    result = program_z3.optimal_program(problem((), 2, kind), NO_LIMIT)
    assert (result.status, result.value) == (Status.OPTIMAL, ())


@cache
def paid(factors: tuple[int, ...], length: int, kind: RequestKind) -> list[tuple[int, int]]:
    """The (instruction, payload rows) pairs that occur in programs."""
    found = all_programs(problem(factors, length, kind)).items()
    return sorted({pair for program, rows in found for pair in zip(program, rows, strict=True)})


@st.composite
def priced(draw: st.DrawFn) -> ProgramProblem:
    """A small problem with costs (some pairs not allowed) and perhaps side constraints."""
    factors, length = draw(st.sampled_from([((2,), 3), ((3,), 3), ((2, 2), 3), ((2, 3), 3)]))
    kind = draw(st.sampled_from(KINDS))
    most = draw(st.sampled_from([1, 6, 2**45]))
    ticks = st.none() | st.integers(0, most) | st.integers(0, most)
    table = {pair: draw(ticks) for pair in paid(factors, length, kind)}
    numbers = st.frozensets(st.integers(0, 19), max_size=8)
    programs = sorted(all_programs(problem(factors, length, kind)))
    return replace(
        problem(factors, length, kind),
        costs={pair: cost for pair, cost in table.items() if cost is not None},
        forbidden=draw(st.just(frozenset()) | st.frozensets(st.integers(0, 19), max_size=4)),
        limits=tuple(draw(st.lists(st.builds(StepLimit, numbers, st.integers(0, 2)), max_size=2))),
        excluded=draw(st.frozensets(st.sampled_from(programs), max_size=3)),
        at_most=draw(st.none() | st.integers(0, 2 * most)),
    )


@settings(max_examples=examples_of(25))
@given(priced())
def test_the_optimum_is_that_of_brute_force(task: ProgramProblem) -> None:
    expected = ranked(task)
    result = program_z3.optimal_program(task, NO_LIMIT)
    if not expected:
        assert (result.status, result.value) == (Status.INFEASIBLE, None)
        return
    ticks, program = expected[0]
    assert (result.status, result.value, result.bound) == (Status.OPTIMAL, program, ticks)
    assert ("objective", ticks) in result.stats.counters


@pytest.mark.exhaustive
@settings(max_examples=examples_of(10))
@given(priced())
def test_side_constraints_hold_for_the_whole_set(task: ProgramProblem) -> None:
    assert enumerated(task) == answers(task)


@pytest.mark.exhaustive
@settings(max_examples=examples_of(10))
@given(priced(), st.integers(1, 5))
def test_the_best_in_order(task: ProgramProblem, k: int) -> None:
    result = program_z3.best_programs(task, NO_LIMIT, k)
    assert result.status is Status.COMPLETE
    assert list(result.value or ()) == [program for _, program in ranked(task)][:k]


@pytest.mark.exhaustive
@settings(max_examples=examples_of(8))
@given(priced(), st.integers(0, 10))
def test_the_default_encoding_agrees(task: ProgramProblem, slack: int) -> None:
    task = replace(task, slack=slack)
    ours = program_z3.optimal_program(task, NO_LIMIT)
    default = program_cpsat.optimal_program(task, NO_LIMIT)
    assert (ours.status, ours.value, ours.bound) == (default.status, default.value, default.bound)
    assert program_z3.enumerate_programs(task, NO_LIMIT).value == (
        program_cpsat.enumerate_programs(task, NO_LIMIT).value
    )
    few = program_cpsat.best_programs(task, NO_LIMIT, 3).value
    assert program_z3.best_programs(task, NO_LIMIT, 3).value == few


def test_without_costs_the_shortest_is_best() -> None:
    task = problem((2, 2), 3)
    expected = answers(task)
    best = program_z3.optimal_program(task, NO_LIMIT)
    assert (best.value, best.bound) == (expected[0], 1)
    assert ("objective", 1) in best.stats.counters
    few = program_z3.best_programs(task, NO_LIMIT, 8)
    assert list(few.value or ()) == expected[:8]
    every = program_z3.best_programs(problem((2,), 2), NO_LIMIT, 9)
    assert (every.status, list(every.value or ())) == (Status.COMPLETE, answers(problem((2,), 2)))


def test_programs_within_the_slack_are_tied() -> None:
    task = problem((2,), 3)
    costs = {(i, rows): 10 for i in range(5) for rows in (1, 2)}
    direct, split = (0,), (1, 2)
    costs[(0, 2)] = 23
    best = program_z3.optimal_program(replace(task, costs=costs), NO_LIMIT)
    assert (best.value, best.bound) == (split, 20)
    tied = program_z3.optimal_program(replace(task, costs=costs, slack=3), NO_LIMIT)
    assert (tied.value, tied.bound, tied.stats.counters) == (direct, 20, (("objective", 20),))
    near = program_z3.optimal_program(replace(task, costs=costs, slack=2), NO_LIMIT)
    assert near.value == split


def instructions(task: ProgramProblem, *collectives: Collective) -> frozenset[int]:
    return frozenset(n for n, (c, _) in enumerate(task.instructions.items) if c in collectives)


def test_forbidden_instructions() -> None:
    task = problem((2, 2), 4)
    task = replace(task, forbidden=instructions(task, Collective.ALL_REDUCE, Collective.BROADCAST))
    assert enumerated(task) == answers(task) != answers(problem((2, 2), 4))


@pytest.mark.parametrize("at_most", [-1, 0, 1, 2])
def test_limits_on_steps(at_most: int) -> None:
    task = problem((2, 2), 3)
    gathers = instructions(task, Collective.ALL_GATHER, Collective.BROADCAST) | {99}
    task = replace(task, limits=(StepLimit(gathers, at_most),))
    assert enumerated(task) == answers(task)


def test_a_limit_on_nothing() -> None:
    task = replace(problem((2,), 2), limits=(StepLimit(frozenset({99}), 0),))
    assert enumerated(task) == answers(problem((2,), 2))
    assert enumerated(replace(task, limits=(StepLimit(frozenset(), -1),))) == []


def test_excluded_programs() -> None:
    every = answers(problem((2, 2), 3))
    others = {every[0][:0], (0, 0, 0, 0), (77,), (*every[0], 1)}
    task = replace(problem((2, 2), 3), excluded=frozenset(every[::2]) | others)
    assert enumerated(task) == every[1::2]


@pytest.mark.exhaustive
def test_a_bound_on_the_cost() -> None:
    task = problem((2, 2), 3)
    costs = {(i, rows): 3 * i + rows for i in range(20) for rows in range(1, 5)}
    (best, program), (second, _) = ranked(replace(task, costs=costs))[:2]
    assert best < second
    for bound in (-1, int(best) - 1):
        low = program_z3.optimal_program(replace(task, costs=costs, at_most=bound), NO_LIMIT)
        assert (low.status, low.value) == (Status.INFEASIBLE, None)
    assert enumerated(replace(task, costs=costs, at_most=int(best))) == [program]
    all_of_them = enumerated(replace(task, costs=costs, at_most=10**20))
    assert all_of_them == answers(task)


def test_a_pair_without_a_cost_is_not_allowed() -> None:
    task = replace(problem((2, 2), 3), costs={})
    assert enumerated(task) == []
    assert program_z3.optimal_program(task, NO_LIMIT).status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("kind", "collectives", "least"),
    [
        (REDUCE, {Collective.REDUCE, Collective.BROADCAST}, 2),
        (REDUCE, {Collective.REDUCE_SCATTER, Collective.ALL_GATHER}, 2),
        (SCATTER, {Collective.REDUCE_SCATTER}, 1),
        (GATHER, {Collective.ALL_GATHER}, 1),
    ],
)
def test_infeasible_below_the_least_length(
    kind: RequestKind, collectives: set[Collective], least: int
) -> None:
    """Only groups of two devices may be used besides, so that each level costs a step."""
    for length in (2 * least - 1, 2 * least):
        task = problem((2, 3), length, kind)
        whole = {n for n, (_, g) in enumerate(task.instructions.items) if g.inner - g.outer == 2}
        forbidden = instructions(task, *set(Collective) - collectives) | whole
        result = program_z3.optimal_program(replace(task, forbidden=forbidden), NO_LIMIT)
        feasible = length == 2 * least
        assert result.status is (Status.OPTIMAL if feasible else Status.INFEASIBLE)
        assert len(result.value or ()) == (length if feasible else 0)


@pytest.mark.parametrize("limit_s", [0.0, 0.01])
def test_without_time_nothing_is_claimed(limit_s: float) -> None:
    limits, task = SearchLimits(time_limit_s=limit_s), problem((2, 2, 2), 5)
    best = program_z3.optimal_program(task, limits)
    assert (best.status, best.value) == (Status.UNKNOWN, None)
    for result in (
        program_z3.enumerate_programs(task, limits),
        program_z3.best_programs(task, limits, 2),
    ):
        assert (result.status, result.value) == (Status.TRUNCATED, ())


def test_an_enumeration_stops_at_the_number_asked_for() -> None:
    task = problem((2, 2), 3)
    every = answers(task)
    for count in (0, 5, len(every), len(every) + 1):
        result = program_z3.enumerate_programs(task, SearchLimits(max_answers=count))
        assert result.value is not None
        assert set(result.value) <= set(every)
        assert len(result.value) == min(count, len(every))
        complete = count >= len(every)
        assert result.status is (Status.COMPLETE if complete else Status.TRUNCATED)


@pytest.mark.parametrize("seed", [1, 2**40])
def test_seed_and_workers_change_nothing(seed: int) -> None:
    limits = SearchLimits(seed=seed, workers=2)
    assert enumerated(problem((2, 2), 3), limits) == answers(problem((2, 2), 3))


def test_limits_of_the_encoding() -> None:
    with pytest.raises(TooLarge, match="up to 16 devices"):
        program_z3.optimal_program(problem((17,), 1), NO_LIMIT)
    with pytest.raises(InputError, match="0 or more"):
        program_z3.optimal_program(replace(problem((2,), 1), costs={(0, 2): -1}), NO_LIMIT)
    assert program_z3.optimal_program(problem((16,), 1), NO_LIMIT).value == (0,)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("factors", "length"), [((2,), 3), ((3, 4), 5), ((2, 3, 2), 5), ((4, 2, 3), 4)]
)
def test_cost_keys_hold_every_pair_that_occurs(
    factors: tuple[int, ...], length: int, kind: RequestKind
) -> None:
    task = replace(problem(factors, length, kind), forbidden=frozenset({0}))
    keys = program_z3.cost_keys(task, SearchLimits()).value or ()
    assert list(keys) == sorted(set(keys))
    assert {pair for pair in paid(factors, length, kind) if pair[0]} <= set(keys)
    assert all(i != 0 and 1 <= rows <= task.rows for i, rows in keys)


@pytest.mark.exhaustive
def test_an_interrupt_ends_the_search() -> None:
    search = Z3Search(NO_LIMIT)
    v = build(problem((2, 2, 2), 7), search)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        search.least(v.order)
    timer.join()


@pytest.mark.parametrize("task", but_the_first(PRICED, problem((3,), 3), PRICED_LONGER))
def test_a_search_cut_short_never_claims_a_proof(
    task: ProgramProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the time ran out after so many calls of the solver."""
    expected, plain = ranked(task), Z3Search.solution
    ticks = {program: cost for cost, program in expected}
    seen = []
    for calls in itertools.count():
        with monkeypatch.context() as patch:
            patch.setattr(Z3Search, "solution", lambda s, n=calls: cut_short(plain, s, n))
            best = program_z3.optimal_program(task, NO_LIMIT)
            few = program_z3.best_programs(task, NO_LIMIT, 2)
        seen.append(best.status)
        assert list(few.value or ()) == [p for _, p in expected][: len(few.value or ())]
        assert (few.status is Status.COMPLETE) is (len(few.value or ()) == 2)
        if best.value is not None:
            assert best.bound is not None
            assert best.bound <= expected[0][0] <= ticks[best.value]
            assert ("objective", ticks[best.value]) in best.stats.counters
        if few.status is Status.COMPLETE:
            break
    assert seen[:2] == [Status.UNKNOWN, Status.FEASIBLE]


def cut_short(
    solution: Callable[[Z3Search], z3.ModelRef | None], search: Z3Search, calls: int
) -> z3.ModelRef | None:
    if search.calls >= calls:
        raise OutOfTimeError
    return solution(search)
