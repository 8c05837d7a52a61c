"""An array between two meshes: its boxes are those of its type, and redistributions obey bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2smt.api.arrays import ARRAY, array_layout
from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.resharding.search import solve_redistribution
from p2smt.resharding.types import ArrayType, ElementType, Uneven, parse_layout, parse_mesh
from p2smt.result import SearchLimits
from p2smt.transfer.bound import flow_bound
from p2smt.transfer.classes import find_moves
from p2smt.transfer.ports import PortMap


def kind(
    mesh: str, shape: tuple[int, ...], layout: str, uneven: Uneven = Uneven.REFUSE
) -> ArrayType:
    made = parse_mesh(mesh)
    return ArrayType(made, shape, ElementType.BF16, parse_layout(layout, made), uneven)


def held(one: ArrayType) -> dict[int, Any]:
    """The elements of each position, row-major, as lists of numbers."""
    numbers = np.arange(int(np.prod(one.shape))).reshape(one.shape)
    found: dict[int, Any] = {}
    for box, ranks in array_layout(one).shards[ARRAY].boxes:
        for rank in ranks:
            found[rank] = numbers[tuple(slice(*ends) for ends in box)].tolist()
    return found


def test_axes_are_major_first() -> None:
    assert held(kind("a=2,b=2", (4,), "S(b,a)")) == {0: [0], 2: [1], 1: [2], 3: [3]}
    assert held(kind("a=2,b=2", (4,), "S(a)")) == {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}


def test_parts_of_axes() -> None:
    assert held(kind("a=4", (4,), "S(a:(2)2,a:(1)2)")) == {0: [0], 2: [1], 1: [2], 3: [3]}


def test_dimensions_that_do_not_divide() -> None:
    """Chunks of chunks as torch.chunk has them; padded ones end where the array does."""
    nested = held(kind("a=2,b=2", (5,), "S(a,b)", Uneven.NESTED))
    assert nested == {0: [0, 1], 1: [2], 2: [3], 3: [4]}
    padded = held(kind("a=2,b=2", (5,), "S(a,b)", Uneven.PADDED))
    assert padded == {0: [0, 1], 1: [2, 3], 2: [4]}


def test_partial_values_are_refused() -> None:
    with pytest.raises(InputError, match="partial values: are sums still to be made"):
        array_layout(kind("a=2", (4,), "R;P(a)"))


ON_ONE_MESH = (
    ("a=2,b=2,c=4", "S(c),S(a)", "R,S(c,b)"),
    ("a=2,b=8", "S(a),R", "S(b),R"),
    ("a=2,b=2,c=4", "S(a,c),S(b)", "S(c),S(b,a)"),
    ("a=4,b=4", "S(a),S(b)", "S(b),S(a)"),
)


@pytest.mark.parametrize(("mesh", "before", "after"), ON_ONE_MESH)
@pytest.mark.parametrize("nominal", [False, True])
def test_no_redistribution_is_below_the_bound_of_relayed_plans(
    mesh: str, before: str, after: str, nominal: bool
) -> None:
    """Its steps pass on what devices neither hold nor need in the end, so that bound is theirs."""
    cluster = load_topology("dgx-a100:2")
    topology = cluster.nominal() if nominal else cluster
    source, target = (kind(mesh, (8192, 8192), layout) for layout in (before, after))
    plan = solve_redistribution(source, target, topology)
    places = range(16)
    moves = find_moves(array_layout(source), array_layout(target), places, places)
    ports = PortMap(topology, "best", relayed=True)
    bound = flow_bound(moves, ports, 2, SearchLimits())
    assert bound is not None
    assert 0 < bound.certificate.bound_s <= plan.objective_s
