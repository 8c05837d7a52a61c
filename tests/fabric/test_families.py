"""Regular fabrics: their edges by what makes them regular."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import FAMILIES, load_fabric


def _pairs(fabric: Fabric) -> set[tuple[int, int]]:
    return {(edge.source, edge.target) for edge in fabric.edges}


@pytest.mark.parametrize("form", FAMILIES)
def test_where_levels_are_wanted_a_family_is_told_to_be_a_fabric(form: str) -> None:
    with pytest.raises(InputError, match="is a fabric"):
        load_topology(f"{form.partition(':')[0]}:8")


@given(st.integers(2, 30))
def test_a_ring_joins_neighbours(ranks: int) -> None:
    found = _pairs(load_fabric(f"ring:{ranks}"))
    assert found == {(a, (a + s) % ranks) for a in range(ranks) for s in (1, ranks - 1)}


@given(st.integers(1, 7))
def test_a_cube_joins_numbers_that_differ_in_a_bit(dims: int) -> None:
    found = _pairs(load_fabric(f"cube:{dims}"))
    ranks = range(2**dims)
    assert found == {(a, b) for a in ranks for b in ranks if (a ^ b).bit_count() == 1}


@given(st.integers(2, 12))
def test_a_mesh_joins_all_pairs(ranks: int) -> None:
    found = _pairs(load_fabric(f"mesh:{ranks}"))
    assert found == {(a, b) for a in range(ranks) for b in range(ranks) if a != b}


@given(st.lists(st.integers(2, 5), min_size=2, max_size=3))
def test_a_torus_is_rings_in_every_dimension(dims: list[int]) -> None:
    fabric = load_fabric("torus:" + "x".join(map(str, dims)))
    degree = sum(1 if size == 2 else 2 for size in dims)
    assert all(
        sum(e.source == rank for e in fabric.edges) == degree for rank in range(fabric.ranks)
    )
    last, pairs = dims[-1], _pairs(fabric)
    for rank in range(fabric.ranks):
        assert (rank, rank - rank % last + (rank + 1) % last) in pairs


def test_every_link_of_a_family_is_a_capacity_of_one_unit() -> None:
    for name in ("ring:5", "torus:3x4", "cube:3", "mesh:4"):
        fabric = load_fabric(name)
        assert fabric.unit is None
        assert sorted(edge.loads for edge in fabric.edges) == [
            (n,) for n in range(len(fabric.edges))
        ]
        assert {capacity.bandwidth for capacity in fabric.capacities} == {1}


@pytest.mark.parametrize(
    "name",
    [
        "ring:1",
        "ring:",
        "ring:-3",
        "torus:4",
        "torus:4x1",
        "cube:0",
        "cube:11",
        "mesh:1025",
        "ring:x",
    ],
)
def test_sizes_that_make_no_fabric_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        load_fabric(name)
