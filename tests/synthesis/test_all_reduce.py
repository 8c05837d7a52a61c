"""All-reduces: classes against brute force, between solvers, known points, symmetries, mutants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.encodings.schedule.points import full_capacities, part_count, parts
from p2smt.errors import EncodingBug, InputError, TooLarge
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import AllReduceProblem, ScheduleClass, ScheduleSymmetry, SumSchedule
from p2smt.result import Result, SearchLimits, Status
from p2smt.solvers.ask import Solver
from p2smt.synthesis import schedule_replay as searched
from p2smt.synthesis.schedule_replay import all_reduce, all_reduce_problem, broken_answer
from tests.strategies.draws import Draws, draws
from tests.synthesis.maps import rank_maps, regular, symmetry
from tests.synthesis.sum_oracle import has_accumulators, has_all_reduce, has_trees

TREES, ACCUMULATORS, PARTIAL_SUMS = ScheduleClass
FOUND = {True: Status.FEASIBLE, False: Status.INFEASIBLE}
ORACLES: Mapping[ScheduleClass, Callable[[AllReduceProblem], bool]] = {
    TREES: has_trees,
    ACCUMULATORS: has_accumulators,
    PARTIAL_SUMS: has_all_reduce,
}


@st.composite
def problems(draw: st.DrawFn) -> AllReduceProblem:
    """A chunk or two on two or three ranks; edges share capacities, some of them fractions."""
    ranks = draw(st.integers(2, 3))
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=2, max_size=4, unique=True))
    rates = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2)])
    capacities = tuple(draw(st.lists(rates, min_size=1, max_size=3)))
    loads = st.lists(st.sampled_from(range(len(capacities))), min_size=1, unique=True)
    edges = tuple((a, b, tuple(sorted(draw(loads)))) for a, b in chosen)
    steps = draw(st.integers(1, 3))
    chunks = draw(st.integers(1, 2)) if steps < 3 else 1
    rounds = steps + draw(st.integers(0, 1))
    messages = draw(st.integers(1, 2)) if len(edges) * chunks < 4 else 1
    return AllReduceProblem(ranks, edges, capacities, chunks, steps, rounds, messages=messages)


@pytest.mark.parametrize("family", ScheduleClass)
@given(problems())
def test_a_class_has_a_schedule_where_brute_force_finds_one(
    family: ScheduleClass, problem: AllReduceProblem
) -> None:
    if family is ACCUMULATORS and problem.chunks * problem.steps > 3:
        problem = replace(problem, chunks=1)  # brute force would take minutes
    wanted = FOUND[ORACLES[family](problem)]
    assert all_reduce(replace(problem, family=family)).status is wanted
    if family is PARTIAL_SUMS:
        assert all_reduce(problem, solver=Solver.Z3).status is wanted


CIRCLE = ((0, 1), (1, 2), (2, 3), (3, 0))
"""Links one way, around."""
SHORTCUTS = [(a, b) for a in range(4) for b in range(4) if a != b and (a, b) not in CIRCLE]


@given(
    st.lists(st.sampled_from(SHORTCUTS), max_size=1),
    st.integers(1, 2),
    st.integers(2, 3),
)
def test_four_ranks_in_a_circle_with_a_shortcut(
    more: list[tuple[int, int]], width: int, steps: int
) -> None:
    edges = tuple((a, b, (n,)) for n, (a, b) in enumerate((*CIRCLE, *more)))
    rates = (Fraction(width),) * len(edges)
    problem = AllReduceProblem(4, edges, rates, 1, steps, steps)
    wanted = FOUND[has_all_reduce(problem)]
    assert all_reduce(problem).status is wanted
    assert all_reduce(problem, solver=Solver.Z3).status is wanted


def asked(
    name: str, chunks: int, steps: int, rounds: int, family: ScheduleClass = PARTIAL_SUMS
) -> AllReduceProblem:
    return all_reduce_problem(load_fabric(name), chunks, steps, rounds, family)


def status(problem: AllReduceProblem) -> Status:
    return all_reduce(problem, SearchLimits(60)).status


@pytest.mark.parametrize(
    ("fabric", "steps", "rounds", "chunks", "classes"),
    [
        # a finished sum replaces a partial one: msccl-tools finds none of the first three
        ("mesh:4", 2, 2, 4, "TAG"),
        ("dgx1", 4, 4, 8, "T"),
        ("ring:8", 14, 14, 8, "T"),
        ("dgx1", 4, 4, 12, "T"),
        ("dgx1", 2, 2, 2, "-AG"),
        ("dgx1", 3, 3, 6, " A"),
        ("ring:5", 2, 2, 1, "--G"),  # the middle passes on both its neighbours' values, not a sum
        ("ring:5", 1, 9, 1, "---"),  # too far
        ("mesh:4", 1, 1, 1, "-AG"),
        ("mesh:4", 1, 1, 2, "---"),
        ("cube:2", 2, 2, 2, "-AG"),
        ("cube:3", 3, 3, 3, "-A"),
    ],
)
def test_points_that_are_known(
    fabric: str, steps: int, rounds: int, chunks: int, classes: str
) -> None:
    """Per class in order: its letter if it has a schedule, a dash if none, a blank if not asked."""
    for family, letter in zip(ScheduleClass, classes, strict=False):
        if letter != " ":
            problem = asked(fabric, chunks, steps, rounds, family)
            assert status(problem) is FOUND[letter != "-"], family


FOURS = ((1, 0, 3, 2, 5, 4, 7, 6), (4, 5, 6, 7, 0, 1, 2, 3))
"""Two symmetries of a DGX-1; they make a group of four, in which only one keeps a rank."""


@pytest.mark.parametrize(
    ("size", "family", "reversing"),
    [
        ((4, 4, 8), TREES, False),
        ((4, 4, 8), TREES, True),
        ((4, 4, 8), ACCUMULATORS, True),
        ((5, 6, 20), TREES, False),
        pytest.param((6, 7, 24), TREES, False, marks=pytest.mark.exhaustive),
        pytest.param((4, 4, 8), PARTIAL_SUMS, True, marks=pytest.mark.exhaustive),
    ],
)
def test_one_orbit_of_a_node_is_lifted(
    size: tuple[int, int, int], family: ScheduleClass, reversing: bool
) -> None:
    fabric, (steps, rounds, chunks) = load_fabric("dgx1"), size
    lifted = regular(fabric, FOURS, chunks, reversing)
    problem = all_reduce_problem(fabric, chunks, steps, rounds, family, symmetries=lifted)
    result = all_reduce(problem, SearchLimits(60))
    assert result.status is Status.FEASIBLE
    assert invariant(problem, result)


def invariant(problem: AllReduceProblem, result: Result[SumSchedule]) -> bool:
    """Whether the symmetries take rounds and messages to themselves."""
    assert result.value is not None
    steps = result.value.steps
    sent = {(s, x.chunk, x.edge, x.slot) for s, step in enumerate(steps) for x in step.sends}
    for one in problem.symmetries:
        turned = [step.rounds for step in (steps[::-1] if one.reverses else steps)]
        moved = {
            (len(steps) - 1 - s if one.reverses else s, one.chunks[c], one.edges[e], slot)
            for s, c, e, slot in sent
        }
        if moved != sent or turned != [step.rounds for step in steps]:
            return False
    return True


@st.composite
def symmetric(draw: st.DrawFn) -> AllReduceProblem:
    """A ring or a mesh with a symmetry or two, whatever they do to the chunks and to time."""
    fabric = load_fabric(draw(st.sampled_from(["ring:3", "ring:4", "mesh:2", "mesh:3"])))
    maps = list(rank_maps(fabric))
    chunks = draw(st.integers(1, 3))
    found = tuple(
        symmetry(
            fabric,
            draw(st.sampled_from(maps)),
            draw(st.permutations(range(chunks))),
            draw(st.booleans()),
        )
        for _ in range(draw(st.integers(1, 2)))
    )
    steps = draw(st.integers(1, 3))
    rounds = steps + draw(st.integers(0, 2))
    family = draw(st.sampled_from(list(ScheduleClass)))
    return all_reduce_problem(fabric, chunks, steps, rounds, family, 1, found)


@given(symmetric())
def test_symmetric_schedules_are_schedules(problem: AllReduceProblem) -> None:
    """They are replayed, so every chunk is right, also those whose sums no constraint speaks of."""
    result = all_reduce(problem)
    if result.status is Status.FEASIBLE:
        assert status(replace(problem, symmetries=())) is Status.FEASIBLE
    if result.value is not None:
        assert invariant(problem, result)
    if problem.family is PARTIAL_SUMS:
        assert all_reduce(problem, solver=Solver.Z3).status is result.status


@given(symmetric())
def test_every_class_holds_the_one_before(problem: AllReduceProblem) -> None:
    found = [status(replace(problem, family=family)) for family in ScheduleClass]
    assert found == sorted(found, key=[Status.INFEASIBLE, Status.FEASIBLE].index)


def test_trees_are_trees() -> None:
    """Each rank but a chunk's root sends one sum with its own input, and gets one whole sum."""
    result = all_reduce(asked("dgx1", 8, 4, 4, TREES))
    assert result.value is not None
    up, down = Counter[int](), Counter[int]()
    for step in result.value.steps:
        up.update(send.chunk for send in step.sends if None in send.parts)
        down.update(send.chunk for send in step.sends if len(send.parts) == 1)
        own = [(send.chunk, send.edge) for send in step.sends if None in send.parts]
        assert len(own) == len(set(own))
    total = sum(len(step.sends) for step in result.value.steps)
    assert total == 8 * 2 * 7
    assert all(up[c] >= 7 and down[c] >= 6 for c in range(8))


