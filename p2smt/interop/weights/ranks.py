"""Coordinates of ranks, cuts of a tensor into parts, and rules put together as a layout."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.interop.weights.layout_text import MAX_DEVICES, WeightsText
from p2smt.interop.weights.weight_tensors import Weight
from p2smt.parallelism.placement import IntArray
from p2smt.transfer.layouts import IndexBox, Shards, WeightLayout

PartOf = tuple[int, int]
"""Which part of how many."""
HeldParts = Iterable[tuple[int, IndexBox]]
"""A device and a box that it holds."""


@dataclass(frozen=True, slots=True)
class RankGrid:
    """Ranks over axes: of each axis every rank's coordinate, the first axis varying fastest."""

    sizes: Mapping[str, int]
    places: Mapping[str, IntArray]

    @staticmethod
    def of(given: WeightsText, axes: Sequence[tuple[str, int]]) -> RankGrid:
        """The ranks of these axes, fastest first.

        Raises:
            InputError: there are too many.
        """
        total = math.prod(size for _, size in axes)
        if total > MAX_DEVICES:
            raise given.error(f"{total} devices", f"must be at most {MAX_DEVICES}")
        left = np.arange(total)
        places = {}
        for axis, size in axes:
            left, places[axis] = np.divmod(left, size)
        return RankGrid(dict(axes), places)

    @property
    def devices(self) -> int:
        """How many ranks there are."""
        return math.prod(self.sizes.values())

    def where(self, axis: str, values: Iterable[int], **others: int) -> list[int]:
        """The ranks at one of these values of an axis and at these of the others, ascending."""
        chosen = np.isin(self.places[axis], list(values))
        for name, value in others.items():
            chosen &= self.places[name] == value
        return [int(rank) for rank in np.flatnonzero(chosen)]

    def at(self, axis: str) -> list[int]:
        """Every rank's coordinate on an axis."""
        return [int(place) for place in self.places[axis]]


# Cuts: the box of one part of a tensor.


def whole(shape: Sequence[int]) -> IndexBox:
    """All of a tensor."""
    return tuple((0, size) for size in shape)


def cut(shape: Sequence[int], dim: int, part: PartOf) -> IndexBox:
    """One of equal parts of a dimension, whose size the number of parts divides."""
    number, count = part
    each = shape[dim] // count
    return _with(shape, dim, (number * each, (number + 1) * each))


def padded_rows(shape: Sequence[int], part: PartOf, multiple: int) -> list[IndexBox]:
    """Real rows of a part where rows are padded to a multiple first; none if all are padding."""
    number, count = part
    each = -(-shape[0] // multiple) * multiple // count
    start, stop = (min(end * each, shape[0]) for end in (number, number + 1))
    return [_with(shape, 0, (start, stop))] if start < stop else []


def _with(shape: Sequence[int], dim: int, span: tuple[int, int]) -> IndexBox:
    return tuple(span if at == dim else (0, size) for at, size in enumerate(shape))


# A layout from rules: every kind of weight is looked at once.


def layout_by(
    weights: Sequence[Weight],
    devices: int,
    kind: Callable[[Weight], Hashable],
    held: Callable[[Weight], HeldParts],
) -> WeightLayout:
    """The layout where ``held`` says who has which box; weights of one ``kind`` lie alike."""
    found: dict[Hashable, Shards] = {}
    shards: dict[str, Shards] = {}
    for weight in weights:
        key = (kind(weight), weight.tensor.shape)
        if key not in found:
            found[key] = shards_of(held(weight))
        shards[weight.tensor.name] = found[key]
    return WeightLayout(devices, {one.tensor.name: one.tensor for one in weights}, shards)


def shards_of(held: HeldParts) -> Shards:
    """Boxes with all the devices that hold them, in ascending order of both."""
    together: dict[IndexBox, set[int]] = defaultdict(set)
    for device, box in held:
        together[box].add(device)
    return Shards(tuple((box, tuple(sorted(who))) for box, who in sorted(together.items())))


def each_cut(
    shape: Sequence[int], dim: int, ranks: Iterable[int], parts: Sequence[int], count: int
) -> Iterator[tuple[int, IndexBox]]:
    """Each of these ranks with its part of a dimension; ``parts`` has the part of every rank."""
    for rank in ranks:
        yield rank, cut(shape, dim, (parts[rank], count))
