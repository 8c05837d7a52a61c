"""The footprint of the groups of a parallelism matrix, and of sends along its axes.

The regular footprint is a closed form over the digits of a parallelism matrix; the one of
arbitrary groups (:mod:`p2smt.cost.loads.footprint_explicit`) looks at every device.  The members
of a matrix's group are in device order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from operator import mul

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.cost.loads.level_use import (
    Footprint,
    LevelUse,
    message_footprint,
    new_entities,
    worst_link,
)
from p2smt.cost.loads.rings import block_load, chain_part, even_load, inner_load
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.programs.program import Grouping

_KEPT = 1024  # devices, at most, of a level whose spans are kept
Digits = tuple[tuple[int, int], ...]
"""Reduction digits of one level: (size, stride) each, the most significant first."""


def digits_of(placement: Placement, axes: Sequence[int]) -> tuple[Digits, ...]:
    """Reduction digits of each level; adjacent digits merge, digits of size 1 vanish."""
    found = []
    for j in range(placement.width):
        digits: list[tuple[int, int]] = []
        for i in axes:
            size = placement.matrix[i][j]
            stride = math.prod(row[j] for row in placement.matrix[i + 1 :])
            if digits and digits[-1][1] == size * stride:
                digits[-1] = (digits[-1][0] * size, stride)
            elif size > 1:
                digits.append((size, stride))
        found.append(tuple(digits))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """One level of a regular step: member offsets of a group, offsets of the groups.

    Equal to itself alone: of small levels there is one of each kind, and what it loads is worked
    out once.
    """

    members: IntArray
    groups: IntArray

    @property
    def rings(self) -> IntArray:
        """The members of each group, in a row."""
        return self.groups[:, None] + self.members


def _span(size: int, digits: Digits, role: str) -> _Span:
    return (_kept if size <= _KEPT else _made)(size, digits, role)


def _made(size: int, digits: Digits, role: str) -> _Span:
    every = np.arange(size, dtype=np.int64)
    zero = np.ones(size, dtype=bool)
    members = np.zeros(1, dtype=np.int64)
    for count, stride in digits:
        zero &= every // stride % count == 0
        members = (members[:, None] + np.arange(count) * stride).ravel()
    one = np.zeros(1, dtype=np.int64)
    if role == "varying":
        return _Span(members, every[zero])
    return _Span(one, every[zero] if role == "zero" else every)


_kept = lru_cache(maxsize=4096)(_made)


def _roles(digits: Sequence[Digits], grouping: Grouping) -> list[str]:
    roles, depth = [], 0
    for level in digits:
        varying = bool(level) and grouping.outer <= depth < grouping.inner
        zero = bool(level) and grouping.master and depth >= grouping.inner
        roles.append("varying" if varying else "zero" if zero else "fixed")
        depth += bool(level)
    return roles


def regular_footprint(
    topology: Topology, digits: Sequence[Digits], grouping: Grouping
) -> Footprint:
    """Closed form for the groups of ``grouping`` in every reduction group at once."""
    spans = _spans(topology, digits, _roles(digits, grouping))
    uses = _uses(topology, spans, _switch_use, _sibling_use)
    entities = tuple(accumulate(_spread(spans), mul))
    nodes, local = _nodes(topology, spans)
    chain = new_entities(entities)
    return Footprint(entities[-1], (entities,), (chain,), uses, nodes, local)


def _spans(topology: Topology, digits: Sequence[Digits], roles: Sequence[str]) -> list[_Span]:
    every = zip(topology.levels, digits, roles, strict=True)
    return [_span(level.size, d, role) for level, d, role in every]


def _spread(spans: Sequence[_Span]) -> list[int]:
    """How many ways a group spreads at each level."""
    return [len(span.members) for span in spans]


def _nodes(topology: Topology, spans: Sequence[_Span]) -> tuple[int, int]:
    """Nodes that a group spans, and its members in each."""
    spread, first = _spread(spans), topology.node_level + 1
    return math.prod(spread[:first]), math.prod(spread[first:])


_Use = Callable[[Topology, Sequence[_Span], int], LevelUse]


def _uses(
    topology: Topology, spans: Sequence[_Span], switch_use: _Use, sibling_use: _Use
) -> tuple[LevelUse, ...]:
    """The levels with traffic."""
    spread, uses = _spread(spans), []
    for j, level in enumerate(topology.levels):
        outside = math.prod(spread[:j])
        if level.link.kind is LinkKind.SWITCH and outside * spread[j] > 1:
            uses.append(switch_use(topology, spans, j))
        elif level.link.kind is not LinkKind.SWITCH and spread[j] > 1:
            uses.append(sibling_use(topology, spans, j))
    return tuple(uses)


def offsets_under(topology: Topology, spans: Sequence[_Span], j: int) -> tuple[IntArray, IntArray]:
    """Offsets of a group's members, and of the groups, among the devices under an entity."""
    members = groups = np.zeros(1, dtype=np.int64)
    for i in range(j + 1, len(spans)):
        stride = topology.devices_under(i)
        members = (members[:, None] + spans[i].members * stride).ravel()
        groups = (groups[:, None] + spans[i].groups * stride).ravel()
    return members, groups


