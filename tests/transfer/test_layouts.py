"""Layouts: who holds which box, and what is no layout."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout, overlap

HALVES = Shards(((((0, 2), (0, 4)), (0, 1)), (((2, 4), (0, 4)), (2, 3))))


def layout(shards: Shards, shape: tuple[int, ...] = (4, 4), devices: int = 4) -> WeightLayout:
    return WeightLayout(devices, {"w": Tensor("w", shape)}, {"w": shards})


def test_a_layout_counts_each_element_once() -> None:
    assert layout(HALVES).elements == 16


def test_a_scalar_has_one_box() -> None:
    assert layout(Shards((((), (0,)),)), ()).elements == 1


@pytest.mark.parametrize(
    ("shards", "said"),
    [
        (Shards(((((0, 2), (0, 4)), (0,)),)), "element [2, 0] of tensor 'w': is held by no device"),
        (
            Shards(((((0, 4), (0, 4)), (0,)), (((1, 4), (3, 4)), (0, 1)))),
            "element [1, 3] of tensor 'w': is held by device 0 twice",
        ),
        (Shards(((((0, 4), (0, 5)), (0,)),)), "box [0:4, 0:5] of tensor 'w': is no part"),
        (Shards(((((0, 4),), (0,)),)), "is no part of its shape [4, 4]"),
        (Shards(((((0, 4), (0, 4)), (4,)),)), "must be 0 to 3"),
        (Shards(((((0, 4), (0, 4)), (1, 0)),)), "ascending"),
        (Shards(((((0, 4), (0, 4)), ()),)), "at least one"),
    ],
)
def test_what_is_no_layout_is_named(shards: Shards, said: str) -> None:
    with pytest.raises(InputError) as caught:
        layout(shards)
    assert said in str(caught.value)


def test_replicas_may_be_cut_differently() -> None:
    """Two devices hold halves, a third all of it."""
    boxes = ((((0, 4), (0, 4)), (0,)), *HALVES.boxes[:1])
    assert layout(Shards((*boxes[:1], (((0, 2), (0, 4)), (1,))))).elements == 16


def test_names_of_shapes_and_shards_agree() -> None:
    with pytest.raises(InputError, match="has a shape but no shards"):
        WeightLayout(4, {"w": Tensor("w", (4, 4))}, {"v": HALVES})


def test_an_empty_tensor_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to move"):
        layout(Shards(()), (0,))


def test_overlap() -> None:
    assert overlap(((0, 4), (2, 6)), ((3, 8), (0, 3))) == ((3, 4), (2, 3))
    assert overlap(((0, 4), (2, 6)), ((4, 8), (0, 3))) is None
