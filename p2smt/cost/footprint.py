"""How the groups of one step use the links of each level, whatever they compute.

A footprint says, per level, how many entities a group spans, how many members it has under
one entity, and how the traffic of all concurrent groups meets on the worst port or link.
The regular footprint is a closed form over the digits of a parallelism matrix; the one of
arbitrary groups (:mod:`p2smt.cost.footprint_explicit`) looks at every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul

import numpy as np

from p2smt.cluster.topology import Level, LinkKind, Topology
from p2smt.cost.routing import worst_link
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.programs.program import Grouping

Digits = tuple[tuple[int, int], ...]
"""Reduction digits of one level: (size, stride) each, the most significant first."""

PortProfile = tuple[tuple[int, float], ...]
"""Load of one port: (members a group has under the entity, summed shares of such groups)."""


@dataclass(frozen=True, slots=True)
class LevelUse:
    """Use of one level by all groups of a step together.

    Switch levels: ``ports`` lists the distinct port profiles.  Other levels: the worst link's
    load when every ring edge (``ring``), every edge but the wrap-around (``path``) or every
    ordered pair of members (``pairs``) carries one unit.  ``least_inside`` is the smallest
    number of members that a group has under one entity; ``closed_inside`` the same of groups that
    span siblings and nothing outside their level, 0 without such a group.  A send's messages are
    each one device's: 1.
    """

    level: int
    ports: tuple[PortProfile, ...] = ()
    least_inside: int = 0
    ring: float = 0.0
    path: float = 0.0
    pairs: float = 0.0
    closed_inside: int = 0

    def port_load(self, crossing: Callable[[int], float]) -> float:
        """Worst port load, where a group with q members inside sends ``crossing(q)``."""
        return max((sum(w * crossing(q) for q, w in port) for port in self.ports), default=0.0)


@dataclass(frozen=True, slots=True)
class Footprint:
    """All groups of one step.

    ``members`` per group; ``profiles`` the distinct vectors of entities a group spans, per
    level from the outermost; ``uses`` the levels on which there is traffic; ``regular`` if
    every group has the same number of members in each entity it spans.
    """

    members: int
    profiles: tuple[tuple[int, ...], ...]
    uses: tuple[LevelUse, ...]
    regular: bool = True


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


@dataclass(frozen=True, slots=True)
class _Span:
    """One level of a regular step: member offsets of a group, offsets of the groups."""

    members: IntArray
    groups: IntArray


def _span(size: int, digits: Digits, role: str) -> _Span:
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
    uses = _uses(topology, spans, _switch_use, closes=True)
    entities = tuple(accumulate(_spread(spans), mul))
    return Footprint(entities[-1], (entities,), uses)


def _spans(topology: Topology, digits: Sequence[Digits], roles: Sequence[str]) -> list[_Span]:
    every = zip(topology.levels, digits, roles, strict=True)
    return [_span(level.size, d, role) for level, d, role in every]


def _spread(spans: Sequence[_Span]) -> list[int]:
    """How many ways a group spreads at each level."""
    return [len(span.members) for span in spans]


SwitchUse = Callable[[Topology, Sequence[_Span], int], LevelUse]


def _uses(
    topology: Topology, spans: Sequence[_Span], switch_use: SwitchUse, closes: bool
) -> tuple[LevelUse, ...]:
    """The levels with traffic; ``closes``: rings have their wrap-around edge."""
    spread, uses = _spread(spans), []
    for j, level in enumerate(topology.levels):
        outside = math.prod(spread[:j])
        if level.link.kind is LinkKind.SWITCH and outside * spread[j] > 1:
            uses.append(switch_use(topology, spans, j))
        elif level.link.kind is not LinkKind.SWITCH and spread[j] > 1:
            uses.append(_sibling_use(level, j, spans, closed=closes and outside == 1))
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
    return LevelUse(j, ports=(((inside, share),),), least_inside=inside)


def _shared_ports(port: IntArray, ports: int) -> float:
    """Worst sum of shares: each row is a group, spread evenly over the ports it reaches."""
    reached = np.zeros((len(port), ports), dtype=bool)
    np.put_along_axis(reached, port, True, axis=1)
    share = reached / reached.sum(axis=1, keepdims=True)
    return float(share.sum(axis=0).max())


def _sibling_use(level: Level, j: int, spans: Sequence[_Span], closed: bool) -> LevelUse:
    span = spans[j]
    concurrent = math.prod(len(s.groups) for s in spans[j + 1 :])
    inside = math.prod(len(s.members) for s in spans[j + 1 :])
    rings = span.groups[:, None] + span.members
    following = np.roll(rings, -1, axis=1)

    def load(source: IntArray, target: IntArray) -> float:
        weight = np.full(source.size, float(concurrent))
        return worst_link(level, source.ravel(), target.ravel(), weight)

    path = load(rings[:, :-1], following[:, :-1])
    first, second = np.nonzero(~np.eye(len(span.members), dtype=bool))
    pairs = load(rings[:, first], rings[:, second]) * inside**2
    ring = load(rings, following) if closed else path
    return LevelUse(j, (), inside, ring, path, pairs, closed_inside=inside if closed else 0)


def send_footprint(topology: Topology, digits: Sequence[Digits]) -> Footprint:
    """Closed form for: every device sends to the next one of its group, without wrap-around."""
    spans = _spans(topology, digits, ["varying" if level else "fixed" for level in digits])
    found = _uses(topology, spans, _send_switch_use, closes=False)
    uses = tuple(replace(use, least_inside=1, closed_inside=1) for use in found)
    spread = _spread(spans)
    # A message meets at one level, where it pays its latency: a profile for each such level.
    meeting = [j for j, count in enumerate(spread) if count > 1]
    profiles = [tuple(1 if i < j else 2 for i in range(len(spread))) for j in meeting]
    return Footprint(math.prod(spread), tuple(profiles) or ((1,) * len(spread),), uses)


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
