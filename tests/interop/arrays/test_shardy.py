"""Meshes and shardings in Shardy's text are read."""

from __future__ import annotations

import pytest
from hypothesis import given

from p2smt.errors import InputError
from p2smt.interop.arrays.shardy import parse_sharding, parse_shardy_mesh
from p2smt.resharding.types import Mesh, ReduceOp, layout_text, parse_mesh
from tests.interop.arrays.shardy_text import sharding_text, shardy_mesh_text
from tests.strategies.draws import Draws, draws
from tests.strategies.layouts import layouts, meshes

MESHES = {"m": parse_mesh("x=4,y=2,z=8")}


@given(draws())
def test_meshes_and_layouts_are_read_back(data: Draws) -> None:
    mesh = data.draw(meshes(shuffled=True))
    layout = data.draw(layouts(mesh, ops=(ReduceOp.SUM,)))
    assert parse_shardy_mesh(shardy_mesh_text("m", mesh)) == ("m", mesh)
    assert parse_sharding(sharding_text("m", layout, mesh), {"m": mesh}) == ("m", layout)


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ('#sdy.sharding<@m, [{"x", "y"}, {}]>', "S(x,y),R"),
        ('<@m, [{"x":(1)2, "z"}, {"x":(2)2}]>', "S(x:(1)2,z),S(x:(2)2)"),
        ('<@m, [{"x", ?}, {?}p1]>', "S(x),R"),
        ('<@m, [{"y"}p0, {}]>', "S(y),R"),
        ('<@m, [{}, {}], replicated={"x"}, unreduced={"z", "y"}>', "R,R;P(y);P(z)"),
        ('<@m, [{}], unreduced={"z":(2)4}>', "R;P(z:(2)4)"),
    ],
)
def test_examples(text: str, layout: str) -> None:
    name, found = parse_sharding(text, MESHES)
    assert name == "m"
    assert layout_text(found, MESHES["m"]) == layout
    assert parse_sharding(sharding_text("m", found, MESHES["m"]), MESHES) == ("m", found)


def test_the_meshes_of_the_documentation() -> None:
    name, mesh = parse_shardy_mesh('sdy.mesh @mesh_2 = <["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>')
    assert (name, mesh) == ("mesh_2", Mesh.of([("x", 2), ("y", 2)], [3, 1, 2, 0]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S(x)", "is no sdy.sharding"),
        ('<@other, [{"x"}]>', "mesh @other: is not among m"),
        ('<@m, [{"w"}]>', "axis 'w'"),
        ('<@m, [{"x"}, {"x"}]>', "once at most"),
        ('<@m, [{"x"}], replicated={"x"}>', "once at most"),
        ('<@m, [{"x"}], unreduced={"x":(1)2}>', "once at most"),
        ('<@m, [{"x":(3)2}]>', "no such part"),
        ('<@m, [{"x"} {"y"}]>', "no {..}"),
        ('<@m, [{"x"}, y]>', "no {..}"),
        ("<@m, [{x}]>", "'x' is none"),
        ('<@m, [{"x"}], reduced={"y"}>', "'reduced' is no part"),
    ],
)
def test_bad_shardings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_sharding(text, MESHES)


@pytest.mark.parametrize(
    "text",
    ["mesh", "sdy.mesh @m = <[]>", 'sdy.mesh @m = <["x"]>', 'sdy.mesh @m = <["x"=2, "x"=2]>'],
)
def test_bad_meshes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="mesh"):
        parse_shardy_mesh(text)
