"""Who holds which part of every tensor: layouts as boxes of indices, for any framework.

A box has a start and a stop for each dimension of its tensor.  Devices are the ranks of the
layout's own mesh, from 0; which devices of a cluster these are is said where a transfer is asked.
Elements are those of the canonical tensor (the names and shapes of Hugging Face's files); how a
framework stores a box locally is none of a layout's business.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.errors import InputError, TooLarge

IndexBox = tuple[tuple[int, int], ...]
"""(start, stop) of each dimension; an empty tuple is the one element of a scalar."""

MAX_CELLS = 2**24


@dataclass(frozen=True)
class Shards:
    """How tensors of one shape lie: each box with the devices that hold it, ascending.

    Tensors of equal rule, stage and shape should share one value, which is then looked at once.
    """

    boxes: tuple[tuple[IndexBox, tuple[int, ...]], ...]


@dataclass(frozen=True)
class Tensor:
    """A tensor by its canonical name, with its shape in elements."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class WeightLayout:
    """Tensors and their shards by name, on a mesh of so many ``devices``.

    Raises:
        InputError: names differ, a box is outside its tensor, an element is held by nobody, or by
            one device twice, or a device is none of the mesh's.
        TooLarge: the boxes of a tensor cut it into too many cells.
    """

    devices: int
    tensors: Mapping[str, Tensor]
    shards: Mapping[str, Shards]

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise InputError(f"a layout of {self.devices} devices", "needs at least one")
        if not self.tensors:
            raise InputError("a layout without tensors", "has nothing to move", "name one")
        apart = sorted(set(self.tensors) ^ set(self.shards))
        if apart:
            rule = "has a shape but no shards, or shards but no shape"
            raise InputError(f"tensor {apart[0][:80]!r}", rule, "give both")
        seen: set[tuple[int, tuple[int, ...]]] = set()
        for name, tensor in self.tensors.items():
            if tensor.name != name:
                given = f"tensor {tensor.name[:80]!r}"
                raise InputError(given, f"stands under the name {name[:80]!r}")
            key = (id(self.shards[name]), tensor.shape)
            if key not in seen:
                seen.add(key)
                _check(tensor, self.shards[name], self.devices)

    @property
    def elements(self) -> int:
        """Elements of all tensors, each once."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())


def cuts(boxes: Sequence[IndexBox], shape: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Of each dimension the places where some box begins or ends, with its own two ends."""
    return tuple(
        tuple(sorted({0, size} | {end for box in boxes for end in box[dim]}))
        for dim, size in enumerate(shape)
    )


def _check(tensor: Tensor, shards: Shards, devices: int) -> None:
    if any(size < 1 for size in tensor.shape):
        given = f"tensor {tensor.name[:80]!r} of shape {list(tensor.shape)}"
        raise InputError(given, "an empty tensor has nothing to move", "leave it out")
    for box, holders in shards.boxes:
        _check_box(tensor, box)
        _check_holders(tensor, box, holders, devices)
    _check_complete(tensor, [box for box, _ in shards.boxes])
    _check_once(tensor, shards)


def _check_box(tensor: Tensor, box: IndexBox) -> None:
    fits = len(box) == len(tensor.shape) and all(
        0 <= start < stop <= size for (start, stop), size in zip(box, tensor.shape, strict=True)
    )
    if not fits:
        given = f"box {shown(box)} of tensor {tensor.name[:80]!r}"
        rule = f"is no part of its shape {list(tensor.shape)}"
        raise InputError(given, rule, "give 0 <= start < stop <= size for each dimension")


def _check_holders(tensor: Tensor, box: IndexBox, holders: Sequence[int], devices: int) -> None:
    given = f"devices {list(holders)[:8]} of box {shown(box)} of tensor {tensor.name[:80]!r}"
    if not holders or any(a >= b for a, b in itertools.pairwise(holders)):
        raise InputError(given, "must be at least one, ascending, each once")
    if holders[0] < 0 or holders[-1] >= devices:
        raise InputError(given, f"must be 0 to {devices - 1}", "give the layout more devices")


def _check_complete(tensor: Tensor, boxes: Sequence[IndexBox]) -> None:
    """Every element is held: named is the first that is not."""
    borders = cuts(boxes, tensor.shape)
    counts = [len(border) - 1 for border in borders]
    if math.prod(counts) > MAX_CELLS:
        raise TooLarge(
            f"{len(boxes)} boxes of tensor {tensor.name[:80]!r}",
            f"cut it into {math.prod(counts)} cells, more than {MAX_CELLS}",
        )
    held = np.zeros(counts, dtype=bool)
    for box in boxes:
        held[cells_of(box, borders)] = True
    if not held.all():
        first = np.unravel_index(int(np.argmin(held)), held.shape)
        index = [border[int(at)] for border, at in zip(borders, first, strict=True)]
        given = f"element {index} of tensor {tensor.name[:80]!r}"
        raise InputError(given, "is held by no device", "give a box that has it")


def cells_of(box: IndexBox, borders: Sequence[Sequence[int]]) -> tuple[slice, ...]:
    """The cells of a grid, cut at these borders, that make up a box."""
    return tuple(
        slice(int(np.searchsorted(border, start)), int(np.searchsorted(border, stop)))
        for (start, stop), border in zip(box, borders, strict=True)
    )


def _check_once(tensor: Tensor, shards: Shards) -> None:
    """No device holds an element twice."""
    of_device: dict[int, list[IndexBox]] = defaultdict(list)
    for box, holders in shards.boxes:
        for device in holders:
            for other in of_device[device]:
                both = overlap(box, other)
                if both is not None:
                    index = [start for start, _ in both]
                    given = f"element {index} of tensor {tensor.name[:80]!r}"
                    rule = f"is held by device {device} twice"
                    raise InputError(given, rule, "give boxes that do not overlap")
            of_device[device].append(box)


def overlap(one: IndexBox, other: IndexBox) -> IndexBox | None:
    """What two boxes of a tensor have in common; None: nothing."""
    both = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return both if all(start < stop for start, stop in both) else None


def shown(box: IndexBox) -> str:
    """A box as ``[0:4, 2:8]``."""
    return f"[{', '.join(f'{start}:{stop}' for start, stop in box)}]"
