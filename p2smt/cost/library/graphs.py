"""The channels that a library finds for a group: how many, and what each carries.

After NCCL's search (src/graph/search.cc): of a list of rates per channel the one with the largest
sum is taken that the devices' links and the nodes' cards carry.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cost.library.formula import Formula


@dataclass(frozen=True, slots=True)
class GroupShape:
    """What a rule of choice knows of a group.

    ``members`` on ``nodes`` nodes, at most ``local`` on one.  ``device_bytes_per_s`` is the nominal
    rate of a member's links inside a node, together and in one direction, as far as the group uses
    them; ``node_bytes_per_s`` that of the ``cards`` which the members in one node reach.
    ``in_switch``: the switches inside a node reduce.
    """

    members: int
    nodes: int
    local: int
    inside: str
    outside: str
    device_bytes_per_s: float
    node_bytes_per_s: float = 0.0
    cards: int = 1
    in_switch: bool = False


@dataclass(frozen=True, slots=True)
class Channels:
    """So many channels, each of this rate inside a node and between nodes, in bytes per second."""

    count: int
    inside: float
    outside: float


def ring_channels(formula: Formula, shape: GroupShape) -> Channels:
    """The channels of rings."""
    total = _inside_rate(formula, shape)
    if shape.nodes == 1:
        rate, count = _widest(formula, shape, total)
        found = Channels(count, rate, rate)
    else:
        count, card = _cards(shape)
        limit = card if shape.local == 1 else min(card, total / count)
        rate = _at_most(_speeds(formula, shape, outside=True), limit)
        found = Channels(count, rate, rate)
    return _doubled(formula, shape, found)


def tree_channels(formula: Formula, shape: GroupShape) -> Channels:
    """Those of trees: across nodes a channel inside may carry up to twice what leaves the node."""
    found = ring_channels(formula, shape)
    if shape.nodes == 1 or shape.local == 1:
        return found
    limit = _inside_rate(formula, shape) / found.count
    wider = [s for s in _speeds(formula, shape) if found.outside <= s <= limit]
    fitting = [s for s in wider if s < 2 * found.outside]
    return Channels(found.count, max(fitting, default=found.inside), found.outside)


def nvls_channels(formula: Formula, shape: GroupShape) -> Channels:
    """Those of the reduction by switches: one per member, which needs two parts of its links."""
    count = min(shape.local, formula.search.channels)
    limit = _inside_rate(formula, shape) / (count + 1)
    inside = _at_most(_speeds(formula, shape), limit)
    if shape.nodes == 1:
        return Channels(count, inside, max(_speeds(formula, shape), default=inside))
    card = shape.node_bytes_per_s / count
    return Channels(count, inside, _at_most(_speeds(formula, shape, outside=True), card))


def generation_of(formula: Formula, shape: GroupShape) -> str:
    """The generation of the devices, by the fabric that joins them."""
    return formula.hardware_of(shape.inside, across=False).generation


def _inside_rate(formula: Formula, shape: GroupShape) -> float:
    """What the library takes a device's links inside a node for."""
    return shape.device_bytes_per_s * formula.hardware_of(shape.inside, across=False).known


def _speeds(formula: Formula, shape: GroupShape, *, outside: bool = False) -> tuple[float, ...]:
    lists = formula.search.outside if outside else formula.search.inside
    return dict(lists).get(generation_of(formula, shape), ())


def _widest(formula: Formula, shape: GroupShape, total: float) -> tuple[float, int]:
    """Rate and number of channels of the largest sum; of equal ones the fewest."""
    most = formula.search.channels
    tried = [(s, min(most, int(total / s))) for s in _speeds(formula, shape) if s <= total]
    return max(tried, key=lambda found: (found[0] * found[1], found[0]), default=(total, 1))


def _cards(shape: GroupShape) -> tuple[int, float]:
    """Channels between nodes, at most one per member of a node, and the rate of each."""
    count = max(1, min(shape.cards, shape.local))
    return count, shape.node_bytes_per_s / count


def _at_most(speeds: tuple[float, ...], limit: float) -> float:
    """The largest rate that is at most ``limit`` (or a billionth above: it was divided)."""
    return max((s for s in speeds if s <= limit * (1 + 1e-9)), default=limit)


def _doubled(formula: Formula, shape: GroupShape, found: Channels) -> Channels:
    """Wide channels are split in two, so that more threads serve them."""
    search, limit = formula.search, formula.search.twice_from
    if generation_of(formula, shape) in search.not_twice and found.count > 4:
        limit *= 2
    if found.inside < limit:
        return found
    return Channels(2 * found.count, found.inside / 2, found.outside / 2)
