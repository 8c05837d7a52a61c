"""The tuner: which algorithm and protocol a library runs for groups of one shape.

By thresholds of sizes, or by times that its formula estimates: latency and bandwidth of one way for
a group.  Each function of these is one part of ``ncclTopoTuneModel`` (NVIDIA/nccl,
src/graph/tuning.cc); which constants a version has is data (:mod:`p2smt.cluster.library.model`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from p2smt.cluster.library.model import (
    Formula,
    Library,
    LibraryAlgorithm,
    LibraryRun,
    SizeThresholds,
)
from p2smt.cluster.topology import Algorithm


@dataclass(frozen=True, slots=True)
class LibraryWay:
    """An algorithm (None: messages from peer to peer) with a protocol."""

    algorithm: LibraryAlgorithm | None
    protocol: str


Fits = Callable[[LibraryAlgorithm | None], bool]
"""Whether an algorithm can run on the groups at hand."""


def _fits(_: LibraryAlgorithm | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class LibraryChoice:
    """A library's choice for groups of one shape, by payload alone.

    ``ways`` are all that can run.  ``rungs`` are (up to so many bytes, index of a way), ascending;
    beyond them the least of ``estimates`` is taken, the first of equal ones; where nothing is
    estimated, the last rung's way, or the first.
    """

    ways: tuple[LibraryWay, ...]
    rungs: tuple[tuple[float, int], ...] = ()
    estimates: tuple[tuple[int, EstimatedTime], ...] = ()

    def pick(self, payload: float) -> int:
        """The index in ``ways`` of what the library runs for so many bytes per device."""
        for up_to, index in self.rungs:
            if payload <= up_to:
                return index
        if not self.estimates:
            return self.rungs[-1][1] if self.rungs else 0
        return min(self.estimates, key=lambda one: one[1].seconds(payload))[0]


def chooser(
    library: Library,
    operation: str,
    shape: GroupShape,
    allowed: tuple[Algorithm, ...] | None = None,
    fits: Fits = _fits,
) -> LibraryChoice:
    """How a library chooses for groups of this shape; at least one way.

    ``allowed``: only these algorithms, where they can run; a ring where none can.  ``fits`` leaves
    out those that cannot.  A formula estimates none that was added: a ladder names it, or it is the
    first of ``runs`` where there is no formula.
    """
    ways = ways_of(library, operation, shape, allowed, fits)
    ladder = _ladder(library, operation, shape)
    rungs = () if ladder is None else _rungs(ladder, ways, shape)
    formula = library.formula
    if formula is None or (rungs and math.isinf(rungs[-1][0])):
        return LibraryChoice(ways, rungs)
    found = [
        (index, estimate(formula, way.algorithm, way.protocol, operation, shape))
        for index, way in enumerate(ways)
        if isinstance(way.algorithm, Algorithm)
    ]
    return LibraryChoice(ways, rungs, tuple((i, one) for i, one in found if one is not None))


def ways_of(
    library: Library,
    operation: str,
    shape: GroupShape,
    allowed: tuple[Algorithm, ...] | None = None,
    fits: Fits = _fits,
) -> tuple[LibraryWay, ...]:
    """Every algorithm and protocol with which a library can run an operation on such groups.

    ``allowed`` restricts the algorithms; where it leaves none, a ring runs, or else the first.
    ``fits`` leaves out those that cannot run.
    """
    runs = [r for r in library.runs_of(operation) if _applies(r, shape) and fits(r.algorithm)]
    wanted = [r for r in runs if r.algorithm is None or allowed is None or r.algorithm in allowed]
    rings = [run for run in runs if run.algorithm is Algorithm.RING]
    chosen = wanted or rings or runs[:1] or [LibraryRun(Algorithm.RING, ("simple",))]
    return tuple(LibraryWay(run.algorithm, name) for run in chosen for name in run.protocols)


def _applies(run: LibraryRun, shape: GroupShape) -> bool:
    return (
        run.nodes.holds(shape.nodes)
        and shape.members >= run.least_members
        and (not run.one_rank_per_node or shape.local == 1)
        and run.fits_node(shape.local)
        and (not run.in_switch or (shape.in_switch and shape.local > 1))
    )


def _ladder(library: Library, operation: str, shape: GroupShape) -> SizeThresholds | None:
    for ladder in library.ladders:
        if (
            ladder.operation == operation
            and ladder.nodes.holds(shape.nodes)
            and ladder.members in (0, shape.members)
            and (not ladder.fabrics or shape.inside in ladder.fabrics)
        ):
            return ladder
    return None


def _rungs(
    ladder: SizeThresholds, ways: tuple[LibraryWay, ...], shape: GroupShape
) -> tuple[tuple[float, int], ...]:
    """The ladder's rungs among the ways; one that is not allowed is left out."""
    size = shape.members if ladder.per_peer else 1
    return tuple(
        (rung.up_to_bytes * size, ways.index(LibraryWay(rung.algorithm, rung.protocol)))
        for rung in ladder.rungs
        if LibraryWay(rung.algorithm, rung.protocol) in ways
    )


