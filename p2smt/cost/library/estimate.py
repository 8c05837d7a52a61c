"""The times by which a formula chooses: latency and bandwidth of one way for a group.

Each function is one part of ``ncclTopoTuneModel`` (NVIDIA/nccl, src/graph/tuning.cc); which
constants a version has is data.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cluster.topology import Algorithm
from p2smt.cost.library.formula import Formula
from p2smt.cost.library.graphs import (
    Channels,
    GroupShape,
    generation_of,
    nvls_channels,
    ring_channels,
    tree_channels,
)

_SIMPLE = "simple"
FIRST_BYTES = 64
"""Bytes that the first factor of a correction stands for."""
_IN_SWITCH = (Algorithm.NVLS, Algorithm.NVLS_TREE)
_CHAINS = ("reduce", "broadcast")


@dataclass(frozen=True, slots=True)
class EstimatedTime:
    """A way's time by the formula: seconds, and seconds per byte of payload.

    ``factors`` multiply the bandwidth from 64 bytes on, doubling; from ``plateau_bytes`` on the
    latency is ``plateau`` times as large.
    """

    latency_s: float
    seconds_per_byte: float
    factors: tuple[float, ...] = ()
    plateau_bytes: float = float("inf")
    plateau: float = 1.0

    def seconds(self, payload: float) -> float:
        """The estimated time for a payload in bytes."""
        size = int(payload) // FIRST_BYTES
        k = size.bit_length() - 1
        factor = self.factors[k] if 0 <= k < len(self.factors) else 1.0
        latency = self.latency_s * (self.plateau if payload >= self.plateau_bytes else 1.0)
        return latency + payload * self.seconds_per_byte / factor


def estimate(
    formula: Formula, algorithm: Algorithm, protocol: str, operation: str, shape: GroupShape
) -> EstimatedTime | None:
    """What a formula says of one way; None: nothing, or that there is no bandwidth for it."""
    if all((hop[1], hop[2]) != (algorithm, protocol) for hop, _ in formula.hops):
        return None
    rate = _rate(formula, algorithm, protocol, operation, shape)
    if rate <= 0:
        return None
    latency = _latency(formula, algorithm, protocol, operation, shape)
    factors = _factors(formula, algorithm, protocol, operation, shape)
    found = EstimatedTime(latency, 1 / rate, factors)
    flat = formula.plateau
    if flat is None or (algorithm, protocol, operation) != (Algorithm.RING, _SIMPLE, "all-reduce"):
        return found
    if shape.nodes == 1:
        return found
    channels = 2 * ring_channels(formula, shape).count
    start = shape.members * (flat.bytes_per_rank + channels * flat.bytes_per_channel_and_rank)
    factor = dict(flat.factors).get(generation_of(formula, shape), 1.0)
    return EstimatedTime(latency, 1 / rate, factors, start, factor)


def _rate(
    formula: Formula, algorithm: Algorithm, protocol: str, operation: str, shape: GroupShape
) -> float:
    """Bytes of payload per second, without latency and correction."""
    if algorithm in _IN_SWITCH:
        return _in_switch_rate(formula, algorithm, operation, shape)
    ring = algorithm is Algorithm.RING
    channels = (ring_channels if ring else tree_channels)(formula, shape)
    bus = channels.count * (channels.inside if shape.nodes <= 2 else channels.outside)
    generation = generation_of(formula, shape)
    bus = min(bus, dict(formula.most_bus).get(generation, bus))
    for scaling in formula.scalings:
        if scaling.algorithm is algorithm and scaling.holds(
            protocol, operation, shape.nodes, shape.local
        ):
            bus *= scaling.factor
            if scaling.cap:
                parts = channels.count if scaling.per_channel else 1
                bus = min(bus, parts * _cap(formula, scaling.cap, generation, shape.nodes))
    return bus * _of_bus(algorithm, operation, shape.members)


def _of_bus(algorithm: Algorithm, operation: str, p: int) -> float:
    """The algorithm's bandwidth by the bus's: a ring moves each byte so many times per link."""
    if algorithm is Algorithm.RING:
        return p / _steps(operation, p)
    return 0.5 if operation == "all-reduce" else 1.0


def _steps(operation: str, p: int) -> int:
    if operation == "all-reduce":
        return 2 * (p - 1)
    return p if operation in _CHAINS else p - 1


def _in_switch_rate(
    formula: Formula, algorithm: Algorithm, operation: str, shape: GroupShape
) -> float:
    nvls = formula.nvls
    channels = nvls_channels(formula, shape)
    if nvls is None or channels.count < 2:
        return 0.0
    if not nvls.of_bus:
        return channels.count * _halves(algorithm, shape, channels) * nvls.ratio
    generation, c = generation_of(formula, shape), channels.count
    inside = channels.inside * dict(nvls.efficiency).get(generation, 0.0) * (c - 1) / c
    inside *= 2 if operation == "all-reduce" else (shape.local - 1) / shape.local
    outside = channels.outside
    rate = min(inside, outside)
    if algorithm is Algorithm.NVLS_TREE:
        outside *= 2 if shape.nodes <= 2 else 1
        rate = min(inside, outside, _cap(formula, "nvls-tree", generation, shape.nodes))
    if operation == "all-reduce":
        return c * rate * shape.members / _steps(operation, shape.members)
    return c * rate


def _halves(algorithm: Algorithm, shape: GroupShape, channels: Channels) -> float:
    """Before NCCL 2.28: on more than two nodes each channel goes up and down the same card."""
    shared = 2 if algorithm is Algorithm.NVLS_TREE and shape.nodes > 2 else 1
    return min(channels.inside, channels.outside / shared)


def _cap(formula: Formula, name: str, generation: str, nodes: int) -> float:
    table = dict(dict(formula.caps).get(name, ()))
    triple = table.get(generation)
    return float("inf") if triple is None else triple[min(nodes, 3) - 1]


def _latency(
    formula: Formula, algorithm: Algorithm, protocol: str, operation: str, shape: GroupShape
) -> float:
    hops, base = dict(formula.hops), dict(formula.base)
    near = formula.hardware_of(shape.inside, across=False)
    far = formula.hardware_of(shape.outside, across=True)
    row = Algorithm.TREE if formula.alone_as_tree and shape.local == 1 else algorithm
    inside = hops.get((near.row, algorithm, protocol), 0.0)
    outside = hops.get((far.row, row, protocol), 0.0)
    outside = _reported(formula, far.latency_s, outside, protocol)
    if shape.nodes > 1 and protocol == "ll":
        inside *= formula.ll_inside
    start, rounds = base.get((algorithm, protocol), 0.0), shape.nodes.bit_length() - 1
    match algorithm:
        case Algorithm.RING if operation in _CHAINS:
            place = near.row if shape.nodes == 1 else far.row
            if near.one_order:
                return start + hops.get((place, algorithm, protocol), 0.0)
            chunk = Algorithm.TREE if protocol == _SIMPLE else algorithm
            return start + shape.members * hops.get((place, chunk, protocol), 0.0)
        case Algorithm.RING:
            return start + _ring_latency(formula, protocol, operation, shape, inside, outside)
        case Algorithm.TREE:
            per_node = shape.members // shape.nodes
            return start + 2 * ((per_node - 1) * inside + rounds * outside)
        case Algorithm.NVLS:
            return start + inside + (outside if shape.nodes > 1 else 0.0)
        case Algorithm.NVLS_TREE:
            return start + inside + 2 * rounds * outside
        case _:
            linear = shape.members * formula.pat_per_rank_s
            return start + rounds * outside * formula.pat_hop_part + linear


def _reported(formula: Formula, driver_s: float, hop_s: float, protocol: str) -> float:
    """A hop between nodes with what the network's driver says of itself."""
    if formula.driver_replaces:
        return driver_s or hop_s
    return hop_s + driver_s * (2 if protocol == _SIMPLE else 1)  # twice: the flush


def _ring_latency(
    formula: Formula,
    protocol: str,
    operation: str,
    shape: GroupShape,
    inside: float,
    outside: float,
) -> float:
    steps = _steps(operation, shape.members)
    if shape.nodes == 1:
        return steps * inside
    between = shape.nodes - 1
    if operation == "all-reduce":
        between = 2 * (shape.nodes if formula.rounds_by_node else shape.nodes - 1)
    least = formula.overhead_s * (3 if protocol == _SIMPLE else 1)
    return (steps - between) * max(inside, least) + between * outside


def _factors(
    formula: Formula, algorithm: Algorithm, protocol: str, operation: str, shape: GroupShape
) -> tuple[float, ...]:
    generation = generation_of(formula, shape)
    for one in formula.corrections:
        if (
            (one.algorithm, one.protocol) == (algorithm, protocol)
            and (not one.generations or generation in one.generations)
            and (not one.several or shape.nodes > 1)
            and (operation == "all-reduce" or algorithm is Algorithm.RING)
        ):
            return one.factors
    return ()
