"""Cards of neighbours: what a busy card of a node passes goes in part by those beside it.

A piece that enters a device over the network may enter another device of its node instead, one
that neither holds nor needs it, and go on inside the node; and so may what leaves.  Trees keep
their edges between nodes, and the cards at the ends of these change, until no card passes more than
a time allows, or no idle one is left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

from p2smt.transfer.classes import TransferMoves
from p2smt.transfer.plan import Edge, TreePiece
from p2smt.transfer.ports import IN, OUT, Port, PortMap

_End = tuple[int, int, int]
"""A piece, an edge of it between nodes, and one of the ends: out or in."""


def spread(
    moves: TransferMoves,
    ports: PortMap,
    pieces: Sequence[TreePiece],
    item_bytes: int,
    seconds: Fraction,
) -> tuple[TreePiece, ...]:
    """The same trees, cut so that cards are busy no longer than some seconds, where that can be."""
    found = _Spread(moves, replace(ports, relayed=False), pieces)
    found.even(item_bytes, seconds)
    return tuple(found.cut())


@dataclass
class _Spread:
    """What each card passes, in elements, and what was moved to another one."""

    moves: TransferMoves
    ports: PortMap
    pieces: Sequence[TreePiece]
    load: Counter[Port] = field(default_factory=Counter)
    moved: dict[_End, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def card(self, device: int, way: int) -> Port:
        """The port on the network of a device."""
        return self.ports.sides(device, way)[0][0]

    def even(self, item_bytes: int, seconds: Fraction) -> None:
        """Move what busy cards pass beyond what the time allows to idle ones beside them."""
        passing: dict[Port, list[_End]] = defaultdict(list)
        for at, edge, way, device in self._ends():
            passing[self.card(device, way)].append((at, edge, way))
            self.load[self.card(device, way)] += self._size(at)
        for port in sorted(passing, key=lambda port: (-self.load[port], port)):
            most = int(seconds * self.ports.rate(port) / item_bytes)
            for end in passing[port]:
                if self.load[port] > most:
                    self._move(end, port, most)

    def _ends(self) -> Iterator[tuple[int, int, int, int]]:
        for at, piece in enumerate(self.pieces):
            for number, edge in enumerate(piece.edges):
                if self.ports.node(edge[0]) != self.ports.node(edge[1]):
                    yield at, number, OUT, edge[0]
                    yield at, number, IN, edge[1]

    def _size(self, at: int) -> int:
        return self.pieces[at].stop - self.pieces[at].start

    def _move(self, end: _End, port: Port, most: int) -> None:
        left = self._size(end[0])
        for device in self._strangers(end):
            other = self.card(device, end[2])
            part = min(left, self.load[port] - most, most - self.load[other])
            if part > 0:
                self.moved[end].append((part, device))
                self.load[port] -= part
                self.load[other] += part
                left -= part

    def _strangers(self, end: _End) -> list[int]:
        """Devices of the node that have nothing to do with a piece, the least busy first."""
        at, number, way = end
        device = self.pieces[at].edges[number][way]
        one = self.moves.classes[self.pieces[at].number]
        known = {*one.holders, *one.needers}
        width = self.ports.topology.devices_under(self.ports.network)
        first = self.ports.node(device) * width
        own = [
            d
            for d in range(first, first + width)
            if d in self.ports.topology.places and d not in known
        ]
        return sorted(own, key=lambda d: (self.load[self.card(d, way)], d))

    def cut(self) -> Iterator[TreePiece]:
        """The pieces, each where its cards change."""
        changed: dict[int, dict[tuple[int, int], list[tuple[int, int]]]] = defaultdict(dict)
        for (at, number, way), parts in self.moved.items():
            changed[at][number, way] = parts
        for at, piece in enumerate(self.pieces):
            if at not in changed:
                yield piece
                continue
            stretches = {end: _stretches(parts) for end, parts in changed[at].items()}
            ends = {stop for own in stretches.values() for stop, _ in own} | {self._size(at)}
            start = 0
            for stop in sorted(ends):
                cards = {end: _at(own, start) for end, own in stretches.items()}
                edges = tuple(_edges(piece.edges, cards, self.moves.classes[piece.number].holders))
                yield TreePiece(piece.number, piece.start + start, piece.start + stop, edges)
                start = stop


def _stretches(parts: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where each part ends, with its device."""
    found, at = [], 0
    for part, device in parts:
        at += part
        found.append((at, device))
    return found


def _at(stretches: Sequence[tuple[int, int]], start: int) -> int | None:
    """The device that passes what begins there; None: the one of the tree."""
    return next((device for stop, device in stretches if start < stop), None)


def _edges(
    edges: Sequence[Edge], cards: Mapping[tuple[int, int], int | None], holders: Sequence[int]
) -> Iterator[Edge]:
    """A tree with other cards at some ends; what somebody has is not sent to it again."""
    has = set(holders)
    for number, (source, target) in enumerate(edges):
        out, into = cards.get((number, OUT)), cards.get((number, IN))
        way = [source, *(d for d in (out, into) if d is not None), target]
        for sender, receiver in pairwise(way):
            if receiver not in has:
                has.add(receiver)
                yield sender, receiver
