"""Whole trees by a solver: pieces that are few, each with the tree that is best for all together.

The linear program says averages, and what follows them is rounded.  Where few pieces are left to
choose for, a solver does it in whole numbers: who is entered over the network, and how often each
device sends.  It is believed in nothing: trees grow from its numbers, and the plan is replayed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from p2smt.problems.transfer import (
    ClassMember,
    ClassPart,
    ClassRow,
    PieceFlows,
    PieceProblem,
    PieceSends,
    tick_of,
)
from p2smt.result import Result, SearchLimits
from p2smt.solvers.ask import Optimum, Solver, ask
from p2smt.transfer.classes import TransferClass, TransferMoves
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.ports import IN, OUT, Port, PortMap
from p2smt.transfer.trees import grown_tree

Cut = Sequence[tuple[int, int, int]]
"""Pieces without their trees: the number of a class, and elements from start to stop."""


def cut_evenly(moves: TransferMoves, ways: int) -> Cut:
    """Every class cut into so many equal pieces; none is less than an element."""
    found = []
    for number, one in enumerate(moves.classes):
        ends = sorted({one.elements * k // ways for k in range(ways + 1)})
        found += [(number, a, b) for a, b in pairwise(ends)]
    return found


def solved_pieces(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    cut: Cut,
    limits: SearchLimits,
    solver: Solver = Solver.CPSAT,
) -> tuple[Result[PieceFlows], tuple[TreePiece, ...]]:
    """What the solver says, and the pieces with the trees of its numbers; none: it says nothing.

    Raises:
        TooLarge: pieces have too many devices.
    """
    answer = ask(piece_problem(moves, ports, item_bytes, cut), Optimum(), solver, limits)
    if answer.value is None:
        return answer, ()
    found = tuple(
        TreePiece(number, start, stop, _edges(moves.classes[number], ports, answer.value[b]))
        for b, (number, start, stop) in enumerate(cut)
    )
    return answer, found


def piece_problem(moves: TransferMoves, ports: PortMap, item_bytes: int, cut: Cut) -> PieceProblem:
    """The pieces as numbers; ports are those on which bounds stand."""
    numbers: dict[Port, int] = {}
    made = [tuple(_parts(one, ports, numbers)) for one in moves.classes]
    rows = tuple(ClassRow(1, (stop - start) * item_bytes, made[n]) for n, start, stop in cut)
    rates = tuple(ports.rate(port) for port in numbers)
    return PieceProblem(rates, rows, tick_of(rates, rows))


def _nodes(one: TransferClass, ports: PortMap) -> Sequence[Sequence[int]]:
    """Holders and needers node by node."""
    found: dict[int, list[int]] = defaultdict(list)
    for device in (*one.holders, *one.needers):
        found[ports.node(device)].append(device)
    return list(found.values())


def _parts(one: TransferClass, ports: PortMap, numbers: dict[Port, int]) -> Iterator[ClassPart]:
    needers = set(one.needers)
    for own in _nodes(one, ports):
        members = []
        for device in own:
            (out, give), (into, take) = (
                tuple(
                    tuple(numbers.setdefault(port, len(numbers)) for port in side)
                    for side in ports.sides(device, way)
                )
                for way in (OUT, IN)
            )
            members.append(ClassMember(1, device in needers, out, into, give, take))
        yield ClassPart(1, tuple(members))


def _edges(
    one: TransferClass, ports: PortMap, flows: Sequence[Sequence[PieceSends]]
) -> tuple[tuple[int, int], ...]:
    """A tree in which devices send as often as the numbers say."""
    entering, sends, gives = Counter[int](), Counter[int](), Counter[int]()
    for own, members in zip(_nodes(one, ports), flows, strict=True):
        for device, member in zip(own, members, strict=True):
            entering[device] = int(member.enters)
            sends[device], gives[device] = member.sending, member.giving
    return grown_tree(one, ports, entering, sends, gives)
