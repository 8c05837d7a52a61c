"""What `solve` claims when time is short, costs lie far apart, or nothing needs sending."""

from __future__ import annotations

from typing import Any

import pytest

import p2smt
from p2smt.encodings.program import reachable
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import FixedEntry, Matrix
from p2smt.parallelism.request import Problem
from p2smt.problems.placement import PlacementProblem
from p2smt.report.outputs.shape import json_of
from p2smt.report.solution_data import solution_data
from p2smt.report.solution_tables import solution_tables
from p2smt.result import LOOK_EVERY, Result, SearchLimits, SolveStats, Status, StopWatch, timely
from p2smt.search import bound_table, placements
from p2smt.search.sensitivity import perturbations
from p2smt.solvers import ask as solvers
from p2smt.solvers.ask import Optimum, Solver
from tests.strategies.clusters import switches


def cluster(*levels: tuple[str, int, float]) -> p2smt.Topology:
    """Switch levels (name, size, bytes per second) without latency."""
    return switches(*levels, latency_s=0.0)


def ask(topology: p2smt.Topology, axes: str, *requests: str, **more: Any) -> Problem:
    return Problem(
        topology, p2smt.parse_axes(axes), tuple(p2smt.reduce(r) for r in requests), **more
    )


@pytest.mark.parametrize("wan", [1.0, 1e3, 1e6])
def test_costs_that_lie_far_apart_are_told_apart(wan: float) -> None:
    topology = cluster(("wan", 2, wan), ("node", 2, 1e15), ("gpu", 2, 1e17))
    found = p2smt.solve(ask(topology, "dp=4,tp=2", "tp=1MiB"), top=3)
    assert found.status is Status.OPTIMAL
    assert [a.matrix and a.matrix[1] for a in found.alternatives] == [
        (1, 1, 2),
        (1, 2, 1),
        (2, 1, 1),
    ]
    assert found.bound_s == pytest.approx(found.alternatives[0].objective_s, rel=1e-6)
    assert found.bound_s <= found.alternatives[0].objective_s


def deep() -> p2smt.Topology:
    """Eight levels: the table of its programs takes seconds to build, and is not there yet."""
    for known in (reachable._raw_table, reachable._table, reachable._merged_table):
        known.cache_clear()
    return cluster(*((f"l{j}", 2, 10.0**j * 1e6) for j in range(8)))


def test_the_time_limit_reaches_the_table() -> None:
    found = p2smt.solve(ask(deep(), "dp=256", "dp=1GiB"), limits=SearchLimits(time_limit_s=0.3))
    assert found.status is Status.FEASIBLE
    assert found.ranking is Status.TRUNCATED
    assert found.best is not None
    assert found.best.requests[0].status is not Status.OPTIMAL
    assert found.bound_s <= found.best.objective_s


def test_nothing_stands_in_for_a_forbidden_program() -> None:
    problem = ask(deep(), "dp=256", "dp=1GiB", step_limits=(("l0", 0),))
    found = p2smt.solve(problem, limits=SearchLimits(time_limit_s=0.3))
    assert (found.status, found.alternatives) == (Status.UNKNOWN, ())


def test_an_unsettled_proposal_is_no_end_of_the_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ask(cluster(("node", 4, 1e9), ("gpu", 8, 1e10)), "dp=8,tp=4", "dp=1MiB")

    def unsure(
        asked: PlacementProblem, question: Optimum, solver: Solver, limits: SearchLimits
    ) -> Result[Matrix]:
        """The real solver, but it gives up once a matrix is excluded."""
        if asked.excluded:
            return Result(Status.UNKNOWN, stats=SolveStats("unsure"))
        return solvers.ask(asked, question, solver, limits)

    monkeypatch.setattr(bound_table, "listed", lambda *_: None)
    monkeypatch.setattr(placements, "ask", unsure)
    found = p2smt.solve(problem, top=3)
    assert found.status is Status.OPTIMAL
    assert len(found.alternatives) == 1
    assert found.ranking is Status.TRUNCATED


def test_a_short_list_of_placements_is_complete() -> None:
    problem = ask(cluster(("node", 2, 1e9), ("gpu", 2, 1e10)), "dp=2,tp=2", "dp=1MiB")
    found = p2smt.solve(problem, top=10)
    assert (found.status, found.ranking) == (Status.OPTIMAL, Status.COMPLETE)
    assert len(found.alternatives) == 2


@pytest.mark.exhaustive
def test_a_scene_too_large_for_the_table_is_left_unproved() -> None:
    sizes = (4, 4, 4, 8, 8)
    topology = cluster(*((f"l{j}", n, 10.0**j * 1e6) for j, n in enumerate(sizes)))
    tp_on_gpus = FixedEntry(axis=1, level=4, value=4)  # so dp is split at all five levels
    asked = ("dp=1024,tp=4", "dp=1GiB", "tp=1MiB")
    problem = ask(topology, *asked, rules=(tp_on_gpus,), max_length=7)
    found = p2smt.solve(problem, top=1)
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    assert [plan.status for plan in found.best.requests] == [Status.FEASIBLE, Status.OPTIMAL]
    assert found.bound_s <= found.best.objective_s


def test_nothing_to_send_takes_no_time() -> None:
    problem = ask(cluster(("node", 2, 1e9), ("gpu", 2, 1e10)), "dp=4,tp=1", "tp=1MiB")
    found = p2smt.solve(problem, sensitivity=True)
    assert found.best is not None
    assert found.best.objective_s == 0.0
    assert all(case.holds for case in found.sensitivity)
    assert solution_tables(found)
    assert json_of(solution_data(found))["objective_s"] == 0.0


def test_sensitivity_without_time_is_not_settled() -> None:
    problem = ask(cluster(("node", 2, 1e9), ("gpu", 2, 1e10)), "dp=4", "dp=1MiB")
    found = p2smt.solve(problem, limits=SearchLimits(time_limit_s=0.5))
    assert found.best is not None
    cases = perturbations(problem, found.best, StopWatch.start(SearchLimits(0.0)), Solver.CPSAT)
    assert {case.status for case in cases} == {Status.FEASIBLE}
    assert {case.holds for case in cases} == {None}


LATE = StopWatch.start(SearchLimits(time_limit_s=0))
FREE = StopWatch.start(SearchLimits())


@pytest.mark.parametrize("count", [0, 1, LOOK_EVERY - 1, LOOK_EVERY, 2 * LOOK_EVERY + 1])
def test_with_time_all_items_come_in_their_order(count: int) -> None:
    assert list(timely(range(count), FREE)) == list(timely(range(count), None)) == [*range(count)]


def test_without_time_the_first_come_alone() -> None:
    assert list(timely(range(LOOK_EVERY - 1), LATE)) == [*range(LOOK_EVERY - 1)]
    came: list[int] = []
    with pytest.raises(OutOfTimeError):
        came.extend(timely(range(5 * LOOK_EVERY), LATE))
    assert came == [*range(LOOK_EVERY)]


@pytest.mark.parametrize(
    ("limit", "share", "least", "ends"),
    [(1e9, 0.25, 0.0, 2.5e8), (1e9, 0.25, 4e8, 4e8), (1e9, 0.25, 1e12, 1e9), (0.0, 1.0, 1e12, 0.0)],
)
def test_a_part_of_a_time_limit_is_of_what_is_left(
    limit: float, share: float, least: float, ends: float
) -> None:
    part = StopWatch.start(SearchLimits(limit)).part(share, least)
    assert part.limits.time_limit_s == pytest.approx(ends, rel=1e-3, abs=1e3)
    assert StopWatch.start(SearchLimits()).part(share, least).remaining_s() is None
