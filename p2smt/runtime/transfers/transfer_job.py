"""The plan of a transfer as work for ranks: who holds what, what is sent, in how many buckets.

Rank r is the r-th of the plan's devices, ascending.  The numbering of a class's elements is all
that execution shares with the check of a plan: what must arrive is read off the layouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from p2smt.errors import InputError
from p2smt.runtime.payload import mixed_bits
from p2smt.transfer.buckets import CHUNK_BYTES
from p2smt.transfer.classes import TransferMoves, volume
from p2smt.transfer.layouts import IndexBox, WeightLayout
from p2smt.transfer.plan import TreePiece, taking_part

OwnBoxes = Mapping[str, tuple[IndexBox, ...]]
"""The boxes that a device has of each tensor; tensors of which it has none are left out."""


@dataclass(frozen=True)
class TransferJob:
    """Pieces of classes, each with the edges that it is sent along, between two layouts.

    ``sources`` and ``targets``: the devices of both layouts' ranks.  Every piece is sent in
    ``buckets`` equal parts, and each of these in chunks of ``chunk_bytes``.  ``staging_bytes`` and
    ``predicted_s`` are the plan's promises.

    Raises:
        InputError: a piece is of no class or has no such elements, or is sent to its own sender.
    """

    moves: TransferMoves
    before: WeightLayout
    after: WeightLayout
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    pieces: tuple[TreePiece, ...]
    item_bytes: int
    buckets: int
    staging_bytes: int
    predicted_s: float
    chunk_bytes: int = CHUNK_BYTES

    def __post_init__(self) -> None:
        classes = self.moves.classes
        for piece in self.pieces:
            given = f"piece {piece.start} to {piece.stop} of class {piece.number}"
            if not 0 <= piece.number < len(classes):
                raise InputError(given, f"there are {len(classes)} classes")
            if not 0 <= piece.start < piece.stop <= classes[piece.number].elements:
                raise InputError(given, f"it has {classes[piece.number].elements} elements")
            for source, target in piece.edges:
                if source == target:
                    raise InputError(given, f"device {source} sends it to itself")

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The devices that have a part in it: rank r is the r-th."""
        return taking_part(self.sources, self.targets, self.pieces)

    @property
    def ranks(self) -> int:
        """Ranks that it takes."""
        return len(self.devices)

    @cached_property
    def rank_of(self) -> Mapping[int, int]:
        """The rank of each device."""
        return {device: rank for rank, device in enumerate(self.devices)}

    @cached_property
    def tensor_number(self) -> Mapping[str, int]:
        """Tensors in their order."""
        return {name: number for number, name in enumerate(self.before.tensors)}

    @property
    def messages(self) -> int:
        """Edges of all pieces."""
        return sum(len(piece.edges) for piece in self.pieces)

    @property
    def sent_bytes(self) -> int:
        """Bytes of all messages."""
        sizes = ((piece.stop - piece.start) * len(piece.edges) for piece in self.pieces)
        return self.item_bytes * sum(sizes)

    @cached_property
    def compared(self) -> int:
        """Values that receivers have in the end, which are all compared."""
        return sum(
            volume(box) * len(ranks)
            for shards in self.after.shards.values()
            for box, ranks in shards.boxes
        )

    def had(self, device: int) -> OwnBoxes:
        """What a device has before."""
        return own_boxes(self.before, self.sources, device)

    def wanted(self, device: int) -> OwnBoxes:
        """What a device is to have after."""
        return own_boxes(self.after, self.targets, device)


def own_boxes(layout: WeightLayout, places: Sequence[int], device: int) -> OwnBoxes:
    """What a device has in a layout whose ranks are at these places."""
    if device not in places:
        return {}
    rank = list(places).index(device)
    known: dict[int, tuple[IndexBox, ...]] = {}
    for shards in layout.shards.values():
        if id(shards) not in known:
            known[id(shards)] = tuple(box for box, holders in shards.boxes if rank in holders)
    found = {name: known[id(shards)] for name, shards in layout.shards.items()}
    return {name: boxes for name, boxes in found.items() if boxes}


def elements_of(boxes: OwnBoxes) -> int:
    """Elements of all these boxes."""
    return sum(volume(box) for own in boxes.values() for box in own)


# Runs of elements as boxes.


def runs_of(box: IndexBox, low: int, high: int) -> Iterator[IndexBox]:
    """Boxes that hold elements ``low`` to ``high`` of a box, row-major, in this order."""
    if low >= high:
        return
    if not box:
        yield ()
        return
    size = volume(box[1:])
    first, last = -(-low // size), high // size
    if first > last:  # all in one row
        yield from _in_row(box, last, low - last * size, high - last * size)
        return
    yield from _in_row(box, first - 1, low - (first - 1) * size, size if low < first * size else 0)
    if first < last:
        yield ((box[0][0] + first, box[0][0] + last), *box[1:])
    yield from _in_row(box, last, 0, high - last * size)


def _in_row(box: IndexBox, row: int, low: int, high: int) -> Iterator[IndexBox]:
    at = box[0][0] + row
    for rest in runs_of(box[1:], low, high):
        yield ((at, at + 1), *rest)


# Values that tensor and index name.


def box_values(
    shape: Sequence[int], box: IndexBox, tensor: int, item_bytes: int, seed: int
) -> NDArray[np.uint8]:
    """The bytes of a box's elements, shape (*box, item_bytes): mixed of tensor, index and seed."""
    index = np.zeros((1,) * len(box) or 1, dtype=np.uint64)
    for dim, (start, stop) in enumerate(box):
        stride = np.uint64(math.prod(shape[dim + 1 :]))
        along = np.arange(start, stop, dtype=np.uint64) * stride
        index = index + along.reshape([-1 if d == dim else 1 for d in range(len(box))])
    words = [mixed_bits(index, tensor, 2 * seed + k) for k in range(-(-item_bytes // 8))]
    wide = np.ascontiguousarray(np.stack(words, axis=-1)).view(np.uint8)
    own = [stop - start for start, stop in box]
    return np.ascontiguousarray(wide[..., :item_bytes]).reshape(*own, item_bytes)


# What a job needs of memory: on each real rank, and on the reference executor.


_COMPARED_BYTES = 64
"""Per element of the largest box: index, bits, what is found and what is right."""


def transfer_rank_bytes(job: TransferJob, device: int) -> int:
    """About the memory that a rank needs: both copies, the staging, and to compare a box."""
    sides = job.had(device), job.wanted(device)
    largest = max((volume(box) for s in sides for own in s.values() for box in own), default=0)
    copies = sum(map(elements_of, sides)) * job.item_bytes
    return copies + job.staging_bytes + largest * (_COMPARED_BYTES + job.item_bytes)


def transfer_reference_bytes(job: TransferJob) -> int:
    """About the memory that the reference executor needs: a byte for each element and device."""
    return job.ranks * job.before.elements
