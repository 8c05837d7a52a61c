"""The jobs of the study: hosts under unequal leaves, axes, weights and uplinks, each from a seed.

A job got some hosts under each of several leaves: a random composition of their number, no leaf
with more than 2.2 times the mean.  Names go rack by rack: racks of four hosts with successive
numbers, dealt to the leaves in turn, as far as a leaf still has room.  So an alphabetical order
keeps runs of four together and no more.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import p2smt
from p2smt.cluster.file import parse_topology
from p2smt.cluster.hostlist import format_hostlist

SEEDS = range(30, 60)
"""None of them was looked at while the search was built."""
RACK = 4
OVERSUBSCRIBED = 4
NODE = 200_000_000_000
"""Bytes per second that a node sends: eight ports of 25 GB/s."""
SEND = 256 * 2**20
SHARE = 2.2


@dataclass(frozen=True, slots=True)
class Size:
    """Jobs of one size: nodes, leaves, grids (send axis x all-reduce axis), time limit in s."""

    nodes: int
    leaves: int
    grids: tuple[tuple[int, int], ...]
    limit_s: float
    every: bool = True


SIZES = (
    Size(16, 3, ((2, 8), (4, 4), (8, 2)), 1.0),
    Size(64, 6, ((4, 16), (8, 8), (16, 4)), 5.0),
    Size(128, 8, ((4, 32), (8, 16), (16, 8)), 30.0),
    Size(1200, 32, ((30, 40), (40, 30), (75, 16)), 60.0, every=False),
)
"""Not ``every``: a seed has one grid, one weight and one kind of uplinks, each in turn."""
WEIGHTS = (4, 1)
UPLINKS = ("equal", "in proportion")


@dataclass(frozen=True, slots=True)
class Job:
    """One job of the study."""

    size: Size
    seed: int
    grid: tuple[int, int]
    weight: int
    uplinks: str

    @property
    def leaves(self) -> tuple[int, ...]:
        """Hosts under each leaf."""
        return leaf_sizes(self.seed, self.size.nodes, self.size.leaves)

    def problem(self) -> p2smt.Problem:
        """All-reduces along dp and sends along pp, tensor parallelism inside each node."""
        stages, members = self.grid
        topology = parse_topology(self._text(), "allocations")
        vector = int(self.weight * SEND * members / (2 * (members - 1)))
        axes = p2smt.parse_axes(f"pp={stages},dp={members},tp=8")
        requests = (p2smt.reduce(f"dp={vector}B"), p2smt.send(f"pp={SEND}B"))
        rules = (p2smt.AxisRule(2, topology.node_level, inside=True),)
        return p2smt.Problem(topology, axes, requests, rules=rules)

    def _text(self) -> str:
        sizes, each = self.leaves, self.size.nodes / self.size.leaves
        mean = each * NODE / OVERSUBSCRIBED
        lines = [
            "name: allocation",
            "library: nccl-2.20",
            "levels:",
            _level("leaf", len(sizes), mean, "latency: 5 us, fabric: infiniband"),
            _level("node", max(sizes), NODE / 8, "ports: 8, latency: 5 us, fabric: infiniband"),
            _level("gpu", 8, 300e9, "latency: 3 us, fabric: nvlink3"),
            "switches:",
        ]
        for leaf, hosts in enumerate(names(sizes)):
            rate = len(hosts) * NODE / OVERSUBSCRIBED if self.uplinks != "equal" else mean
            listed = format_hostlist(hosts)
            lines.append(f"  - {{name: leaf{leaf}, hosts: '{listed}', bandwidth: {rate:.0f} B/s}}")
        return "\n".join(lines)


def _level(name: str, size: int, rate: float, more: str) -> str:
    link = f"{{kind: switch, bandwidth: {rate:.0f} B/s, {more}}}"
    return f"  - {{name: {name}, size: {size}, link: {link}}}"


def leaf_sizes(seed: int, nodes: int, leaves: int) -> tuple[int, ...]:
    """A random composition of the number of nodes, none of its parts far above the mean."""
    draw = random.Random(seed)
    while True:
        cuts = sorted(draw.sample(range(1, nodes), leaves - 1))
        sizes = tuple(b - a for a, b in zip([0, *cuts], [*cuts, nodes], strict=True))
        if max(sizes) <= SHARE * nodes / leaves:
            return sizes


def names(sizes: tuple[int, ...]) -> list[list[str]]:
    """The hosts of each leaf: racks of successive numbers, dealt to the leaves in turn."""
    found: list[list[str]] = [[] for _ in sizes]
    number = 0
    while number < sum(sizes):
        for leaf, size in enumerate(sizes):
            for _ in range(min(RACK, size - len(found[leaf]))):
                found[leaf].append(f"n{number:04}")
                number += 1
    return found


def jobs(size: Size) -> Iterator[Job]:
    """The jobs of a size."""
    for seed in SEEDS:
        grids = size.grids if size.every else (size.grids[seed % len(size.grids)],)
        pairs = [(weight, uplinks) for weight in WEIGHTS for uplinks in UPLINKS]
        for weight, uplinks in pairs if size.every else [pairs[seed % len(pairs)]]:
            yield from (Job(size, seed, grid, weight, uplinks) for grid in grids)
