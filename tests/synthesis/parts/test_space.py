"""Cubes of schedules: their verdicts against brute force, partitions, members, budgets."""

from __future__ import annotations

import json
import pickle
import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.parallel_search.journal.tree import boolean_share
from p2smt.parallel_search.subproblem import (
    Closure,
    OverBudget,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.problems.schedule import ChunkSent, ChunkThere, ScheduleClass
from p2smt.result import SearchLimits, Status
from p2smt.solvers.ask import Solver
from p2smt.synthesis.schedule_replay import (
    all_reduce,
    all_reduce_problem,
    broken_answer,
    broken_rule,
    disseminate,
)
from p2smt.synthesis.schedule_space import MOST, ScheduleSpace, decided_there, schedule_space
from p2smt.synthesis.setting import ScheduleSize, SynthesisSetting, copy_problem
from tests.strategies.draws import Draws, draws
from tests.synthesis.parts.cases import (
    Quiet,
    all_reduce_fabrics,
    circle,
    copies,
    obeys,
    solutions,
    sorted_chunks,
    square,
)
from tests.tiers import examples_of


def space_of(collective: str, size: tuple[int, int, int], **of: int) -> ScheduleSpace:
    setting = SynthesisSetting(square(), collective, symmetry=False, **of)
    return ScheduleSpace.of(setting, ScheduleSize(*size), Solver.CPSAT)


def closed(space: ScheduleSpace, cube: Subproblem) -> Closure:
    """The verdict of a cube, in all the time it needs."""
    found = space.close(SubproblemTask(cube), Quiet())
    assert isinstance(found, Closure)
    for member in found.best:
        assert space.member(member.witness) == member
    return found


@given(copies(), draws())
@settings(max_examples=examples_of(50))
def test_a_cube_has_a_schedule_where_brute_force_lists_one(
    space: ScheduleSpace, data: Draws
) -> None:
    """Every schedule is in one root, and in one part of a cube that it is in.

    Some root has one with its chunks sorted, if there is any.
    """
    listed = list(solutions(space))
    cubes = list(space.roots())
    for one in listed:
        assert sum(obeys(one, cube) for cube in cubes) == 1
    inside = data.draw(st.sampled_from(cubes))
    parts = space.split(inside)
    assert len(parts) in (0, 2)
    for one in listed:
        assert sum(obeys(one, part) for part in parts) == (obeys(one, inside) and bool(parts))
    every = Subproblem(tuple(f"{name}=0" for name in space.names))
    assert any(sorted_chunks(space, one, every) for one in listed) is bool(listed)
    other = replace(space, solver=Solver.Z3)
    for cube in (*cubes, *parts):
        wanted = any(obeys(one, cube) and sorted_chunks(space, one, cube) for one in listed)
        verdict = SubproblemVerdict.SOLVED if wanted else SubproblemVerdict.EMPTY
        assert closed(space, cube).verdict is verdict
        if cube == inside:
            assert closed(other, cube).verdict is verdict


def test_what_a_cube_excludes_are_chunks_out_of_order() -> None:
    """Of any schedules, answers or not: held against a comparison of lists."""
    space, drawn = space_of("broadcast", (3, 3, 3)), random.Random(0)
    problem = copy_problem(space.setting, space.size, ())
    points = [tuple(int(part[1:]) for part in name.split(".")) for name in space.names]
    outs = []
    for _ in range(300):
        depth = drawn.randint(0, len(points))
        yes = {point: drawn.random() < 0.5 for point in points}
        path = [f"{name}={int(yes[at])}" for name, at in zip(space.names, points, strict=True)]
        cube = Subproblem(tuple(path[:depth]))
        held = tuple(
            frozenset((c, v) for (c, v, s), there in yes.items() if there and s == step)
            for step in range(space.size.steps + 1)
        )
        narrowed = decided_there(problem, cube.path)
        assert all(yes[one.chunk, one.rank, one.steps] is one.there for one in narrowed.decided)
        out = any(
            all(yes[one.chunk, one.rank, one.steps] is one.there for one in wrong)
            for wrong in narrowed.excluded
        )
        assert out is not sorted_chunks(space, held, cube)
        outs.append(out)
    assert 50 < sum(outs) < 250


@given(draws())
@settings(max_examples=examples_of(100))
def test_solvers_agree_on_cubes_of_all_reduces(data: Draws) -> None:
    """Of any depth; those of which z3 could send what nobody needs as well."""
    steps, chunks = data.draw(st.integers(2, 3)), data.draw(st.integers(1, 2))
    size = ScheduleSize(steps, steps + data.draw(st.integers(0, 2)), chunks)
    messages = data.draw(st.integers(1, 2)) if chunks == 1 else 1
    setting = SynthesisSetting(data.draw(all_reduce_fabrics()), "allreduce", 0, False, messages)
    space = ScheduleSpace.of(setting, size, Solver.CPSAT)
    other = replace(space, solver=Solver.Z3)
    cube = data.draw(st.sampled_from(space.roots()))
    for _ in range(4):
        assert closed(space, cube).verdict is closed(other, cube).verdict
        cube = data.draw(st.sampled_from(space.split(cube) or (cube,)))


@pytest.mark.parametrize("size", [(2, 2, 1), (3, 3, 2), (3, 5, 3), (2, 3, 2)])
def test_roots_of_all_reduces_are_as_the_whole(size: tuple[int, int, int]) -> None:
    setting = SynthesisSetting(circle(), "allreduce", symmetry=False)
    space = ScheduleSpace.of(setting, ScheduleSize(*size), Solver.CPSAT)
    every = {closed(space, cube).verdict for cube in space.roots()}
    problem = all_reduce_problem(circle(), size[2], size[0], size[1])
    found = all_reduce(problem).status is Status.FEASIBLE
    assert (SubproblemVerdict.SOLVED in every) is found
    assert (closed(space, Subproblem()).verdict is SubproblemVerdict.SOLVED) is found


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "reduce_scatter"])
def test_cubes_are_halves_in_one_order(collective: str) -> None:
    space = space_of(collective, (2, 3, 2))
    share = boolean_share(space.names)
    assert len(space.roots()) == 16
    assert sum(map(share, space.roots())) == 1
    assert len(set(space.names)) == len(space.names)
    deepest = Subproblem(tuple(f"{name}=0" for name in space.names))
    assert space.split(deepest) == ()
    for wrong in (("c0.r0.s0=1",), (f"{space.names[1]}=1",), (*deepest.path, "more=1")):
        with pytest.raises(InputError):
            space.bound(Subproblem(wrong))


