"""Meshes, sub-axes and their rules."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.resharding.types import Mesh, SubAxis, check_sub_axis, mesh_text, parse_mesh


def test_positions_are_row_major_over_the_axes() -> None:
    mesh = parse_mesh("dp=2,tp=3", [5, 4, 3, 2, 1, 0])
    assert mesh.sizes == (2, 3)
    assert mesh.size == 6
    assert mesh.device_array().tolist() == [[5, 4, 3], [2, 1, 0]]
    assert not mesh.in_order
    assert parse_mesh("dp=2,tp=3").in_order
    assert parse_mesh("dp=2,tp=3").devices == (0, 1, 2, 3, 4, 5)
    assert mesh.index("tp") == 1


@pytest.mark.parametrize("text", ["dp=4", "dp=4,tp=8", "a_1=2,B=3,c=1"])
def test_meshes_are_read_back(text: str) -> None:
    assert mesh_text(parse_mesh(text)) == text
    assert parse_mesh(text.replace(",", " , ")) == parse_mesh(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dp=4,dp=2", "given twice"),
        ("dp", "NAME=SIZE"),
        ("", "NAME=SIZE"),
        ("dp=4,", "NAME=SIZE"),
        ("dp=x", "size of mesh axis dp"),
        ("dp=0", "0"),
        ("dp=-2", "-2"),
        ("=2", "name"),
    ],
)
def test_bad_meshes_are_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_mesh(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ([0, 1, 2], "product is 4"),
        ([0, 1, 2, 2], "device of its own"),
        ([0, 1, 2, -1], "device of its own"),
        (list(range(5)), "product is 4"),
    ],
)
def test_each_position_has_a_device_of_its_own(devices: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_mesh("a=2,b=2", devices)


def test_a_mesh_has_axes() -> None:
    with pytest.raises(InputError, match="at least one axis"):
        Mesh.of([])


def test_an_axis_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="'ep': is none of the mesh's dp, tp"):
        parse_mesh("dp=2,tp=2").index("ep")


def test_sub_axes_are_written_as_shardy_does() -> None:
    mesh = parse_mesh("dp=2,tp=12")
    assert SubAxis(1, 1, 12).text(mesh) == "tp"
    assert SubAxis(1, 2, 3).text(mesh) == "tp:(2)3"
    assert SubAxis(1, 1, 2).text(mesh) == "tp:(1)2"


@pytest.mark.parametrize(("before", "size"), [(1, 1), (1, 12), (2, 6), (3, 2), (12, 1)])
def test_parts_whose_product_divides_an_axis_exist(before: int, size: int) -> None:
    check_sub_axis(parse_mesh("dp=2,tp=12"), SubAxis(1, before, size))


@pytest.mark.parametrize(("before", "size"), [(1, 5), (4, 6), (0, 2), (2, 0), (12, 2), (1, 24)])
def test_other_parts_do_not(before: int, size: int) -> None:
    with pytest.raises(InputError, match="no such part"):
        check_sub_axis(parse_mesh("dp=2,tp=12"), SubAxis(1, before, size))
