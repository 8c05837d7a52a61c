"""Symbolic costs of steps and programs on a scene, by the rules of the numeric model.

The rules (:mod:`p2smt.cost.algorithms`) say what each algorithm sends and the footprint how that
meets on links, so the numeric model differs in nothing but the numbers put in.  A protocol of a
link other than its first has latency and bandwidth by their ratios to the first one's.  Further
down: what a library runs, and when.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from p2smt.cluster.library.model import ProtocolRate
from p2smt.cluster.topology import Link, LinkKind, Piece, Topology
from p2smt.collectives.demand import plain_kind
from p2smt.collectives.dispatch import AnyKind
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.cost.algorithms import Operation, Rule, rules
from p2smt.cost.library.tuner import FIRST_BYTES, EstimatedTime, LibraryChoice, LibraryWay
from p2smt.cost.library.ways import (
    LibraryRule,
    call_parts,
    carried,
    hop_s,
    library_choice,
    paced_hop,
    part_reached,
    rule_of_way,
    under_way,
)
from p2smt.cost.loads.footprint import Digits, regular_footprint, send_footprint
from p2smt.cost.loads.level_use import Footprint, LevelUse
from p2smt.cost.scene import Scene
from p2smt.cost.symbolic.form import (
    ChosenCell,
    FillTerm,
    LinkNumbers,
    PayloadLine,
    Rationals,
    SymbolicCost,
    SymbolicStep,
    SymbolicWay,
    decimal,
    exact,
    line_cells,
    simplest,
)
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


def symbolic_fixed(scene: Scene, kind: AnyKind) -> SymbolicCost:
    """What an all-to-all or a send costs, or the single collective of other requests.

    Raises:
        InputError: as :func:`symbolic_program`; a dispatch, whose loads are expected numbers.
    """
    topology, kind = scene.topology, plain_kind(kind, "has no symbolic cost")
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


# Symbolic costs of what a library runs, by the rules that price it (p2smt.cost.library.ways).
# The symbols are those of plain steps: c is what a call of an all-reduce inside one node costs,
# alpha_j a step of a ring by the simple protocol at level j, beta_j a byte at the nominal rate of
# one of its ports or links.  What other calls, steps and protocols cost is by their ratios to
# these; where such a number is 0, a second stands for it.  The library chooses among its ways by
# the payload alone, and by numbers of its own, so that bounds of its choice are in bytes.


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
    ways = tuple(_library_way(topology, footprint, operation, choice.ways[index]) for index in used)
    places = {index: place for place, index in enumerate(used)}
    taken = tuple(replace(cell, way=places[cell.way]) for cell in cells)
    return SymbolicStep(operation.value, ways, taken)


def _library_way(
    topology: Topology, footprint: Footprint, operation: Operation, named: LibraryWay
) -> SymbolicWay:
    library = topology.known_library
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
    parts = call_parts(topology, topology.known_library, operation.value, nodes)
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
    protocol = topology.known_library.protocol(way.protocol)
    for use in footprint.uses:
        link = topology.levels[use.level].link
        reached = part_reached(topology, footprint, way, operation, use.level)
        part = decimal(reached) * decimal(protocol.efficiency)
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
    in_flight = topology.known_library.in_flight
    most = None if in_flight == float("inf") else Fraction(in_flight) * exact(under_way(rule))
    return FillTerm(Fraction(_FILLING * rule.filling), loads, stages, most)


# Where a library's choice changes: cells of the payload with exact bounds.
# The rule (:class:`~p2smt.cost.library.tuner.LibraryChoice`) names a way up to given sizes, and
# beyond these takes the least of estimated times.  Each estimate is a line between sizes at which
# its correction or its plateau changes, so that the cells are those of lines.


def choice_cells(choice: LibraryChoice) -> tuple[ChosenCell, ...]:
    """What the library takes by the bytes of a step, from 0 on; neighbours differ.

    The rule's numbers are floats; each stands for the simplest fraction that it may be.
    """
    at, found = Fraction(0), []
    for up_to, way in choice.rungs:
        high = None if up_to == float("inf") else decimal(up_to)
        if high is None or high > at:
            found.append(ChosenCell(at, high, way))
        if high is None:
            return _merged(found)
        at = max(at, high)
    if not choice.estimates:
        last = choice.rungs[-1][1] if choice.rungs else 0
        return _merged([*found, ChosenCell(at, None, last)])
    return _merged([*found, *_estimated(choice, at)])


def _estimated(choice: LibraryChoice, start: Fraction) -> Iterator[ChosenCell]:
    """The least estimate beyond the rungs; of equal ones the first."""
    estimates = [one for _, one in choice.estimates]
    ends = sorted({end for one in estimates for end in _changes(one) if end > start})
    for low, high in zip([start, *ends], [*ends, None], strict=True):
        inside = low + 1 if high is None else (low + high) / 2
        lines = [_line(one, inside) for one in estimates]
        for cell in line_cells(lines, low, high):
            way = choice.estimates[cell.best[0]][0]
            below = cell.high is not None and _first_at(choice, cell.high) != way
            yield ChosenCell(cell.low, cell.high, way, below)


def _first_at(choice: LibraryChoice, payload: Fraction) -> int:
    """The way whose estimate is the least at this very size, where a line may just begin."""
    return min(choice.estimates, key=lambda one: _line(one[1], payload).value(payload))[0]


def _changes(one: EstimatedTime) -> Iterator[Fraction]:
    """The sizes at which an estimate goes over to another line."""
    for k in range(len(one.factors) + 1 if one.factors else 0):
        yield Fraction(FIRST_BYTES * 2**k)
    if one.plateau_bytes != float("inf"):
        yield simplest(one.plateau_bytes)


def _line(one: EstimatedTime, inside: Fraction) -> PayloadLine:
    """The line that an estimate is around a size at which it does not change."""
    k = (int(inside) // FIRST_BYTES).bit_length() - 1
    factor = one.factors[k] if 0 <= k < len(one.factors) else 1.0
    flat = one.plateau if inside >= one.plateau_bytes else 1.0
    rate = simplest(one.seconds_per_byte) / decimal(factor)
    return PayloadLine(simplest(one.latency_s) * decimal(flat), rate)


def _merged(cells: list[ChosenCell]) -> tuple[ChosenCell, ...]:
    found: list[ChosenCell] = []
    for cell in cells:
        if found and found[-1].way == cell.way:
            found[-1] = replace(cell, low=found[-1].low)
        else:
            found.append(cell)
    return tuple(found)
