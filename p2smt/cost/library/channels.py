"""The channels that a library finds for a group: how many, and what each carries.

After NCCL's search (NVIDIA/nccl, src/graph/search.cc, ``ncclTopoCompute``): of a list of rates per
channel it takes, for each pattern, the largest sum that the devices' links and the nodes' cards
carry.  The search lays every channel through the node; here is what it comes to where each device
reaches every other at the same rate, and cards are spread evenly over the devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.library.model import Formula, Hardware

_WIDE_BYTES_PER_S = 45e9
"""Rings above this rate are served by more channels (src/graph/connect.cc, ncclTopoPostset)."""


@dataclass(frozen=True, slots=True)
class GroupShape:
    """What a rule of choice knows of a group.

    ``members`` on ``nodes`` nodes, at most ``local`` on one.  ``device_bytes_per_s`` is the nominal
    rate of a member's links inside a node, together and in one direction, as far as the group uses
    them; ``node_bytes_per_s`` that of the ``cards`` which the members in one node reach.
    ``in_switch``: the switches inside a node reduce.  ``card_devices``: devices of a node for each
    of its cards (1 where there are as many cards, or more).  ``cpu``: whose processors the hosts
    have, where that is known.
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
    card_devices: int = 1
    cpu: str = ""


@dataclass(frozen=True, slots=True)
class Channels:
    """So many channels, each of this rate inside a node and between nodes, in bytes per second."""

    count: int
    inside: float
    outside: float


@dataclass(frozen=True, slots=True)
class ChannelsFound:
    """What the search finds for a group of a ``shape``, of devices of a ``generation``.

    ``served``: how many channels of the library's own serve those of rings.  ``plain_tree`` and
    ``near_cards`` are those of the functions of these names.
    """

    shape: GroupShape
    generation: str
    rings: Channels
    trees: Channels
    nvls: Channels
    served: int
    plain_tree: bool
    near_cards: bool


def search(formula: Formula, shape: GroupShape) -> ChannelsFound:
    """All of a search at once."""
    return ChannelsFound(
        shape,
        generation_of(formula, shape),
        rings := ring_channels(formula, shape),
        _trees(formula, shape, rings),
        nvls_channels(formula, shape),
        _served(formula, shape, rings),
        plain_tree(formula, shape),
        near_cards(formula, shape),
    )


def ring_channels(formula: Formula, shape: GroupShape) -> Channels:
    """The channels of rings."""
    found = _across(formula, shape) if shape.nodes > 1 else _alone(formula, shape)
    return _doubled(formula, shape, found)


def _trees(formula: Formula, shape: GroupShape, found: Channels) -> Channels:
    """Those of trees, as many as rings have.

    Inside one node a tree is a chain, which of two members loads but one: twice the rate.  Across
    nodes the rate inside is raised step by step from that between nodes on, to twice that or as far
    as the devices' links go.
    """
    if shape.nodes == 1:
        twice = 2 * _inside_rate(formula, shape) / found.count
        rate = _at_most(_speeds(formula, shape), twice) if shape.local == 2 else found.inside
        return replace(found, inside=rate, outside=rate)
    inside = found.outside
    for speed in reversed(_speeds(formula, shape, outside=True)):
        if speed <= inside:
            continue
        if inside >= 2 * found.outside or not _fits(formula, shape, found.count, speed):
            break
        inside = speed
    return replace(found, inside=inside)


def nvls_channels(formula: Formula, shape: GroupShape) -> Channels:
    """Those of the reduction by switches: one for each member that heads one, by a card of its own
    where there are several nodes; it needs two parts of its links, of the others' one."""
    heads = shape.local if shape.nodes == 1 else _cards(shape)
    count = min(heads, formula.search.channels)
    limit = _inside_rate(formula, shape) / (count + 1)
    if shape.nodes == 1:
        speeds = _speeds(formula, shape)
        inside = _at_most(speeds, limit)
        return Channels(count, inside, max(speeds, default=inside))
    speeds, card = _speeds(formula, shape, outside=True), _card_rate(shape)
    inside = outside = _at_most(speeds, min(limit, card))
    for speed in reversed(speeds):
        if outside < speed <= card and outside < 2 * inside:
            outside = speed
    return Channels(count, inside, outside)


def _served(formula: Formula, shape: GroupShape, rings: Channels) -> int:
    """Two of the library's channels for each of a ring, or four."""
    count, search = 2 * rings.count, formula.search
    known = shape.nodes > 1 and generation_of(formula, shape) in search.served_twice
    if known and rings.inside > _WIDE_BYTES_PER_S and count < 16:
        return 2 * count
    return min(count, 2 * search.channels)


