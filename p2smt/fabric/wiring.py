"""Links, switches and network cards of nodes that are all alike, and the fabric they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

from p2smt.errors import InputError
from p2smt.fabric.fabric import Capacity, Fabric, FabricEdge, check_size, edge_key, unit_of
from p2smt.fabric.symmetries import named_symmetry
from p2smt.result import StopWatch, timely

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wire:
    """A link in one direction, of ``bandwidth``, between two ranks of a node."""

    source: int
    target: int
    bandwidth: Fraction


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch that does not block: each of ``ranks`` has a port of ``bandwidth`` each way."""

    name: str
    ranks: tuple[int, ...]
    bandwidth: Fraction


@dataclass(frozen=True, slots=True)
class NetworkPort:
    """A network card that ``ranks`` of a node share, of ``bandwidth`` each way."""

    ranks: tuple[int, ...]
    bandwidth: Fraction


@dataclass(frozen=True, slots=True)
class WiredNodes:
    """Nodes of ``ranks`` ranks each, joined by a network that does not block.

    Bandwidths are in bytes per second, or all without a unit (``measured`` is False).
    ``symmetries``: where some take the ranks of a node, in all nodes alike, or all ranks there are.
    """

    name: str
    ranks: int
    wires: tuple[Wire, ...] = ()
    switches: tuple[Switch, ...] = ()
    ports: tuple[NetworkPort, ...] = ()
    nodes: int = 1
    measured: bool = True
    description: str = ""
    sources: tuple[str, ...] = ()
    symmetries: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        joined = [(w.source, w.target) for w in self.wires]
        if loops := [a for a, b in joined if a == b]:
            raise InputError(f"a link from {loops[0]} to itself", "joins no two ranks", "remove it")
        if len(set(joined)) < len(joined):
            a, b = min(pair for pair, count in Counter(joined).items() if count > 1)
            raise InputError(f"the link from {a} to {b}", "is named twice", "add their bandwidths")
        named = {rank for pair in joined for rank in pair}
        named.update(rank for switch in self.switches for rank in switch.ranks)
        named.update(rank for port in self.ports for rank in port.ranks)
        if outside := [rank for rank in named if not 0 <= rank < self.ranks]:
            raise InputError(f"rank {min(outside)}", f"is none of 0 to {self.ranks - 1} of a node")
        if self.nodes > 1 and not self.ports:
            given = f"{self.nodes} nodes of {self.name[:60]}"
            raise InputError(given, "need a network", "add network: ports to the file")


def fabric_of(
    wiring: WiredNodes, unit: Fraction | None = None, watch: StopWatch | None = None
) -> Fabric:
    """The fabric of a wiring; rank r of node n is number n * ranks + r.

    ``unit``: bytes per second of one unit; None: the greatest common one of all bandwidths.

    Raises:
        InputError: the bandwidths have no unit of use, a rank has no link, or a symmetry is none.
        OutOfTimeError: the time of ``watch`` came.
    """
    check_size(wiring.ranks * wiring.nodes, edge_count(wiring))
    made = _Making(wiring.ranks, watch)
    for node in range(wiring.nodes):
        made.links(node, wiring.wires)
        made.switches(node, wiring.switches)
    made.network(wiring.nodes, wiring.ports)
    scale = Fraction(1)
    if wiring.measured:
        scale = unit_of((c.bandwidth for c in made.capacities), unit) if made.capacities else scale
    elif unit is not None:
        rule = "goes with bandwidths in bytes per second, and these have no unit"
        raise InputError(f"--unit for fabric {wiring.name[:60]}", rule, "leave it out")
    found = Fabric(
        wiring.name if wiring.nodes == 1 else f"{wiring.name}:{wiring.nodes}",
        wiring.ranks * wiring.nodes,
        tuple(made.capacities)
        if scale == 1
        else tuple([Capacity(c.name, c.bandwidth / scale) for c in made.timely(made.capacities)]),
        tuple(sorted(made.edges, key=edge_key)),
        scale if wiring.measured else None,
        wiring.description,
        wiring.sources,
        tuple(_of_all_nodes(wiring, image) for image in wiring.symmetries),
    )
    found.check_connected()
    for image in found.symmetries:
        named_symmetry(found, image)
    return found


