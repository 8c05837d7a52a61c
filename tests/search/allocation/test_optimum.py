"""Optima against brute force: every matrix inside, every order, costed device by device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import Topology
from p2smt.cost.bounds import single_time
from p2smt.parallelism.request import Problem, Request, parse_objective
from p2smt.plans.solution import objective as joined
from p2smt.problems.allocation import AllocationProblem
from p2smt.result import SearchLimits, Status
from p2smt.search.allocation.cell_grids import grids, host_slots
from p2smt.search.allocation.grid_question import asked, switch_tree
from p2smt.search.allocation.host_search import Hunt, every_order, fastest_on_hosts
from p2smt.search.allocation.solve_grid import GridSearch, is_allocation, ticks_of
from p2smt.search.allocation.terms import term
from p2smt.solvers.ask import Optimum, Solver, ask
from tests.strategies.draws import Draws, draws
from tests.tiers import but_the_first

ENOUGH = SearchLimits(time_limit_s=600)
"""Without a limit a search for a proof ends after a minute, whatever it has."""
RATES = ("200 GB/s", "100 GB/s", "50 GB/s", "25 GB/s")


def brute_force(problem: Problem) -> float:
    """The least objective of all matrices inside and all orders of hosts."""
    slots = problem.topology.hosts.slots if problem.topology.hosts else ()
    least = math.inf
    for grid in grids(problem):
        for chosen in permutations(slots, grid.cells):
            ranks = grid.ranks(np.array(chosen))
            seconds = tuple(
                single_time(
                    problem.topology, ranks, problem.axis_indices(r), r.kind, r.payload_bytes
                ).seconds
                for r in problem.requests
            )
            least = min(least, joined(problem, seconds))
    return least


@st.composite
def trees(draw: st.DrawFn, hosts: int, library: str) -> Topology:
    """Hosts under one or two levels of switches, uplinks of different bandwidth."""
    leaves = draw(st.integers(1, 3))
    sizes = [1] * leaves
    for _ in range(hosts - leaves):
        sizes[draw(st.integers(0, leaves - 1))] += 1
    spines = draw(st.booleans())
    own = draw(st.booleans())
    lines = ["name: drawn", f"library: {library}", "levels:"]
    fabric = "latency: 5 us, fabric: infiniband"
    if spines:
        lines.append(
            f"  - {{name: spine, size: 2, link: {{kind: switch, bandwidth: 50 GB/s, {fabric}}}}}"
        )
    node = f"{{kind: switch, bandwidth: 50 GB/s, {fabric}}}"
    lines += [
        f"  - {{name: leaf, size: {leaves}, link: {node.replace('50', '100', 1)}}}",
        f"  - {{name: node, size: {max(sizes)}, link: {node}}}",
        "  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 300 GB/s, latency: 3 us,"
        " fabric: nvlink3}}",
        "switches:",
    ]
    groups: list[list[str]] = [[], []]
    first = 0
    for leaf, size in enumerate(sizes):
        names = f"n[{first}-{first + size - 1}]"
        rate = f", bandwidth: {draw(st.sampled_from(RATES))}" if own else ""
        groups[draw(st.integers(0, 1)) if spines else 0].append(
            f"{{name: leaf{leaf}, hosts: '{names}'{rate}}}"
        )
        first += size
    if spines:
        lines += [
            f"  - {{name: spine{i}, switches: [{', '.join(group)}]}}"
            for i, group in enumerate(g for g in groups if g)
        ]
    else:
        lines += [f"  - {one}" for one in groups[0]]
    return parse_topology("\n".join(lines), "drawn")


KINDS = (
    p2smt.reduce,
    p2smt.reduce_scatter,
    p2smt.all_gather,
    p2smt.all_to_all,
    p2smt.send,
)
SIZES = ("64KiB", "8MiB", "1GiB")


SHAPES = ("pp=2,dp=4", "dp=3,tp=2", "pp=4,dp=2", "dp=2,cp=2,tp=2", "dp=8", "pp=5,tp=2")
"""Axes on nodes of two devices: three to five hosts, or one more."""
SMALL = ("dp=3,tp=2", "dp=2,pp=2,tp=2", "pp=4,dp=2")


@st.composite
def problems(
    draw: st.DrawFn,
    shapes: Sequence[str] = SHAPES,
    libraries: Sequence[str] = ("nccl-2.20", "none", "gloo"),
    kinds: Sequence[Callable[[str], Request]] = KINDS,
    most: int = 2,
) -> Problem:
    """Up to so many requests of these kinds on hosts of two devices."""
    axes = draw(st.sampled_from(shapes))
    library = draw(st.sampled_from(libraries))
    needed = math.prod(a.size for a in p2smt.parse_axes(axes)) // 2
    topology = draw(trees(needed + draw(st.integers(0, 1)), library))
    names = [a.name for a in p2smt.parse_axes(axes)]
    requests = []
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(kinds))
        chosen = draw(st.sampled_from(names))
        if kind is not p2smt.send and len(names) > 2 and draw(st.booleans()):
            chosen = "+".join(names[:2])
        requests.append(kind(f"{chosen}={draw(st.sampled_from(SIZES))}*{draw(st.integers(1, 3))}"))
    objective = parse_objective(draw(st.sampled_from(["sum", "max"])))
    return Problem(topology, p2smt.parse_axes(axes), tuple(requests), objective=objective)


@pytest.mark.exhaustive
@given(problems())
def test_brute_force_agrees(problem: Problem) -> None:
    found = fastest_on_hosts(problem, None, ENOUGH, programs=True)
    assert found.best is not None
    least = brute_force(problem)
    assert found.best.objective_s <= least * (1 + 1e-6) + 1e-12
    assert found.bound_s <= least * (1 + 1e-9)
    assert found.status is Status.OPTIMAL


@pytest.mark.exhaustive
def test_all_orders_settle_what_latencies_leave_open() -> None:
    """Three groups of three under switches of three, five and one host: some group spans two.

    An exchange in two batches takes longer than in one, and the bound has the lesser latency.
    """
    link = "{kind: switch, bandwidth: 50 GB/s, latency: 14 us, fabric: infiniband}"
    text = f"""
