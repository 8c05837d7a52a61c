"""What is said to hold for every hardware, on random hardware."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import Piece, Topology
from p2smt.collectives.demand import demand_of
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix, Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import PlacementClaim, ProgramClaim, ProgramVerdict
from p2smt.problems.placement import PlacementProblem
from p2smt.programs.check import check_program
from p2smt.programs.program import Program
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.explain.always import Always
from p2smt.search.placements import placements
from p2smt.search.programs_pipelined import Catalogs
from tests.search.solve.test_solve import least_time, programs
from tests.tiers import but_the_first

RINGS = """
name: rings
library: none
algorithms: [ring]
levels:
  - {name: node, size: 4, link: {kind: switch, bandwidth: 10 GB/s, latency: 5 us}}
  - {name: gpu, size: 4, link: {kind: switch, bandwidth: 90 GB/s, latency: 1 us}}
"""
HARDWARE = 30


def asked(axes: str, *requests: str, length: int = 3) -> Problem:
    """A problem on the cluster above, with programs of the oracle's length."""
    topology = parse_topology(RINGS, "rings")
    chosen = tuple(map(p2smt.reduce, requests))
    return Problem(topology, p2smt.parse_axes(axes), chosen, max_length=length)


def claims(
    problem: Problem, seconds: float | None = None
) -> tuple[Matrix, tuple[ProgramClaim, ...], PlacementClaim]:
    best = p2smt.solve(problem, top=1).best
    assert best is not None
    assert best.matrix is not None
    watch = StopWatch.start(SearchLimits(time_limit_s=seconds))
    always = Always(problem, best, Catalogs(), watch)
    ordered = Always(problem, best, Catalogs(), watch, ordered=True)
    sizes = problem.topology.sizes, problem.axis_sizes
    every = placements(PlacementProblem(*sizes, problem.rules)).value or ()
    return best.matrix, always.programs(), ordered.placements(every, whole=True)


def hardware(problem: Problem, dice: random.Random) -> Problem:
    """The problem with other bandwidths, payloads and (no shorter further out) latencies."""
    delays = sorted(
        (dice.choice([0.0, 10 ** dice.uniform(-7, -3)]) for _ in range(2)), reverse=True
    )
    levels = tuple(
        replace(
            level, link=replace(level.link, pieces=(Piece("", delay, 10 ** dice.uniform(8, 12)),))
        )
        for level, delay in zip(problem.topology.levels, delays, strict=True)
    )
    sizes = [2 ** dice.randint(0, 36) for _ in problem.requests]
    requests = tuple(
        replace(one, payload_bytes=size) for one, size in zip(problem.requests, sizes, strict=True)
    )
    topology: Topology = replace(problem.topology, levels=levels)
    return replace(problem, topology=topology, requests=requests)


@pytest.mark.parametrize(
    "problem",
    but_the_first(
        asked("dp=4,tp=4", "tp=1MiB"),
        asked("dp=16", "dp=1MiB"),
        asked("dp=4,tp=4", "dp=1GiB", "tp=64MiB*8"),
        asked("dp=8,tp=2", "dp=1MiB"),
        asked("dp=2,tp=8", "tp=1MiB"),
    ),
    ids=lambda problem: str([str(one) for one in problem.requests]),
)
def test_claims_hold_on_random_hardware(problem: Problem) -> None:
    ours, said, placed = claims(problem)
    dice = random.Random(0)
    for _ in range(HARDWARE):
        there = hardware(problem, dice)
        times = [least_time(there, request, ours) for request in there.requests]
        for index, claim in enumerate(said):
            assert claim.verdict is not ProgramVerdict.OPEN
            known = [program_s(there, index, ours, program) for program in claim.among]
            assert min(known) == pytest.approx(times[index], rel=1e-9)
            if claim.verdict is ProgramVerdict.BEST:
                own = program_s(there, index, ours, claim.program)
                assert own == pytest.approx(times[index], rel=1e-9)
        for matrix in beaten(problem, ours, placed):
            others = [least_time(there, request, matrix) for request in there.requests]
            assert all(a <= b * (1 + 1e-9) for a, b in zip(times, others, strict=True))


def beaten(problem: Problem, ours: Matrix, placed: PlacementClaim) -> list[Matrix]:
    """The matrices that are said never to be better."""
    sizes = problem.topology.sizes, problem.axis_sizes
    every = placements(PlacementProblem(*sizes, problem.rules)).value or ()
    found = [matrix for matrix in every if matrix != ours and matrix not in placed.rivals]
    assert len(found) == placed.never_better
    return found


def program_s(problem: Problem, index: int, matrix: Matrix, program: Program) -> float:
    """The time of a program on a matrix."""
    request = problem.requests[index]
    scene = Scene.of(problem.topology, Placement(matrix), problem.axis_indices(request))
    trace = check_program(demand_of(request.kind), scene.hierarchy, program).trace
    steps = scene.program_times(program, trace.payload_rows, request.payload_bytes)
    return sum(step.seconds for step in steps)


def test_over_two_levels_three_programs_are_enough() -> None:
    """As docs/crossings.md says with a cost per call: two, and the joined one."""
    _, (claim,), placed = claims(asked("dp=16", "dp=1MiB"))
    assert claim.verdict is ProgramVerdict.WARM_STARTS
    assert len(claim.among) == 3
    assert claim.program in claim.among
    assert (placed.others, placed.rivals, placed.axes) == (0, (), ("dp",))
    assert len(programs(p2smt.RequestKind.ALL_REDUCE, (4, 4))) > 3


def test_an_axis_inside_a_node_is_never_better_across_all() -> None:
    """What leaves a node passes the links inside it, too; rings of two have fewer steps, though."""
    ours, (claim,), placed = claims(asked("dp=4,tp=4", "tp=1MiB"))
    assert ours == ((4, 1), (1, 4))
    assert claim.verdict is ProgramVerdict.BEST
    assert (placed.others, placed.never_better) == (2, 1)
    assert placed.rivals == (((2, 2), (2, 2)),)
    assert placed.axes == ()


def test_axes_that_all_rivals_share_are_named() -> None:
    """With tp never across all nodes, what is left of it lies inside."""
    problem = asked("dp=4,tp=4", "tp=1MiB")
    fixed = replace(problem, rules=(AxisRule(1, 0, inside=True),))
    assert claims(fixed)[2].axes == ("dp", "tp")
    free = replace(problem, rules=(FixedEntry(1, 0, 1),))
    assert claims(free)[2].others == 0


def test_without_time_nothing_is_claimed() -> None:
    problem = asked("dp=4,tp=4", "dp=1GiB", "tp=64MiB*8")
    _, said, placed = claims(problem, 0.0)
    assert {one.verdict for one in said} == {ProgramVerdict.OPEN}
    assert placed.never_better == 0
    assert placed.axes == ()
    assert placed.unsettled == placed.others > 0
