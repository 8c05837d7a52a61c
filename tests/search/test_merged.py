"""Programs for groups beyond the range of the proof: found on merged levels, checked on all."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import FixedEntry, Placement
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, groupings, local_groups, parse_program
from p2smt.result import SearchLimits, Status
from p2smt.search.one_request import best_merged_levels
from p2smt.search.program_synthesis import Task, best_program
from p2smt.search.programs_pipelined import Catalogs, SoughtProgram, best_pipelined
from tests.search.solve.test_solve_limits import ask, cluster
from tests.strategies.draws import Draws, draws

UNLIMITED = SearchLimits()


@given(st.lists(st.integers(1, 3), min_size=2, max_size=6), draws())
def test_merged_levels_form_groups_of_the_whole_hierarchy(factors: list[int], data: Draws) -> None:
    whole = Hierarchy.plain([*factors, 2])
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, whole.depth - 1)))))
    merged = whole.merged([cut for cut in cuts if cut < whole.depth])
    assert merged.size == whole.size
    for grouping in groupings(merged.depth):
        text = merged.instruction(Collective.ALL_REDUCE, grouping)
        assert merged.grouping(text) == grouping
        ours = local_groups(merged.factors, grouping).tolist()
        real = local_groups(whole.factors, whole.grouping(text)).tolist()
        assert sorted(map(sorted, ours)) == sorted(map(sorted, real))
        for level, depth in whole.aliases:
            crosses = whole.grouping(text).outer < depth
            assert (grouping.outer < merged.depth_of(level)) is crosses


def scene_of(*sizes: int) -> Scene:
    """A request over all devices of these levels, each a hundred times as fast as the next."""
    topology = cluster(*((f"l{j}", n, 100.0**j * 1e6) for j, n in enumerate(sizes)))
    return Scene.of(topology, Placement((sizes,)), (0,))


@pytest.mark.parametrize("kind", [k for k in RequestKind if k.has_programs])
@pytest.mark.parametrize("sizes", [(2, 3), (4, 2, 3)])
def test_within_the_range_the_optimum_is_found_too(
    kind: RequestKind, sizes: tuple[int, ...]
) -> None:
    scene = scene_of(*sizes)
    task = Task(kind, scene.hierarchy, 5)
    proved = best_program(task, scene, 2**30, UNLIMITED)
    found = best_merged_levels(SoughtProgram(task, scene, 2**30, 1, Catalogs()), UNLIMITED)
    assert (proved.status, found.status) == (Status.OPTIMAL, Status.FEASIBLE)
    assert proved.best is not None
    assert found.best is not None
    assert found.best.seconds == pytest.approx(proved.best.seconds, rel=1e-9)


def is_real(answer: RequestAnswer) -> None:
    """The program means what is asked on the real hierarchy, and beats the single collective."""
    assert answer.status is Status.FEASIBLE
    assert answer.program is not None
    checked = check_program(demand_of(answer.request.kind), answer.hierarchy, answer.program)
    assert checked.trace.violation is None
    assert answer.checked == checked.how
    assert answer.bound_s <= answer.seconds < answer.single_s


@pytest.mark.exhaustive
@pytest.mark.parametrize("pipeline", [1, 4])
def test_seven_levels_and_512_devices_get_a_program_of_seven_steps(pipeline: int) -> None:
    sizes = (4, 2, 2, 2, 2, 4, 8)  # two outermost entities would leave nothing to gain over trees
    topology = cluster(*((f"l{j}", n, 10.0**j * 1e6) for j, n in enumerate(sizes)))
    tp_on_gpus = FixedEntry(axis=1, level=6, value=4)  # so dp is split at all seven levels
    more: dict[str, Any] = {"rules": (tp_on_gpus,), "pipeline": pipeline, "max_length": 7}
    found = p2smt.solve(ask(topology, "dp=512,tp=4", "dp=1GiB", **more), top=1)
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    is_real(found.best.requests[0])
    assert found.bound_s <= found.best.objective_s


@pytest.mark.parametrize(
    ("sizes", "length"),
    [
        ((4, 2, 2, 2, 2, 2), 3),
        ((4, 2, 2, 2, 2, 2, 2), 3),
        ((4, 2, 2, 2, 2, 2, 2, 2), 3),
        ((16, 32), 16),
        ((4, 4, 8), 7),
        pytest.param((8, 8, 8), 9, marks=pytest.mark.exhaustive),
        pytest.param((4, 4, 4, 4), 7, marks=pytest.mark.exhaustive),
        pytest.param((4, 2, 2, 4, 8), 6, marks=pytest.mark.exhaustive),
        pytest.param((4, 2, 2, 2, 2, 4, 8), 5, marks=pytest.mark.exhaustive),
        pytest.param((4, 2, 2, 2, 2, 2, 2, 8), 5, marks=pytest.mark.exhaustive),
    ],
)
def test_large_groups_are_proved(sizes: tuple[int, ...], length: int) -> None:
    topology = cluster(*((f"l{j}", n, 10.0**j * 1e6) for j, n in enumerate(sizes)))
    devices = f"dp={math.prod(sizes)}"
    found = p2smt.solve(ask(topology, devices, "dp=1GiB", max_length=length), top=1)
    assert found.status is Status.OPTIMAL
    assert found.best is not None
    best = found.best.requests[0]
    assert best.program is not None
    checked = check_program(demand_of(RequestKind.ALL_REDUCE), best.hierarchy, best.program)
    assert checked.trace.violation is None
    assert best.checked == checked.how
    assert found.bound_s <= best.seconds <= best.single_s


@pytest.mark.parametrize("pipeline", [1, 4])
def test_the_optimum_over_five_levels_is_no_worse_than_over_merged_ones(pipeline: int) -> None:
    scene = scene_of(4, 2, 2, 4, 2)
    task = Task(RequestKind.ALL_REDUCE, scene.hierarchy, 3)
    sought = SoughtProgram(task, scene, 2**30, pipeline, Catalogs())
    merged = best_merged_levels(sought, UNLIMITED).best
    search = best_program(task, scene, 2**30, UNLIMITED)
    proved = search if pipeline == 1 else best_pipelined(sought, UNLIMITED)
    assert proved.status is Status.OPTIMAL
    assert proved.best is not None
    assert merged is not None
    assert proved.bound_s <= proved.best.seconds <= merged.seconds * (1 + 1e-9)


def test_programs_beyond_length_six_are_no_worse_than_those_up_to_it() -> None:
    topology = cluster(("rack", 8, 1e9), ("node", 16, 1e10), ("gpu", 8, 1e11))
    short = p2smt.solve(ask(topology, "dp=1024", "dp=1GiB", max_length=6)).best
    found = p2smt.solve(ask(topology, "dp=1024", "dp=1GiB", max_length=7))
    assert short is not None
    assert found.best is not None
    is_real(found.best.requests[0])
    assert found.best.objective_s == pytest.approx(short.objective_s, rel=1e-9)


def test_z3_takes_programs_for_more_devices_than_it_proves() -> None:
    problem = ask(cluster(("node", 4, 1e9), ("gpu", 8, 1e11)), "dp=32", "dp=1GiB")
    found = p2smt.solve(problem, solver="z3", top=1)
    proved = p2smt.solve(problem, top=1)
    assert (found.status, proved.status) == (Status.FEASIBLE, Status.OPTIMAL)
    assert found.best is not None
    assert proved.best is not None
    is_real(found.best.requests[0])
    assert found.best.objective_s == pytest.approx(proved.best.objective_s, rel=1e-9)


def test_restrictions_hold_on_merged_levels() -> None:
    """Steps across a level that was merged away are counted too."""
    sizes = (8, 8, 2, 2, 4)
    topology = cluster(*((f"l{j}", n, 10.0**j * 1e6) for j, n in enumerate(sizes)))
    limits = (("l1", 1), ("l2", 1))
    problem = ask(topology, "dp=1024", "dp=1GiB", step_limits=limits, max_length=7)
    found = p2smt.solve(problem, top=1).best
    assert found is not None
    answer = found.requests[0]
    is_real(answer)
    assert answer.program is not None
    for level in ("l1", "l2"):
        depth = answer.hierarchy.depth_of(level)
        steps = [answer.hierarchy.grouping(i) for i in answer.program.instructions]
        assert sum(grouping.outer < depth for grouping in steps) <= 1


def test_a_program_over_five_levels_and_2048_devices_is_checked() -> None:
    hierarchy = Hierarchy.plain((2, 4, 8, 4, 8))
    program = parse_program(
        "reduce-scatter inside l3; all-reduce parallel l3 in root; all-gather inside l3"
    )
    checked = check_program(demand_of(RequestKind.ALL_REDUCE), hierarchy, program)
    assert checked.trace.violation is None
    assert (checked.exact, checked.factors) == (False, (2, 3))
    assert checked.trace.payload_rows == (2048, 2048 // math.prod((4, 8)), 2048)
    half = parse_program("reduce-scatter inside l3; all-gather inside l3")
    assert check_program(demand_of(RequestKind.ALL_REDUCE), hierarchy, half).trace.violation
