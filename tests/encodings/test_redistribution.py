"""Redistributions: both encodings against brute force, each constraint, limits and ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from p2smt.encodings.redistribution import cpsat
from p2smt.errors import InputError
from p2smt.problems.redistribution import (
    LevelCut,
    Move,
    MoveRow,
    Moves,
    RedistributionProblem,
)
from p2smt.resharding.layered import cost_to_go_of, state_at
from p2smt.resharding.states import ArrayState
from p2smt.resharding.steps import KINDS, ArrayStep, StepKind
from p2smt.result import Result, SearchLimits, Status
from p2smt.solvers.ask import Every, Optimum, Solver, ask
from tests.encodings.redistribution_questions import (
    MOVES,
    Asked,
    Columns,
    frame_of,
    is_answer,
    random_question,
)
from tests.oracles import redistribution_z3 as z3

LIMITS = SearchLimits()
BOTH = pytest.mark.parametrize("solver", list(Solver))
ANSWERS = {Solver.CPSAT: cpsat.optimal_redistribution, Solver.Z3: z3.optimal_redistribution}
"""The encoding that is offered, and the one that it is held against."""
KIND_OF = {move: kind for kind, move in MOVES.items()} | {Move.TURN: StepKind.PERMUTE}


def steps_of(asked: Asked, moves: Moves) -> tuple[ArrayStep, ...]:
    """The steps of an answer."""
    found: list[ArrayStep] = []
    state = asked.source
    for move, places in moves:
        order = asked.target.order if move is Move.TURN else state.order
        after = state_at(places, len(asked.frame.shape), order)
        found.append(KINDS[KIND_OF[move]](state, after))
        state = after
    return tuple(found)


def disagrees(asked: Asked, solver: Solver) -> bool:
    """Whether a solver's answer is not that of brute force, or none at all."""
    found = ANSWERS[solver](asked.problem(), LIMITS)
    least = asked.least()
    if least is None or found.value is None:
        return not (least is None and found.status is Status.INFEASIBLE)
    steps = steps_of(asked, found.value)
    try:
        right = is_answer(asked, found.value, steps)
    except InputError:
        return True
    return not right or not asked.cost(steps) == least == found.bound


@pytest.mark.parametrize("seed", range(12))
def test_cpsat_finds_what_brute_force_finds(seed: int) -> None:
    assert not disagrees(random_question(seed, packs=seed % 3 == 0), Solver.CPSAT)


@pytest.mark.parametrize("seed", range(8))
def test_the_outlook_follows_from_the_rest(seed: int) -> None:
    asked = random_question(seed)
    problem = asked.problem()
    outlook = cost_to_go_of(problem)
    assert outlook is not None
    found = ask(replace(problem, outlook=outlook), Optimum(), Solver.CPSAT, LIMITS)
    assert found.bound == asked.least()
    more = tuple((*row[:-1], row[-1] + 1000) for row in outlook.rows)
    wrong = replace(problem, outlook=replace(outlook, rows=more))
    assert ask(wrong, Optimum(), Solver.CPSAT, LIMITS).status is Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(6))
def test_z3_finds_what_brute_force_finds(seed: int) -> None:
    assert not disagrees(random_question(seed, packs=seed % 3 == 0, digits=2), Solver.Z3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100, 400))