def _switch_use(topology: Topology, spans: Sequence[_Span], j: int) -> LevelUse:
    members, groups = offsets_under(topology, spans, j)
    ports, under = topology.levels[j].link.ports, topology.devices_under(j)
    inside = len(members)
    if ports == 1:
        share = float(len(groups))
    elif ports >= under:
        share = under / (inside * ports)
    else:
        share = _shared_ports((members + groups[:, None]) * ports // under, ports)
    tree, one = _tree_load(topology, spans, j), 1 / inside
    return LevelUse(
        j,
        ports=(((inside, share),),),
        least_inside=inside,
        ring=share,
        path=share,
        tree=share * tree,
        ring_drawn=one,
        path_drawn=one,
        tree_drawn=tree * one,
    )


def _tree_load(topology: Topology, spans: Sequence[_Span], j: int) -> float:
    """What a group's trees send out of the worst entity that has some of its members."""
    first, inside = topology.node_level + 1, math.prod(_spread(spans)[j + 1 :])
    nodes, local = _nodes(topology, spans)
    if j < first:
        return block_load(nodes, inside // local)
    return inner_load(nodes, local, inside)


def _shared_ports(port: IntArray, ports: int) -> float:
    """Worst sum of shares: each row is a group, spread evenly over the ports it reaches."""
    reached = np.zeros((len(port), ports), dtype=bool)
    np.put_along_axis(reached, port, True, axis=1)
    share = reached / reached.sum(axis=1, keepdims=True)
    return float(share.sum(axis=0).max())


def _sibling_use(topology: Topology, spans: Sequence[_Span], j: int) -> LevelUse:
    level, span, spread = topology.levels[j], spans[j], _spread(spans)
    closed = math.prod(spread[:j]) == 1
    concurrent = math.prod(len(s.groups) for s in spans[j + 1 :])
    inside = math.prod(spread[j + 1 :])
    even = even_load(level, spread[j], closed)
    path = _edges_load(level, span, False) if even is None else even
    ring = _edges_load(level, span, True) if closed and even is None else path
    pairs = _pairs_load(level, span)
    one = 1 / inside if closed else 0.0
    return LevelUse(
        j,
        least_inside=inside,
        ring=concurrent * ring,
        path=concurrent * path,
        tree=concurrent * _sibling_tree(topology, spans, j),
        pairs=concurrent * pairs * inside**2,
        closed_inside=inside if closed else 0,
        ring_drawn=one,
        path_drawn=one,
        tree_drawn=_tree_load(topology, spans, j) * one,
    )


def _sibling_tree(topology: Topology, spans: Sequence[_Span], j: int) -> float:
    """Load of the worst link by the chains of one group's trees: each edge is used both ways."""
    spread, first = _spread(spans), topology.node_level + 1
    if j < first:
        return math.inf
    nodes, local = _nodes(topology, spans)
    part = chain_part(local) if nodes > 1 else 1.0
    cycle = nodes > 1 and math.prod(spread[first:j]) == 1
    level = topology.levels[j]
    if level.link.kind is LinkKind.FULL_MESH:
        edges = spread[j] if cycle else spread[j] - 1
        return 2 * part * edges / (spread[j] * (spread[j] - 1))
    return part * _edges_load(level, spans[j], cycle, both=True)


@lru_cache(maxsize=4096)
def _edges_load(level: Level, span: _Span, cycle: bool, both: bool = False) -> float:
    """Worst link with one unit from each sibling to the next; ``both``: and one back."""
    rings = span.rings
    following = np.roll(rings, -1, axis=1)
    edges = (rings, following) if cycle else (rings[:, :-1], following[:, :-1])
    if both:
        source, target = (np.concatenate([edges[i], edges[1 - i]]) for i in (0, 1))
        return _link_load(level, source, target)
    return _link_load(level, *edges)


@lru_cache(maxsize=4096)
def _pairs_load(level: Level, span: _Span) -> float:
    """Worst link with one unit from each sibling to each other."""
    rings = span.rings
    first, second = np.nonzero(~np.eye(len(span.members), dtype=bool))
    return _link_load(level, rings[:, first], rings[:, second])


def _link_load(level: Level, source: IntArray, target: IntArray) -> float:
    return worst_link(level, source.ravel(), target.ravel(), np.ones(source.size))


def _send_sibling_use(topology: Topology, spans: Sequence[_Span], j: int) -> LevelUse:
    """A message goes over its own link alone, whatever rings there are."""
    concurrent = math.prod(len(s.groups) for s in spans[j + 1 :])
    return LevelUse(j, path=concurrent * _edges_load(topology.levels[j], spans[j], False))


def send_footprint(topology: Topology, digits: Sequence[Digits]) -> Footprint:
    """Closed form for: every device sends to the next one of its group, without wrap-around."""
    spans = _spans(topology, digits, ["varying" if level else "fixed" for level in digits])
    found = _uses(topology, spans, _send_switch_use, _send_sibling_use)
    uses = tuple(replace(use, least_inside=1, closed_inside=1) for use in found)
    spread = _spread(spans)
    meeting = [j for j, count in enumerate(spread) if count > 1]
    return message_footprint(topology, math.prod(spread), meeting, uses)


def _send_switch_use(topology: Topology, spans: Sequence[_Span], j: int) -> LevelUse:
    """One device per group sends out of an entity (its last member), one receives."""
    members, groups = offsets_under(topology, spans, j)
    ports, under = topology.levels[j].link.ports, topology.devices_under(j)
    if ports >= under:
        share = under / ports
    else:
        ends = [np.bincount((m + groups) * ports // under) for m in (members[-1], members[0])]
        share = float(max(end.max() for end in ends))
    return LevelUse(j, ports=(((1, share),),), least_inside=1)
