"""The search on named hosts: its parts, its limits, and what never depends on them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings

import p2smt
from experiments.allocations.jobs import SIZES, UPLINKS, Job
from p2smt.cluster.file import parse_topology
from p2smt.cluster.library.registry import library_names
from p2smt.collectives.demand import plain_kind
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import groups_model, single_time
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.solution import objective
from p2smt.problems.allocation import AllocationProblem, Counts, WayTicks
from p2smt.problems.placement import PlacementProblem
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.allocation.cell_grids import CellGrid, grids
from p2smt.search.allocation.grid_question import asked, block_of, switch_tree, whole
from p2smt.search.allocation.host_search import every_order, number_of_orders
from p2smt.search.allocation.local_search import Climb, banded, bands, by_significance
from p2smt.search.allocation.solve_grid import alone_ticks, ticks_of
from p2smt.search.allocation.terms import CellTerm, lines_along, term
from p2smt.search.joint import ProgressCallback
from tests.cluster.test_hosts import uneven
from tests.encodings.test_allocation import problems as questions
from tests.oracles.allocations import optimum
from tests.search.allocation.test_optimum import ENOUGH, problems
from tests.strategies.draws import Shuffle, shuffles

WATCH = StopWatch.start(SearchLimits())


def one_cells(pools: list[int], count: int) -> Counts:
    return tuple(tuple(int(p == i) for i in range(count)) for p in pools)


def one_far() -> Problem:
    """An exchange of four nodes, of which one may lie under the other switch."""
    text = """
name: far
library: nccl-2.20
levels:
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 100 GB/s, latency: 5 us, fabric: roce}}
  - {name: node, size: 4, link: {kind: switch, bandwidth: 50 GB/s, latency: 5 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 300 GB/s, latency: 3 us, fabric: nvlink3}}
