"""Which block, and which part of its contributions, each device has in a state: as a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.parallelism.placement import IntArray


class BlockNumbers:
    """Numbers of blocks in the states of a frame, by device.

    ``devices`` are those of the frame, ascending; arrays by device have their order.  States of
    the same local shape and partial digits number the blocks alike.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame, self._sizes = frame, frame.sizes
        self.devices = np.array(sorted(frame.orders[0]), dtype=np.int64)
        places = frame.coordinates()
        self._places = [places[np.argsort(np.array(order))] for order in frame.orders]

    def count(self, state: ArrayState) -> int:
        """How many blocks, with their contributions, there are."""
        return self.frame.ways([*(d for dim in state.dims for d in dim), *state.partial])

    def of(self, state: ArrayState) -> IntArray:
        """The number that each device has."""
        return np.asarray(self._places[state.order] @ np.array(self._weights(state)))

    def of_many(self, states: Sequence[ArrayState]) -> IntArray:
        """The same for several states, a row for each."""
        weights = np.array([self._weights(state) for state in states])
        found = np.empty((len(states), len(self.devices)), dtype=np.int64)
        orders = np.array([state.order for state in states])
        for order, places in enumerate(self._places):
            rows = orders == order
            found[rows] = weights[rows] @ places.T
        return found

    def _weights(self, state: ArrayState) -> list[int]:
        """What each digit's value counts."""
        found, weight = [0] * len(self._sizes), 1
        for digits in (state.partial, *reversed(state.dims)):
            for digit in reversed(digits):
                found[digit] = weight
                weight *= self._sizes[digit]
        return found
