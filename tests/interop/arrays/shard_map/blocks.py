"""What each device holds of an array in a state, by the definition of layouts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.types import ReduceOp

Array = NDArray[Any]

_REDUCED: dict[ReduceOp, Callable[..., Array]] = {
    ReduceOp.SUM: np.sum,
    ReduceOp.AVG: np.mean,
    ReduceOp.PRODUCT: np.prod,
    ReduceOp.MIN: np.min,
    ReduceOp.MAX: np.max,
}


def contributions(frame: Frame, state: ArrayState, seed: int) -> Array:
    """Small whole numbers: of shape (one size for each partial digit, the array's shape)."""
    draw = np.random.default_rng(seed)
    sizes = [frame.digits[digit].size for digit in state.partial]
    high = 3 if frame.op is ReduceOp.PRODUCT else 40
    found = draw.integers(1, high, (*sizes, *frame.shape))
    return found * 8 if frame.op is ReduceOp.AVG else found


def reduced(frame: Frame, before: ArrayState, after: ArrayState, whole: Array) -> Array:
    """The same with the digits reduced that ``after`` has not."""
    gone = tuple(i for i, digit in enumerate(before.partial) if digit not in after.partial)
    return np.asarray(_REDUCED[frame.op](whole, axis=gone)) if gone else whole


def block(frame: Frame, state: ArrayState, whole: Array, device: int) -> Array:
    """What a device has: its part of the contributions, its interval of each dimension."""
    position = frame.orders[state.order].index(device)
    values = np.unravel_index(position, frame.sizes)
    found = whole[tuple(values[digit] for digit in state.partial)]
    for dim, digits in enumerate(state.dims):
        number, count = functools.reduce(
            lambda done, d: (done[0] * frame.sizes[d] + int(values[d]), done[1] * frame.sizes[d]),
            digits,
            (0, 1),
        )
        each = found.shape[dim] // count
        found = found.take(range(number * each, (number + 1) * each), axis=dim)
    return np.asarray(found)
