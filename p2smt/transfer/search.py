"""The plan of a transfer: chains where they are best, else trees that follow a linear program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from p2smt.errors import EncodingBug
from p2smt.problems.transfer import FlowShares
from p2smt.result import SearchLimits, StopWatch
from p2smt.transfer.bound import FlowBound, flow_bound, outer_bound
from p2smt.transfer.certificate import OPTIMAL_WITHIN, TransferCertificate, gap_of, proved_bound_s
from p2smt.transfer.chains import apart, filled_chains, flow_chains
from p2smt.transfer.classes import TransferClass, TransferMoves
from p2smt.transfer.packed import packed_pieces
from p2smt.transfer.plan import Replay, TreePiece, replay
from p2smt.transfer.ports import PortMap
from p2smt.transfer.relays import spread
from p2smt.transfer.trees import flow_trees
from p2smt.transfer.whole import cut_evenly, solved_pieces

FIRST = (8, 0)
PIECES = tuple((64, 100 * turn) for turn in range(8))
"""So many of a class at most, with the first of the orders of nodes, tried one after the other."""
NEAR = Fraction(1, 1000)
"""So near to the bound nothing is tried but trees that are packed."""
MOST_EDGES = 1_000_000
FAR = Fraction(1, 100)
"""A plan further from the bound is sought anew by a solver, if pieces and their devices are few."""
FEW_PIECES, FEW_DEVICES, EFFORT = 200, 5_000, 500


@dataclass(frozen=True)
class PlannedMoves:
    """Pieces with what they come to, and the best bound that is proved."""

    pieces: tuple[TreePiece, ...]
    replay: Replay
    certificate: TransferCertificate

    @property
    def gap(self) -> Fraction | None:
        """How much longer than the bound it takes, as a part of the bound; None: none is proved."""
        return gap_of(self.replay.bandwidth_s, self.certificate.bound_s)

    @property
    def optimal(self) -> bool:
        """Whether the certificate proves that no plan is faster."""
        return self.within(OPTIMAL_WITHIN)

    def within(self, part: Fraction) -> bool:
        """Whether it takes at most this part longer than the bound."""
        return self.gap is not None and self.gap <= part


def plan_moves(
    moves: TransferMoves, ports: PortMap, item_bytes: int, limits: SearchLimits
) -> PlannedMoves:
    """The best plan found, and the best bound."""
    watch = StopWatch.start(limits)
    outer, best = outer_bound(moves, ports, item_bytes), None
    if apart(moves, ports):
        chain = filled_chains(moves, ports)
        bound = proved_bound_s(moves, item_bytes, ports, chain.prices)
        certificate = TransferCertificate(bound, chain.prices if bound else {})
        certificate = max(certificate, outer, key=lambda one: one.bound_s)
        best = _planned(moves, ports, item_bytes, chain.pieces, certificate)
        if best.optimal:
            return _no_faster(best)
    flow = flow_bound(moves, ports, item_bytes, watch.left())
    found = _followed(moves, ports, item_bytes, flow, best, watch, outer)
    if ports.relayed and not found.optimal:
        direct = plan_moves(moves, replace(ports, relayed=False), item_bytes, watch.left()).pieces
        again = _planned(moves, ports, item_bytes, direct, found.certificate)
        found = min(found, again, key=lambda one: one.replay.bandwidth_s)
    return _no_faster(found)


def _planned(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    pieces: tuple[TreePiece, ...],
    bound: TransferCertificate,
) -> PlannedMoves:
    """Pieces, by the cards of neighbours where they may go by these and are faster, replayed."""
    ways = [pieces]
    if ports.relayed:
        ways.append(spread(moves, ports, pieces, item_bytes, bound.bound_s))
    found = (PlannedMoves(one, replay(moves, one, ports, item_bytes), bound) for one in ways)
    return min(found, key=lambda one: one.replay.bandwidth_s)


def _followed(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    flow: FlowBound | None,
    best: PlannedMoves | None,
    watch: StopWatch,
    outer: TransferCertificate,
) -> PlannedMoves:
    """The best of what follows the linear program, with the best bound."""
    bounds = [outer, *(one.certificate for one in (flow, best) if one is not None)]
    bound = max(bounds, key=lambda one: one.bound_s)
    found = [] if best is None else [PlannedMoves(best.pieces, best.replay, bound)]
    for pieces in _candidates(moves, ports, item_bytes, flow, watch, found):
        found.append(_planned(moves, ports, item_bytes, pieces, bound))
        if found[-1].optimal or watch.expired():
            break
    return min(found, key=lambda one: one.replay.bandwidth_s)


def _no_faster(found: PlannedMoves) -> PlannedMoves:
    """The plan, if it is not below its bound.

    Raises:
        EncodingBug: it is.
    """
    if found.replay.bandwidth_s < found.certificate.bound_s:
        plan = {"pieces": found.pieces, "bandwidth_s": found.replay.bandwidth_s}
        raise EncodingBug("a transfer is below its bound", found.certificate, plan)
    return found


def _candidates(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    flow: FlowBound | None,
    watch: StopWatch,
    found: Sequence[PlannedMoves],
) -> Iterator[tuple[TreePiece, ...]]:
    """Pieces to be tried; what they came to is in ``found`` when the next are asked for."""
    if flow is not None and apart(moves, ports):
        yield flow_chains(moves, ports, flow.shares)
    shares = [no_shares(one) for one in moves.classes] if flow is None else flow.shares
    edges = sum(len(one.needers) for one in moves.classes)
    yield flow_trees(moves, ports, shares, *FIRST)
    if not ports.relayed:
        yield from _packed(moves, ports, item_bytes, watch.left(), found)
    for most, first in PIECES:
        if any(one.within(NEAR) for one in found):
            return
        if most * edges <= MOST_EDGES:
            yield flow_trees(moves, ports, shares, most, first)
    if not ports.relayed and not any(one.within(FAR) for one in found):
        yield from _solved(moves, ports, item_bytes, watch.left())


def _packed(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    limits: SearchLimits,
    found: Sequence[PlannedMoves],
) -> Iterator[tuple[TreePiece, ...]]:
    """Trees packed, from those of the best plan on, if classes are few enough."""
    best = min(found, key=lambda one: one.replay.bandwidth_s)
    bound_s = best.certificate.bound_s
    pieces = packed_pieces(moves, ports, item_bytes, best.pieces, bound_s, limits)
    if pieces:
        yield pieces


def _solved(
    moves: TransferMoves, ports: PortMap, item_bytes: int, limits: SearchLimits
) -> Iterator[tuple[TreePiece, ...]]:
    """Whole trees by a solver, if pieces are few enough for one."""
    devices = sum(len(one.holders) + len(one.needers) for one in moves.classes)
    ways = min(FEW_PIECES // len(moves.classes), FEW_DEVICES // devices) if devices else 0
    if ways:
        cut = cut_evenly(moves, ways)
        _, pieces = solved_pieces(moves, ports, item_bytes, cut, replace(limits, effort=EFFORT))
        if pieces:
            yield pieces


def no_shares(one: TransferClass) -> dict[int, FlowShares]:
    """Nothing is told of a class: its tree grows by who has sent least."""
    return dict.fromkeys((*one.holders, *one.needers), FlowShares(0.0, 0.0, 0.0))
