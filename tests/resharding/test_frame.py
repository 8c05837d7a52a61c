"""Frames: groups, coordinates, local shapes, and states of layouts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from p2smt.errors import InputError
from p2smt.resharding.states import ArrayState, digits_of_part, state_of
from p2smt.resharding.types import SubAxis, Uneven
from tests.resharding.types import first_ends
from tests.strategies.redistributions import ArrayScene, array_scenes, random_state
from tests.tiers import examples_of


@settings(derandomize=True, deadline=None, max_examples=examples_of(200))
@given(array_scenes())
def test_groups_differ_in_their_digits_only(scene: ArrayScene) -> None:
    """Members are row-major over the digits, and every device is in one group."""
    frame, shuffle = scene.frame, scene.shuffle
    order = shuffle.randrange(len(frame.orders))
    every = range(len(frame.digits))
    digits = shuffle.sample(every, shuffle.randint(1, len(every)))
    place = {device: i for i, device in enumerate(frame.orders[order])}
    where = frame.coordinates()
    assert len({tuple(row) for row in where.tolist()}) == frame.devices
    groups = frame.groups(digits, order)
    assert sorted(groups.ravel().tolist()) == sorted(frame.orders[order])
    for group in groups.tolist():
        rows = where[[place[device] for device in group]]
        others = np.delete(rows, digits, axis=1)
        assert (others == others[0]).all()
        expected = itertools.product(*(range(frame.sizes[digit]) for digit in digits))
        assert [tuple(row) for row in rows[:, digits].tolist()] == list(expected)


@settings(derandomize=True, deadline=None, max_examples=examples_of(200))
@given(array_scenes())
def test_a_layout_and_its_state_say_the_same(scene: ArrayScene) -> None:
    frame = scene.frame
    state = random_state(scene.shuffle, frame)
    assert state_of(frame.layout(state), frame.digits, frame.mesh, state.order) == state
    shards = math.prod(frame.ways(dim) for dim in state.dims)
    whole = math.prod(frame.shape) * frame.element.item_bytes
    assert frame.local_bytes(state) * shards == whole
    assert frame.fits(state)


def test_positions_are_mixed_radix_over_axes_and_their_parts() -> None:
    frame = first_ends("a=4,b=3", (12,), "R", "R").frame
    assert frame.sizes == (2, 2, 3)
    assert frame.coordinates()[7].tolist() == [1, 0, 1]
    assert frame.groups((0,)).tolist() == [[i, i + 6] for i in range(6)]
    assert frame.groups((1, 2)).tolist() == [list(range(6)), list(range(6, 12))]
    assert frame.groups((2, 0)).tolist()[0] == [0, 6, 1, 7, 2, 8]


def test_digits_are_named_as_the_parts_that_they_make() -> None:
    frame = first_ends("a=8,b=2", (16,), "R", "R").frame
    assert frame.names((0, 1, 2)) == "a"
    assert frame.names((1, 2)) == "a:(2)4"
    assert frame.names((2, 1)) == "a:(4)2,a:(2)2"
    assert frame.names((0, 3)) == "a:(1)2,b"


def test_nested_chunks_are_rounded_up_one_axis_after_the_other() -> None:
    frame = first_ends("a=2,b=2", (5, 6), "S(a,b),R", "R,R", Uneven.NESTED).frame
    assert frame.nested
    assert frame.local_shape(ArrayState(((0,), ()))) == (3, 6)
    assert frame.local_shape(ArrayState(((0, 1), ()))) == (2, 6)
    assert frame.fits(ArrayState(((0, 1), ())))
    assert not frame.is_even(0, ArrayState(((0,), ())))
    assert frame.is_even(1, ArrayState(((), (0,))))


def test_a_part_that_begins_inside_a_digit_has_none() -> None:
    frame = first_ends("a=6", (6,), "R", "R").frame
    with pytest.raises(InputError, match="the axis is cut into a:\\(1\\)2, a:\\(2\\)3"):
        digits_of_part(SubAxis(0, 1, 3), frame.digits, frame.mesh)


def test_one_device_has_no_digits() -> None:
    ends = first_ends("a=1", (4,), "R", "S(a)")
    assert ends.source == ends.target
    assert ends.frame.coordinates().shape == (1, 0)
    assert ends.frame.groups(()).tolist() == [[0]]
    assert ends.frame.devices == 1
