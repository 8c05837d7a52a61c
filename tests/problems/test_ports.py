"""Edges of switches as ports: which they are, how messages are paired, and answers as by edges."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.encodings.schedule.dissemination import cpsat as dissemination
from p2smt.encodings.schedule.trees import cpsat as trees
from p2smt.errors import EncodingBug
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge, edge_key
from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems import ports as module
from p2smt.problems.ports import EdgePorts, PortSwitch, edge_ports, kept_ports, paired
from p2smt.problems.schedule import (
    AllReduceProblem,
    DisseminationProblem,
    ScheduleClass,
    ScheduleSymmetry,
)
from p2smt.result import Status
from p2smt.solvers.ask import Solver
from p2smt.synthesis.group_order import ladder
from p2smt.synthesis.schedule_replay import (
    all_reduce,
    all_reduce_problem,
    broken_rule,
    disseminate,
    dissemination_problem,
    spreads,
)

TREES = ScheduleClass.TREES


def is_right(fabric: Fabric, ports: EdgePorts) -> None:
    """Each edge has the ends and loads of its ports; blocks are the pairs that no edge joins."""
    for e, (source, target, loads) in enumerate(fabric.edge_rows):
        by = {ports.leaves[e], ports.arrives[e]}
        assert sorted(k for port in by for k in ports.loads[port]) == list(loads)
        assert ports.sources[ports.leaves[e]] == source
        assert ports.targets[ports.arrives[e]] == target
    joined = Counter(zip(ports.leaves, ports.arrives, strict=True))
    assert set(joined.values()) <= {1}
    for one in ports.switches:
        barred = {pair for out, into in one.blocks for pair in product(out, into)}
        assert set(product(one.out, one.into)) - barred <= joined.keys()
        assert not barred & joined.keys()


@pytest.mark.parametrize(
    ("name", "count", "switches"),
    [
        ("ring:4", 8, 0),
        ("mesh:8", 56, 0),
        ("dgx-a100", 16, 1),
        ("dgx-a100:2", 64, 4),
        ("dgx-h100:3", 96, 4),  # one switch of all cards: those of a node are a block
        ("dgx1:2", 96, 2),
        ("azure-ndv2:3", 96, 1),  # nodes share ports
        ("gb200-nvl72:2", 576, 4),
    ],
)
def test_ports_of_known_fabrics(name: str, count: int, switches: int) -> None:
    fabric = load_fabric(name)
    ports = edge_ports(fabric.edge_rows)
    assert (len(ports), len(ports.switches)) == (count, switches)
    is_right(fabric, ports)


def test_an_edge_that_is_missing_makes_links() -> None:
    rows = load_fabric("dgx2").edge_rows
    assert len(edge_ports(rows[1:]).switches) == 0
    assert len(edge_ports(rows[1:])) == len(rows) - 1


@st.composite
def counted(draw: st.DrawFn) -> tuple[PortSwitch, dict[int, int]]:
    """A switch with blocks, and counts of which no block has more than messages there are."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    many = sum(sizes)
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    spans = [range(a, a + size) for a, size in zip(starts, sizes, strict=True)]
    blocks = [(tuple(span), tuple(many + port for port in span)) for span in spans]
    kept = tuple(block for block in blocks if draw(st.booleans()))
    pairs = st.sampled_from(
        [(a, many + b) for a in range(many) for b in range(many) if not _barred(kept, a, many + b)]
    )
    chosen = draw(st.lists(pairs, max_size=8))
    switch = PortSwitch(tuple(range(many)), tuple(range(many, 2 * many)), kept)
    return switch, dict(Counter(port for pair in chosen for port in pair))


def _barred(blocks: tuple[module.PortBlock, ...], out: int, into: int) -> bool:
    return any(out in left and into in arrived for left, arrived in blocks)


@given(counted())
def test_messages_are_paired_wherever_some_pairs_are_right(
    given_: tuple[PortSwitch, dict[int, int]],
) -> None:
    switch, counts = given_
    found = paired(switch, counts)
    assert Counter(port for pair in found for port in pair) == counts
    assert not any(_barred(switch.blocks, *pair) for pair in found)


# The same answers as with a variable for every edge.


def links(edges: object, symmetries: object) -> EdgePorts:
    """Every edge as a link."""
    del symmetries
    assert isinstance(edges, tuple)
    return module._numbered(edges, [])


