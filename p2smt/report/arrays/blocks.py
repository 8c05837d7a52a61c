"""Which block of the array each device holds: intervals of elements, dimension by dimension."""

from __future__ import annotations

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState
from p2smt.parallelism.placement import IntArray


def held_blocks(frame: Frame, state: ArrayState) -> IntArray:
    """First and last element (exclusive) by device and dimension: shape (devices, dimensions, 2).

    Chunks of chunks, digit by digit; of a dimension that divides these are its equal shards.
    """
    places = frame.coordinates()
    found = np.zeros((len(places), len(frame.shape), 2), dtype=np.int64)
    for dim, size in enumerate(frame.shape):
        start, length = np.zeros(len(places), dtype=np.int64), np.full(len(places), size)
        for digit in state.dims[dim]:
            chunk = -(-length // frame.digits[digit].size)
            skipped = np.minimum(places[:, digit] * chunk, length)
            start, length = start + skipped, np.minimum(length - skipped, chunk)
        found[:, dim, 0], found[:, dim, 1] = start, start + length
    return found[np.argsort(np.array(frame.orders[state.order]))]