switches: [{name: leaf0, hosts: 'n[0-3]'}, {name: leaf1, hosts: n4}]
"""
    axes = p2smt.parse_axes("pp=4,dp=2")
    return Problem(parse_topology(text, "far"), axes, (p2smt.all_to_all("pp=64KiB"),))


@given(problems(), shuffles())
@example(one_far(), Shuffle(1))
def test_ticks_are_never_more_than_the_cost_model_has(problem: Problem, random: Shuffle) -> None:
    """Any order: its ticks are a bound on its cost, and under a library equal but for waits.

    What MPI libraries send depends on the order of the hosts in more ways: theirs are a bound.
    """
    ticks_and_cost_agree(problem, random)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(10))
@settings(max_examples=1000)
@given(problems(libraries=("none", *library_names()), most=1), shuffles())
def test_ticks_of_every_request_under_every_library(
    part: int, problem: Problem, random: Shuffle
) -> None:
    """Ten thousand orders; each part draws others."""
    del part
    ticks_and_cost_agree(problem, random)


MPIS = ("mpich-5", "openmpi-4", "openmpi-5")
"""Libraries whose choices and loads depend on how a group lies in nodes: ticks are a bound."""
WAITS = ("all-to-all", "tree")
"""Where the order of the hosts decides the latency, though all levels between nodes have the same:
a library sends an exchange in batches, one for each level at which peers meet, and a tree doubles
level by level."""


def ticks_and_cost_agree(problem: Problem, random: Shuffle) -> None:
    """Of an order at random; under a library, with the least latencies of any order, exactly."""
    hosts = problem.topology.hosts
    assert hosts is not None
    tree, tick_s = switch_tree(problem.topology), 1e-12
    pool_of = tree.pool_of()
    for grid in grids(problem)[:2]:
        slots = np.array(hosts.slots)
        random.shuffle(slots)  # type: ignore[arg-type]
        slots = slots[: grid.cells]
        terms = [term(problem, grid, one, slots) for one in problem.requests]
        question = asked(problem, grid, terms, tree, tick_s).problem
        pools = one_cells([pool_of[s] for s in slots.tolist()], len(tree.pools))
        ticks = ticks_of(question, pools)
        ranks = grid.ranks(slots)
        seconds = [seconds_of(problem, ranks, one) for one in problem.requests]
        more = [waits_s(problem, ranks, one) for one in terms]
        cost_s = objective(problem, tuple(seconds))
        least_s = objective(problem, tuple(s - m for s, m in zip(seconds, more, strict=True)))
        assert ticks * tick_s <= cost_s * (1 + 1e-9) + 1e-11
        library = problem.topology.library
        if library and library.name not in MPIS:
            assert ticks * tick_s == pytest.approx(least_s, rel=1e-6, abs=1e-11)
        for together in [(axis,) for axis in range(len(problem.axes))]:
            coarse = asked(problem, grid, terms, tree, tick_s, together)
            rows = [[0] * len(tree.pools) for _ in range(coarse.problem.blocks)]
            for cell, slot in enumerate(slots.tolist()):
                rows[int(coarse.blocks[cell])][pool_of[slot]] += 1
            assert ticks_of(coarse.problem, tuple(map(tuple, rows))) <= ticks


def seconds_of(problem: Problem, ranks: IntArray, request: Request) -> float:
    axes = problem.axis_indices(request)
    return single_time(problem.topology, ranks, axes, request.kind, request.payload_bytes).seconds


def waits_s(problem: Problem, ranks: IntArray, asked_for: CellTerm) -> float:
    """What a request under a library waits in an order beyond the least latency of any order."""
    request, library = asked_for.request, problem.topology.library
    if not library or asked_for.silent or request.kind is RequestKind.SEND:
        return 0.0
    operation: Operation = DIRECT.get(plain_kind(request.kind)) or RequestKind.ALL_TO_ALL
    groups = lines_along(ranks, problem.axis_indices(request))
    model = groups_model(problem.topology, [groups], operation)
    assert model.chooser is not None
    way = model.ways[model.chooser.pick(request.payload_bytes)]
    named = {(one.way.algorithm, one.way.protocol): one.way for one in asked_for.ways}
    best = named[way.algorithm, way.protocol]
    short = replace(way, latency_s=best.latency_s, stage_s=best.stage_s, call_s=best.call_s)
    more_s = way.seconds(request.payload_bytes) - short.seconds(request.payload_bytes)
    assert more_s == pytest.approx(0.0, abs=1e-12) or way.algorithm in WAITS
    assert more_s >= -1e-12
    return more_s


def test_an_exchange_across_switches_has_more_batches_than_its_ticks() -> None:
    """Three peers under one switch are one batch, and a far one is a batch of its own."""
    problem = one_far()
    grid, tree = grids(problem)[0], switch_tree(problem.topology)
    slots = np.array([0, 1, 2, 4])
    one = term(problem, grid, problem.requests[0], slots)
    question = asked(problem, grid, [one], tree, 1e-12).problem
    pools = one_cells([tree.pool_of()[s] for s in slots.tolist()], len(tree.pools))
    ticks, cost_s = ticks_of(question, pools), seconds_of(problem, grid.ranks(slots), one.request)
    more_s = waits_s(problem, grid.ranks(slots), one)
    assert more_s > 1e-6
    assert ticks * 1e-12 == pytest.approx(cost_s - more_s, rel=1e-6)


@given(questions())
def test_the_simple_bound_holds(question: AllocationProblem) -> None:
    least = optimum(question)
    assert least is None or alone_ticks(question) <= least


def test_a_climb_ends_where_brute_force_does() -> None:
    job = Job(SIZES[0], 1, (4, 4), 1, "equal").problem()
    grid = grids(job)[0]
    slots = np.array(job.topology.hosts.slots)  # type: ignore[union-attr]
    terms = [term(job, grid, one, slots) for one in job.requests]
    tree = switch_tree(job.topology)
    question = asked(job, grid, terms, tree, 1e-9).problem
    pool_of = tree.pool_of()
    start = [pool_of[s] for s in np.random.default_rng(1).permutation(slots).tolist()]
    climb = Climb(question, start, 3)
    assert climb.value[0] == ticks_of(question, one_cells(start, len(tree.pools)))
    found = [(ticks, pools) for ticks, pools in climb.run(WATCH, 4000)]
    assert found
    for ticks, pools in found:
        assert ticks == ticks_of(question, one_cells(pools, len(tree.pools)))
        assert sorted(pools) == sorted(start)
    solved = p2smt.solve_on_hosts(job, limits=ENOUGH, programs=False)
    assert solved.best is not None
    assert solved.status is Status.OPTIMAL
    assert found[-1][0] * 1e-9 >= solved.best.objective_s * (1 - 1e-6)


def test_a_move_that_trades_time_for_load_is_weighed() -> None:
    """Slower by a little, with far less load: however cold, no number is too large."""
    way = WayTicks(0, (None, None))
    problem = AllocationProblem((1, 1), ((0,), (1,)), 2, 1, (), ((way,),))
    climb = Climb(problem, [0, 1], 0)
    climb.value = (11, 0)
    assert climb._taken((10, 10**9), 0.0)


def test_bands_lie_between_the_two_significances() -> None:
    slots = np.arange(12)
    assert (banded(slots, (3, 4), 0, 4) == slots).all()
    assert (
        banded(slots, (3, 4), 0, 2).reshape(3, 4) == [[0, 1, 10, 11], [2, 3, 8, 9], [4, 5, 6, 7]]
    ).all()
    assert (by_significance(slots, (3, 4), (1, 0)) == slots.reshape(4, 3).T.ravel()).all()
    every = list(bands(CellGrid(((1,), (1,)), (3, 4)), slots))
    assert all(sorted(one.tolist()) == slots.tolist() for one in every)
    assert len({tuple(one.tolist()) for one in every}) > 4


def test_every_order_is_listed_once() -> None:
    tree = switch_tree(uneven())
    for cells in (1, 3):
        found = [tuple(slots.tolist()) for slots in every_order(tree, cells)]
        assert len(found) == len(set(found)) == number_of_orders(tree, cells) == 3**cells
    assert number_of_orders(tree, 16) == math.factorial(16) // (
        math.factorial(5) * math.factorial(7) * math.factorial(4)
    )


def test_blocks_and_whole_shares() -> None:
    assert block_of(CellGrid(((1,), (1,)), (2, 3)), (1,)).tolist() == [0, 0, 0, 1, 1, 1]
    assert block_of(CellGrid(((1,), (1,)), (2, 3)), (0,)).tolist() == [0, 1, 2, 0, 1, 2]
    ints, unit = whole((0.0, 0.75, 1.0, 0.75, 0.0), 100)
    assert ints == (0, 3, 4, 3, 0)
    assert unit == pytest.approx(0.25)
    ints, unit = whole((0.0, 0.1234567, 1.0, 0.0), 100)
    assert ints == (0, 12, 100, 0)
    assert unit == pytest.approx(0.01)


def test_no_order_is_slower_than_the_best_matrix_of_a_regular_cluster() -> None:
    text = """
