"""What moves: cells of equal holders and needers, of all tensors together, as classes.

Every dimension of a tensor is cut at all borders of both layouts.  A cell then has *holders*, the
devices that have it before, and *needers*, those that want it and lack it; who has it already
copies it locally.  Cells of all tensors with the same holders and the same needers are one class.

Tensors whose layouts are the same two values, of one shape, are one *pattern*: cells are found once
for all of them, so that 45,000 tensors take a second.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.transfer.layouts import IndexBox, Shards, WeightLayout, cells_of, cuts

Devices = tuple[int, ...]


@dataclass(frozen=True)
class Pattern:
    """Tensors that lie alike before and after, in the order of the first layout."""

    shape: tuple[int, ...]
    tensors: tuple[str, ...]


@dataclass(frozen=True)
class TransferClass:
    """Elements with these holders and needers (devices of the cluster, ascending).

    ``cells``: pattern by pattern, the boxes of each of its tensors.  Their elements are numbered
    pattern by pattern, tensor by tensor, box by box, each box row-major.
    """

    holders: Devices
    needers: Devices
    elements: int
    cells: tuple[tuple[int, tuple[IndexBox, ...]], ...]


@dataclass(frozen=True)
class TransferMoves:
    """All classes between two layouts, those of few holders first, and what stays where it is.

    ``kept``: elements that devices have before and after, counted for each device.
    """

    patterns: tuple[Pattern, ...]
    classes: tuple[TransferClass, ...]
    kept: Mapping[int, int]


def find_moves(
    before: WeightLayout, after: WeightLayout, sources: Sequence[int], targets: Sequence[int]
) -> TransferMoves:
    """The classes; ``sources`` and ``targets`` are the devices of both layouts' ranks.

    Raises:
        InputError: the layouts differ in tensors or shapes, or devices are too few, or named twice.
    """
    check_devices(before, sources, "source")
    check_devices(after, targets, "target")
    check_same_tensors(before, after)
    found: dict[tuple[Devices, Devices], list[tuple[int, tuple[IndexBox, ...]]]] = defaultdict(list)
    kept: dict[int, int] = defaultdict(int)
    patterns = []
    for number, (tensors, first, second, shape) in enumerate(_patterns(before, after)):
        patterns.append(Pattern(shape, tensors))
        placed = _placed(first, sources), _placed(second, targets)
        for (holders, wanters), boxes in _cells(*placed, shape).items():
            each = sum(map(volume, boxes)) * len(tensors)
            lacking = tuple(d for d in wanters if d not in set(holders))
            if lacking:
                found[holders, lacking].append((number, boxes))
            for device in set(wanters) & set(holders):
                kept[device] += each
    classes = [
        TransferClass(*key, _elements(patterns, cells), tuple(cells))
        for key, cells in found.items()
    ]
    classes.sort(key=lambda one: (len(one.holders), one.holders, one.needers))
    return TransferMoves(tuple(patterns), tuple(classes), dict(sorted(kept.items())))


def volume(box: IndexBox) -> int:
    """Elements of a box."""
    return math.prod(stop - start for start, stop in box)


def _elements(
    patterns: Sequence[Pattern], cells: Sequence[tuple[int, tuple[IndexBox, ...]]]
) -> int:
    return sum(len(patterns[n].tensors) * sum(map(volume, boxes)) for n, boxes in cells)


def check_devices(layout: WeightLayout, devices: Sequence[int], what: str) -> None:
    """Every rank of a layout is a device of its own."""
    if len(devices) != layout.devices:
        given = f"{len(devices)} {what} devices"
        raise InputError(given, f"the layout has {layout.devices}", "name one for each rank")
    if len(set(devices)) != len(devices):
        twice = next(d for d in devices if list(devices).count(d) > 1)
        raise InputError(f"{what} device {twice}", "is named twice", "name each once")


def check_same_tensors(before: WeightLayout, after: WeightLayout) -> None:
    """Both layouts have the same tensors, of the same shapes."""
    apart = sorted(set(before.tensors) ^ set(after.tensors))
    if apart:
        which = "second" if apart[0] in before.tensors else "first"
        given = f"tensor {apart[0][:80]!r}"
        raise InputError(given, f"is missing in the {which} layout", "give both the same tensors")
    for name, tensor in before.tensors.items():
        other = after.tensors[name]
        if other.shape != tensor.shape:
            given = f"tensor {name[:80]!r} of shape {list(tensor.shape)}"
            raise InputError(given, f"has shape {list(other.shape)} in the second layout")


def _patterns(
    before: WeightLayout, after: WeightLayout
) -> Iterator[tuple[tuple[str, ...], Shards, Shards, tuple[int, ...]]]:
    """Tensors by their pairs of shards, which are compared as objects, not by their values."""
    names: dict[tuple[int, int, tuple[int, ...]], list[str]] = defaultdict(list)
    for name, tensor in before.tensors.items():
        key = (id(before.shards[name]), id(after.shards[name]), tensor.shape)
        names[key].append(name)
    for (_, _, shape), tensors in names.items():
        yield tuple(tensors), before.shards[tensors[0]], after.shards[tensors[0]], shape


def _placed(shards: Shards, devices: Sequence[int]) -> list[tuple[IndexBox, Devices]]:
    return [(box, tuple(devices[rank] for rank in ranks)) for box, ranks in shards.boxes]


_Boxes = Sequence[tuple[IndexBox, Devices]]


def _cells(
    first: _Boxes, second: _Boxes, shape: tuple[int, ...]
) -> Mapping[tuple[Devices, Devices], tuple[IndexBox, ...]]:
    """The cells of one tensor by who has them before and who after."""
    borders = cuts([box for box, _ in (*first, *second)], shape)
    counts = [len(border) - 1 for border in borders]
    having, havers = _owners(first, borders, counts)
    wanting, wanters = _owners(second, borders, counts)
    both = having.ravel() * len(wanters) + wanting.ravel()
    order = np.argsort(both, kind="stable")
    kinds, starts = np.unique(both[order], return_index=True)
    found: dict[tuple[Devices, Devices], tuple[IndexBox, ...]] = {}
    for kind, cells in zip(kinds.tolist(), np.split(order, starts[1:]), strict=True):
        key = (havers[kind // len(wanters)], wanters[kind % len(wanters)])
        boxes = tuple(_boxes(cells, borders, counts))
        found[key] = (*found.get(key, ()), *boxes)
    return found


def _owners(
    boxes: _Boxes, borders: Sequence[Sequence[int]], counts: Sequence[int]
) -> tuple[IntArray, list[Devices]]:
    """For every cell the number of the set of devices that have it, and these sets."""
    sets: dict[Devices, int] = {(): 0}
    cells = np.zeros(counts, dtype=np.int64)
    for box, devices in boxes:
        where = cells_of(box, borders)
        here = np.asarray(cells[where])  # of a scalar an array, too
        known = list(sets)
        for old in np.unique(here).tolist():
            both = tuple(sorted({*known[old], *devices}))
            here[here == old] = sets.setdefault(both, len(sets))
        cells[where] = here
    return cells, list(sets)


def _boxes(
    cells: IntArray, borders: Sequence[Sequence[int]], counts: Sequence[int]
) -> Iterator[IndexBox]:
    """The boxes of cells, given by row-major numbers; runs along the last dimension are joined."""
    if not counts:
        yield ()
        return
    places = np.stack(np.unravel_index(cells, counts), axis=1)
    joined = np.all(np.diff(places, axis=0) == [*([0] * (len(counts) - 1)), 1], axis=1)
    starts = np.flatnonzero(np.append(True, ~joined))
    stops = np.append(starts[1:], len(places)) - 1
    for low, high in zip(places[starts].tolist(), places[stops].tolist(), strict=True):
        ends = zip(borders, low, high, strict=True)
        yield tuple((border[a], border[b + 1]) for border, a, b in ends)


def ranges(
    moves: TransferMoves, number: int, start: int, stop: int
) -> Iterator[tuple[str, IndexBox, int, int]]:
    """What elements start to stop of a class are: tensor, box, and the elements of the box."""
    at = 0
    for tensor, box in cell_list(moves, number):
        size = volume(box)
        low, high = max(start, at), min(stop, at + size)
        if low < high:
            yield tensor, box, low - at, high - at
        at += size


def cell_list(moves: TransferMoves, number: int) -> Iterator[tuple[str, IndexBox]]:
    """The cells of a class in the order in which its elements are numbered."""
    for pattern, boxes in moves.classes[number].cells:
        yield from itertools.product(moves.patterns[pattern].tensors, boxes)
