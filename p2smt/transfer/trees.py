"""Trees that follow the shares of a linear program, piece by piece.

Of a class whose devices enter, send and give parts e, o and s of it, these parts are laid one after
another around a circle of length 1, the entries of all nodes in a row, what is sent over the
network from the same start, and in each node what is given from where its entries end.  At a point
of the circle a device enters, sends and gives as often as its stretches pass there: whole numbers,
of which as many sends as entries, and in each node as many gifts as needers that do not enter.  A
piece of the class is what lies around one point.

Whole numbers become a tree by attaching first who can send on most.  Where they allow no tree, a
device sends once more than it should, the one that has done so least.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from p2smt.problems.transfer import FlowShares
from p2smt.transfer.classes import TransferClass, TransferMoves
from p2smt.transfer.plan import Edge, TreePiece
from p2smt.transfer.ports import PortMap

_GOLDEN = (math.sqrt(5) - 1) / 2
_NEAR = 1e-7
_TRIES = 12

Stretch = tuple[float, float, int]
"""Start and end on the circle, unrolled, and the device."""


def flow_trees(
    moves: TransferMoves,
    ports: PortMap,
    shares: Sequence[Mapping[int, FlowShares]],
    most: int,
    first: int = 0,
) -> tuple[TreePiece, ...]:
    """Pieces of all classes, at most so many of each; ``first``: the order that is tried first.

    Where stretches of a node meet its own, another order of the nodes is tried.
    """
    beyond, found = Counter[int](), list[TreePiece]()
    for number, one in enumerate(moves.classes):
        tries = (
            _attempt(number, one, ports, shares[number], most, beyond, turn)
            for turn in range(first, first + _TRIES)
        )
        pieces, more = _first_best(tries)
        beyond += more
        found += pieces
    return tuple(found)


_Attempt = tuple[list[TreePiece], Counter[int]]


def _first_best(tries: Iterator[_Attempt]) -> _Attempt:
    """The attempt that sends least beyond what it should; the first that sends nothing so."""
    best = next(tries)
    while best[1] and (other := next(tries, None)) is not None:
        best = min(best, other, key=lambda one: one[1].total())
    return best


def _attempt(
    number: int,
    one: TransferClass,
    ports: PortMap,
    shares: Mapping[int, FlowShares],
    most: int,
    beyond: Counter[int],
    turn: int,
) -> _Attempt:
    """The pieces of a class, and the elements that devices send beyond what they should."""
    circle = _circle(one, ports, shares, (number * _GOLDEN) % 1.0, turn)
    start, found, more = 0, list[TreePiece](), Counter[int]()
    for end in _ends(circle, min(most, one.elements)):
        stop = round(one.elements * end)
        if stop > start:
            middle = (start + stop) / 2 / one.elements
            tree = _tree(one, ports, circle, middle, beyond + more)
            more.update({d: n * (stop - start) for d, n in tree.over.items()})
            found.append(TreePiece(number, start, stop, tuple(tree.edges)))
            start = stop
    return found, more


@dataclass(frozen=True)
class _Circle:
    """The stretches of a class."""

    entering: list[Stretch]
    sending: list[Stretch]
    giving: list[Stretch]


def _circle(
    one: TransferClass, ports: PortMap, shares: Mapping[int, FlowShares], start: float, turn: int
) -> _Circle:
    """The stretches, nodes and devices in an order of each ``turn``."""
    holders, needers = set(one.holders), set(one.needers)
    nodes: dict[int, list[int]] = defaultdict(list)
    for device in (*one.holders, *one.needers):
        nodes[ports.node(device)].append(device)
    mixed = Random(turn)
    for own in nodes.values() if turn else ():
        mixed.shuffle(own)
        own.sort(key=lambda d: d in needers)
    held = [n for n, own in nodes.items() if holders & set(own)]
    order = [*held, *(n for n in nodes if n not in set(held))]
    circle, at = _Circle([], [], []), start
    for node in mixed.sample(sorted(nodes), len(nodes)) if turn else nodes:
        lacking = [d for d in nodes[node] if d in needers]
        at = _lay(circle.entering, at, [(d, shares[d].entering) for d in lacking])
        if lacking:
            _lay(circle.giving, at, [(d, shares[d].giving) for d in nodes[node]])
    _lay(circle.sending, start, [(d, shares[d].sending) for n in order for d in nodes[n]])
    return circle


def _lay(found: list[Stretch], at: float, parts: Sequence[tuple[int, float]]) -> float:
    for device, part in parts:
        if part > _NEAR:
            found.append((at, at + part, device))
            at += part
    return at


def _ends(circle: _Circle, most: int) -> list[float]:
    """Where pieces end: where some stretch does, or, of more than ``most``, evenly."""
    every = (*circle.entering, *circle.sending, *circle.giving)
    ends = sorted({round(end % 1.0, 6) % 1.0 for stretch in every for end in stretch[:2]} | {1.0})
    ends = [end for end in ends if end > 0]
    return ends if len(ends) <= most else [(k + 1) / most for k in range(most)]


def _times(stretches: Sequence[Stretch], point: float) -> Counter[int]:
    """How often the stretches of each device pass a point of the circle."""
    found = Counter[int]()
    for start, end, device in stretches:
        times = math.floor(end - point + _NEAR) - math.floor(start - point + _NEAR)
        if times:
            found[device] += times
    return found


def _tree(
    one: TransferClass, ports: PortMap, circle: _Circle, point: float, beyond: Counter[int]
) -> _Growth:
    grown = _Growth(
        {d: ports.node(d) for d in (*one.holders, *one.needers)},
        _times(circle.sending, point),
        _times(circle.giving, point),
        beyond,
    )
    grown.grow(one, _times(circle.entering, point))
    return grown


def grown_tree(
    one: TransferClass,
    ports: PortMap,
    entering: Counter[int],
    sends: Counter[int],
    gives: Counter[int],
) -> tuple[Edge, ...]:
    """A tree in which devices enter, send and give so often; where there is none, one near it."""
    node = {d: ports.node(d) for d in (*one.holders, *one.needers)}
    grown = _Growth(node, sends, gives, Counter())
    grown.grow(one, entering)
    return tuple(grown.edges)


@dataclass
class _Growth:
    """A tree while it grows: what devices may still send, and who waits."""

    node: Mapping[int, int]
    sends: Counter[int]
    gives: Counter[int]
    beyond: Counter[int]
    edges: list[Edge] = field(default_factory=list)
    over: Counter[int] = field(default_factory=Counter)
    able: list[int] = field(default_factory=list)
    """Devices that have the piece and may send it over the network."""
    giving: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    having: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    inside: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    outside: list[int] = field(default_factory=list)

    def grow(self, one: TransferClass, entering: Counter[int]) -> None:
        """Attach all needers."""
        self._wait(one, entering)
        for device in one.holders:
            self._has(device)
        while self.outside or any(self.inside.values()):
            if not (self._inside() or self._outside() or self._beyond_inside()):
                self._beyond_outside()

    def _wait(self, one: TransferClass, entering: Counter[int]) -> None:
        """Who waits, those last that can send on most."""
        reach = Counter[int]()
        for device in one.needers:
            reach[self.node[device]] += self.sends[device]
            if not entering[device]:
                self.inside[self.node[device]].append(device)
        for own in self.inside.values():
            own.sort(key=lambda d: (self.gives[d] > 0, self.sends[d] + self.gives[d]))
        self.outside = sorted(
            (d for d in one.needers if entering[d]),
            key=lambda d: (self.sends[d] + reach[self.node[d]], self.gives[d]),
        )

    def _has(self, device: int) -> None:
        node = self.node[device]
        self.having[node].append(device)
        self.able += [device] * self.sends[device]
        self.giving[node] += [device] * self.gives[device]

    def _attach(self, source: int, target: int) -> None:
        self.edges.append((source, target))
        self._has(target)

    def _inside(self) -> bool:
        """Attach inside the nodes all that may be."""
        before = len(self.edges)
        for node, waiting in self.inside.items():
            while waiting and self.giving[node]:
                self._attach(self.giving[node].pop(), waiting.pop())
        return len(self.edges) > before

    def _outside(self) -> bool:
        """Attach one over the network."""
        if not self.outside:
            return False
        node = self.node[self.outside[-1]]
        for place in range(len(self.able) - 1, -1, -1):
            if self.node[self.able[place]] != node:
                self._attach(self.able.pop(place), self.outside.pop())
                return True
        return False

    def _beyond_inside(self) -> bool:
        """Attach one inside a node by who has given enough."""
        for node, waiting in self.inside.items():
            if waiting and self.having[node]:
                self._attach(self._least(self.having[node]), waiting.pop())
                return True
        return False

    def _beyond_outside(self) -> None:
        """Attach one over the network by who has sent enough."""
        if not self.outside:
            waiting = next(waiting for waiting in self.inside.values() if waiting)
            self.outside.append(waiting.pop())
        node = self.node[self.outside[-1]]
        others = [d for n, own in self.having.items() if n != node for d in own]
        self._attach(self._least(others or self.having[node]), self.outside.pop())

    def _least(self, devices: Sequence[int]) -> int:
        found = min(devices, key=lambda d: (self.over[d], self.beyond[d], d))
        self.over[found] += 1
        return found