def test_both_find_what_brute_force_finds(seed: int) -> None:
    asked = random_question(seed, packs=seed % 3 == 0)
    assert not disagrees(asked, Solver.CPSAT)
    if len(asked.frame.sizes) < 3:
        assert not disagrees(asked, Solver.Z3)


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7])
def test_both_break_ties_alike(seed: int) -> None:
    asked = random_question(seed, digits=2)
    coarse = replace(asked, ticks={columns: ticks // 16 for columns, ticks in asked.ticks.items()})
    one, other = (ANSWERS[solver](coarse.problem(), LIMITS) for solver in Solver)
    assert (one.status, one.value, one.bound) == (other.status, other.value, other.bound)


def test_seeds_and_workers_do_not_change_the_answer() -> None:
    asked = random_question(3)
    coarse = replace(asked, ticks={columns: ticks // 16 for columns, ticks in asked.ticks.items()})
    answers = {
        ask(coarse.problem(), Optimum(), Solver.CPSAT, SearchLimits(seed=s, workers=w)).value
        for s, w in ((0, 1), (1, 1), (2, 2))
    }
    assert len(answers) == 1


def pair(source: ArrayState, target: ArrayState, shape: tuple[int, ...], **more: Any) -> Asked:
    """Digits of one class; slices are free, a gather costs 40 a digit, others 10 and more."""
    sizes = more.pop("sizes", (2, 2))
    frame = frame_of(sizes, shape, more.pop("orders", 1))
    ticks: dict[Columns, int] = {
        (move, (moved,), sharding, turned, False): price(move, moved)
        for move in Move
        if move is not Move.NOTHING
        for moved in range(len(sizes) + 1)
        for sharding in held_of(sizes)
        for turned in (False, True)
    }
    classes = (0,) * len(sizes)
    return Asked(frame, source, target, classes, ticks, more.pop("max_steps", 3), {}, **more)


def held_of(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """How many digits of each size may shard."""
    return list(product(*(range(sizes.count(size) + 1) for size in sorted(set(sizes)))))


def price(move: Move, moved: int) -> int:
    """Ticks of a step."""
    if move is Move.SLICE:
        return 0
    return 40 * moved if move is Move.GATHER else 10 + int(move)


def least(asked: Asked, solver: Solver, **more: Any) -> int | None:
    """The proved optimum; None if there is no answer."""
    found = ANSWERS[solver](replace(asked.problem(), **more), LIMITS)
    assert found.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return found.bound if found.status is Status.OPTIMAL else None


SWAP = pair(ArrayState(((0,), (1,))), ArrayState(((1,), (0,))), (4, 4))


@BOTH
def test_a_swap_is_one_permute(solver: Solver) -> None:
    assert least(SWAP, solver) == 14 == SWAP.least()


@BOTH
def test_lists_change_at_their_ends(solver: Solver) -> None:
    inner = pair(ArrayState(((0, 1), ())), ArrayState(((1,), ())), (4, 1))
    assert least(inner, solver) == 40 + 14 == inner.least()  # a permute first, then a gather
    assert least(replace(inner, max_steps=1), solver) is None


@BOTH
def test_shards_divide_the_dimension(solver: Solver) -> None:
    asked = pair(ArrayState(((0,), ())), ArrayState(((), (0,))), (2, 2))
    assert least(asked, solver) == 13
    apart = pair(ArrayState(((0,), (1,))), ArrayState(((1,), (0,))), (2, 2))
    short = {columns: t for columns, t in apart.ticks.items() if columns[0] is not Move.PERMUTE}
    assert least(replace(apart, ticks=short), solver) == replace(apart, ticks=short).least()


@BOTH
def test_no_dimension_both_loses_and_gains(solver: Solver) -> None:
    direct = {c: t for c, t in SWAP.ticks.items() if c[0] is Move.ALL_TO_ALL}
    assert least(replace(SWAP, ticks=direct, max_steps=1), solver) is None
    assert least(replace(SWAP, ticks=direct), solver) == 39


@BOTH
def test_partial_digits_are_reduced_only(solver: Solver) -> None:
    asked = pair(ArrayState(((), ()), (0,)), ArrayState(((0,), ())), (4, 4))
    assert least(asked, solver) == 15
    whole = {c: t for c, t in asked.ticks.items() if c[0] is Move.ALL_REDUCE or not t}
    assert least(replace(asked, ticks=whole), solver) == 16
    none = {c: t for c, t in asked.ticks.items() if c[0] in (Move.PERMUTE, Move.GATHER)}
    assert least(replace(asked, ticks=none), solver) is None


@BOTH
def test_the_order_of_devices_changes_once(solver: Solver) -> None:
    state = ArrayState(((0,), (1,)))
    asked = pair(state, replace(state, order=1), (4, 4), orders=2)
    assert least(asked, solver) == 17
    both = pair(state, ArrayState(((1,), (0,)), order=1), (4, 4), orders=2)
    assert least(both, solver) == 17
    never = {c: t for c, t in asked.ticks.items() if c[0] is not Move.TURN}
    assert least(replace(asked, ticks=never), solver) is None


@BOTH
def test_rows_are_for_the_first_step_or_others(solver: Solver) -> None:
    problem = pair(ArrayState(((0,), ())), ArrayState(((), (0,))), (4, 4)).problem()
    late = tuple(replace(row, first=False) for row in problem.rows)
    assert ANSWERS[solver](replace(problem, rows=late), LIMITS).status is Status.INFEASIBLE
    early = tuple(replace(row, later=False) for row in problem.rows)
    assert ANSWERS[solver](replace(problem, rows=early), LIMITS).bound == 13


@BOTH
def test_the_limit_is_kept(solver: Solver) -> None:
    assert least(SWAP, solver, at_most=14) == 14
    assert least(SWAP, solver, at_most=13) is None


@BOTH
def test_an_exact_cost_counts(solver: Solver) -> None:
    step = KINDS[StepKind.PERMUTE](SWAP.source, SWAP.target)
    dearer = replace(SWAP, dearer={step: 25})
    assert least(dearer, solver) == 25 == dearer.least()


@BOTH
def test_a_border_counts(solver: Solver) -> None:
    def border(digits: tuple[int, ...], crossing: int) -> LevelCut[int]:
        costs = tuple((n, (k,), 30 * (n >= crossing)) for n in range(4) for k in range(3))
        return LevelCut(digits, False, costs)

    assert least(SWAP, solver, borders=(border((0,), 1),)) == 30  # it gives way once, and joins
    assert least(SWAP, solver, borders=(border((0,), 2),)) == 14
    assert least(SWAP, solver, borders=(border((0, 1), 3),)) == 30  # both are of the border
    turned = replace(border((0,), 1), turned=True)
    assert least(SWAP, solver, borders=(turned,)) == 14


@BOTH
def test_permutes_merge(solver: Solver) -> None:
    three = pair(SWAP.source, SWAP.target, (2, 2), sizes=(2, 2, 2))
    only = {c: t for c, t in three.ticks.items() if c[0] is Move.PERMUTE}
    step = KINDS[StepKind.PERMUTE](SWAP.source, SWAP.target)
    asked = replace(three, ticks=only, dearer={step: 99})
    assert least(asked, solver) == 28 == asked.least()
    assert least(asked, solver, merges=True) == 99


@BOTH
def test_a_buffer_is_needed_but_for_the_leading_dimension(solver: Solver) -> None:
    def gathered(dims: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> int | None:
        asked = pair(ArrayState(dims), ArrayState(((), ())), shape, max_steps=1, packs=True)
        row = MoveRow(Move.GATHER, (1,), (1,), False, False, True, True, 1)
        both = (row, replace(row, packed=True, price=5))
        rows = both + tuple(replace(one, moved=(2,), sharding=(2,)) for one in both)
        return least(asked, solver, rows=rows)

    assert gathered(((0,), ()), (4, 4)) == 1
    assert gathered(((), (0,)), (4, 4)) == 5
    assert gathered(((), (0,)), (1, 4)) == 1
    assert gathered(((0, 1), ()), (4, 4)) == 1
    assert gathered(((1, 0), ()), (4, 4)) == 5
    assert gathered(((0,), (1,)), (2, 2)) == 5
    assert gathered(((0,), (1,)), (4, 4)) == 5


@BOTH
def test_out_of_time(solver: Solver) -> None:
    found = ANSWERS[solver](SWAP.problem(), SearchLimits(time_limit_s=0.0))
    assert (found.status, found.value) == (Status.UNKNOWN, None)


def test_bad_problems_and_questions() -> None:
    with pytest.raises(InputError, match="need one entry for each digit"):
        replace(SWAP.problem(), classes=(0,))
    with pytest.raises(InputError, match="must not be negative"):
        replace(SWAP.problem(), max_steps=-1)
    with pytest.raises(InputError, match="is none about a redistribution"):
        ask(SWAP.problem(), Every(), Solver.CPSAT, LIMITS)  # type: ignore[call-overload]


NEEDED = [
    (module, name)
    for module, names in (
        (
            cpsat,
            "c2_lists c3_capacity c4_ends c6_still c7_travel c8_apart c9_blocks c10_order c11_rows "
            "c12_packed c13_exact",
        ),
        (
            z3,
            "c2_lists c3_capacity c4_ends c6_travel c7_apart c8_blocks c9_order c10_rows "
            "c11_packed c12_exact",
        ),
    )
    for name in names.split()
]


def cases() -> list[Asked]:
    """Questions that need every constraint."""
    step = KINDS[StepKind.PERMUTE](SWAP.source, SWAP.target)
    direct = {c: t for c, t in SWAP.ticks.items() if c[0] is Move.ALL_TO_ALL}
    split = replace(frame_of((2, 3), (6, 6)))
    sized = Asked(
        split,
        ArrayState(((0,), (1,))),
        ArrayState(((1,), (0,))),
        (0, 0),
        {
            (Move.PERMUTE, (n,), (a, b), False, False): 5
            for n in range(3)
            for a in range(2)
            for b in range(2)
        },
        1,
        {},
    )
    tight = pair(SWAP.source, SWAP.target, (6, 6), sizes=(2, 2, 3))
    short = {c: t for c, t in tight.ticks.items() if c[0] is not Move.PERMUTE}
    turn = pair(SWAP.source, replace(SWAP.source, order=1), (4, 4), orders=2)
    partial = pair(ArrayState(((), ()), (0,)), ArrayState(((0,), ())), (4, 4))
    packed: dict[Columns, int] = {
        (Move.GATHER, (1,), (1,), False, False): 1,
        (Move.GATHER, (1,), (1,), False, True): 5,
    }
    gather = pair(ArrayState(((), (0,))), ArrayState(((), ())), (4, 4), packs=True)
    return [
        SWAP,
        replace(SWAP, dearer={step: 25}),
        replace(SWAP, ticks=direct, max_steps=1),
        sized,
        replace(tight, ticks=short),
        turn,
        replace(turn, ticks={c: t for c, t in turn.ticks.items() if c[0] is not Move.TURN}),
        partial,
        pair(ArrayState(((0, 1), ())), ArrayState(((1,), ())), (4, 1)),
        replace(gather, ticks=packed, max_steps=1),
        pair(ArrayState(((1, 0), ())), ArrayState(((), (1,))), (4, 4)),
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("module", "name"), NEEDED)
def test_a_missing_constraint_is_noticed(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    solver = Solver.CPSAT if module is cpsat else Solver.Z3
    assert hasattr(module, name)
    monkeypatch.setattr(module, name, lambda *_: None)
    assert any(map(noticed(solver), cases()))


def noticed(solver: Solver) -> Callable[[Asked], bool]:
    """Whether an answer is wrong, or cannot be read."""

    def look(asked: Asked) -> bool:
        try:
            return disagrees(asked, solver)
        except (StopIteration, ValueError, AssertionError, KeyError):
            return True

    return look


@pytest.mark.exhaustive
@BOTH
def test_the_cases_are_answered_as_they_stand(solver: Solver) -> None:
    assert not any(map(noticed(solver), cases()))


def test_answers_have_statistics() -> None:
    found: Result[Moves] = ask(SWAP.problem(), Optimum(), Solver.CPSAT, LIMITS)
    assert found.stats.solver == "cpsat"
    assert dict(found.stats.counters) == {"objective": 14}
    assert isinstance(SWAP.problem(), RedistributionProblem)