@given(draws())
def test_mutants_of_a_schedule_break_a_rule(data: Draws) -> None:
    family = data.draw(st.sampled_from(list(ScheduleClass)))
    problem = asked("ring:4", 2, 4, 4, family)
    schedule = _schedule(problem)
    assert broken_answer(problem, schedule) is None
    mutants = (_less(schedule, data), _other_rounds(schedule, data), *_moved(schedule, data))
    for mutant in mutants:
        assert broken_answer(problem, mutant)


@cache
def _schedule(problem: AllReduceProblem) -> SumSchedule:
    found = all_reduce(problem).value
    assert found is not None
    return found


def _less(schedule: SumSchedule, data: Draws) -> SumSchedule:
    """Without a part of some result."""
    number = data.draw(st.integers(0, len(schedule.results) - 1))
    result = schedule.results[number]
    less = replace(result, parts=result.parts[1:])
    results = (*schedule.results[:number], less, *schedule.results[number + 1 :])
    return replace(schedule, results=results)


def _other_rounds(schedule: SumSchedule, data: Draws) -> SumSchedule:
    number = data.draw(st.integers(0, len(schedule.steps) - 1))
    step = replace(schedule.steps[number], rounds=data.draw(st.sampled_from([0, 2])))
    return replace(schedule, steps=(*schedule.steps[:number], step, *schedule.steps[number + 1 :]))


