"""Proved lower bounds on the time of programs, as the cost model prices them.

A search starts from these.  They are closer than what the links allow whatever runs
(:mod:`p2smt.cost.link_bounds`): under a library the links at the best rate that it reaches, and one
call; without one the latencies of the topology's algorithms, too.

The time bound holds for every program of the language and every choice of algorithms and
protocols under the cost model, on all groups of a request at once.  Proof in short, with n
the payload, f_j the request's split at level j, and M the number of entities of a level that
a group spans (at a ring, torus or full mesh: with nothing spanned outside it).

*Bytes.*  A row of the state matrices moves between entities as messages.  To sum a row in
one entity, M - 1 others must send; to spread it, M - 1 must receive; both (gossip with
one-way messages) takes 2(M - 1).  So the M uplinks carry (M - 1)n out together, for an
all-reduce 2(M - 1)n, and some entity 1/M of it.  Where switches may reduce on the way (a step
across an outer level also loads this uplink) each entity still sends its n once.  The groups
that share an entity add up; its ports, or the links to its siblings, share the sum evenly at
best; and one device draws at least its share.  A program sends between members only, not by way of
other devices; what holds whatever the way holds here, too.

*Latency.*  A step pays at least one pass's latencies at each level it crosses (direct and
one-shot: only at the outermost), and each level with a split is crossed.  (A binomial tree of
distances 2^r <= p - 1 pays a round at the outermost level whose entities have less than
min(2^(r+1), p) members: with split k at least ceil(log2 k) at the outermost level, and
floor(log2 k) further in.)  Before the first step across the outermost of them its entities
hold the same rows with different contributions, so that step reduces.  Reduce and
reduce-scatter bring the lowest row into the first entity only; hence an all-reduce request
crosses that level twice, or by an all-reduce, which pays for two passes (one-shot: one).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.cost.algorithms import Operation, Rule, rules, torus_phases
from p2smt.cost.dispatch import dispatch_model
from p2smt.cost.library.ways import least_call_s, library_model
from p2smt.cost.link_bounds import bare_links, lines_bound_s, link_s_per_byte
from p2smt.cost.loads.footprint import Digits, regular_footprint, send_footprint
from p2smt.cost.loads.level_use import Footprint, LevelUse
from p2smt.cost.step_time import StepCostModel, StepTime, Way
from p2smt.parallelism.placement import IntArray
from p2smt.programs.program import Grouping


def priced_bound_s(
    topology: Topology, digits: tuple[Digits, ...], kind: AnyKind, payload_bytes: int
) -> float:
    """Seconds that no program answering the request on all groups at once is priced below.

    ``digits`` are the reduction digits of each level, ``payload_bytes`` the whole vector per
    device.  An all-to-all, a dispatch and a send are one step here, so their price is the bound
    (:meth:`p2smt.cost.scene.Scene.least_s` has that of all-to-alls over levels).
    """
    if not any(digits):
        return 0.0
    if isinstance(kind, Dispatch) or kind in (RequestKind.SEND, RequestKind.ALL_TO_ALL):
        return _exchange_model(topology, digits, kind).time(payload_bytes).seconds
    links = bare_links(topology, least=0.0 if topology.library else 1.0)
    rates = links if topology.library else topology
    factors = tuple(math.prod(size for size, _ in level) for level in digits)
    spans = _spans(rates, digits, factors)
    wire = max((_wire_s(span, kind) for span in spans), default=0.0)
    wire_s = max(wire, link_s_per_byte(links, digits, kind)) * payload_bytes
    if topology.library:
        return wire_s + least_call_s(topology)
    return wire_s + _latency_s(topology, spans, kind)


def _exchange_model(topology: Topology, digits: tuple[Digits, ...], kind: AnyKind) -> StepCostModel:
    """How an all-to-all, a dispatch or a send runs."""
    if kind is RequestKind.SEND:
        return send_model(topology, digits, kind)
    whole = Grouping(0, sum(len(level) > 0 for level in digits))
    exchange = kind if isinstance(kind, Dispatch) else RequestKind.ALL_TO_ALL
    return regular_model(topology, digits, whole, exchange)


@dataclass(frozen=True, slots=True)
class _Span:
    """A level of which a group spans several entities.

    ``split`` is the request's factor there, ``entities`` the entities of a group, ``inside``
    its members in each, ``groups`` the groups that share an entity.
    """

    level: Level
    digits: Digits
    split: int
    entities: int
    inside: int
    groups: int
    reduced: bool  # by a switch, here or further out


def _spans(
    topology: Topology, digits: Sequence[Digits], factors: Sequence[int]
) -> tuple[_Span, ...]:
    found, reduced = [], False
    for j, level in enumerate(topology.levels):
        entities, inside = math.prod(factors[: j + 1]), math.prod(factors[j + 1 :])
        reduced |= _in_switch(topology, level.link, factors[j])
        groups = topology.devices_under(j) // inside
        if entities > 1:
            found.append(_Span(level, digits[j], factors[j], entities, inside, groups, reduced))
    return tuple(found)


def _in_switch(topology: Topology, link: Link, split: int) -> bool:
    """Whether the switches of a level can reduce for groups of this request."""
    return Algorithm.IN_SWITCH in topology.known_algorithms and 0 < link.in_switch_members <= split


def _sent(span: _Span, kind: RequestKind) -> float:
    """Fraction of n that some entity of a group must send out."""
    once = 1 - 1 / span.entities
    if kind is not RequestKind.ALL_REDUCE:
        return once
    return 1.0 if span.reduced else 2 * once


def _wire_s(span: _Span, kind: RequestKind) -> float:
    """Seconds per payload byte on the links of one level."""
    link, sent = span.level.link, _sent(span, kind)
    if link.kind is not LinkKind.SWITCH:
        if span.split < span.entities or not _links(span):
            return 0.0  # the siblings may reach each other through an outer level
        least_hops = span.digits[-1][1] if link.kind is LinkKind.RING else 1
        shared = sent * span.groups * least_hops / _links(span) / link.bandwidth_bytes_per_s
    else:
        shared = sent * span.groups / link.ports / link.bandwidth_bytes_per_s
    draw = link.device_bandwidth_bytes_per_s
    return max(shared, sent / span.inside / draw) if draw else shared


def _links(span: _Span) -> int:
    """Links from an entity to siblings that its groups' messages can take."""
    if span.level.link.kind is LinkKind.FULL_MESH:
        return span.split - 1
    members = [0]
    for count, stride in span.digits:
        members = [m + i * stride for m in members for i in range(count)]
    links, stride = 0, span.level.size
    for length in span.level.link.torus or (span.level.size,):
        stride //= length
        if len({member // stride % length for member in members}) > 1:
            links += 2 if length > 2 else 1
    return links


def _latency_s(topology: Topology, spans: Sequence[_Span], kind: RequestKind) -> float:
    split = [span for span in spans if span.split > 1]
    if {Algorithm.DIRECT, Algorithm.ONE_SHOT} & topology.known_algorithms:
        split = split[:1]
    passes = 2 if kind is RequestKind.ALL_REDUCE else 1
    return sum(
        _least_steps(topology, span, passes if at == 0 else 1) * span.level.link.latency_s
        for at, span in enumerate(split)
    )


def _least_steps(topology: Topology, span: _Span, passes: int) -> int:
    """Least number of latencies of a level that any program pays."""
    doublings, outermost = (span.split - 1).bit_length(), span.split == span.entities
    one_pass = {
        Algorithm.RING: span.split - 1,  # also where no other algorithm applies
        Algorithm.TREE: 2 * doublings,
        Algorithm.HALVING_DOUBLING: doublings,
        Algorithm.DIRECT: 1,
        Algorithm.BINOMIAL: doublings if outermost else span.split.bit_length() - 1,
    }  # scatter-gather: a ring's, and one more
    link = span.level.link
    if link.torus and span.split == span.level.size:
        one_pass[Algorithm.TORUS] = torus_phases(link.torus)[0]
    known = {Algorithm.RING, *topology.known_algorithms}
    least = passes * min(count for algorithm, count in one_pass.items() if algorithm in known)
    if Algorithm.ONE_SHOT in known:
        return 1
    return min(least, 2) if _in_switch(topology, span.level.link, span.split) else least


# Alpha-beta time of steps and programs on a topology.
# All groups of a step run together.  Its time is the worst link's load over its bandwidth, plus
# the latencies of its steps, each paid at one level, plus what its library takes for a call.  A
# topology without a library runs the fastest of its algorithms; with one, what that library would
# choose (:mod:`p2smt.cost.library`).  Every objective that a solver reports is recomputed here.


def step_model(
    topology: Topology, footprint: Footprint, operation: Operation | Dispatch
) -> StepCostModel:
    """The ways in which the groups of a footprint can run an operation."""
    if all(max(profile) == 1 for profile in footprint.profiles):
        silent = (0.0,) * len(topology.levels)
        return StepCostModel((Way("none", "", 0, 0.0, 0.0, None, 0.0, silent),))
    if isinstance(operation, Dispatch):
        return dispatch_model(topology, footprint, operation)
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
    topology: Topology,
    digits: tuple[Digits, ...],
    grouping: Grouping,
    operation: Operation | Dispatch,
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
    topology: Topology,
    digits: tuple[Digits, ...],
    grouping: Grouping,
    operation: Operation | Dispatch,
) -> StepCostModel:
    return step_model(topology, step_footprint(topology, digits, grouping), operation)


@lru_cache(maxsize=65_536)
def step_footprint(
    topology: Topology, digits: tuple[Digits, ...], grouping: Grouping | None
) -> Footprint:
    """What the groups of a step load, or (None) sends along the digits' axis; no rate counts."""
    if grouping is None:
        return send_footprint(topology, digits)
    return regular_footprint(topology, digits, grouping)


@lru_cache(maxsize=65_536)
def send_model(
    topology: Topology, digits: tuple[Digits, ...], operation: Operation
) -> StepCostModel:
    """The step model of a send to the next rank along the digits' axis."""
    return step_model(topology, step_footprint(topology, digits, None), operation)


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


# Times of collectives (or of a send) on ranks in any order, device by device.


def single_time(
    topology: Topology,
    ranks: IntArray,
    axes: Sequence[int],
    kind: AnyKind,
    payload_bytes: int,
    *,
    closed: bool = False,
) -> StepTime:
    """Time of the one collective that answers a request along these axes (by index).

    ``ranks`` is any rank tensor: shape = axis sizes, entries = device ids.  The members of a
    group are in the order of their ranks, which the topology's library follows strictly or node
    by node (:func:`p2smt.cost.loads.footprint_explicit.explicit_footprint`).  ``closed``: the last
    rank of a line sends to its first one, too.
    """
    return _single_model(topology, ranks, axes, kind, closed).time(payload_bytes)


def single_bound_s(
    topology: Topology,
    ranks: IntArray,
    axes: Sequence[int],
    kind: AnyKind,
    payload_bytes: int,
) -> float:
    """Seconds that the links allow such a send, all-to-all or dispatch at best."""
    return lines_bound_s(topology, _lines(ranks, axes), kind, payload_bytes)


def groups_model(
    topology: Topology, groups: Sequence[IntArray], operation: Operation | Dispatch
) -> StepCostModel:
    """Everything about a step on these groups but its payload: an array for each size of groups.

    Members are device ids in communicator order.
    """
    from p2smt.cost.loads.footprint_explicit import explicit_footprint  # regular ones do without

    joins_nodes = not topology.library_name or topology.known_library.joins_nodes
    return step_model(topology, explicit_footprint(topology, groups, joins_nodes), operation)


def _single_model(
    topology: Topology, ranks: IntArray, axes: Sequence[int], kind: AnyKind, closed: bool
) -> StepCostModel:
    lines = _lines(ranks, axes)
    if isinstance(kind, Dispatch):
        return groups_model(topology, [lines], kind)
    if kind is RequestKind.SEND:
        from p2smt.cost.loads.footprint_explicit import explicit_send  # as in groups_model

        footprint = explicit_send(topology, *line_ends(lines, closed=closed))
        return step_model(topology, footprint, RequestKind.SEND)
    operation: Operation = DIRECT.get(kind) or RequestKind.ALL_TO_ALL
    return groups_model(topology, [lines], operation)


def line_ends(lines: IntArray, *, closed: bool = False) -> tuple[IntArray, IntArray]:
    """Who sends to whom along lines, a row each: sources and targets.  ``closed``: as above."""
    if closed:
        return lines.ravel(), np.roll(lines, -1, axis=1).ravel()
    return lines[:, :-1].ravel(), lines[:, 1:].ravel()


def _lines(ranks: IntArray, axes: Sequence[int]) -> IntArray:
    """The groups along these axes, a row each, in the order of their ranks."""
    rest = [i for i in range(ranks.ndim) if i not in axes]
    members = math.prod(ranks.shape[i] for i in axes)
    return ranks.transpose([*rest, *axes]).reshape(-1, members)
