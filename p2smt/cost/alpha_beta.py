"""Alpha-beta time of steps and programs on a topology.

All groups of a step run together.  Its time is the worst link's load over its bandwidth, plus
the latencies of its steps, each paid at one level, plus what its library takes for a call.  A
topology without a library runs the fastest of its algorithms; with one, what that library would
choose (:mod:`p2smt.cost.library`).  Every objective that a solver reports is recomputed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from p2smt.cluster.topology import LinkKind, Piece, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.algorithms import Operation, Rule, rules
from p2smt.cost.library.ways import library_model
from p2smt.cost.loads.footprint import Digits, regular_footprint, send_footprint
from p2smt.cost.loads.level_use import Footprint, LevelUse
from p2smt.cost.step_time import StepCostModel, Way
from p2smt.programs.program import Grouping


def step_model(topology: Topology, footprint: Footprint, operation: Operation) -> StepCostModel:
    """The ways in which the groups of a footprint can run an operation."""
    if all(max(profile) == 1 for profile in footprint.profiles):
        silent = (0.0,) * len(topology.levels)
        return StepCostModel((Way("none", "", 0, 0.0, 0.0, None, 0.0, silent),))
    if topology.library:
        return library_model(topology, footprint, operation)
    collective = operation if isinstance(operation, Collective) else None
    crossed = [
        j
        for j in range(len(topology.levels))
        if any(profile[j] > 1 for profile in footprint.profiles)
    ]
    names = dict.fromkeys(
        piece.name for j in crossed for piece in topology.levels[j].link.pieces_for(collective)
    )
    return StepCostModel(
        tuple(
            _way(topology, footprint, algorithm, rule, name, collective)
            for algorithm, rule in rules(topology, footprint, operation)
            for name in names
        )
    )


def _piece(topology: Topology, level: int, name: str, collective: Collective | None) -> Piece:
    """A level's piece of that protocol; a level without it uses its first piece."""
    pieces = topology.levels[level].link.pieces_for(collective)
    return next((p for p in pieces if p.name == name), pieces[0])


def _way(
    topology: Topology,
    footprint: Footprint,
    algorithm: str,
    rule: Rule,
    protocol: str,
    collective: Collective | None,
) -> Way:
    pieces = [_piece(topology, j, protocol, collective) for j in range(len(topology.levels))]
    latency = max(
        sum(n * piece.latency_s for n, piece in zip(steps, pieces, strict=True))
        for steps in rule.latencies(footprint)
    )
    worst: tuple[float, int | None, float] = (0.0, None, 0.0)
    by_level = [0.0] * len(pieces)
    for use in footprint.uses:
        load, seconds = _load(topology, use, rule, pieces[use.level].bandwidth_bytes_per_s)
        worst = max(worst, (seconds, use.level, load), key=lambda found: found[0])
        by_level[use.level] = seconds
    passes = 0 if not rule.pipelined else 2 if collective is Collective.ALL_REDUCE else 1
    return Way(algorithm, protocol, passes, latency, *worst, tuple(by_level))


def _load(topology: Topology, use: LevelUse, rule: Rule, bandwidth: float) -> tuple[float, float]:
    """Bytes on the worst link and seconds, both per payload byte."""
    link = topology.levels[use.level].link
    load = rule.load(use, link.kind)
    seconds = load / bandwidth
    if link.device_bandwidth_bytes_per_s:
        seconds = max(seconds, rule.drawn(use, link.kind) / link.device_bandwidth_bytes_per_s)
    return load, seconds


@lru_cache(maxsize=65_536)
def regular_model(
    topology: Topology, digits: tuple[Digits, ...], grouping: Grouping, operation: Operation
) -> StepCostModel:
    """The step model of an instruction on the groups of a parallelism matrix.

    Scenes that differ only where the instruction's groups stay put share one model.
    """
    return _acting_model(topology, *_acting(digits, grouping), operation)


def _acting(digits: tuple[Digits, ...], grouping: Grouping) -> tuple[tuple[Digits, ...], Grouping]:
    """The same groups, without the digits of levels where every device takes part by itself.

    Whatever lies there, a step's groups are spread over all devices of such a level
    (:func:`p2smt.cost.loads.footprint.regular_footprint`).
    """
    split = [j for j, level in enumerate(digits) if level]
    inner = len(split) if grouping.master else grouping.inner
    kept = set(split[grouping.outer : inner])
    acting = tuple(level if j in kept else () for j, level in enumerate(digits))
    return acting, Grouping(0, grouping.inner - grouping.outer, grouping.master)


@lru_cache(maxsize=65_536)
def _acting_model(
    topology: Topology, digits: tuple[Digits, ...], grouping: Grouping, operation: Operation
) -> StepCostModel:
    return step_model(topology, _cached_footprint(topology, digits, grouping), operation)


@lru_cache(maxsize=65_536)
def _cached_footprint(
    topology: Topology, digits: tuple[Digits, ...], grouping: Grouping
) -> Footprint:
    return regular_footprint(topology, digits, grouping)


@lru_cache(maxsize=65_536)
def send_model(
    topology: Topology, digits: tuple[Digits, ...], operation: Operation
) -> StepCostModel:
    """The step model of a send to the next rank along the digits' axis."""
    return step_model(topology, send_footprint(topology, digits), operation)


def relevant_digits(topology: Topology, digits: Sequence[Digits]) -> tuple[Digits, ...]:
    """Digits with strides dropped where the cost does not depend on them.

    Positions matter under an entity with more than one port but fewer than devices, and
    between the siblings of a ring, torus or full mesh; elsewhere only the counts do.
    """
    sensitive = False
    found: list[Digits] = []
    for j, level in enumerate(topology.levels):
        link = level.link
        here = link.kind is not LinkKind.SWITCH
        found.append(digits[j] if sensitive or here else _counts(level.size, digits[j]))
        sensitive |= 1 < link.ports < topology.devices_under(j)
    return tuple(found)


def _counts(size: int, digits: Digits) -> Digits:
    total = math.prod(count for count, _ in digits)
    return ((total, size // total),) if total > 1 else ()