def _moved(schedule: SumSchedule, data: Draws) -> list[SumSchedule]:
    """Without one message, or with it over another edge: there is none that nothing needs."""
    number = data.draw(st.sampled_from([s for s, step in enumerate(schedule.steps) if step.sends]))
    step = schedule.steps[number]
    send = data.draw(st.sampled_from(step.sends))
    rest = [one for one in step.sends if one != send]
    edge = data.draw(st.integers(0, 7).filter(lambda e: e != send.edge))
    others = sorted([*rest, replace(send, edge=edge)], key=lambda one: (one.chunk, one.edge))
    return [
        replace(
            schedule,
            steps=(
                *schedule.steps[:number],
                replace(step, sends=tuple(sends)),
                *schedule.steps[number + 1 :],
            ),
        )
        for sends in (rest, others)
    ]


def test_an_answer_that_breaks_a_rule_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = asked("mesh:2", 1, 1, 1)
    wrong = replace(_schedule(problem), results=())
    answer = Result(Status.FEASIBLE, wrong)
    monkeypatch.setattr(searched, "ask", lambda *_: answer)
    with pytest.raises(EncodingBug, match="results"):
        all_reduce(problem)


def test_no_time_is_no_proof() -> None:
    problem = asked("dgx1", 2, 2, 2)
    for family in ScheduleClass:
        limited = all_reduce(replace(problem, family=family), SearchLimits(0.0))
        assert limited.status is Status.UNKNOWN
    assert all_reduce(problem, SearchLimits(0.0), Solver.Z3).status is Status.UNKNOWN


