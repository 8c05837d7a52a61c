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

from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.alpha_beta import regular_model, send_model
from p2smt.cost.library.ways import least_call_s
from p2smt.cost.link_bounds import bare_links, link_s_per_byte
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.step_time import StepCostModel
from p2smt.programs.program import Grouping


def priced_bound_s(
    topology: Topology, digits: tuple[Digits, ...], kind: RequestKind, payload_bytes: int
) -> float:
    """Seconds that no program answering the request on all groups at once is priced below.

    ``digits`` are the reduction digits of each level, ``payload_bytes`` the whole vector per
    device.  An all-to-all and a send have one way to run, so their price is the bound.
    """
    if not any(digits):
        return 0.0
    if kind in (RequestKind.SEND, RequestKind.ALL_TO_ALL):
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


def _exchange_model(
    topology: Topology, digits: tuple[Digits, ...], kind: RequestKind
) -> StepCostModel:
    """How an all-to-all or a send runs."""
    if kind is RequestKind.SEND:
        return send_model(topology, digits, kind)
    whole = Grouping(0, sum(len(level) > 0 for level in digits))
    return regular_model(topology, digits, whole, RequestKind.ALL_TO_ALL)


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
    known = {Algorithm.RING, *topology.known_algorithms}
    least = passes * min(count for algorithm, count in one_pass.items() if algorithm in known)
    if Algorithm.ONE_SHOT in known:
        return 1
    return min(least, 2) if _in_switch(topology, span.level.link, span.split) else least
