"""Classes hold each element that moves, once; against every element by itself."""

from __future__ import annotations

import pytest

from p2smt.errors import InputError
from p2smt.transfer.classes import cell_list, find_moves, volume
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout
from tests.transfer.cases import random_case
from tests.transfer.oracle import elements_by_class


@pytest.mark.parametrize("seed", range(12))
def test_classes_have_all_elements_that_move(seed: int) -> None:
    case = random_case(seed, 8, [8, 6, 12][seed % 3], same=seed % 2 == 0, small=True)
    moves = case.moves()
    found = {(one.holders, one.needers): one.elements for one in moves.classes}
    assert found == elements_by_class(case)
    for number, one in enumerate(moves.classes):
        cells = list(cell_list(moves, number))
        assert sum(volume(box) for _, box in cells) == one.elements


def test_a_device_that_has_an_element_keeps_it() -> None:
    whole = Shards(((((0, 4),), (0, 1)),))
    halves = Shards(((((0, 2),), (0,)), (((2, 4),), (1,))))
    first, second = (
        WeightLayout(2, {"w": Tensor("w", (4,))}, {"w": one}) for one in (whole, halves)
    )
    moves = find_moves(first, second, [0, 1], [1, 2])
    assert dict(moves.kept) == {1: 2}
    (one,) = moves.classes
    assert (one.holders, one.needers, one.elements) == ((0, 1), (2,), 2)


def test_a_scalar_is_one_element() -> None:
    sides = (Shards((((), (0,)),)), Shards((((), (0, 1)),)))
    first, second = (WeightLayout(2, {"s": Tensor("s", ())}, {"s": one}) for one in sides)
    moves = find_moves(first, second, [0, 1], [0, 1])
    (one,) = moves.classes
    assert (one.holders, one.needers, one.elements) == ((0,), (1,), 1)
    assert dict(moves.kept) == {0: 1}


def test_like_tensors_are_one_pattern() -> None:
    """45,000 tensors are as many look-ups, not as many searches for cells."""
    before = Shards(tuple((((8 * r, 8 * r + 8), (0, 64)), (r, r + 8)) for r in range(8)))
    after = Shards(tuple((((0, 64), (16 * r, 16 * r + 16)), (r,)) for r in range(4)))
    names = [f"w{i}" for i in range(45_000)]
    tensors = {name: Tensor(name, (64, 64)) for name in names}
    first = WeightLayout(16, tensors, dict.fromkeys(names, before))
    second = WeightLayout(4, tensors, dict.fromkeys(names, after))
    moves = find_moves(first, second, range(16), range(16, 20))
    assert len(moves.patterns) == 1
    assert len(moves.classes) == 32
    assert sum(one.elements for one in moves.classes) == 45_000 * 64 * 64


def layout(name: str, shape: tuple[int, ...]) -> WeightLayout:
    box = tuple((0, size) for size in shape)
    return WeightLayout(1, {name: Tensor(name, shape)}, {name: Shards(((box, (0,)),))})


@pytest.mark.parametrize(
    ("second", "sources", "said"),
    [
        (layout("v", (4,)), [0], "tensor 'v': is missing in the first layout"),
        (layout("w", (5,)), [0], "tensor 'w' of shape [4]: has shape [5] in the second layout"),
        (layout("w", (4,)), [0, 1], "2 source devices: the layout has 1"),
    ],
)
def test_layouts_that_do_not_fit_are_named(
    second: WeightLayout, sources: list[int], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        find_moves(layout("w", (4,)), second, sources, [1])
    assert said in str(caught.value)


def test_a_device_named_twice_is_refused() -> None:
    whole = Shards(((((0, 4),), (0, 1)),))
    both = WeightLayout(2, {"w": Tensor("w", (4,))}, {"w": whole})
    with pytest.raises(InputError, match="target device 3: is named twice"):
        find_moves(both, both, [0, 1], [3, 3])
