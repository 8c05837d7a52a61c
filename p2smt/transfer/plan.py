"""A plan of a transfer: which elements go along which tree, and the replay that holds it to that.

The replay knows no search.  It takes the classes that ``classes`` derives from both layouts, lets
the pieces of each move along their edges, and adds up the bytes that every port passes.  Where
ports are those of plans that relay, other devices of the same nodes may pass a piece on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p2smt.errors import InputError
from p2smt.transfer.classes import TransferMoves, ranges
from p2smt.transfer.ports import Port, PortMap

Edge = tuple[int, int]
"""A device and the one that it sends to."""


@dataclass(frozen=True)
class TreePiece:
    """Elements ``start`` to ``stop`` of a class, and the edges that they go along, in order."""

    number: int
    start: int
    stop: int
    edges: tuple[Edge, ...]


def taking_part(
    sources: Sequence[int], targets: Sequence[int], pieces: Sequence[TreePiece]
) -> tuple[int, ...]:
    """The devices of a plan, ascending: those of both layouts, and who passes on for them.

    Where it is carried out, rank r is the r-th of them.
    """
    passing = {device for piece in pieces for edge in piece.edges for device in edge}
    return tuple(sorted({*sources, *targets, *passing}))


@dataclass(frozen=True)
class Replay:
    """What a plan's messages come to: bytes and messages, by pair of devices, and by port."""

    loads: Mapping[Port, int]
    sent: Mapping[Edge, int]
    messages: Mapping[Edge, int]
    bandwidth_s: Fraction

    def busiest(self, ports: PortMap) -> tuple[Port, ...]:
        """The ports that take longest, all that take as long."""
        return tuple(
            port
            for port, load in self.loads.items()
            if Fraction(load) / ports.rate(port) == self.bandwidth_s
        )


def replay(
    moves: TransferMoves, pieces: Sequence[TreePiece], ports: PortMap, item_bytes: int
) -> Replay:
    """Move all pieces.

    Raises:
        InputError: an element reaches a needer twice or never, is sent by who does not have it, or
            to who has no use of it; named by tensor and index.
    """
    by_class: dict[int, list[TreePiece]] = defaultdict(list)
    for piece in pieces:
        if not 0 <= piece.number < len(moves.classes):
            given = f"a piece of class {piece.number}"
            raise InputError(given, f"there are {len(moves.classes)} classes")
        by_class[piece.number].append(piece)
    sent, messages = Counter[Edge](), Counter[Edge]()
    for number in range(len(moves.classes)):
        _check_cover(moves, number, by_class[number])
        for piece in by_class[number]:
            _check_tree(moves, piece, ports)
            for edge in piece.edges:
                sent[edge] += (piece.stop - piece.start) * item_bytes
                messages[edge] += 1
    loads = Counter[Port]()
    for edge, payload in sent.items():
        for port in ports.message(*edge):
            loads[port] += payload
    times = (Fraction(load) / ports.rate(port) for port, load in loads.items())
    return Replay(loads, sent, messages, max(times, default=Fraction(0)))


def _check_cover(moves: TransferMoves, number: int, pieces: Sequence[TreePiece]) -> None:
    """The pieces of a class have each of its elements once."""
    at, every = 0, moves.classes[number].elements
    for piece in sorted(pieces, key=lambda one: one.start):
        if piece.start != at or not piece.start < piece.stop <= every:
            _refuse(moves, number, min(at, piece.start), "is in no piece, or in two")
        at = piece.stop
    if at != every:
        _refuse(moves, number, at, "is in no piece")


def _check_tree(moves: TransferMoves, piece: TreePiece, ports: PortMap) -> None:
    """Who sends has the piece by then, and every needer gets it once, and so do those who relay."""
    one = moves.classes[piece.number]
    has, lacks = set(one.holders), set(one.needers)
    nodes = {ports.node(device) for device in (*has, *lacks)} if ports.relayed else set()
    relays = {d for d in ports.topology.places if ports.node(d) in nodes} if nodes else set()
    for source, target in piece.edges:
        if source not in has:
            rule = f"is sent by device {source}, which does not have it yet"
            _refuse(moves, piece.number, piece.start, rule)
        if target in has or not (target in lacks or target in relays):
            rule = f"is sent to device {target}, which has it or does not need it"
            _refuse(moves, piece.number, piece.start, rule)
        has.add(target)
        lacks.discard(target)
    if lacks:
        rule = f"does not reach device {min(lacks)}"
        _refuse(moves, piece.number, piece.start, rule)


def _refuse(moves: TransferMoves, number: int, element: int, rule: str) -> None:
    given = f"element {element} of class {number}"
    every = moves.classes[number].elements
    place = min(max(element, 0), every - 1)
    for tensor, box, low, _ in ranges(moves, number, place, place + 1):
        given = f"element {index_of(box, low)} of tensor {tensor[:80]!r}"
    raise InputError(given, rule)


def index_of(box: Sequence[tuple[int, int]], element: int) -> list[int]:
    """The index of the element of that number of a box, row-major."""
    found = []
    for start, stop in reversed(box):
        element, at = divmod(element, stop - start)
        found.append(start + at)
    return found[::-1]
