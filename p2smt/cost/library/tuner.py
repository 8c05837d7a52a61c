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
    Pat,
    SizeThresholds,
)
from p2smt.cluster.topology import Algorithm
from p2smt.cost.library.channels import Channels, ChannelsFound, GroupShape, near, search


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

    def behind(self, algorithm: str, payload: float) -> float | None:
        """How much longer than what it runs the library estimates an algorithm, as a part of that.

        None: it does not choose by estimates here, or has none of this algorithm.
        """
        if any(payload <= up_to for up_to, _ in self.rungs):
            return None
        found = [(self.ways[at].algorithm, one.seconds(payload)) for at, one in self.estimates]
        own = [seconds for one, seconds in found if one and one.value == algorithm]
        return min(own) / min(seconds for _, seconds in found) - 1 if own else None


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
    channels = search(formula, shape)
    found = [
        (index, _estimate(formula, way.algorithm, way.protocol, operation, channels))
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
            and ladder.holds(shape.members)
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


_SIMPLE, _LL128, _PCI = "simple", "ll128", "pci"
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
    return _estimate(formula, algorithm, protocol, operation, search(formula, shape))


def _estimate(
    formula: Formula, algorithm: Algorithm, protocol: str, operation: str, found: ChannelsFound
) -> EstimatedTime | None:
    if all((hop[1], hop[2]) != (algorithm, protocol) for hop, _ in formula.hops):
        return None
    if protocol == _LL128 and not _ll128_runs(formula, found):
        return None
    rate = _rate(formula, algorithm, protocol, operation, found)
    if rate <= 0:
        return None
    latency = _latency(formula, algorithm, protocol, operation, found.shape)
    factors = _factors(formula, algorithm, protocol, operation, found)
    time, flat = EstimatedTime(latency, 1 / rate, factors), formula.plateau
    if flat is None or (algorithm, protocol, operation) != (Algorithm.RING, _SIMPLE, "all-reduce"):
        return time
    if found.shape.nodes == 1:
        return time
    each = flat.bytes_per_rank + found.served * flat.bytes_per_channel_and_rank
    factor = dict(flat.factors).get(found.generation, 1.0)
    return EstimatedTime(latency, 1 / rate, factors, found.shape.members * each, factor)


def _ll128_runs(formula: Formula, found: ChannelsFound) -> bool:
    """Whether every link that a channel passes keeps the order which LL128 relies on."""
    inside = found.shape.local == 1 or near(formula, found.shape).row != _PCI
    return inside and found.near_cards


def _rate(
    formula: Formula, algorithm: Algorithm, protocol: str, operation: str, found: ChannelsFound
) -> float:
    """Bytes of payload per second, without latency and correction."""
    if algorithm in _IN_SWITCH:
        return _in_switch_rate(formula, algorithm, operation, found)
    shape, channels = found.shape, found.rings if algorithm is Algorithm.RING else found.trees
    bus = channels.count * (channels.inside if shape.nodes <= 2 else channels.outside)
    bus = min(bus, dict(formula.most_bus).get(found.generation, bus))
    for scaling in formula.scalings:
        if (
            scaling.algorithm is algorithm
            and scaling.holds(protocol, operation, shape.nodes, shape.local)
            and (found.plain_tree or not scaling.plain)
        ):
            bus *= scaling.factor
            if scaling.cap:
                parts = channels.count if scaling.per_channel else 1
                bus = min(bus, parts * _cap(formula, scaling.cap, found))
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
    formula: Formula, algorithm: Algorithm, operation: str, found: ChannelsFound
) -> float:
    nvls, channels, shape = formula.nvls, found.nvls, found.shape
    if nvls is None or channels.count < 2:
        return 0.0
    if not nvls.of_bus:
        return channels.count * _halves(algorithm, shape, channels) * nvls.ratio
    c = channels.count
    inside = channels.inside * dict(nvls.efficiency).get(found.generation, 0.0) * (c - 1) / c
    inside *= 2 if operation == "all-reduce" else (shape.local - 1) / shape.local
    outside = channels.outside
    rate = min(inside, outside)
    if algorithm is Algorithm.NVLS_TREE:
        outside *= 2 if shape.nodes <= 2 else 1
        rate = min(inside, outside, _cap(formula, "nvls-tree", found))
    if operation == "all-reduce":
        return c * rate * shape.members / _steps(operation, shape.members)
    return c * rate


def _halves(algorithm: Algorithm, shape: GroupShape, channels: Channels) -> float:
    """Before NCCL 2.28: on more than two nodes each channel goes up and down the same card."""
    shared = 2 if algorithm is Algorithm.NVLS_TREE and shape.nodes > 2 else 1
    return min(channels.inside, channels.outside / shared)


def _cap(formula: Formula, name: str, found: ChannelsFound) -> float:
    table = dict(dict(formula.caps).get(name, ()))
    keys = (found.generation, found.shape.cpu, "other")
    triple = next((table[key] for key in keys if key in table), None)
    return math.inf if triple is None else triple[min(found.shape.nodes, 3) - 1]


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
            pat = formula.pat or Pat(0.0, 0.0)
            return start + rounds * outside * pat.hop_part + shape.members * pat.per_rank_s


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
    overhead = {str(cpu): s for cpu, s in formula.overhead_on}.get(shape.cpu, formula.overhead_s)
    least = overhead * (3 if protocol == _SIMPLE else 1)
    return (steps - between) * max(inside, least) + between * outside


def _factors(
    formula: Formula, algorithm: Algorithm, protocol: str, operation: str, found: ChannelsFound
) -> tuple[float, ...]:
    for one in formula.corrections:
        if (
            (one.algorithm, one.protocol) == (algorithm, protocol)
            and (not one.generations or found.generation in one.generations)
            and (not one.several or found.shape.nodes > 1)
            and found.shape.cpu not in one.unless_cpus
            and (operation == "all-reduce" or algorithm is Algorithm.RING)
        ):
            return one.factors
    return ()
