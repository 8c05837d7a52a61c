"""Symbolic costs of what a library runs, by the rules that price it (p2smt.cost.library.ways).

The symbols are those of plain steps: c is what a call of an all-reduce inside one node costs,
alpha_j a step of a ring by the simple protocol at level j, beta_j a byte at the nominal rate of one
of its ports or links.  What other calls, steps and protocols cost is by their ratios to these;
where such a number is 0, a second stands for it.  The library chooses among its ways by the payload
alone, and by numbers of its own, so that bounds of its choice are in bytes.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from p2smt.cluster.topology import Link, LinkKind, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.algorithms import Operation, Rule
from p2smt.cost.library.choice import LibraryWay
from p2smt.cost.library.model import ProtocolRate
from p2smt.cost.library.registry import library_of
from p2smt.cost.library.rules import LibraryRule
from p2smt.cost.library.ways import (
    call_parts,
    carried,
    hop_s,
    library_choice,
    paced_hop,
    part_reached,
    rule_of_way,
)
from p2smt.cost.loads.level_use import Footprint, LevelUse
from p2smt.cost.symbolic.exact import decimal, exact
from p2smt.cost.symbolic.form import (
    FillTerm,
    LinkNumbers,
    Rationals,
    SymbolicStep,
    SymbolicWay,
)
from p2smt.cost.symbolic.library_choice import choice_cells
from p2smt.errors import InputError

_SECOND = Fraction(1)
_FILLING = 4
"""The root of a pipeline is of 4 c w A, where c chunks pass before its links are busy."""


def library_numbers(topology: Topology) -> LinkNumbers:
    """The numbers that the symbols stand for under a topology's library."""
    levels = range(len(topology.levels))
    rates = [decimal(level.link.nominal_bytes_per_s) for level in topology.levels]
    latencies = tuple(_reference_hop(topology, j) for j in levels)
    return LinkNumbers(_reference_call(topology), latencies, tuple(1 / rate for rate in rates))


def _reference_call(topology: Topology) -> Fraction:
    return _call(topology, Collective.ALL_REDUCE, nodes=1) or _SECOND


def _reference_hop(topology: Topology, j: int) -> Fraction:
    return decimal(hop_s(topology, j, "simple", "ring")) or _SECOND


def library_step(topology: Topology, footprint: Footprint, operation: Operation) -> SymbolicStep:
    """The ways in which a library runs an operation, and which it takes, by the whole payload.

    Raises:
        InputError: different groups pay latencies of different levels.
    """
    choice = library_choice(topology, footprint, operation)
    cells = () if topology.best else choice_cells(choice)
    used = sorted({cell.way for cell in cells}) if cells else range(len(choice.ways))
    ways = tuple(_way(topology, footprint, operation, choice.ways[index]) for index in used)
    places = {index: place for place, index in enumerate(used)}
    taken = tuple(replace(cell, way=places[cell.way]) for cell in cells)
    return SymbolicStep(operation.value, ways, taken)


def _way(
    topology: Topology, footprint: Footprint, operation: Operation, named: LibraryWay
) -> SymbolicWay:
    library = library_of(topology.library)
    sent = library.sent_for(operation)
    way = carried(topology, footprint, sent, named)
    rule = rule_of_way(topology, footprint, sent, way.algorithm)
    if rule is None:
        given = f"library {library.name}: {way.algorithm} for {operation.value}"
        raise InputError(given, "the cost model has no such algorithm", "remove it from runs")
    hops = tuple(
        _exact_hop(topology, footprint, way, operation, j) for j in range(len(topology.levels))
    )
    loads = _loads(topology, footprint, operation, way, rule)
    calls = _call(topology, operation, footprint.nodes) / _reference_call(topology)
    name = way.algorithm.value if way.algorithm else operation.value
    fill = _fill(topology, rule, hops, loads)
    return SymbolicWay(name, way.protocol, _latency(name, rule, hops), loads, calls, fill)


def _call(topology: Topology, operation: Operation, nodes: int) -> Fraction:
    parts = call_parts(topology, library_of(topology.library), operation.value, nodes)
    own, across, factor = map(decimal, parts)
    return (own + across) * factor


def _exact_hop(
    topology: Topology, footprint: Footprint, way: LibraryWay, operation: Operation, j: int
) -> Fraction:
    """A step at a level in units of its alpha."""
    pace, hop = map(decimal, paced_hop(topology, footprint, way, operation, j))
    return pace * hop / _reference_hop(topology, j)


def _latency(algorithm: str, rule: LibraryRule, hops: Rationals) -> Rationals:
    """The latencies of every group, where one group has the most of them at each level."""
    every = [
        tuple(Fraction(n) * hop for n, hop in zip(steps, hops, strict=True)) for steps in rule.steps
    ]
    most = tuple(map(max, zip(*every, strict=True)))
    if most not in every:
        rule_text = "pays latencies of different levels in different groups"
        raise InputError(f"algorithm {algorithm}", rule_text, "ask for a request with programs")
    return most


def _loads(
    topology: Topology,
    footprint: Footprint,
    operation: Operation,
    way: LibraryWay,
    rule: LibraryRule,
) -> Rationals:
    loads = [Fraction(0)] * len(topology.levels)
    protocol = library_of(topology.library).protocol(way.protocol)
    for use in footprint.uses:
        link = topology.levels[use.level].link
        part = decimal(part_reached(link, way, operation)) * decimal(protocol.efficiency)
        innermost = use.level == len(loads) - 1
        cap = _cap(link, protocol) if innermost else None
        loads[use.level] = _load(link, rule.of(use, topology), use, part, cap)
    return tuple(loads)


def _load(link: Link, side: Rule, use: LevelUse, part: Fraction, cap: Fraction | None) -> Fraction:
    """Seconds of a byte of payload at a level in units of its beta; ``part``: of its bandwidth.

    ``cap``: bytes per second that a protocol leaves a device; it has one link to a switch.
    """
    nominal, switched = decimal(link.nominal_bytes_per_s), link.kind is LinkKind.SWITCH
    rate = nominal * part
    if cap is not None and switched:
        rate = min(rate, cap)
    load = exact(side.load(use, link.kind)) * nominal / rate
    device = link.device_bandwidth_bytes_per_s
    limits = [] if device is None else [decimal(device) * part]
    limits += [cap] if cap is not None and not switched else []
    if limits:
        load = max(load, exact(side.drawn(use, link.kind)) * nominal / min(limits))
    return load


def _cap(link: Link, protocol: ProtocolRate) -> Fraction | None:
    cap = dict(protocol.caps).get(link.fabric)
    return None if cap is None else decimal(cap)


def _fill(
    topology: Topology, rule: LibraryRule, hops: Rationals, loads: Rationals
) -> FillTerm | None:
    """A chunk passes one hop between nodes and one inside, the longest of those crossed."""
    if not rule.filling:
        return None
    node, none = topology.node_level, Fraction(0)
    crossed = {j for steps in rule.steps for j, count in enumerate(steps) if count}
    rows = [
        tuple(hop if j in crossed and (j <= node) == across else none for j, hop in enumerate(hops))
        for across in (True, False)
    ]
    stages = tuple(row for row in rows if any(row))
    if not stages or not any(loads):
        return None
    in_flight = library_of(topology.library).in_flight
    most = None if in_flight == float("inf") else Fraction(in_flight)
    return FillTerm(Fraction(_FILLING * rule.filling), loads, stages, most)
