"""What MPI's algorithms send: right chunk by chunk, and priced as the messages load the links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2smt.cluster.library.model import LibraryRun
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.link import MPI_ALGORITHMS
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, Operation, RequestKind
from p2smt.cost.bounds import step_model
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from tests.cost.library import mpi_rounds as oracle

A = Algorithm
REDUCES = Collective.ALL_REDUCE
CASES: list[tuple[Algorithm, Operation]] = [
    (A.RECURSIVE_DOUBLING, REDUCES),
    (A.NEAREST_FIRST, REDUCES),
    (A.BRUCK, Collective.ALL_GATHER),
    (A.BRUCK, RequestKind.ALL_TO_ALL),
    (A.PAIRWISE, Collective.REDUCE_SCATTER),
    (A.PAIRWISE, RequestKind.ALL_TO_ALL),
    (A.LINEAR, REDUCES),
    (A.ROOTED, REDUCES),
    (A.ROOTED, Collective.REDUCE),
    (A.ROOTED, Collective.BROADCAST),
    (A.ROOTED, Collective.REDUCE_SCATTER),
    (A.ROOTS_TREE, REDUCES),
    (A.ROOTS_RING, REDUCES),
    (A.ROOTS_RING, Collective.ALL_GATHER),
    (A.ROOTS_DOUBLING, REDUCES),
    (A.ROOTS_NEAREST, REDUCES),
    (A.RECURSIVE_DOUBLING, Collective.REDUCE_SCATTER),
    (A.NEAREST_FIRST, Collective.REDUCE_SCATTER),
    (A.NEAREST_FIRST, Collective.REDUCE),
    (A.NEIGHBOUR, Collective.ALL_GATHER),
    (A.CHAIN, Collective.BROADCAST),
    (A.CHAIN, Collective.REDUCE),
    (A.BINARY, Collective.BROADCAST),
    (A.BINARY, Collective.REDUCE),
    (A.SPLIT_BINARY, Collective.BROADCAST),
    (A.KNOMIAL, Collective.BROADCAST),
    (A.SCATTER_DOUBLING, Collective.BROADCAST),
]
POWERS = (A.RECURSIVE_DOUBLING, A.NEAREST_FIRST, A.SCATTER_DOUBLING)
SIZES = [(2, 2), (4, 2), (2, 2, 2), (2, 4, 2), (4, 4), (8, 4)]
ODD_SIZES = [(3, 2), (2, 3), (5, 1), (4, 3), (3, 4), (2, 3, 2)]


def test_every_algorithm_is_here() -> None:
    assert {algorithm for algorithm, _ in CASES} == set(MPI_ALGORITHMS)


@pytest.mark.parametrize(("algorithm", "operation"), CASES)
@pytest.mark.parametrize("sizes", SIZES + ODD_SIZES, ids=str)
def test_right_chunk_by_chunk(
    algorithm: Algorithm, operation: Operation, sizes: tuple[int, ...]
) -> None:
    p, local = int(np.prod(sizes)), int(np.prod(sizes[1:]))
    if not _fits(algorithm, sizes):
        return
    found = oracle.phases(algorithm, operation, p, local)
    assert oracle.reached(operation, p, oracle.replayed(operation, p, found))


def _fits(algorithm: Algorithm, sizes: tuple[int, ...]) -> bool:
    if algorithm is A.NEIGHBOUR:
        return int(np.prod(sizes)) % 2 == 0
    counts = sizes if algorithm in POWERS else sizes[:1]
    powers = all(n & (n - 1) == 0 for n in counts)
    return powers or algorithm not in (*POWERS, A.ROOTS_DOUBLING, A.ROOTS_NEAREST)


def cluster(sizes: tuple[int, ...], algorithm: Algorithm, operation: Operation) -> Topology:
    """Switches of rates that make each level the slowest in turn; nodes below the outermost."""
    levels = tuple(
        Level(f"l{j}", size, Link(LinkKind.SWITCH, (Piece("simple", 0, 1.0 + j),), fabric=fabric))
        for j, size in enumerate(sizes)
        for fabric in ("ethernet" if j == 0 else "shm",)
    )
    gloo = library_of("gloo")
    one = LibraryRun(algorithm, ("simple",))
    runs = tuple((name, (one,) if name == operation.value else old) for name, old in gloo.runs)
    calls = (("inside", "p2p", "simple"), 1e-3), (("network", "p2p", "simple"), 1.0)
    own = replace(gloo, name="of-mpi", runs=runs, hops=calls, sent_as=())
    return Topology("here", levels, library=own)


@pytest.mark.parametrize(("algorithm", "operation"), CASES)
@pytest.mark.parametrize("sizes", SIZES + ODD_SIZES, ids=str)
def test_priced_as_the_messages_load_the_links(
    algorithm: Algorithm, operation: Operation, sizes: tuple[int, ...]
) -> None:
    topology = cluster(sizes, algorithm, operation)
    groups = np.arange(topology.devices, dtype=np.int64).reshape(1, -1)
    footprint = explicit_footprint(topology, groups, joins_nodes=False)
    (way,) = step_model(topology, footprint, operation).ways
    if not _fits(algorithm, sizes):
        assert way.algorithm == "ring"
        return
    p, local = topology.devices, topology.devices // sizes[0]
    if algorithm is A.SPLIT_BINARY and p % 2:
        return  # so many chunks have no half
    found = oracle.phases(algorithm, operation, p, local)
    loads = oracle.loads(found, sizes)
    seconds = max(load / (1.0 + j) for j, load in enumerate(loads))
    steps = oracle.rounds(found, sizes)
    hops = [1.0 if j == 0 else 1e-3 for j in range(len(sizes))]
    assert way.algorithm == algorithm.value
    assert way.seconds_per_byte == pytest.approx(seconds)
    assert way.latency_s == pytest.approx(sum(n * h for n, h in zip(steps, hops, strict=True)))