def test_few_decisions_make_few_roots_and_many_are_not_all_used() -> None:
    assert space_of("broadcast", (2, 2, 1)).roots() == tuple(
        Subproblem((f"c0.r1.s1={a}", f"c0.r3.s1={b}")) for a, b in product("10", repeat=2)
    )
    pair = SynthesisSetting(circle(), "broadcast", symmetry=False)
    assert ScheduleSpace.of(pair, ScheduleSize(2, 2, 1), Solver.CPSAT).names == ("c0.r1.s1",)
    assert len(space_of("allreduce", (99, 99, 99)).names) == MOST


def test_a_space_is_made_again_from_its_description() -> None:
    fabric = replace(circle(), unit=Fraction(1, 3), description="of a test")
    setting = SynthesisSetting(fabric, "allreduce", symmetry=False, messages=2)
    space = ScheduleSpace.of(setting, ScheduleSize(3, 4, 2), Solver.Z3)
    data = json.loads(json.dumps(space.description()))
    assert schedule_space(data) == space == pickle.loads(pickle.dumps(space))
    for key in sorted(set(data) - {"class"}):  # that follows from the collective
        for wrong in ({one: data[one] for one in data if one != key}, {**data, key: {}}):
            with pytest.raises(InputError):
                schedule_space(wrong)


