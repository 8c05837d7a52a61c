"""The best placements cube by cube: the answer of a search in one piece, and brute force."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.collectives.names import Form
from p2smt.errors import InputError, TooLarge
from p2smt.parallel_search.coordinate import search
from p2smt.parallel_search.parallel_options import InProcess, Spread
from p2smt.parallel_search.subproblem import (
    Member,
    OverBudget,
    Subproblem,
    SubproblemTask,
    SubproblemVerdict,
)
from p2smt.parallelism.placement import AxisRule, FixedEntry, ParallelismAxis
from p2smt.parallelism.request import Problem, reduce, send
from p2smt.plans.file import plan_data
from p2smt.plans.solution import Solution
from p2smt.result import SearchLimits, Status
from p2smt.search.solve import solve
from p2smt.search.spaces.solve_space import SolveSpace, solve_space
from p2smt.solvers.ask import Solver
from tests.search.spaces.questions import Quiet, cluster, every_matrix, holds

AXES = (ParallelismAxis("a", 4), ParallelismAxis("b", 2), ParallelismAxis("c", 2))
PROBLEM = Problem(
    cluster((2, 2, 4)), AXES, (reduce("a=64MiB"), reduce("b+c=8MiB*7"), send("b=1MiB"))
)
TICK_S = 2.0**-40


def plan_of(found: Solution) -> dict[str, Any]:
    """The plan file's data, the seed left out."""
    assert found.best is not None
    data = plan_data(found, found.best)
    return {**data, "limits": {**data["limits"], "seed": None}}


def same(one: Solution, other: Solution) -> bool:
    """Whether two answers say the same of status, order and plan."""
    ranked = [[a.matrix for a in found.alternatives] for found in (one, other)]
    states = [(found.status, found.ranking, found.bound_s) for found in (one, other)]
    return ranked[0] == ranked[1] and states[0] == states[1] and plan_of(one) == plan_of(other)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    levels = draw(st.sampled_from([(2, 4), (2, 2, 2), (4, 4), (3, 4)]))
    devices = 12 if levels == (3, 4) else 16 if levels == (4, 4) else 8
    first = draw(st.sampled_from([2, 4]))
    axes = (ParallelismAxis("a", first), ParallelismAxis("b", devices // first))
    sizes = st.sampled_from(["64KiB", "1MiB", "256MiB*3"])
    requests = tuple(reduce(f"{axis}={draw(sizes)}") for axis in draw(st.sampled_from(["a", "ab"])))
    rule = st.builds(AxisRule, st.integers(0, 1), st.integers(0, 1), st.booleans())
    return Problem(
        cluster(levels),
        axes,
        requests,
        draw(st.sampled_from(["sum", "max"])),
        draw(st.sampled_from([1, 3])),
        tuple(draw(st.lists(rule, max_size=1))),
        frozenset(draw(st.lists(st.sampled_from([Form.MASTER, Form.PARALLEL]), max_size=1))),
    )


@settings(max_examples=12, deadline=None)
@given(problems(), st.sampled_from([1, 3, 100]), st.sampled_from([None, 1e-6]))
def test_parts_answer_as_the_whole_does(problem: Problem, top: int, budget: float | None) -> None:
    whole = solve(problem, top=top)
    parts = solve(problem, top=top, spread=Spread(budget_s=budget))
    assert parts.status is whole.status
    assert whole.best is None or same(whole, parts)
    assert parts.conflict == whole.conflict


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2, 19])
def test_processes_and_seeds_do_not_change_the_plan(seed: int) -> None:
    whole, limits = solve(PROBLEM), SearchLimits(seed=seed)
    assert same(whole, solve(PROBLEM, limits=limits, spread=Spread()))
    if seed == 1:
        assert same(whole, solve(PROBLEM, limits=limits, spread=Spread(processes=2)))


