"""The twelve cases: tensors, classes and the bound by what must come into a node or a device."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

import pytest

from experiments.transfer.cases import CASES, NODE, TransferCase
from p2smt.transfer.layouts import IndexBox, Shards, WeightLayout, cells_of, cuts

CARD = 50e9
"""Bytes a second that come into a device from other nodes."""
BYTES = 2
Devices = frozenset[int]
Classes = Mapping[tuple[Devices, Devices], int]
"""Bytes by who holds them and who needs them."""

# Tensors, devices of both sides, classes that someone needs, and the bound in ms, of four digits.
EXPECTED = {
    1: (723, 64, 64, 36, "352.8"),
    2: (723, 64, 64, 36, "352.8"),
    3: (723, 64, 64, 36, "352.8"),
    4: (36_945, 64, 64, 596, "587.9"),
    5: (36_945, 64, 64, 52, "1175"),
    6: (45_337, 128, 128, 1_096, "3355"),
    7: (45_337, 512, 256, 328, "3355"),
    8: (1_137, 1_024, 1_024, 144, "2029"),
    9: (723, 32, 24, 52, "117.7"),
    10: (723, 32, 24, 27, "235.3"),
    11: (723, 32, 32, 38, "88.2"),
    12: (723, 32, 24, 36, "352.8"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.number))
def test_cases_are_as_they_were_priced(case: TransferCase) -> None:
    source, target = case.layouts()
    assert source.tensors == target.tensors
    found = classes(source, target, case.first)
    needed = sum(1 for _, needers in found if needers)
    bound = f"{entry_s(found) * 1e3:.4g}"
    counts = (len(source.tensors), source.devices, target.devices, needed, bound)
    assert counts == EXPECTED[case.number]


def classes(source: WeightLayout, target: WeightLayout, first: int) -> Classes:
    """Cells of the common refinement of both layouts, put together by holders and needers."""
    found: dict[tuple[Devices, Devices], int] = defaultdict(int)
    known: dict[tuple[int, int, tuple[int, ...]], Classes] = {}
    for name, tensor in source.tensors.items():
        one, other = source.shards[name], target.shards[name]
        key = (id(one), id(other), tensor.shape)
        if key not in known:
            known[key] = _cells(one, other, tensor.shape, first)
        for pair, size in known[key].items():
            found[pair] += size
    return found


def _cells(one: Shards, other: Shards, shape: tuple[int, ...], first: int) -> Classes:
    borders = cuts([box for box, _ in (*one.boxes, *other.boxes)], shape)
    holders = _devices(one.boxes, borders, 0)
    wanted = _devices(other.boxes, borders, first)
    found: dict[tuple[Devices, Devices], int] = defaultdict(int)
    for cell, who in holders.items():
        spans = (border[at + 1] - border[at] for border, at in zip(borders, cell, strict=True))
        pair = (frozenset(who), frozenset(wanted[cell] - who))
        found[pair] += math.prod(spans) * BYTES
    return found


def _devices(
    boxes: Iterable[tuple[IndexBox, tuple[int, ...]]],
    borders: tuple[tuple[int, ...], ...],
    first: int,
) -> dict[tuple[int, ...], set[int]]:
    found: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for box, devices in boxes:
        spans = (range(one.start, one.stop) for one in cells_of(box, borders))
        for cell in itertools.product(*spans):
            found[cell].update(device + first for device in devices)
    return found


def entry_s(found: Classes) -> float:
    """What must come into a node by the cards that need it, or into the one card that needs it."""
    node: dict[int, int] = defaultdict(int)
    cards: dict[int, set[int]] = defaultdict(set)
    alone: dict[int, int] = defaultdict(int)
    for (holders, needers), size in found.items():
        for number in {one // NODE for one in needers} - {one // NODE for one in holders}:
            here = [one for one in needers if one // NODE == number]
            node[number] += size
            cards[number].update(here)
            alone[here[0]] += size if len(here) == 1 else 0
    by_node = [size / len(cards[number]) for number, size in node.items()]
    return max(*by_node, *alone.values()) / CARD
