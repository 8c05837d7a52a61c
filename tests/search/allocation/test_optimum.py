"""Optima against brute force: every matrix inside, every order, costed device by device."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import Topology
from p2smt.cost.rank_list import single_time
from p2smt.parallelism.request import Problem, parse_objective
from p2smt.plans.solution import objective as joined
from p2smt.result import SearchLimits, Status
from p2smt.search.allocation.grids import grids
from p2smt.search.allocation.solve import solve_on_hosts

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


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    axes = draw(
        st.sampled_from(
            ["pp=2,dp=4", "dp=3,tp=2", "pp=4,dp=2", "dp=2,cp=2,tp=2", "dp=8", "pp=5,tp=2"]
        )
    )
    library = draw(st.sampled_from(["nccl-2.20", "none", "gloo"]))
    needed = math.prod(a.size for a in p2smt.parse_axes(axes)) // 2
    topology = draw(trees(needed + draw(st.integers(0, 1)), library))
    names = [a.name for a in p2smt.parse_axes(axes)]
    requests = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(KINDS))
        chosen = draw(st.sampled_from(names))
        if kind is not p2smt.send and len(names) > 2 and draw(st.booleans()):
            chosen = "+".join(names[:2])
        requests.append(kind(f"{chosen}={draw(st.sampled_from(SIZES))}*{draw(st.integers(1, 3))}"))
    objective = parse_objective(draw(st.sampled_from(["sum", "max"])))
    return Problem(topology, p2smt.parse_axes(axes), tuple(requests), objective=objective)


@given(problems())
@settings(deadline=None)
def test_brute_force_agrees(problem: Problem) -> None:
    found = solve_on_hosts(problem, limits=SearchLimits(time_limit_s=60))
    assert found.best is not None
    least = brute_force(problem)
    assert found.best.objective_s <= least * (1 + 1e-6) + 1e-12
    assert found.bound_s <= least * (1 + 1e-9)
    assert found.status is Status.OPTIMAL