def test_members_are_replayed() -> None:
    space = space_of("allgather", (2, 3, 2))
    witness = closed(space, Subproblem()).best[0].witness
    data = json.loads(witness)
    send = data["steps"][0]["sends"].pop()
    fewer = json.dumps(data, separators=(",", ":"))
    data["steps"][0] = {"rounds": 9, "sends": [*data["steps"][0]["sends"], send]}
    longer = json.dumps(data, separators=(",", ":"))
    for wrong in (fewer, longer, f" {witness}", "{}", "[[", "1" * 5000, "[" * 9000):
        with pytest.raises(InputError):
            space.member(wrong)
    twice = space_of("allreduce", (2, 4, 1), messages=2)
    with pytest.raises(InputError):
        twice.member(witness)


def test_what_is_decided_is_held_against_the_answer() -> None:
    """A schedule of the other cube breaks a rule of this one."""
    setting = SynthesisSetting(square(), "broadcast", symmetry=False)
    yes, no = (
        replace(
            copy_problem(setting, ScheduleSize(3, 3, 1), ()),
            decided=(ChunkThere(0, 1, 1, there),),
        )
        for there in (True, False)
    )
    for solver in Solver:
        found, other = disseminate(yes, solver=solver).value, disseminate(no, solver=solver).value
        assert found is not None
        assert other is not None
        assert "decided otherwise" in str(broken_rule(no, found))
        assert "decided otherwise" in str(broken_rule(yes, other))
    plain = all_reduce_problem(circle(), 1, 3, 3)
    sent, kept = (replace(plain, decided=(ChunkSent(0, 0, 0, one),)) for one in (True, False))
    for solver in Solver:
        found_sum = all_reduce(sent, solver=solver).value
        assert found_sum is not None
        assert "decided otherwise" in str(broken_answer(kept, found_sum))
    with pytest.raises(InputError, match="in one piece"):
        replace(sent, family=ScheduleClass.TREES)


def test_what_cannot_be_is_decided_to_no_end() -> None:
    """A rank too far away, and edges that carry nothing."""
    setting = SynthesisSetting(circle(), "broadcast", symmetry=False)
    plain = copy_problem(setting, ScheduleSize(2, 2, 1), ())
    narrow = replace(all_reduce_problem(circle(), 1, 3, 3), capacities=(Fraction(1, 9),) * 3)
    for solver, yes in product(Solver, (True, False)):
        far = replace(plain, decided=(ChunkThere(0, 2, 1, yes),))
        wanted = Status.INFEASIBLE if yes else Status.FEASIBLE
        assert disseminate(far, solver=solver).status is wanted
        nothing = replace(narrow, decided=(ChunkSent(0, 0, 0, yes),))
        assert all_reduce(nothing, solver=solver).status is Status.INFEASIBLE


def test_time_and_signals_end_a_cube_without_a_verdict() -> None:
    space = space_of("allgather", (3, 5, 3))
    cube = space.roots()[0]
    deepest = Subproblem(tuple(f"{name}=0" for name in space.names))
    assert space.close(SubproblemTask(cube, budget_s=1e-9), Quiet()) == OverBudget(cube)
    for task, signals in (
        (SubproblemTask(cube, budget_s=1e-9, deadline_s=0.0), Quiet()),
        (SubproblemTask(cube, deadline_s=0.0), Quiet()),
        (SubproblemTask(cube, budget_s=9.0), Quiet(stopped=True)),
    ):
        assert space.close(task, signals) == Closure(cube, SubproblemVerdict.UNKNOWN)
    last = space.close(SubproblemTask(deepest, budget_s=1e-9), Quiet())
    assert last == Closure(deepest, SubproblemVerdict.EMPTY)
    assert space.find(cube, SearchLimits(0.0)).status is Status.UNKNOWN