name: regular
library: nccl-2.20
levels:
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 50 GB/s, latency: 5 us, fabric: roce}}
  - {name: node, size: 4, link: {kind: switch, bandwidth: 50 GB/s, latency: 5 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 300 GB/s, latency: 3 us, fabric: nvlink3}}
switches: [{name: a, hosts: 'n[1-4]'}, {name: b, hosts: 'n[5-8]'}]
"""
    topology = parse_topology(text, "test")
    axes = p2smt.parse_axes("pp=4,dp=4")
    requests = (p2smt.reduce("dp=1GiB"), p2smt.send("pp=64MiB*4"))
    problem = Problem(topology, axes, requests)
    times = []
    for matrix in p2smt.placements(PlacementProblem(topology.sizes, (4, 4))).value or ():
        ranks = Placement(matrix).rank_tensor()
        times.append(
            sum(
                r.times
                * single_time(
                    topology, ranks, problem.axis_indices(r), r.kind, r.payload_bytes
                ).seconds
                for r in requests
            )
        )
    found = p2smt.solve_on_hosts(problem, limits=SearchLimits(time_limit_s=0.0), programs=False)
    assert found.best is not None
    assert found.best.objective_s <= min(times) * (1 + 1e-9)


@pytest.mark.parametrize("uplinks", UPLINKS)
def test_a_proved_optimum_does_not_depend_on_seed_workers_or_solver(uplinks: str) -> None:
    job = Job(SIZES[0], 2, (4, 4), 4, uplinks).problem()
    found = [
        p2smt.solve_on_hosts(
            job, limits=replace(ENOUGH, seed=seed, workers=workers), programs=False
        )
        for seed, workers in product((0, 7), (1, 2))
    ]
    assert {one.status for one in found} == {Status.OPTIMAL}
    values = [one.best.objective_s for one in found if one.best]
    assert values == pytest.approx([values[0]] * 4, rel=1e-8)


def test_no_time_gives_an_order_and_no_false_proof() -> None:
    job = Job(SIZES[0], 0, (4, 4), 4, "equal").problem()
    none = p2smt.solve_on_hosts(job, limits=SearchLimits(time_limit_s=0.0), programs=False)
    whole_s = p2smt.solve_on_hosts(job, programs=False)
    assert none.best is not None
    assert whole_s.best is not None
    assert none.bound_s <= whole_s.best.objective_s <= none.best.objective_s * (1 + 1e-9)


def test_an_interrupt_keeps_the_best() -> None:
    job = Job(SIZES[0], 0, (4, 4), 4, "equal").problem()

    def stop(_: float | None, __: float) -> None:
        raise KeyboardInterrupt

    found = p2smt.solve_on_hosts(job, progress=_once(stop), programs=True)
    assert found.interrupted
    assert found.best is not None


def _once(action: ProgressCallback) -> ProgressCallback:
    called: list[int] = []

    def progress(best: float | None, bound: float) -> None:
        called.append(1)
        if len(called) == 1:
            action(best, bound)

    return progress


def test_leaving_hosts_idle_is_part_of_the_answer() -> None:
    problem = Problem(uneven(), p2smt.parse_axes("pp=2,dp=4,tp=1"), (p2smt.reduce("dp=1GiB"),))
    problem = replace(problem, rules=(p2smt.AxisRule(1, 2, inside=False),))
    found = p2smt.solve_on_hosts(problem, limits=ENOUGH, programs=False)
    hosts = found.problem.topology.hosts
    assert found.status is Status.OPTIMAL
    assert hosts is not None
    assert len([name for name in hosts.switches[1] if name]) == 1