def generation_of(formula: Formula, shape: GroupShape) -> str:
    """The generation of the devices, by the fabric that joins them."""
    return near(formula, shape).generation


def near(formula: Formula, shape: GroupShape) -> Hardware:
    """What the links inside a node are taken for."""
    return formula.hardware_of(shape.inside, across=False)


def plain_tree(formula: Formula, shape: GroupShape) -> bool:
    """Whether a tree enters and leaves each node by one device.

    Otherwise two share the network's part.  From Hopper on the search is content with the plain one
    where only one device reaches a card without the help of another.
    """
    if shape.nodes == 1:
        return False
    taken = generation_of(formula, shape) in formula.search.plain_tree
    return shape.local == 1 or (taken and not _joined(formula, shape))


def near_cards(formula: Formula, shape: GroupShape) -> bool:
    """Whether channels leave a node as directly as LL128 needs it.

    Up to Ampere no device may pass on to another's card what goes out.
    """
    if shape.nodes == 1:
        return True
    if not formula.hardware_of(shape.outside, across=True).direct:
        return False
    if shape.local == 1 or generation_of(formula, shape) in formula.search.relayed_ll128:
        return True
    return _joined(formula, shape)


def _joined(formula: Formula, shape: GroupShape) -> bool:
    """Whether every card is reached by two members at least, so that a channel may come in by one
    and go out by another.

    They share the card, or the switch or processor of the host that has as many cards as devices.
    """
    known = {generation_of(formula, shape), shape.cpu} & set(formula.search.paired)
    reach = shape.card_devices if shape.card_devices > 1 or not known else 2
    return reach > 1 and shape.local > 1 and shape.local % reach != 1


def _inside_rate(formula: Formula, shape: GroupShape) -> float:
    """What the library takes a device's links inside a node for."""
    return shape.device_bytes_per_s * near(formula, shape).known


def _speeds(formula: Formula, shape: GroupShape, *, outside: bool = False) -> tuple[float, ...]:
    lists = formula.search.outside if outside else formula.search.inside
    return dict(lists).get(generation_of(formula, shape), ())


def _alone(formula: Formula, shape: GroupShape) -> Channels:
    """Rings inside one node: of the largest sum, and of equal ones the fewest."""
    total, most = _inside_rate(formula, shape), formula.search.channels
    tried = [(s, min(most, int(total / s))) for s in _speeds(formula, shape) if s <= total]
    rate, count = max(tried, key=lambda found: (found[0] * found[1], found[0]), default=(total, 1))
    return Channels(count, rate, rate)


def _across(formula: Formula, shape: GroupShape) -> Channels:
    """Rings across nodes: through each card as many channels as it carries, as wide as they go.

    Narrower ones are tried down to half of what was found, and taken for a larger sum.
    """
    card, best = _card_rate(shape), Channels(0, 0.0, 0.0)
    for speed in _speeds(formula, shape, outside=True):
        if best.count and speed <= 0.49 * best.outside:
            break
        each = int(card / (speed * _returned(formula, shape)))
        count = min(_cards(shape) * each, formula.search.channels)
        while count and not _fits(formula, shape, count, speed, ring=True):
            count -= 1
        if count * speed > best.count * best.outside:
            best = Channels(count, speed, speed)
    return best if best.count else Channels(_cards(shape), card, card)


def _returned(formula: Formula, shape: GroupShape) -> float:
    """What a channel takes of a card that one device both receives by and sends by: before Ampere
    what comes in costs an eighth of itself on the way out."""
    turned = generation_of(formula, shape) in formula.search.turned
    return 9 / 8 if turned and not _joined(formula, shape) else 1.0


def _fits(
    formula: Formula, shape: GroupShape, count: int, speed: float, *, ring: bool = False
) -> bool:
    """Whether the links inside a node carry so many chains of its members across nodes.

    Each leaves the links of its last member free; of a ring that has to return to the card by which
    it came the last one passes on to the first, but where it may leave by another, as pairs of
    rings do.
    """
    if shape.local == 1:
        return True
    closed = ring and not _joined(formula, shape) and count % 2 == 1
    loaded = count if closed else count - count // shape.local
    return loaded * speed <= _inside_rate(formula, shape)


def _cards(shape: GroupShape) -> int:
    """The cards that members have; several of one member count as one."""
    return max(1, min(shape.cards, shape.local))


def _card_rate(shape: GroupShape) -> float:
    return shape.node_bytes_per_s / _cards(shape)


def _at_most(speeds: Sequence[float], limit: float) -> float:
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