def test_a_library_chooses_in_parts_as_in_the_whole() -> None:
    topology = load_topology("dgx-h100:4")
    axes = (ParallelismAxis("dp", 8), ParallelismAxis("tp", 4))
    problem = Problem(topology, axes, (reduce("dp=64MiB"), reduce("tp=1MiB*9")))
    assert same(solve(problem), solve(problem, spread=Spread()))


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_a_journal_that_ended_early_is_continued(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "j.jsonl"
    whole = solve(PROBLEM, spread=Spread(journal=str(path)))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:kept]) + lines[kept][:30])
    assert same(whole, solve(PROBLEM, spread=Spread(journal=str(path))))
    with pytest.raises(InputError, match="another search"):
        solve(replace(PROBLEM, max_length=2), spread=Spread(journal=str(path)))


def test_the_best_members_are_those_of_brute_force() -> None:
    space = SolveSpace(PROBLEM, TICK_S)
    found = search(space, InProcess(space), top=7)
    assert found.status is Status.OPTIMAL
    assert list(found.best) == sorted(members(space))[:7]


def members(space: SolveSpace) -> list[Member]:
    matrices = every_matrix(space.problem.topology.sizes, space.problem.axis_sizes)
    return [space.member(text(matrix)) for matrix in matrices]


def text(matrix: tuple[tuple[int, ...], ...]) -> str:
    return json.dumps(matrix, separators=(",", ":"))


def test_bounds_hold_for_every_member_of_a_cube() -> None:
    space, waiting = SolveSpace(PROBLEM, TICK_S), [Subproblem()]
    known, tight = members(space), 0
    while waiting:
        cube = waiting.pop()
        mine = [one for one in known if holds(cube, json.loads(one.witness))]
        bound, tie = space.bound(cube), space.tie_bound(cube)
        assert all(bound <= one.value and tie <= one.tie for one in mine)
        tight += any(2 * bound >= one.value for one in mine)
        waiting += space.split(cube)
    assert tight > 5  # not all of them say nothing


def test_a_cube_is_bounded_by_better_members() -> None:
    space = SolveSpace(PROBLEM, TICK_S)
    ordered = sorted(members(space))
    best, worst = ordered[0], ordered[-1]
    root = next(r for r in space.roots() if holds(r, json.loads(worst.witness)))
    mine = [one for one in ordered if holds(root, json.loads(one.witness))]
    assert best not in mine
    closed = space.close(SubproblemTask(root, known=(best,)), Quiet())
    assert not isinstance(closed, OverBudget)
    assert (closed.verdict, closed.best) == (SubproblemVerdict.BOUNDED, ())
    assert best.value <= (closed.bound or 0) <= mine[0].value
    free = space.close(SubproblemTask(root, top=2), Quiet())
    assert not isinstance(free, OverBudget)
    assert (free.verdict, list(free.best)) == (SubproblemVerdict.SOLVED, mine[:2])


def test_no_time_claims_nothing() -> None:
    space = SolveSpace(PROBLEM, TICK_S)
    late = space.close(SubproblemTask(space.roots()[0], deadline_s=0.0), Quiet())
    assert not isinstance(late, OverBudget)
    assert late.verdict is SubproblemVerdict.UNKNOWN
    found = solve(PROBLEM, limits=SearchLimits(time_limit_s=0.0), spread=Spread())
    assert found.status in (Status.UNKNOWN, Status.FEASIBLE)


def test_a_description_makes_the_space_again() -> None:
    rules = (AxisRule(0, 1, True), FixedEntry(1, 0, 2))
    problem = replace(PROBLEM, rules=rules, forbidden_forms=frozenset({Form.MASTER}))
    space = SolveSpace(problem, TICK_S / 3, Solver.Z3)
    assert solve_space(json.loads(json.dumps(space.description()))) == space
    with pytest.raises(InputError):
        solve_space({"tick_s": 1.0})


@pytest.mark.parametrize("witness", ["[[4,1,1],[1,2,1],[1,1,4]]", "[[4,1,1]]", "x"])
def test_what_is_no_member_is_refused(witness: str) -> None:
    with pytest.raises(InputError):
        SolveSpace(PROBLEM, TICK_S).member(witness)


def test_a_request_with_too_many_scenes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p2smt.search.bound_table.MAX_SCENES", 1)
    with pytest.raises(TooLarge):
        solve(PROBLEM, spread=Spread())