def test_impossible_questions_are_refused() -> None:
    problem = asked("ring:4", 4, 3, 3)
    with pytest.raises(InputError, match="0 steps: must be at least 1"):
        replace(problem, steps=0)
    with pytest.raises(InputError, match="a step takes a round or more"):
        replace(problem, rounds=2)
    with pytest.raises(InputError, match="0 chunks: must be at least 1"):
        replace(problem, chunks=0)
    with pytest.raises(InputError, match="0 messages: must be at least 1"):
        replace(problem, messages=0)
    with pytest.raises(InputError, match="positive"):
        replace(problem, capacities=(Fraction(0),) * len(problem.capacities))
    with pytest.raises(InputError, match="rank 3"):
        replace(problem, ranks=3)
    with pytest.raises(InputError, match="must be cpsat"):
        all_reduce(replace(problem, family=TREES), solver=Solver.Z3)


def test_a_symmetry_that_is_none_is_refused() -> None:
    problem, ranks, edges = asked("ring:4", 4, 3, 3), (1, 2, 3, 0), tuple(range(8))
    for wrong, rule in (
        (ScheduleSymmetry((0, 0, 1, 2), edges, ranks), "permute"),
        (ScheduleSymmetry(ranks, edges, (0, 1, 2, 4)), "permute"),
        (ScheduleSymmetry(ranks, edges, ranks), "lead between the images"),
        (ScheduleSymmetry((0, 1, 2, 3), edges, ranks, True), "lead between the images"),
    ):
        with pytest.raises(InputError, match=rule):
            replace(problem, symmetries=(wrong,))


@pytest.mark.parametrize("family", ScheduleClass)
def test_what_is_too_large_says_so(family: ScheduleClass) -> None:
    problem = asked("torus:4x4x4", 64, 40, 40, family)
    with pytest.raises(TooLarge, match="variables, more than 1000000"):
        all_reduce(problem)
    with pytest.raises(TooLarge, match="more than z3 takes"):
        all_reduce(replace(problem, family=PARTIAL_SUMS), solver=Solver.Z3)


@given(problems())
def test_parts_are_counted_without_a_list(problem: AllReduceProblem) -> None:
    assert part_count(problem) * problem.chunks == len(list(parts(problem)))


def test_what_must_be_full_is_found() -> None:
    """Ring of 4: 6 messages a chunk over 8 links; a switch: 24 over 4 ports that send."""
    assert full_capacities(asked("ring:4", 4, 3, 3)) == frozenset(range(8))
    assert full_capacities(asked("ring:4", 3, 3, 3)) == frozenset()
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    ports = tuple((a, b, (a, 4 + b)) for a, b in pairs)
    rates = (Fraction(1),) * 4 + (Fraction(2),) * 4
    switch = AllReduceProblem(4, ports, rates, 4, 4, 6)
    assert full_capacities(switch) == frozenset(range(4))
    assert full_capacities(replace(switch, rounds=7)) == frozenset()


@pytest.mark.parametrize(("chunks", "found"), [(2, True), (3, True), (4, False)])
@pytest.mark.parametrize("family", ScheduleClass)
def test_full_links_exclude_nothing(family: ScheduleClass, chunks: int, found: bool) -> None:
    """Three ranks, all pairs linked: 4 messages a chunk, and 12 in two rounds."""
    assert status(asked("mesh:3", chunks, 2, 2, family)) is FOUND[found]
