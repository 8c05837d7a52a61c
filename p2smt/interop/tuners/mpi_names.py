"""Algorithms that files for MPI libraries can name, in the words of the cost model.

What is not here has no price: what runs other collectives by the library's own choice (linear
all-gathers, all-reduces of two steps), trees of another shape on every machine (MPICH's ``tree``),
and orders of operations that do not commute.  Sources as in :mod:`p2smt.cost.library.mpi`.
"""

from __future__ import annotations

from collections.abc import Mapping

from p2smt.cluster.link import Algorithm
from p2smt.interop.tuners.regions import CommScene

Named = Mapping[str, Mapping[str, Algorithm | None]]
"""By collective and by the library's name; None: messages from peer to peer, all at once."""

OPEN_MPI_NAMES: Named = {
    "allgather": {
        "bruck": Algorithm.BRUCK,
        "recursive_doubling": Algorithm.HALVING_DOUBLING,
        "ring": Algorithm.RING,
        "neighbor": Algorithm.NEIGHBOUR,
    },
    "allreduce": {
        "basic_linear": Algorithm.LINEAR,
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
        "ring": Algorithm.RING,
        "rabenseifner": Algorithm.NEAREST_FIRST,
    },
    "alltoall": {
        "linear": None,
        "pairwise": Algorithm.PAIRWISE,
        "modified_bruck": Algorithm.BRUCK,
    },
    "bcast": {
        "basic_linear": Algorithm.LINEAR,
        "pipeline": Algorithm.CHAIN,
        "split_binary_tree": Algorithm.SPLIT_BINARY,
        "binary_tree": Algorithm.BINARY,
        "binomial": Algorithm.BINOMIAL,
        "knomial": Algorithm.KNOMIAL,
        "scatter_allgather": Algorithm.SCATTER_DOUBLING,
        "scatter_allgather_ring": Algorithm.SCATTER_GATHER,
    },
    "reduce": {
        "linear": Algorithm.LINEAR,
        "pipeline": Algorithm.CHAIN,
        "binary": Algorithm.BINARY,
        "binomial": Algorithm.ROOTED,
        "rabenseifner": Algorithm.NEAREST_FIRST,
    },
    "reduce_scatter_block": {
        "basic_linear": Algorithm.ROOTED,
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
        "recursive_halving": Algorithm.HALVING_DOUBLING,
        "butterfly": Algorithm.NEAREST_FIRST,
    },
}
MPICH_NAMES: Named = {
    "allgather": {
        "brucks": Algorithm.BRUCK,
        "recursive_doubling": Algorithm.HALVING_DOUBLING,
        "ring": Algorithm.RING,
    },
    "allreduce": {
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
        "ring": Algorithm.RING,
        "reduce_scatter_allgather": Algorithm.NEAREST_FIRST,
    },
    "alltoall": {
        "brucks": Algorithm.BRUCK,
        "pairwise": Algorithm.PAIRWISE,
        "scattered": None,
    },
    "bcast": {
        "binomial": Algorithm.ROOTED,
        "scatter_recursive_doubling_allgather": Algorithm.SCATTER_DOUBLING,
        "scatter_ring_allgather": Algorithm.SCATTER_GATHER,
    },
    "reduce": {"binomial": Algorithm.ROOTED, "reduce_scatter_gather": Algorithm.NEAREST_FIRST},
    "reduce_scatter_block": {
        "pairwise": Algorithm.PAIRWISE,
        "recursive_halving": Algorithm.HALVING_DOUBLING,
        "recursive_doubling": Algorithm.RECURSIVE_DOUBLING,
    },
}


def nameable(scene: CommScene, names: Mapping[str, Algorithm | None]) -> dict[int, str]:
    """The ways of a scene that a file can name, by their place, and what they are called there."""
    found = dict[int, str]()
    for name, algorithm in names.items():
        for place in scene.able:
            if scene.choice.ways[place].algorithm is algorithm:
                found.setdefault(place, name)
    return found