def by_edges(problem: AllReduceProblem | DisseminationProblem) -> Status:
    """The answer of the encoding whose every edge has a variable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "kept_ports", links)
        patch.setattr(dissemination, "kept_ports", links)
        return status(problem)


def status(problem: AllReduceProblem | DisseminationProblem) -> Status:
    """The answer, which is replayed."""
    if isinstance(problem, AllReduceProblem):
        return all_reduce(problem).status
    return disseminate(problem).status


def two_levels(nodes: int, size: int, rates: tuple[Fraction, ...]) -> Fabric:
    """Ports of every rank to its node's switch and to one between the nodes, which nodes share."""
    ranks = nodes * size
    names = [
        f"{side} {rank}" for side in ("out", "in", "far out", "far in") for rank in range(ranks)
    ]
    names += [f"node {side} {node}" for side in ("out", "in") for node in range(nodes)]
    kinds = [
        n // ranks if n < 4 * ranks else 4 + (n - 4 * ranks) // nodes for n in range(len(names))
    ]
    capacities = tuple(Capacity(n, rates[k]) for n, k in zip(names, kinds, strict=True))
    found = []
    for a, b in product(range(ranks), repeat=2):
        here, there = a // size, b // size
        if a != b and here == there:
            found.append(FabricEdge(a, b, (a, ranks + b)))
        elif a != b:
            nodal = 4 * ranks + here, 4 * ranks + nodes + there
            found.append(FabricEdge(a, b, (2 * ranks + a, 3 * ranks + b, *nodal)))
    return Fabric("two levels", ranks, capacities, tuple(sorted(found, key=edge_key)))


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """One switch of four ranks; two of them; or one between three nodes of two."""
    nodes, size = draw(st.sampled_from([(1, 4), (1, 4), (2, 4), (3, 2)]))
    rate = st.sampled_from([Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2)])
    return two_levels(nodes, size, tuple(draw(rate) for _ in range(6)))


@st.composite
def copies(draw: st.DrawFn) -> DisseminationProblem:
    fabric = draw(fabrics())
    collective = draw(st.sampled_from(["allgather", "broadcast", "scatter"]))
    steps = draw(st.integers(1, 3))
    rounds = steps + draw(st.integers(0, 3))
    problem = dissemination_problem(fabric, spreads(collective, fabric.ranks, 1), steps, rounds)
    groups = list(ladder(fabric, collective, 1))
    return replace(problem, symmetries=draw(st.sampled_from(groups))[1])


@settings(max_examples=30)
@given(copies())
def test_copies_through_switches_are_those_by_edges(problem: DisseminationProblem) -> None:
    plain = replace(problem, symmetries=())
    found, wanted = status(problem), by_edges(problem)
    if wanted is Status.FEASIBLE:
        assert found is Status.FEASIBLE
    if problem.ranks <= 4:
        complete = disseminate(plain, solver=Solver.Z3).status
        assert complete is status(plain) is by_edges(plain)
        if found is Status.FEASIBLE:
            assert complete is Status.FEASIBLE


@st.composite
def sums(draw: st.DrawFn) -> AllReduceProblem:
    fabric = draw(fabrics())
    steps, chunks = draw(st.integers(2, 4)), draw(st.sampled_from([1, 2, fabric.ranks]))
    rounds = steps + draw(st.integers(0, 4))
    groups = list(ladder(fabric, "allreduce", chunks))
    lifted = draw(st.sampled_from(groups))[1]
    return all_reduce_problem(fabric, chunks, steps, rounds, TREES, symmetries=lifted)


@settings(max_examples=30)
@given(sums())
def test_sums_through_switches_are_those_by_edges(problem: AllReduceProblem) -> None:
    plain = replace(problem, symmetries=())
    found, wanted = status(problem), by_edges(problem)
    if wanted is Status.FEASIBLE:
        assert found is Status.FEASIBLE
    if problem.ranks <= 4:
        assert status(plain) is by_edges(plain)
        if found is Status.FEASIBLE:
            assert status(plain) is Status.FEASIBLE


def test_messages_that_are_paired_wrongly_are_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded is replayed: an edge that no rank with the chunk sends over is refused."""
    fabric = load_fabric("dgx-a100")
    problem = dissemination_problem(fabric, spreads("allgather", 8, 1), 3, 7)
    found = disseminate(problem).value
    assert found is not None
    assert broken_rule(problem, found) is None
    monkeypatch.setattr(module, "paired", lambda *_: [(0, 8 + 1)])
    with pytest.raises(EncodingBug):
        disseminate(problem)


@pytest.mark.parametrize(("enough", "found"), [(0, Status.FEASIBLE), (1, Status.INFEASIBLE)])
def test_a_port_takes_no_more_than_it_can(enough: int, found: Status) -> None:
    """Seven chunks come to each of eight ranks by one port; sums come to the root, and go back."""
    fabric = load_fabric("dgx-a100")
    gather = dissemination_problem(fabric, spreads("allgather", 8, 1), 3, 7 - enough)
    assert status(gather) is found
    assert status(all_reduce_problem(fabric, 1, 2, 14 - enough, TREES)) is found


def test_a_symmetry_that_takes_ports_apart_makes_links() -> None:
    """It swaps the edges of two ranks through a switch and beside it, and no others."""
    rows = [*load_fabric("dgx-a100").edge_rows, (0, 1, (16,)), (1, 0, (17,))]
    through = [
        next(e for e, row in enumerate(rows) if row[:2] == ends) for ends in ((0, 1), (1, 0))
    ]
    images = dict(zip([56, 57, *through], [*through, 56, 57], strict=True))
    swap = ScheduleSymmetry(
        tuple(range(8)), tuple(images.get(e, e) for e in range(len(rows))), (0,)
    )
    assert edge_ports(tuple(rows)).image(swap) is None
    assert len(kept_ports(rows, [])) == 16 + 2
    assert len(kept_ports(rows, [swap])) == len(rows)
    problem = AllReduceProblem(8, tuple(rows), (Fraction(1),) * 18, 1, 2, 14, TREES)
    assert status(replace(problem, symmetries=(swap,))) is Status.FEASIBLE
