"""The matrix inside the nodes, of ranks whose nodes lie in any order."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import Topology
from p2smt.parallelism.placement import Matrix
from p2smt.parallelism.rank_list import RankList, inside_matrix
from p2smt.search.allocation.cell_grids import CellGrid

_PACKAGES = """
name: packages
levels:
  - {name: rack, size: 2, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us, fabric: roce}}
  - {name: node, size: 3, link: {kind: switch, bandwidth: 10 GB/s, latency: 10 us, fabric: roce}}
  - {name: half, size: 2, link: {kind: switch, bandwidth: 50 GB/s, latency: 2 us, fabric: nvlink4}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 99 GB/s, latency: 2 us, fabric: nvlink4}}
library: none
switches:
  - {name: rack0, hosts: "n[1-3]"}
  - {name: rack1, hosts: "n4"}
"""
"""Four nodes of two halves with two devices, at places 0, 1, 2 and 3 of the hull."""

INSIDE: tuple[Matrix, ...] = (
    ((2, 2), (1, 1)),
    ((2, 1), (1, 2)),
    ((1, 2), (2, 1)),
    ((1, 1), (2, 2)),
)


@pytest.fixture(scope="module")
def packages() -> Topology:
    return parse_topology(_PACKAGES, "packages")


@pytest.mark.parametrize("inside", INSIDE)
def test_it_is_found_in_every_grid_of_nodes(packages: Topology, inside: Matrix) -> None:
    for outer, slots in product(((4, 1), (2, 2), (1, 4)), ((0, 1, 2, 3), (2, 0, 3, 1))):
        grid = CellGrid(inside, outer)
        ranks = grid.ranks(np.array(slots))
        where = RankList(tuple(ranks.ravel().tolist()), ranks.shape)
        where.check(packages)
        assert inside_matrix(where, packages) == inside
        assert math.prod(ranks.shape) == packages.installed


def test_nodes_that_differ_have_none(packages: Topology) -> None:
    halves, packed = CellGrid(INSIDE[1], (2, 2)), CellGrid(INSIDE[0], (1, 4))
    for grid in (halves, packed):
        ranks = grid.ranks(np.array([0, 1, 2, 3])).ravel().tolist()
        at = [ranks.index(0), ranks.index(1)]
        ranks[at[0]], ranks[at[1]] = 1, 0
        shape = tuple(o * f for o, f in zip(grid.outer, grid.factors, strict=True))
        assert inside_matrix(RankList(tuple(ranks), shape), packages) is None


def test_ranks_that_are_no_box_have_none(packages: Topology) -> None:
    """Each node has ranks 0, 1, 2 and 5 of eight in a row, or the others."""
    ranks = [0, 1, 2, 4, 5, 3, 6, 7, *range(8, 16)]
    assert inside_matrix(RankList(tuple(ranks), (16,)), packages) is None
