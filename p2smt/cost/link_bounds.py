"""Lower bounds on the time of requests by the links alone, for whatever moves the data.

They count bytes and nominal rates: no latency, no call, no algorithm, no library.  So they hold for
every program, every schedule, and every split of a payload over several that run at once; messages
may take any way from device to device, and pass devices of other groups or of other entities on it.
Between siblings that links of their own join they go over these, or by way of a device outside:
the switch around an entity does not send back into it what came out of it.  n is the payload,
p the members of a group, G the number of groups, which fill the cluster.

*Classes.* Cut the cluster into classes of devices: the entities of a level, or (of a ring or
torus) blocks of siblings.  A group spans M of them.  Each byte of a sum depends on all M: until
some class has it whole, each of the others sends (M - 1 messages, in a reduce-scatter and an
all-reduce); from then on each that lacks it receives (M - 1 again, in an all-gather and an
all-reduce).  No message is both, and that the first class to have it has no members spares none.
So G (M - 1) n bytes pass between classes, for an all-reduce 2 G (M - 1) n.  Where switches reduce
and hand round, a message may count several times; but each class sends its n, or hands round the
sum, and G M n is left of an all-reduce.  (Of a gather or a scatter the same is left, in the busier
direction.)

*Links.* What passes between entities of a switch level leaves one of them by a port, and its
devices send no more than their ``device_bandwidth``.  Between siblings of a ring, torus or full
mesh it takes a link from one class to another, or leaves the entity around them: it counts against
both together.  All bytes over all these rates are the average of links, and some link takes as
long.  Of a group that spans nothing outside, the ways through outer levels lead to devices that
are no members, and so do those links of a full mesh that join it to others.  Take these devices
for one, and it for a part of the member that exchanges most with it, at least 1/M of that traffic:
the other messages must do, so that a link to a device that is no member counts 1 - 1/M.

*Exchanges.* In an all-to-all and a send nothing is combined: n/p for each pair, or n from each
member to the next.  Between blocks along a dimension of a torus a byte takes at least as many
links as there are steps from one to the other, on the shorter way round.  A way through outer
levels spares it no more than the longest such distance, and costs two messages there: out of the
entity, and back.  A byte that passes a third sibling of a full mesh takes two links.  From an
entity whose members do not end their groups, each group sends n.  Of a dispatch each entity takes
once what its experts need of the tokens outside (:mod:`p2smt.cost.dispatch`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from p2smt.cluster.topology import Algorithm, Level, LinkKind, Topology
from p2smt.collectives.dispatch import AnyKind, Dispatch
from p2smt.collectives.names import RequestKind
from p2smt.cost.dispatch import need_of
from p2smt.cost.loads.footprint import Digits
from p2smt.parallelism.placement import FloatArray, IntArray

_Dims = tuple[int, ...]


def link_bound_s(
    topology: Topology, digits: tuple[Digits, ...], kind: AnyKind, payload_bytes: int
) -> float:
    """Seconds that the links are busy at least, however the request runs on all groups at once.

    ``digits`` are the reduction digits of each level, ``payload_bytes`` the whole vector per
    device.
    """
    return link_s_per_byte(bare_links(topology), digits, kind) * payload_bytes


def lines_bound_s(topology: Topology, lines: IntArray, kind: AnyKind, payload_bytes: int) -> float:
    """As :func:`link_bound_s`, of an exchange or a send on groups of devices in any order.

    Each row of ``lines`` is a group.  Counted is what leaves or enters each entity.
    """
    found = 0.0
    for j, rates in enumerate(entity_rates(bare_links(topology))):
        entities = lines // topology.devices_under(j)
        for moved in _moved(entities, kind, len(rates)):
            busy = moved > 0
            found = max(found, float((moved[busy] / rates[busy]).max(initial=0.0)))
    return found * payload_bytes


def _moved(entities: IntArray, kind: AnyKind, count: int) -> Iterator[FloatArray]:
    """Payloads that leave each entity, and that enter it; ``entities`` are those of members."""
    if kind is RequestKind.SEND:
        crossing = entities[:, :-1] != entities[:, 1:]
        yield np.bincount(entities[:, :-1][crossing], minlength=count).astype(float)
        yield np.bincount(entities[:, 1:][crossing], minlength=count).astype(float)
        return
    groups, members = entities.shape
    line = np.repeat(np.arange(groups), members)
    (_, where), inside = np.unique(np.stack([line, entities.ravel()]), axis=1, return_counts=True)
    parts = np.asarray(inside * (members - inside) / members, dtype=np.float64)
    if isinstance(kind, Dispatch):
        need = [need_of(members / one, kind) for one in inside.tolist()]
        parts = (members - inside) * np.array(need)
    yield np.bincount(where, weights=parts, minlength=count).astype(float)


@lru_cache(maxsize=256)
def bare_links(topology: Topology, least: float = 1.0) -> Topology:
    """The links alone, each at the best part of its nominal rate that is measured, or ``least``.

    Switches that reduce do so for a group of any size: the library chooses, not the hardware.
    """
    levels = tuple(
        replace(
            level, link=replace(level.link, in_switch_members=min(2, level.link.in_switch_members))
        )
        for level in topology.nominal().levels
    )
    found = replace(
        topology.nominal(), algorithms=(Algorithm.IN_SWITCH,), overrides=(), levels=levels
    )
    for j, level in enumerate(topology.levels):
        rate = level.link.bandwidth_bytes_per_s / level.link.nominal_bytes_per_s
        measured = rate if rate > 1 else 0.0  # of one collective, without a library
        found = found.with_bandwidth_factor(j, max(least, measured, level.link.best_efficiency))
    return found


def entity_rates(topology: Topology) -> tuple[FloatArray, ...]:
    """Bytes per second out of, or into, each entity of each level, at the rates of its links.

    By its uplinks or, at a ring, torus or full mesh, by the links to its siblings and the uplinks
    of what encloses it.
    """
    found: list[FloatArray] = []
    outside = np.zeros(1)
    for j, level in enumerate(topology.levels):
        link, rate = level.link, level.link.bandwidth_bytes_per_s
        inherited = np.repeat(outside, level.size)
        if link.kind is LinkKind.SWITCH:
            parts = topology.uplink_parts(j)
            here = np.full(len(inherited), link.ports * rate)
            outside = here if parts is None else here * np.array(parts)
        else:
            outside = inherited + _degree(level) * rate
        found.append(outside)
    return tuple(found)


def _degree(level: Level) -> int:
    """Links from siblings into one of them."""
    if level.link.kind is LinkKind.FULL_MESH:
        return level.size - 1
    return sum(min(length - 1, 2) for length in _dims(level))


def _dims(level: Level) -> _Dims:
    return level.link.torus or (level.size,)


@lru_cache(maxsize=65_536)
def link_s_per_byte(topology: Topology, digits: tuple[Digits, ...], kind: AnyKind) -> float:
    """Seconds per byte of payload at the rates of these links."""
    found = 0.0
    for place in _places(topology, digits):
        if isinstance(kind, Dispatch):
            terms = _needed(place, kind)
        elif kind in (RequestKind.SEND, RequestKind.ALL_TO_ALL):
            terms = _exchanged(place, kind)
        else:
            terms = _combined(place, kind)
        found = max([found, *(moved / rate for moved, rate in terms)])
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """A level of which a group spans several entities, of ``parents`` further out.

    ``split`` is the request's factor there, ``outside`` the parents that a group spans, ``inside``
    its members in each entity, ``members`` all of them, ``groups`` those of the cluster.
    ``outside_rate``: out of all parents together, bytes per second; ``parent_rate``: of one.
    ``reducing``: switches there or further out reduce.
    """

    level: Level
    digits: Digits
    parents: int
    under: int
    split: int
    outside: int
    inside: int
    members: int
    groups: int
    outside_rate: float
    parent_rate: float
    reducing: bool

    @property
    def entities(self) -> int:
        """Of the level, in the cluster."""
        return self.parents * self.level.size

    @property
    def switched(self) -> bool:
        """Whether a switch joins the entities."""
        return self.level.link.kind is LinkKind.SWITCH

    @property
    def sharing(self) -> int:
        """Groups that have members in an entity."""
        return self.under // self.inside

    @property
    def closed(self) -> bool:
        """Whether a group spans nothing outside the level."""
        return self.outside == 1

    def drawn(self, bytes_per_s: float, entities: int) -> float:
        """A rate out of so many entities, which is no more than their devices may send."""
        draw = self.level.link.device_bandwidth_bytes_per_s
        capped = draw is not None and (self.switched or self.closed)
        return min(bytes_per_s, draw * self.under * entities) if draw and capped else bytes_per_s

    @property
    def entity_rate(self) -> float:
        """Out of one entity by all its links."""
        link = self.level.link
        if self.switched:
            return self.drawn(link.ports * link.bandwidth_bytes_per_s, 1)
        draw = link.device_bandwidth_bytes_per_s or math.inf
        here = _degree(self.level) * link.bandwidth_bytes_per_s
        return min(here, draw * self.under) + self.parent_rate

    @property
    def rate(self) -> float:
        """Out of all entities together."""
        link = self.level.link
        if self.switched:
            return self.entities * self.entity_rate
        links = self.entities * _degree(self.level)
        return self.drawn(links * link.bandwidth_bytes_per_s, self.entities) + self.outside_rate


def _places(topology: Topology, digits: tuple[Digits, ...]) -> Iterator[_Place]:
    factors = [math.prod(size for size, _ in level) for level in digits]
    members, devices = math.prod(factors), math.prod(topology.sizes)
    outside, parents, outside_rate, parent_rate, reducing = 1, 1, 0.0, 0.0, False
    for j, level in enumerate(topology.levels):
        reducing |= level.link.in_switch_members > 0 and level.size > 1
        place = _Place(
            level,
            digits[j],
            parents,
            topology.devices_under(j),
            factors[j],
            outside,
            members // (outside * factors[j]),
            members,
            devices // members,
            outside_rate,
            parent_rate,
            reducing,
        )
        outside, parents = outside * factors[j], parents * level.size
        if outside > 1:
            yield place
        if parents > 1:
            outside_rate, parent_rate = place.rate, place.entity_rate


_Term = tuple[float, float]
"""Payloads that must move, and the bytes per second of all that can move them."""


def _combined(place: _Place, kind: RequestKind) -> Iterator[_Term]:
    """Of a reduce-scatter, an all-gather and an all-reduce."""
    if place.switched:
        moved = _messages(kind, float(place.outside * place.split), place.reducing)
        yield place.groups * moved, place.rate
        return
    rate = place.level.link.bandwidth_bytes_per_s
    for cut in _cuts(place.level, place.digits) if place.split > 1 else ():
        spanned = place.outside * (cut.least if place.reducing else cut.spanned)
        moved = place.groups * _messages(kind, spanned, place.reducing)
        spare = 1.0 if place.reducing else 1 - 1 / (place.outside * cut.most)
        links = place.parents * (cut.within + spare * cut.beside) * rate
        outer = (spare if place.closed else 1.0) * place.outside_rate
        yield moved, place.drawn(links, place.entities) + outer


def _messages(kind: RequestKind, classes: float, reducing: bool) -> float:
    """Payloads of a group that pass between so many classes."""
    if kind is not RequestKind.ALL_REDUCE:
        return classes - 1
    return min(classes, 2 * (classes - 1)) if reducing else 2 * (classes - 1)


def _exchanged(place: _Place, kind: RequestKind) -> Iterator[_Term]:
    """Of an all-to-all and a send."""
    send, devices = kind is RequestKind.SEND, place.entities * place.under
    if send:
        yield float(place.sharing), place.entity_rate
    elif place.switched:
        yield devices * (1 - place.inside / place.members), place.rate
    if place.switched or place.split == 1:
        return
    groups = place.parents * place.sharing  # of each pattern of siblings
    each = 1.0 if send else place.inside**2 / place.members
    outer = place.outside_rate / 2
    for haul in _hauls(place.level, place.digits, not send):
        links = place.parents * haul.links * place.level.link.bandwidth_bytes_per_s
        yield groups * each * haul.hops, links + haul.longest * outer
    draw = place.level.link.device_bandwidth_bytes_per_s
    if draw and place.closed and not send:
        yield devices * (1 - place.inside / place.members), devices * draw + outer


def _needed(place: _Place, kind: Dispatch) -> Iterator[_Term]:
    """Of a dispatch: an entity takes each token from outside that it needs."""
    need = need_of(place.members / place.inside, kind)
    yield place.sharing * (place.members - place.inside) * need, place.entity_rate


@dataclass(frozen=True, slots=True)
class _Cut:
    """The siblings of a level cut into classes.

    ``spanned`` of them by a group on the average, ``least`` and ``most`` by any.  Under one parent
    so many directed links join classes ``within`` a group, and ``beside`` it.
    """

    spanned: float
    least: int
    most: int
    within: float
    beside: float = 0.0


def _cuts(level: Level, digits: Digits) -> tuple[_Cut, ...]:
    """Classes of one sibling each; of a ring or torus also of blocks along its dimensions."""
    split = math.prod(count for count, _ in digits)
    if level.link.kind is LinkKind.FULL_MESH:
        size = level.size
        beside = float(size * (size - split))
        return (_Cut(float(split), split, split, float(size * (split - 1)), beside),)
    rows, dims = _siblings(level.size, digits), _dims(level)
    widths = [_widths(rows, dims, d) for d in range(len(dims))]
    return tuple(_cut(rows, dims, blocks) for blocks in product(*widths) if blocks != dims)


def _cut(rows: IntArray, dims: _Dims, blocks: _Dims) -> _Cut:
    classes = np.zeros_like(rows)
    for d, width in enumerate(blocks):
        classes = classes * dims[d] + _block(rows, dims, d, width)
    counts = 1 + _changes(classes)
    links = sum(_block_links(dims, d, width) for d, width in enumerate(blocks))
    return _Cut(float(counts.mean()), int(counts.min()), int(counts.max()), float(links))


def _changes(rows: IntArray) -> IntArray:
    """How many different numbers each row has, less one."""
    ordered = np.sort(rows, axis=1)
    return np.asarray((ordered[:, 1:] != ordered[:, :-1]).sum(axis=1))


def _widths(rows: IntArray, dims: _Dims, d: int) -> list[int]:
    """Widths of blocks along a dimension: for each number that groups span, the largest."""
    best: dict[int, int] = {}
    for width in (w for w in range(1, dims[d] + 1) if dims[d] % w == 0):
        best[int(_changes(_block(rows, dims, d, width)).sum())] = width
    return sorted(best.values())


def _block(rows: IntArray, dims: _Dims, d: int, width: int) -> IntArray:
    """The block of each sibling along a dimension."""
    return rows // math.prod(dims[d + 1 :]) % dims[d] // width


def _block_links(dims: _Dims, d: int, width: int) -> int:
    """Directed links between blocks along a dimension."""
    blocks = dims[d] // width
    each = 0 if blocks == 1 else 2 if dims[d] == 2 else 2 * blocks
    return math.prod(dims) // dims[d] * each


def _siblings(size: int, digits: Digits) -> IntArray:
    """Siblings that a group spans, in the order of its members: a row for each set of them."""
    every = np.arange(size)
    first, members = np.ones(size, dtype=bool), np.zeros(1, dtype=np.int64)
    for count, stride in digits:
        first &= every // stride % count == 0
        members = (members[:, None] + np.arange(count) * stride).ravel()
    return np.asarray(every[first][:, None] + members)


@dataclass(frozen=True, slots=True)
class _Haul:
    """Links that bytes between siblings must take, one for each pair, under one parent.

    ``hops`` of all pairs that exchange; ``links``: directed ones that there are for them;
    ``longest``: most hops of a pair.
    """

    hops: float
    links: float
    longest: int


def _hauls(level: Level, digits: Digits, every: bool) -> tuple[_Haul, ...]:
    """By dimension and width of blocks; ``every`` pair of a group, or from each to the next."""
    split = math.prod(count for count, _ in digits)
    if level.link.kind is LinkKind.FULL_MESH:
        size = level.size
        pairs = size * (split - 1) if every else size // split * (split - 1)
        return (_Haul(float(pairs), size * (split - 1) + size * (size - split) / 2, 1),)
    rows, dims = _siblings(level.size, digits), _dims(level)
    return tuple(
        _haul(_block(rows, dims, d, width), dims, d, width, every)
        for d in range(len(dims))
        for width in _widths(rows, dims, d)
        if width < dims[d]
    )


def _haul(blocks: IntArray, dims: _Dims, d: int, width: int, every: bool) -> _Haul:
    count = dims[d] // width
    apart = np.arange(count)
    steps = np.minimum(apart, count - apart)
    if every:
        held = np.zeros((len(blocks), count))
        np.add.at(held, (np.arange(len(blocks))[:, None], blocks), 1.0)
        ways = steps[(apart[:, None] - apart) % count]
        hops = float(((held @ ways) * held).sum())
    else:
        hops = float(steps[(blocks[:, 1:] - blocks[:, :-1]) % count].sum())
    return _Haul(hops, float(_block_links(dims, d, width)), int(steps.max()))
