"""Where the block of each device lies in the array, by the definition of a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.arrays.state import ArrayState


@dataclass(frozen=True, slots=True)
class ArrayBlock:
    """Intervals of a device's block: per dimension its first index and its length."""

    first: tuple[int, ...]
    shape: tuple[int, ...]


def coordinates_of(frame: Frame, device: int, order: int) -> tuple[int, ...]:
    """Value of each digit at the mesh position that a device has."""
    position = frame.orders[order].index(device)
    return tuple(int(value) for value in np.unravel_index(position, frame.sizes))


def block_of(frame: Frame, state: ArrayState, device: int) -> ArrayBlock:
    """The block of a device: chunks of chunks, one digit after the other, major first.

    A chunk is the length over the digit's size, rounded up; the last ones are shorter, or empty,
    where it does not divide (as ``torch.chunk``).
    """
    place = coordinates_of(frame, device, state.order)
    pairs = [
        _interval(frame, size, dim, place)
        for size, dim in zip(frame.shape, state.dims, strict=True)
    ]
    return ArrayBlock(tuple(first for first, _ in pairs), tuple(length for _, length in pairs))


def _interval(frame: Frame, size: int, dim: Sequence[int], place: Sequence[int]) -> tuple[int, int]:
    first = 0
    for digit in dim:
        lengths = chunk_lengths(size, frame.digits[digit].size)
        first += sum(lengths[: place[digit]])
        size = lengths[place[digit]]
    return first, size


def chunk_lengths(size: int, ways: int) -> tuple[int, ...]:
    """Lengths of the chunks into which ``torch.chunk`` cuts a size; missing ones are empty."""
    chunk = -(-size // ways)
    return tuple(max(0, min(chunk, size - chunk * number)) for number in range(ways))


def part_of(frame: Frame, state: ArrayState, device: int) -> tuple[int, ...]:
    """Which contribution a device holds: its values of the digits that are partial."""
    place = coordinates_of(frame, device, state.order)
    return tuple(place[digit] for digit in state.partial)
