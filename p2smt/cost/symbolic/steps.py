"""Symbolic costs of steps and programs on a scene, by the rules of the numeric model.

The rules (:mod:`p2smt.cost.algorithms`) say what each algorithm sends and the footprint how that
meets on links, so the numeric model differs in nothing but the numbers put in.  A protocol of a
link other than its first has latency and bandwidth by their ratios to the first one's.  What a
library runs, and when, is in :mod:`p2smt.cost.symbolic.library`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from p2smt.cluster.topology import Link, Piece, Topology
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.cost.algorithms import Operation, Rule, rules
from p2smt.cost.loads.footprint import Digits, regular_footprint, send_footprint
from p2smt.cost.loads.level_use import Footprint
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.exact import decimal, exact
from p2smt.cost.symbolic.form import (
    FillTerm,
    LinkNumbers,
    Rationals,
    SymbolicCost,
    SymbolicStep,
    SymbolicWay,
)
from p2smt.cost.symbolic.library import library_numbers, library_step
from p2smt.errors import InputError
from p2smt.programs.program import Grouping, Program


def symbolic_program(scene: Scene, program: Program, payload_rows: Sequence[int]) -> SymbolicCost:
    """What a program costs on a scene; ``payload_rows`` of the k rows are a step's payload.

    Raises:
        InputError: different groups of a step pay latencies of different levels.
    """
    hierarchy, steps = scene.hierarchy, []
    for instruction, rows in zip(program.instructions, payload_rows, strict=True):
        grouping = hierarchy.grouping(instruction)
        step = symbolic_step(scene.topology, scene.digits, grouping, instruction.collective)
        share = Fraction(rows, hierarchy.size)
        steps.append(replace(step.of_share(share), text=str(instruction)))
    return SymbolicCost(scene.topology.names, tuple(steps))


def symbolic_fixed(scene: Scene, kind: RequestKind) -> SymbolicCost:
    """What an all-to-all or a send costs, or the single collective of other requests.

    Raises:
        InputError: as :func:`symbolic_program`.
    """
    topology = scene.topology
    if kind is RequestKind.SEND:
        step = _step(topology, send_footprint(topology, scene.digits), RequestKind.SEND)
    else:
        operation = DIRECT.get(kind, RequestKind.ALL_TO_ALL)
        whole = Grouping(0, scene.hierarchy.depth)
        step = symbolic_step(topology, scene.digits, whole, operation)
    return SymbolicCost(topology.names, (replace(step, text=kind.value),))


def numbers_of(topology: Topology) -> LinkNumbers:
    """The numbers that the symbols of a topology stand for."""
    return library_numbers(topology) if topology.library else LinkNumbers.of(topology)


@lru_cache(maxsize=16_384)
def symbolic_step(
    topology: Topology, digits: tuple[Digits, ...], grouping: Grouping, operation: Operation
) -> SymbolicStep:
    """The ways to run an operation on groups, for a payload of all of n; none: nothing is sent."""
    return _step(topology, regular_footprint(topology, digits, grouping), operation)


def step_ways(
    topology: Topology, digits: tuple[Digits, ...], grouping: Grouping, operation: Operation
) -> tuple[SymbolicWay, ...]:
    """The ways of :func:`symbolic_step`."""
    return symbolic_step(topology, digits, grouping, operation).ways


def _step(topology: Topology, footprint: Footprint, operation: Operation) -> SymbolicStep:
    if all(max(profile) == 1 for profile in footprint.profiles):
        return SymbolicStep(operation.value, ())
    if topology.library:
        return library_step(topology, footprint, operation)
    return SymbolicStep(operation.value, _ways(topology, footprint, operation))


def _ways(
    topology: Topology, footprint: Footprint, operation: Operation
) -> tuple[SymbolicWay, ...]:
    collective = operation if isinstance(operation, Collective) else None
    crossed = [
        level.link
        for j, level in enumerate(topology.levels)
        if any(profile[j] > 1 for profile in footprint.profiles)
    ]
    names = dict.fromkeys(p.name for link in crossed for p in link.pieces_for(collective))
    found = [
        _way(topology, footprint, algorithm, rule, name, collective)
        for algorithm, rule in rules(topology, footprint, operation)
        for name in names
    ]
    return tuple(dict.fromkeys(found))


def _way(
    topology: Topology,
    footprint: Footprint,
    algorithm: str,
    rule: Rule,
    protocol: str,
    collective: Collective | None,
) -> SymbolicWay:
    links = [level.link for level in topology.levels]
    pieces = [_piece(link, protocol, collective) for link in links]
    slower = tuple(map(_latency_ratio, links, pieces))
    steps = _one_latency(rule, footprint, algorithm)
    latency = tuple(n * ratio for n, ratio in zip(steps, slower, strict=True))
    loads = [Fraction(0)] * len(links)
    for use in footprint.uses:
        link, j = links[use.level], use.level
        first = decimal(link.pieces[0].bandwidth_bytes_per_s)
        loads[j] = exact(rule.load(use, link.kind)) * first
        loads[j] /= decimal(pieces[j].bandwidth_bytes_per_s)
        if link.device_bandwidth_bytes_per_s:
            drawn = exact(rule.drawn(use, link.kind)) * first
            loads[j] = max(loads[j], drawn / decimal(link.device_bandwidth_bytes_per_s))
    if rule.pipelined:
        return _pipelined(algorithm, protocol, latency, tuple(loads))
    return SymbolicWay(algorithm, protocol, latency, tuple(loads))


def _pipelined(algorithm: str, protocol: str, latency: Rationals, loads: Rationals) -> SymbolicWay:
    """Of w to transfer and latencies A: w + 2 A + sqrt(8 w A), as :mod:`p2smt.cost.step_time` has
    it of each pass."""
    rows = [
        tuple(a if j == k else Fraction(0) for k in range(len(latency)))
        for j, a in enumerate(latency)
    ]
    fill = FillTerm(Fraction(8), loads, tuple(row for row in rows if any(row)))
    twice = tuple(2 * a for a in latency)
    return SymbolicWay(algorithm, protocol, twice, loads, fill=fill if fill.stages else None)


def _piece(link: Link, name: str, collective: Collective | None) -> Piece:
    """A link's piece of that protocol; one without it uses its first."""
    pieces = link.pieces_for(collective)
    return next((piece for piece in pieces if piece.name == name), pieces[0])


def _latency_ratio(link: Link, piece: Piece) -> Fraction:
    """A protocol's latency over that of the link's first, which is its symbol."""
    first = link.pieces[0].latency_s
    if first:
        return decimal(piece.latency_s) / decimal(first)
    if piece.latency_s:
        rule = "has a latency, and the link's first protocol none to measure it by"
        raise InputError(f"protocol {piece.name[:40]!r}", rule, "list that with a latency first")
    return Fraction(1)


def _one_latency(rule: Rule, footprint: Footprint, algorithm: str) -> Rationals:
    """The latencies of every group, where one group has the most of them at each level."""
    every = [tuple(map(Fraction, steps)) for steps in rule.latencies(footprint)]
    most = tuple(map(max, zip(*every, strict=True)))
    if most not in every:
        rule_text = "pays latencies of different levels in different groups"
        raise InputError(f"algorithm {algorithm}", rule_text, "ask for a request with programs")
    return most
