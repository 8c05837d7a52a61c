"""Layouts for tests: random ones, on many or few devices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.cluster.link import Link, LinkKind, Piece
from p2smt.cluster.topology import Level, Topology
from p2smt.transfer.classes import TransferMoves, find_moves
from p2smt.transfer.layouts import Shards, Tensor, WeightLayout


def cluster(nodes: int, devices: int, *, network: float = 50e9, inside: float = 450e9) -> Topology:
    """Nodes of so many devices, each with a card of its own; bytes per second."""
    return Topology(
        "test",
        (
            Level("node", nodes, _link(network, devices, "infiniband")),
            Level("gpu", devices, _link(inside, 1, "nvlink4")),
        ),
    )


def _link(rate: float, ports: int, fabric: str) -> Link:
    return Link(LinkKind.SWITCH, (Piece("simple", 0.0, rate),), ports, fabric=fabric)


@dataclass(frozen=True)
class Case:
    """Two layouts, and the devices of their ranks."""

    before: WeightLayout
    after: WeightLayout
    sources: Sequence[int]
    targets: Sequence[int]

    def moves(self) -> TransferMoves:
        """Its classes."""
        return find_moves(self.before, self.after, self.sources, self.targets)


def random_layout(
    chance: random.Random, devices: int, shapes: dict[str, tuple[int, ...]]
) -> WeightLayout:
    """Every tensor cut along both dimensions, with copies, over all devices in some order."""
    tensors = {name: Tensor(name, shape) for name, shape in shapes.items()}
    return WeightLayout(
        devices, tensors, {name: _shards(chance, devices, shape) for name, shape in shapes.items()}
    )


def _shards(chance: random.Random, devices: int, shape: tuple[int, ...]) -> Shards:
    rows = chance.choice([d for d in range(1, devices + 1) if devices % d == 0 and d <= shape[0]])
    rest = devices // rows
    columns = chance.choice([d for d in range(1, rest + 1) if rest % d == 0 and d <= shape[1]])
    order = list(range(devices))
    if chance.random() < 0.5:
        chance.shuffle(order)
    held: dict[tuple[int, int], list[int]] = {}
    for place, device in enumerate(order):
        held.setdefault((place % rows, place // rows % columns), []).append(device)
    return Shards(
        tuple(
            ((_chunk(shape[0], rows, r), _chunk(shape[1], columns, c)), tuple(sorted(devices)))
            for (r, c), devices in held.items()
        )
    )


def _chunk(size: int, ways: int, which: int) -> tuple[int, int]:
    return size * which // ways, size * (which + 1) // ways


def random_case(
    seed: int, before: int, after: int, *, same: bool, tensors: int = 2, small: bool = False
) -> Case:
    """Random layouts on the same devices, or on those that follow the first layout's nodes."""
    chance = random.Random(seed)
    sizes = ([4, 6, 12], [4, 8, 10]) if small else ([48, 72, 144], [480, 960, 1200])
    shapes: dict[str, tuple[int, ...]] = {
        f"w{i}": (chance.choice(sizes[0]), chance.choice(sizes[1])) for i in range(tensors)
    }
    first = random_layout(chance, before, shapes)
    second = random_layout(chance, after, shapes)
    start = 0 if same else before
    return Case(first, second, range(before), range(start, start + after))
