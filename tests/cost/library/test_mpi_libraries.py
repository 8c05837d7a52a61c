"""What MPI libraries choose by themselves: read off their sources by hand, at both sides of steps.

Open MPI: ompi/mca/coll/tuned/coll_tuned_decision_fixed.c of 5.0.9; MPICH 5.0: generic.json.
"""

from __future__ import annotations

import numpy as np
import pytest

from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective, Operation, RequestKind
from p2smt.cost.library.ways import library_choice
from p2smt.cost.loads.footprint_explicit import explicit_footprint
from p2smt.cost.requested_algorithms import running

ALL_REDUCE, ALL_GATHER = Collective.ALL_REDUCE, Collective.ALL_GATHER
SCATTER, BROADCAST, REDUCE = Collective.REDUCE_SCATTER, Collective.BROADCAST, Collective.REDUCE
EXCHANGE = RequestKind.ALL_TO_ALL
ONE, FOUR = (1, 8), (4, 2)


def chosen(
    library: str,
    sizes: tuple[int, int],
    operation: Operation,
    payload: int,
    named: tuple[Algorithm, ...] | None = None,
) -> str:
    levels = tuple(
        Level(name, size, Link(LinkKind.SWITCH, (Piece("simple", 0, 1e9),), fabric=fabric))
        for name, size, fabric in zip(("node", "core"), sizes, ("ethernet", "shm"), strict=True)
    )
    topology = Topology("here", levels, library=library_of(library))
    topology = topology if named is None else running(topology, named)
    groups = np.arange(topology.devices, dtype=np.int64).reshape(1, -1)
    footprint = explicit_footprint(topology, groups, topology.known_library.joins_nodes)
    choice = library_choice(topology, footprint, operation)
    way = choice.ways[choice.pick(payload)].algorithm
    return way.value if way else "p2p"


@pytest.mark.parametrize(
    ("library", "sizes", "operation", "payload", "name"),
    [
        ("openmpi-5", ONE, ALL_REDUCE, 8191, "recursive-doubling"),
        ("openmpi-5", ONE, ALL_REDUCE, 8192, "nearest-first"),
        ("openmpi-5", (1, 2), ALL_REDUCE, 65535, "ring"),
        ("openmpi-5", (1, 2), ALL_REDUCE, 262144, "nearest-first"),
        ("openmpi-5", (1, 16), ALL_REDUCE, 63, "ring"),
        ("openmpi-5", (1, 16), ALL_REDUCE, 64, "recursive-doubling"),
        ("openmpi-5", (1, 16), ALL_REDUCE, 4096, "nearest-first"),
        ("openmpi-5", (1, 256), ALL_REDUCE, 4095, "rooted"),
        ("openmpi-5", FOUR, ALL_REDUCE, 8192, "roots-tree"),
        ("openmpi-5", FOUR, ALL_GATHER, 8192, "roots-ring"),
        ("openmpi-4", FOUR, ALL_REDUCE, 8192, "nearest-first"),
        ("openmpi-4", FOUR, ALL_GATHER, 8192, "halving-doubling"),
        ("openmpi-4", (1, 32), ALL_GATHER, 32 * 1023, "halving-doubling"),
        ("openmpi-4", (1, 32), ALL_GATHER, 32 * 65536, "ring"),
        ("openmpi-5", ONE, EXCHANGE, 8 * 262143, "p2p"),
        ("openmpi-5", (1, 32), EXCHANGE, 32 * 511, "bruck"),
        ("openmpi-5", (1, 32), EXCHANGE, 32 * 512, "p2p"),
        ("mpich-5", ONE, ALL_REDUCE, 8, "recursive-doubling"),
        ("mpich-5", ONE, ALL_REDUCE, 9, "nearest-first"),
        ("mpich-5", FOUR, ALL_REDUCE, 9, "roots-nearest"),
        ("mpich-5", ONE, ALL_GATHER, 524287, "halving-doubling"),
        ("mpich-5", ONE, ALL_GATHER, 524288, "ring"),
        ("mpich-5", (2, 3), ALL_GATHER, 81919, "bruck"),
        ("mpich-5", (2, 3), ALL_GATHER, 81920, "ring"),
        ("mpich-5", ONE, SCATTER, 524288, "pairwise"),
        ("mpich-5", ONE, EXCHANGE, 8 * 32768, "p2p"),
        ("mpich-5", ONE, EXCHANGE, 8 * 32769, "pairwise"),
        ("mpich-5", (2, 8), EXCHANGE, 16 * 256, "bruck"),
        ("mpich-5", ONE, BROADCAST, 12288, "rooted"),
        ("mpich-5", ONE, BROADCAST, 12289, "scatter-doubling"),
        ("mpich-5", ONE, BROADCAST, 524289, "scatter-gather"),
        ("mpich-5", (2, 5), BROADCAST, 12289, "scatter-gather"),
        ("mpich-5", ONE, REDUCE, 2049, "nearest-first"),
        ("openmpi-5", (1, 4), BROADCAST, 1048576, "chain"),
        ("openmpi-5", ONE, BROADCAST, 4095, "knomial"),
        ("openmpi-5", ONE, BROADCAST, 4096, "binary"),
        ("openmpi-5", (1, 16), BROADCAST, 1048576, "scatter-doubling"),
        ("openmpi-5", (1, 512), BROADCAST, 16384, "split-binary"),
        ("openmpi-5", ONE, REDUCE, 8191, "binary"),
        ("openmpi-5", (1, 2), REDUCE, 524288, "chain"),
        ("openmpi-5", (1, 2), REDUCE, 7, "nearest-first"),
        ("openmpi-5", (1, 64), ALL_GATHER, 64 * 512, "neighbour"),
        ("openmpi-5", (1, 64), ALL_GATHER, 64 * 65536, "ring"),
        ("openmpi-5", (1, 2), SCATTER, 2 * 3, "recursive-doubling"),
        ("openmpi-5", ONE, SCATTER, 8 * 127, "nearest-first"),
    ],
)
def test_what_is_chosen(
    library: str, sizes: tuple[int, int], operation: Operation, payload: int, name: str
) -> None:
    assert chosen(library, sizes, operation, payload) == name


@pytest.mark.parametrize(
    ("named", "operation", "name"),
    [
        ((Algorithm.PAIRWISE,), EXCHANGE, "pairwise"),
        ((Algorithm.RING, Algorithm.BRUCK), EXCHANGE, "bruck"),
        ((Algorithm.RING,), EXCHANGE, "p2p"),
        ((Algorithm.RING,), ALL_REDUCE, "ring"),
    ],
)
def test_an_exchange_runs_by_what_is_named_where_it_has_that(
    named: tuple[Algorithm, ...], operation: Operation, name: str
) -> None:
    assert chosen("openmpi-5", ONE, operation, 2**20, named) == name
