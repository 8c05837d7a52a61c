"""Trees packed so that no port takes longer than a bound, where trees that follow shares miss it.

Of the trees known so far a linear program says which parts of the classes go along each, so that
the busiest port is done soonest, and what each port is worth; at these prices a cheapest tree of
each class is new, or there is none better.  That ends at the best of all plans, but for whole
elements.  (Column generation: Ford and Fulkerson, 1958, Management Science 5.)

A cheapest tree is that of Chu and Liu (1965) and of Edmonds (1967): every needer takes its cheapest
edge, and a circle of these becomes one, whose ways in cost what they cost more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p2smt.parallelism.placement import IntArray
from p2smt.problems.packing import PackedColumn, PackingProblem, PackingShares
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import ask_packing
from p2smt.transfer.classes import TransferClass, TransferMoves
from p2smt.transfer.plan import Edge, TreePiece
from p2smt.transfer.ports import IN, OUT, Port, PortMap

MOST_PAIRS = 1_500_000
"""Of a device of a class and one that needs it: with more, nothing is packed."""
_WORK, _ROUNDS = 30_000_000, 200
"""Pairs that are looked at in all, and rounds."""
_NEAR, _LEAST = 2e-7, 1e-9

Floats = npt.NDArray[np.float64]


def packed_pieces(
    moves: TransferMoves,
    ports: PortMap,
    item_bytes: int,
    known: Sequence[TreePiece],
    seconds: Fraction,
    limits: SearchLimits,
) -> tuple[TreePiece, ...]:
    """Pieces no slower than what is known, but for whole elements; none: they are too many.

    ``seconds``: a bound, at which it ends.
    """
    pairs = sum((len(c.holders) + len(c.needers)) * len(c.needers) for c in moves.classes)
    if not 0 < pairs <= MOST_PAIRS or not seconds:
        return ()
    packing = _Packing(moves, ports, item_bytes, seconds)
    for piece in known:
        packing.keep(piece.number, piece.edges)
    shares = packing.grow(min(_ROUNDS, _WORK // max(1, pairs)), limits)
    return () if shares is None else tuple(packing.pieces(shares))


class _Packing:
    """Trees by class, and what each takes of the time of the ports; the time is 1."""

    def __init__(
        self, moves: TransferMoves, ports: PortMap, item_bytes: int, seconds: Fraction
    ) -> None:
        self.moves, self.ports = moves, ports
        self.trees: list[tuple[int, tuple[Edge, ...]]] = []
        self.columns: list[PackedColumn] = []
        self._known: set[tuple[int, frozenset[tuple[int, float]]]] = set()
        self._passed: dict[Edge, tuple[int, ...]] = {}
        self._prices = DevicePrices(moves, ports)
        self._sizes = [one.elements * item_bytes for one in moves.classes]
        rates = [float(ports.rate(port) * seconds) for port in self._prices.number]
        self._rates: Floats = np.array(rates)

    def keep(self, number: int, edges: tuple[Edge, ...]) -> bool:
        """Add a tree of a class; False: one that loads the same ports is there."""
        count = Counter(port for edge in edges for port in self._ports(edge))
        loads = {p: n * self._sizes[number] / float(self._rates[p]) for p, n in count.items()}
        key = (number, frozenset(loads.items()))
        if key in self._known:
            return False
        self._known.add(key)
        self.trees.append((number, edges))
        self.columns.append(PackedColumn(number, loads))
        return True

    def _ports(self, edge: Edge) -> tuple[int, ...]:
        if edge not in self._passed:
            numbers = self._prices.number
            self._passed[edge] = tuple(numbers[port] for port in self.ports.message(*edge))
        return self._passed[edge]

    def grow(self, rounds: int, limits: SearchLimits) -> PackingShares | None:
        """Add trees until the bound is reached, or none helps; the best shares so far."""
        watch, shares = StopWatch.start(limits), None
        prices: Floats = np.full(len(self._rates), 1 / len(self._rates))
        for _ in range(rounds):
            problem = PackingProblem(len(self.moves.classes), len(self._rates), tuple(self.columns))
            found = ask_packing(problem, watch.left()).value
            if found is None:
                return shares
            shares, own = found, np.array(found.prices)
            prices = (prices + own) / 2
            if found.load <= 1 + _NEAR or not (self._add(prices) or self._add(own)):
                break
        return shares

    def _add(self, prices: Floats) -> bool:
        """Add a cheapest tree of each class at these prices; False: all are known."""
        self._prices.set(prices / self._rates)
        trees = [self._prices.cheapest(one) for one in self.moves.classes]
        return sum(self.keep(number, edges) for number, edges in enumerate(trees)) > 0

    def pieces(self, shares: PackingShares) -> Iterator[TreePiece]:
        """Every class cut by its shares."""
        parts: dict[int, list[tuple[float, tuple[Edge, ...]]]] = defaultdict(list)
        for (number, edges), weight in zip(self.trees, shares.weights, strict=True):
            if weight > _LEAST:
                parts[number].append((weight, edges))
        for number, one in enumerate(self.moves.classes):
            whole, done, start = sum(weight for weight, _ in parts[number]), 0.0, 0
            for weight, edges in parts[number]:
                done += weight
                stop = round(one.elements * min(1.0, done / whole))
                if edges == parts[number][-1][1]:
                    stop = one.elements
                if stop > start:
                    yield TreePiece(number, start, stop, edges)
                    start = stop


class DevicePrices:
    """What a byte costs from device to device: the ports' prices at both ends of all levels."""

    def __init__(self, moves: TransferMoves, ports: PortMap) -> None:
        found = {d for one in moves.classes for d in (*one.holders, *one.needers)}
        devices = sorted(found)
        topology = ports.topology
        self.number: dict[Port, int] = {}
        self._place = {device: i for i, device in enumerate(devices)}
        widths = [topology.devices_under(j) for j in range(len(topology.levels))]
        self._entities: list[IntArray] = [np.array(devices) // width for width in widths]
        self._node: IntArray = np.array([ports.node(device) for device in devices])
        self._network = ports.network
        self._plugs: dict[tuple[int, int], tuple[IntArray, IntArray]] = {}
        for level in range(len(widths)):
            for way in (OUT, IN):
                pairs = [
                    (i, self.number.setdefault(port, len(self.number)))
                    for i, device in enumerate(devices)
                    for port in ports.of_side(device, level, way)
                ]
                plug, port = np.array(pairs, dtype=np.int64).T
                self._plugs[level, way] = plug, port
        self._costs: dict[tuple[int, int], Floats] = {}

    def set(self, prices: Floats) -> None:
        """Take prices of the ports, by number."""
        for key, (plug, port) in self._plugs.items():
            found = np.bincount(plug, prices[port], len(self._node))
            self._costs[key] = np.asarray(found, dtype=np.float64)

    def between(self, senders: IntArray, receivers: IntArray) -> Floats:
        """What a byte from each sender to each receiver costs."""
        cost = np.zeros((len(senders), len(receivers)))
        apart = self._node[senders][:, None] != self._node[receivers]
        for level, entity in enumerate(self._entities):
            used = entity[senders][:, None] != entity[receivers]
            used &= apart if level <= self._network else ~apart
            out, into = self._costs[level, OUT][senders], self._costs[level, IN][receivers]
            cost += np.where(used, out[:, None] + into, 0.0)
        return cost

    def cheapest(self, one: TransferClass) -> tuple[Edge, ...]:
        """The edges of a cheapest tree of a class, in the order of sending."""
        holders, needers = (
            np.array([self._place[d] for d in own]) for own in (one.holders, one.needers)
        )
        first = self.between(holders, needers)
        cost = np.full((1 + len(needers),) * 2, np.inf)
        cost[0, 1:], cost[1:, 1:] = first.min(axis=0), self.between(needers, needers)
        roots = first.argmin(axis=0)
        after: dict[int, list[int]] = defaultdict(list)
        for vertex, parent in list(enumerate(least_tree(cost).tolist()))[1:]:
            after[parent].append(vertex)
        edges, left = list[Edge](), [(0, vertex) for vertex in after[0]]
        for parent, vertex in left:  # which grows
            sender = one.needers[parent - 1] if parent else one.holders[roots[vertex - 1]]
            edges.append((sender, one.needers[vertex - 1]))
            left += ((vertex, child) for child in after[vertex])
        return tuple(edges)


def least_tree(cost: Floats) -> IntArray:
    """The parent of each vertex but 0 in a cheapest tree from it; ``cost``: from row to column.

    Nothing leads to 0, or to itself: that costs infinity.
    """
    count = len(cost)
    parent = np.asarray(cost.argmin(axis=0), dtype=np.int64)
    circles = list(_circles(parent.tolist()))
    if not circles:
        return parent
    part: IntArray = np.full(count, -1)
    more = cost.copy()
    for number, circle in enumerate(circles):
        part[circle] = number
        more[:, circle] -= cost[parent[circle], circle]
    single = part < 0
    part[~single] += np.count_nonzero(single)
    part[single] = np.arange(np.count_nonzero(single))
    ways = int(part.max()) + 1
    key = (part[:, None] * ways + part).ravel()
    order = np.argsort(more, axis=None, kind="stable")
    pairs, first = np.unique(key[order], return_index=True)
    chosen: IntArray = np.zeros(ways * ways, dtype=np.int64)
    chosen[pairs] = order[first]
    joined = more.ravel()[chosen].reshape(ways, ways)
    np.fill_diagonal(joined, np.inf)
    entered = chosen.reshape(ways, ways)[least_tree(joined)[1:], np.arange(1, ways)]
    senders, receivers = np.divmod(entered, count)
    parent[receivers] = senders
    return parent


def _circles(parent: Sequence[int]) -> Iterator[list[int]]:
    """The circles of vertices, each once, if everybody is entered by its parent; 0 is in none."""
    state: dict[int, int] = {0: 0}
    for start in range(1, len(parent)):
        trail, at = list[int](), start
        while at not in state:
            state[at] = start
            trail.append(at)
            at = parent[at]
        if at and state[at] == start:
            yield trail[trail.index(at) :]