name: odd
library: nccl-2.20
levels:
  - {{name: leaf, size: 3, link: {link}}}
  - {{name: node, size: 5, link: {link.replace("50", "25")}}}
  - {{name: gpu, size: 1, whole: 8, link: {link.replace("infiniband", "nvlink3")}}}
switches:
  - {{name: a, hosts: 'n[0-2]'}}
  - {{name: b, hosts: 'n[3-7]', bandwidth: 25 GB/s}}
  - {{name: c, hosts: n8, bandwidth: 100 GB/s}}
"""
    requests = (p2smt.all_to_all("dp=1GiB"), p2smt.send("pp=1GiB"))
    problem = Problem(parse_topology(text, "odd"), p2smt.parse_axes("dp=3,pp=3"), requests)
    without = hunted(problem, Solver.CPSAT)
    assert not without.proved
    found = fastest_on_hosts(problem, None, ENOUGH)
    assert found.status is Status.OPTIMAL
    assert found.best is not None
    assert found.best.objective_s > without.bound_s * (1 + 1e-6)


def hunted(problem: Problem, solver: Solver) -> Hunt:
    """A search that tries no order but those that it knows and those that the solver finds.

    Small cases are else settled by trying every order, whatever the encodings say.
    """
    assert problem.topology.hosts is not None
    listed = [host_slots(problem, problem.topology.hosts.names)]
    hunt = Hunt(problem, listed, SearchLimits(), solver, few_orders=0)
    hunt.run()
    return hunt


def solvers_agree_with_every_order(problem: Problem, solver: Solver) -> None:
    """The least ticks of each grid are those of some order; counts of blocks have no more.

    Solved without what is known beforehand; the search as a whole then is held against the costs.
    """
    tree = switch_tree(problem.topology)
    for grid in grids(problem):
        orders = [slots.tolist() for slots in every_order(tree, grid.cells)]
        terms = tuple(term(problem, grid, r, np.array(orders[0])) for r in problem.requests)
        one = GridSearch(problem, grid, terms, tree, 1e-9, solver, lambda *_: False)
        fine = one.fine().problem
        least = min(ticks_of(fine, one.rows(slots)) for slots in orders)
        assert settled(fine, solver) == least
        for together in one.families():
            assert (
                settled(asked(problem, grid, terms, tree, 1e-9, together).problem, solver) <= least
            )
    hunt, least_s = hunted(problem, solver), brute_force(problem)
    assert hunt.best is not None
    assert hunt.bound_s <= least_s * (1 + 1e-9)
    assert hunt.best.objective_s >= least_s * (1 - 1e-9)
    if hunt.proved:
        assert hunt.best.objective_s == pytest.approx(least_s, rel=1e-6, abs=1e-12)


def settled(question: AllocationProblem, solver: Solver) -> int:
    """The proved optimum in ticks."""
    found = ask(question, Optimum(), solver, SearchLimits())
    assert found.status is Status.OPTIMAL
    assert found.value is not None
    assert is_allocation(question, found.value)
    assert found.bound is not None
    return found.bound


@pytest.mark.exhaustive
@pytest.mark.parametrize("shapes", but_the_first(SMALL, SHAPES))
@pytest.mark.parametrize("solver", list(Solver))
@given(data=draws())
def test_solvers_agree_with_every_order(solver: Solver, shapes: Sequence[str], data: Draws) -> None:
    solvers_agree_with_every_order(data.draw(problems(shapes)), solver)
