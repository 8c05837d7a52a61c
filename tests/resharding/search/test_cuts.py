"""Where levels cut axes: the rows of the placement matrix, whatever placement it is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology, parse_topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import Placement
from p2smt.resharding.cuts import Cuts, splits_of
from p2smt.resharding.time_left import level_splits
from p2smt.resharding.types import Mesh
from tests.cli.tools import TINY

DEEP = """
name: deep
library: none
levels:
  - {name: pod, size: 4, link: {kind: switch, bandwidth: 5 GB/s, latency: 20 us}}
  - {name: node, size: 6, link: {kind: switch, bandwidth: 12 GB/s, latency: 10 us}}
  - {name: gpu, size: 4, link: {kind: switch, bandwidth: 300 GB/s, latency: 3 us}}
"""


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Any matrix of three axes over levels of 4, 6 and 4."""
    rows: list[list[int]] = [[], [], []]
    for level in (4, 6, 4):
        left = level
        for row in rows[:-1]:
            part = draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
            row.append(part)
            left //= part
        rows[-1].append(left)
    return Placement(tuple(map(tuple, rows)))


@given(placements())
def test_levels_cut_a_placed_mesh_as_its_matrix_says(placement: Placement) -> None:
    sizes = placement.axis_sizes
    devices = [int(device) for device in placement.rank_tensor().ravel()]
    mesh = Mesh.of([(f"a{n}", size) for n, size in enumerate(sizes)], devices)
    found = level_splits(parse_topology(DEEP, "deep"), mesh)
    for row, factors in zip(placement.matrix, found, strict=True):
        assert factors == (tuple(entry for entry in row if entry > 1) or (1,))


@pytest.mark.parametrize(
    ("axes", "factors"),
    [
        ([("x", 8)], ((2, 4),)),
        ([("x", 2), ("y", 4)], ((2,), (4,))),
        ([("x", 4), ("y", 2)], ((2, 2), (2,))),
        ([("x", 1), ("y", 8)], ((1,), (2, 4))),
    ],
)
def test_the_default_layout_is_cut_where_nodes_end(
    axes: list[tuple[str, int]], factors: tuple[tuple[int, ...], ...]
) -> None:
    assert level_splits(parse_topology(TINY, "tiny"), Mesh.of(axes)) == factors


@given(st.permutations(range(8)))
def test_factors_multiply_to_the_axes_in_any_order_of_devices(devices: list[int]) -> None:
    mesh = Mesh.of([("x", 2), ("y", 4)], devices)
    found = level_splits(parse_topology(TINY, "tiny"), mesh)
    assert tuple(map(math.prod, found)) == (2, 4)


def test_cuts_by_name() -> None:
    topology = load_topology("dgx-a100:2")
    mesh = Mesh.of([("x", 16)])
    assert splits_of(Cuts.parse("primes"), topology, mesh) is None
    assert splits_of(Cuts.parse("levels"), topology, mesh) == ((2, 8),)
    with pytest.raises(InputError, match="neither primes nor levels"):
        Cuts.parse("prime")
