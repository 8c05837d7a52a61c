"""Partition specs are read and written; what they cannot say is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given

from p2smt.errors import InputError
from p2smt.interop.arrays.jax_spec import (
    layout_of_partition_spec,
    mesh_of_jax,
    partition_entries,
    partition_text,
    unreduced_axes,
)
from p2smt.resharding.types import Mesh, ReduceOp, layout_text, parse_layout, parse_mesh
from tests.strategies.draws import Draws, draws
from tests.strategies.layouts import layouts, meshes

MESH = parse_mesh("dp=2,tp=4,pp=2")


class Spec(tuple[object, ...]):
    """What is read of a PartitionSpec."""

    unreduced: frozenset[str] = frozenset()
    reduced: frozenset[str] = frozenset()


def spec(*entries: object, unreduced: tuple[str, ...] = (), reduced: tuple[str, ...] = ()) -> Spec:
    made = Spec(entries)
    made.unreduced, made.reduced = frozenset(unreduced), frozenset(reduced)
    return made


@given(draws())
def test_layouts_are_read_back(data: Draws) -> None:
    mesh = data.draw(meshes())
    layout = data.draw(layouts(mesh, ops=(ReduceOp.SUM,)))
    entries = partition_entries(layout, mesh)
    made = spec(*entries, unreduced=tuple(unreduced_axes(layout, mesh)))
    assert layout_of_partition_spec(made, mesh, len(layout.dims)) == layout


@pytest.mark.parametrize(
    ("given_spec", "layout", "text"),
    [
        (spec("dp", None), "S(dp),R", "PartitionSpec('dp', None)"),
        (spec(("tp", "dp")), "S(tp,dp),R", "PartitionSpec(('tp', 'dp'), None)"),
        (spec(), "R,R", "PartitionSpec(None, None)"),
        (spec(("dp",), ()), "S(dp),R", "PartitionSpec('dp', None)"),
        (
            spec(None, "dp", unreduced=("tp", "pp")),
            "R,S(dp);P(tp);P(pp)",
            "PartitionSpec(None, 'dp', unreduced={'pp', 'tp'})",
        ),
    ],
)
def test_examples(given_spec: Spec, layout: str, text: str) -> None:
    found = layout_of_partition_spec(given_spec, MESH, 2)
    assert layout_text(found, MESH) == layout
    assert partition_text(found, MESH) == text


@pytest.mark.parametrize(
    ("given_spec", "message"),
    [
        (spec(None, None, "dp"), "3 entries: the array has 2 dimensions"),
        (spec("cp"), "'cp'"),
        (spec("dp", "dp"), "once at most"),
        (spec("dp", unreduced=("dp",)), "once at most"),
        (spec(object()), "neither None"),
        (spec(("dp", None)), "neither None"),
        (spec("dp", reduced=("tp",)), "how a gradient lies"),
    ],
)
def test_bad_specs_are_refused(given_spec: Spec, message: str) -> None:
    with pytest.raises(InputError, match=message):
        layout_of_partition_spec(given_spec, MESH, 2)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("S(tp:(2)2),R", "whole axes only"),
        ("R,R;P(tp:(1)2)", "whole axes only"),
        ("R,R;P(tp,max)", "are sums"),
    ],
)
def test_layouts_that_a_spec_cannot_say_are_refused(layout: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        partition_text(parse_layout(layout, MESH), MESH)


def test_a_mesh_by_its_devices_ids() -> None:
    order = np.array([[3, 1], [2, 0]])
    devices = np.empty((2, 2), dtype=object)
    for place in np.ndindex(2, 2):
        devices[place] = SimpleNamespace(id=order[place])
    found = mesh_of_jax(SimpleNamespace(axis_names=("x", "y"), devices=devices))
    assert found == Mesh.of([("x", 2), ("y", 2)], [3, 1, 2, 0])


def test_what_jax_itself_builds() -> None:
    sharding = pytest.importorskip("jax").sharding
    for entries in ((None, "dp"), (("tp", "dp"), None), ()):
        made = sharding.PartitionSpec(*entries)
        found = layout_of_partition_spec(made, MESH, 2)
        written = eval(partition_text(found, MESH), {"PartitionSpec": sharding.PartitionSpec})
        assert layout_of_partition_spec(written, MESH, 2) == found
    open_spec = sharding.PartitionSpec(sharding.PartitionSpec.UNCONSTRAINED)
    with pytest.raises(InputError, match="neither None"):
        layout_of_partition_spec(open_spec, MESH, 2)
    unreduced = sharding.PartitionSpec(None, "dp", unreduced={"tp"})
    assert layout_text(layout_of_partition_spec(unreduced, MESH, 2), MESH) == "R,S(dp);P(tp)"
