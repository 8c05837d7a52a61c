"""Reductions are a special case: partial to replicated, with cuts at the levels' factors only.

Of `solve`'s programs for an all-reduce those of reduce-scatters, all-reduces and all-gathers, none
by masters, are redistributions.  A redistribution may also scatter by an all-reduce and a free
slice of what it left, which no program says: where switches reduce, that is the faster way.  With
the cheaper of the two for every reduce-scatter, the best of both cost the same.
"""

from __future__ import annotations

import pytest

from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective, Form, RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.programs.program import Program
from p2smt.resharding.cuts import Cuts
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.types import ArrayType, ElementType, Mesh, parse_layout
from p2smt.result import Status
from p2smt.search.program_synthesis import ListedProgram, request_programs
from tests.resharding.search.questions import cluster

OURS = {Collective.REDUCE_SCATTER, Collective.ALL_REDUCE, Collective.ALL_GATHER}
KIB = 1024


def best_program_s(topology: Topology, placement: Placement, payload: int) -> float:
    """The least seconds of an all-reduce of the first axis by such instructions; all are listed.

    A reduce-scatter takes what an all-reduce of its groups does, where that is less.
    """
    names = [ParallelismAxis(f"a{n}", size) for n, size in enumerate(placement.axis_sizes)]
    request = Request(RequestKind.ALL_REDUCE, ("a0",), payload)
    problem = Problem(topology, tuple(names), (request,))
    found = request_programs(problem, placement, request, top=1000)
    assert len(found.programs) < 1000
    scene = Scene.of(topology, placement, (0,))
    times = [scattered_s(scene, one) for one in found.programs if is_ours(one.program)]
    assert len(times) > 1
    return min(times)


def scattered_s(scene: Scene, listed: ListedProgram) -> float:
    """The seconds of a program whose reduce-scatters may be all-reduces and slices."""
    assert listed.seconds == pytest.approx(sum(step.seconds for step in listed.steps))
    seconds = 0.0
    for one, step in zip(listed.program.instructions, listed.steps, strict=True):
        grouping = scene.hierarchy.grouping(one)
        other = scene.step_time(Collective.ALL_REDUCE, grouping, step.payload_bytes)
        scatters = one.collective is Collective.REDUCE_SCATTER
        seconds += min(step.seconds, other.seconds) if scatters else step.seconds
    return seconds


def is_ours(program: Program) -> bool:
    return all(
        one.collective in OURS and one.form is not Form.MASTER for one in program.instructions
    )


def best_plan_s(topology: Topology, placement: Placement, payload: int, cuts: Cuts) -> float:
    """The time of the plan from partial over the first axis to replicated; others shard."""
    axes = [(f"a{n}", size) for n, size in enumerate(placement.axis_sizes)]
    mesh = Mesh.of(axes, [int(device) for device in placement.rank_tensor().ravel()])
    others = ",".join(name for name, _ in axes[1:])
    shape = (payload // 4, mesh.size // placement.axis_sizes[0])
    dims = f"R,S({others})" if others else "R,R"
    kinds = [
        ArrayType(mesh, shape, ElementType.F32, parse_layout(text, mesh))
        for text in (f"{dims};P(a0)", dims)
    ]
    plan = solve_redistribution(kinds[0], kinds[1], topology, cuts=cuts)
    assert plan.status is Status.OPTIMAL
    assert plan.max_steps is None
    return plan.objective_s


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("preset", "matrix", "nominal", "payload"),
    [
        ("dgx-a100:2", ((2, 8),), True, 64 * KIB),
        pytest.param("azure-ndv4:4", ((2, 4), (2, 2)), False, 256, marks=pytest.mark.exhaustive),
        ("azure-ndv4:4", ((2, 4), (2, 2)), False, 64 * KIB**2),
        pytest.param("dgx-h100:2", ((2, 8),), False, 64 * KIB, marks=pytest.mark.exhaustive),
        pytest.param("dgx-h100:2", ((2, 8),), True, KIB**2, marks=pytest.mark.exhaustive),
        pytest.param("mi300x:4", ((4, 2), (1, 4)), True, 64 * KIB**2, marks=pytest.mark.exhaustive),
    ],
)
def test_all_reduces_cost_what_the_best_program_of_these_instructions_does(
    preset: str, matrix: tuple[tuple[int, ...], ...], nominal: bool, payload: int
) -> None:
    topology = load_topology(preset)
    topology = topology.nominal() if nominal else topology
    placement = Placement(matrix)
    ours = best_plan_s(topology, placement, payload, Cuts.LEVELS)
    assert ours == pytest.approx(best_program_s(topology, placement, payload), rel=1e-9)


def test_cuts_inside_a_level_gain() -> None:
    """64 KiB on 2 nodes of 8: rings of 8 pay 7 latencies, rings of 2 in 2 in 2 pay three."""
    topology = cluster(2, 8, "1 us")
    placement = Placement(((2, 8),))
    levels = best_plan_s(topology, placement, 64 * KIB, Cuts.LEVELS)
    assert levels == pytest.approx(41.7e-6, rel=1e-3)
    assert best_plan_s(topology, placement, 64 * KIB, Cuts.PRIMES) < 35.7e-6