def edge_count(wiring: WiredNodes) -> int:
    """How many edges a wiring makes."""
    inside = len(wiring.wires) + sum(len(s.ranks) * (len(s.ranks) - 1) for s in wiring.switches)
    cards = sum(len(port.ranks) for port in wiring.ports)
    return wiring.nodes * (inside + (wiring.nodes - 1) * cards**2)


def _of_all_nodes(wiring: WiredNodes, image: tuple[int, ...]) -> tuple[int, ...]:
    """Where a symmetry takes all ranks: as it is, or what it does to a node done in each."""
    if len(image) != wiring.ranks:
        return image
    firsts = range(0, wiring.ranks * wiring.nodes, wiring.ranks)
    return tuple(first + rank for first in firsts for rank in image)


@dataclass(slots=True)
class _Making:
    """Capacities and edges of a fabric in the making; nodes of ``ranks`` ranks.

    Once the time of ``watch`` came, what goes on raises OutOfTimeError.
    """

    ranks: int
    watch: StopWatch | None = None
    capacities: list[Capacity] = field(default_factory=list)
    edges: list[FabricEdge] = field(default_factory=list)

    def timely(self, items: Iterable[T]) -> Iterator[T]:
        """The items, as long as there is time."""
        return timely(items, self.watch)

    def _capacity(self, name: str, bandwidth: Fraction) -> int:
        self.capacities.append(Capacity(name, bandwidth))
        return len(self.capacities) - 1

    def _edge(self, source: int, target: int, *loads: int) -> None:
        self.edges.append(FabricEdge(source, target, tuple(sorted(loads))))

    def links(self, node: int, wires: Sequence[Wire]) -> None:
        """Every link of a node is a capacity of its own."""
        first = node * self.ranks
        for wire in self.timely(wires):
            source, target = first + wire.source, first + wire.target
            self._edge(source, target, self._capacity(f"{source}->{target}", wire.bandwidth))

    def switches(self, node: int, switches: Sequence[Switch]) -> None:
        """Through a switch an edge loads the port it leaves by and the one it arrives by."""
        for switch in switches:
            ranks = [node * self.ranks + rank for rank in switch.ranks]
            out = {r: self._capacity(f"{r}->{switch.name}", switch.bandwidth) for r in ranks}
            into = {r: self._capacity(f"{switch.name}->{r}", switch.bandwidth) for r in ranks}
            for source, target in self.timely(_pairs(ranks)):
                self._edge(source, target, out[source], into[target])

    def network(self, nodes: int, ports: Sequence[NetworkPort]) -> None:
        """Between nodes an edge loads a card of either; two cards are two ways."""
        if nodes == 1:
            return
        cards = [(node, port) for node in range(nodes) for port in ports]
        loads = []
        for n, (node, port) in enumerate(cards):
            name = f"node {node} card {n % len(ports)}"
            out = self._capacity(f"{name} out", port.bandwidth)
            loads.append((out, self._capacity(f"{name} in", port.bandwidth)))
        for a, b in self.timely(_pairs(range(len(cards)))):
            if cards[a][0] == cards[b][0]:
                continue
            for source, target in _ends(self.ranks, cards[a], cards[b]):
                self._edge(source, target, loads[a][0], loads[b][1])


def _pairs(items: Sequence[int]) -> Iterator[tuple[int, int]]:
    return ((a, b) for a in items for b in items if a != b)


def _ends(
    ranks: int, one: tuple[int, NetworkPort], other: tuple[int, NetworkPort]
) -> Iterator[tuple[int, int]]:
    """The ranks at either end of a way between two cards."""
    return (
        (one[0] * ranks + source, other[0] * ranks + target)
        for source in one[1].ranks
        for target in other[1].ranks
    )