# The times by which a formula chooses.


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


# The channels that a library finds for a group: how many, and what each carries.
# After NCCL's search (src/graph/search.cc): of a list of rates per channel the one with the largest
# sum is taken that the devices' links and the nodes' cards carry.


@dataclass(frozen=True, slots=True)
class GroupShape:
    """What a rule of choice knows of a group.

    ``members`` on ``nodes`` nodes, at most ``local`` on one.  ``device_bytes_per_s`` is the nominal
    rate of a member's links inside a node, together and in one direction, as far as the group uses
    them; ``node_bytes_per_s`` that of the ``cards`` which the members in one node reach.
    ``in_switch``: the switches inside a node reduce.
    """

    members: int
    nodes: int
    local: int
    inside: str
    outside: str
    device_bytes_per_s: float
    node_bytes_per_s: float = 0.0
    cards: int = 1
    in_switch: bool = False


@dataclass(frozen=True, slots=True)
class Channels:
    """So many channels, each of this rate inside a node and between nodes, in bytes per second."""

    count: int
    inside: float
    outside: float


def ring_channels(formula: Formula, shape: GroupShape) -> Channels:
    """The channels of rings."""
    total = _inside_rate(formula, shape)
    if shape.nodes == 1:
        rate, count = _widest(formula, shape, total)
        found = Channels(count, rate, rate)
    else:
        count, card = _cards(shape)
        limit = card if shape.local == 1 else min(card, total / count)
        rate = _at_most(_speeds(formula, shape, outside=True), limit)
        found = Channels(count, rate, rate)
    return _doubled(formula, shape, found)


def tree_channels(formula: Formula, shape: GroupShape) -> Channels:
    """Those of trees: across nodes a channel inside may carry up to twice what leaves the node."""
    found = ring_channels(formula, shape)
    if shape.nodes == 1 or shape.local == 1:
        return found
    limit = _inside_rate(formula, shape) / found.count
    wider = [s for s in _speeds(formula, shape) if found.outside <= s <= limit]
    fitting = [s for s in wider if s < 2 * found.outside]
    return Channels(found.count, max(fitting, default=found.inside), found.outside)


def nvls_channels(formula: Formula, shape: GroupShape) -> Channels:
    """Those of the reduction by switches: one per member, which needs two parts of its links."""
    count = min(shape.local, formula.search.channels)
    limit = _inside_rate(formula, shape) / (count + 1)
    inside = _at_most(_speeds(formula, shape), limit)
    if shape.nodes == 1:
        return Channels(count, inside, max(_speeds(formula, shape), default=inside))
    card = shape.node_bytes_per_s / count
    return Channels(count, inside, _at_most(_speeds(formula, shape, outside=True), card))


def generation_of(formula: Formula, shape: GroupShape) -> str:
    """The generation of the devices, by the fabric that joins them."""
    return formula.hardware_of(shape.inside, across=False).generation


def _inside_rate(formula: Formula, shape: GroupShape) -> float:
    """What the library takes a device's links inside a node for."""
    return shape.device_bytes_per_s * formula.hardware_of(shape.inside, across=False).known


def _speeds(formula: Formula, shape: GroupShape, *, outside: bool = False) -> tuple[float, ...]:
    lists = formula.search.outside if outside else formula.search.inside
    return dict(lists).get(generation_of(formula, shape), ())


def _widest(formula: Formula, shape: GroupShape, total: float) -> tuple[float, int]:
    """Rate and number of channels of the largest sum; of equal ones the fewest."""
    most = formula.search.channels
    tried = [(s, min(most, int(total / s))) for s in _speeds(formula, shape) if s <= total]
    return max(tried, key=lambda found: (found[0] * found[1], found[0]), default=(total, 1))


def _cards(shape: GroupShape) -> tuple[int, float]:
    """Channels between nodes, at most one per member of a node, and the rate of each."""
    count = max(1, min(shape.cards, shape.local))
    return count, shape.node_bytes_per_s / count


def _at_most(speeds: tuple[float, ...], limit: float) -> float:
    """The largest rate that is at most ``limit`` (or a billionth above: it was divided)."""
    return max((s for s in speeds if s <= limit * (1 + 1e-9)), default=limit)


def _doubled(formula: Formula, shape: GroupShape, found: Channels) -> Channels:
    """Wide channels are split in two, so that more threads serve them."""
    search, limit = formula.search, formula.search.twice_from
    if generation_of(formula, shape) in search.not_twice and found.count > 4:
        limit *= 2
    if found.inside < limit:
        return found
    return Channels(2 * found.count, found.inside / 2, found.outside / 2)
