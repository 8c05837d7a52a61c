"""What each request puts on the switches' uplinks, for a grid of cells: patterns and prices.

A request's group spans some cells of the grid; all its replicas (groups of the same nodes) put the
same load on every uplink.  What follows what is not written down here again: a footprint with one
unit of load on one level is priced as any other, so a way's price per unit comes from the cost
model itself (:func:`p2smt.cost.bounds.step_model`).

Latencies depend on how many edges meet at each level, which depends on the order: the least over
all orders is taken, and every answer is costed again, device by device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise, product

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.collectives.demand import plain_kind
from p2smt.collectives.dispatch import Dispatch
from p2smt.collectives.names import DIRECT, RequestKind
from p2smt.cost.algorithms import Operation
from p2smt.cost.bounds import line_ends, step_model
from p2smt.cost.dispatch import entered_loads
from p2smt.cost.loads.footprint_explicit import explicit_footprint, explicit_send
from p2smt.cost.loads.level_use import Footprint, LevelUse, Profile
from p2smt.cost.loads.rings import node_order, tree_edges
from p2smt.cost.step_time import StepCostModel, Way
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem, Request
from p2smt.search.allocation.cell_grids import CellGrid


class Follows(Enum):
    """What decides the load of an uplink: messages along a ring, a path, two trees or a chain of
    sends, one that is closed, or how many members of a group are inside (an exchange, for one)."""

    RING = "ring"
    PATH = "path"
    TREE = "tree"
    SENDS = "sends"
    CLOSED_SENDS = "closed sends"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class CellWay:
    """A way to carry out a request, whatever the order of the hosts.

    ``way`` has the least latency of all orders, and what the nodes and their inside take.
    ``units``: for each level outside nodes, seconds per byte of one unit of load on an uplink of
    the level's bandwidth: one edge of each replica; half an edge for trees; for shares ``sent[n]``
    units of a group with n cells inside.
    """

    follows: Follows
    way: Way
    units: tuple[float, ...]
    sent: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CellTerm:
    """A request on a grid: the cells of each group in the order in which they are visited.

    ``groups`` has a row per group, without replicas; a cell stands in it as often as it is visited.
    ``ways``: those that may run, of which the fastest is taken (under a library mostly one).
    """

    request: Request
    groups: IntArray
    ways: tuple[CellWay, ...]

    @property
    def silent(self) -> bool:
        """Whether nothing leaves a node."""
        return int(self.groups.shape[1]) < 2


def term(
    problem: Problem, grid: CellGrid, request: Request, slots: IntArray, *, closed: bool = False
) -> CellTerm:
    """A request on a grid; ``slots``: places of the hull, one per cell, any order of them.

    ``closed``: of a send, the last rank sends to the first one, too.
    """
    topology = bare(problem.topology)
    each = topology.devices_under(topology.node_level)
    axes, joins = problem.axis_indices(request), joins_nodes(topology)
    cells = _walks(lines_along(grid.ranks(np.arange(grid.cells)), axes), each, joins)
    lines = lines_along(grid.ranks(slots), axes)
    near = lines[np.isin(lines[:, 0] // each, np.unique(lines[0] // each))]
    silent = cells.shape[1] < 2
    if silent:
        return CellTerm(request, cells, _fixed(topology, near, request, closed))
    return CellTerm(request, cells, _ways(topology, near, request, closed))


def bare(topology: Topology) -> Topology:
    """The same hosts with the uplinks of their levels."""
    if topology.hosts is None or not topology.hosts.uplinks:
        return topology
    return replace(topology, hosts=replace(topology.hosts, uplinks=()))


def joins_nodes(topology: Topology) -> bool:
    """Whether rings pass the members of a node one after another."""
    if not topology.library:
        return True
    return topology.known_library.joins_nodes


def lines_along(ranks: IntArray, axes: Sequence[int]) -> IntArray:
    """The groups along these axes, members in the order of the ranks."""
    rest = [i for i in range(ranks.ndim) if i not in axes]
    members = int(np.prod([ranks.shape[i] for i in axes]))
    return ranks.transpose([*rest, *axes]).reshape(-1, members)


def _walks(lines: IntArray, each: int, joins: bool) -> IntArray:
    """The cells that one group of each set of replicas visits, one after another."""
    _, first = np.unique(lines.min(axis=1) // each, return_index=True)
    rows = lines[np.sort(first)]
    if joins:
        rows = node_order(rows, each, by_device=True)
    cells = rows // each
    fresh = np.ones(cells.shape, dtype=bool)
    fresh[:, 1:] = cells[:, 1:] != cells[:, :-1]
    return np.asarray(cells[fresh].reshape(len(cells), -1))


def _model(topology: Topology, footprint: Footprint, request: Request) -> StepCostModel:
    if isinstance(request.kind, Dispatch):
        return step_model(topology, footprint, request.kind)
    operation: Operation = DIRECT.get(request.kind) or RequestKind.ALL_TO_ALL
    if request.kind is RequestKind.SEND:
        operation = RequestKind.SEND
    return step_model(topology, footprint, operation)


def _footprint(topology: Topology, lines: IntArray, request: Request, closed: bool) -> Footprint:
    if request.kind is RequestKind.SEND:
        return explicit_send(topology, *line_ends(lines, closed=closed))
    return explicit_footprint(topology, lines, joins_nodes(topology))


def _taken(model: StepCostModel, payload: int) -> tuple[Way, ...]:
    """The ways that may run: the library's choice, or all."""
    if model.chooser is not None:
        return (model.ways[model.chooser.pick(payload)],)
    return tuple(model.ways)


def _fixed(
    topology: Topology, lines: IntArray, request: Request, closed: bool
) -> tuple[CellWay, ...]:
    """The way of a request that stays inside nodes."""
    model = _model(topology, _footprint(topology, lines, request, closed), request)
    return tuple(CellWay(Follows.SENDS, way, ()) for way in _taken(model, request.payload_bytes))


def _ways(
    topology: Topology, lines: IntArray, request: Request, closed: bool
) -> tuple[CellWay, ...]:
    """Every way that some order of the hosts allows, with the least latency of any."""
    node, found = topology.node_level, dict[tuple[str, str], CellWay]()
    footprint = _footprint(topology, lines, request, closed)
    inner = tuple(use for use in footprint.uses if use.level >= node)
    replicas = len(lines)
    if isinstance(request.kind, Dispatch):
        return (_dispatched(topology, replace(footprint, uses=inner), request, replicas),)
    for shaped in variants(topology, replace(footprint, uses=inner), plain_kind(request.kind)):
        for way in _taken(_model(topology, shaped, request), request.payload_bytes):
            name = way.algorithm, way.protocol
            if name not in found:
                found[name] = _probed(topology, shaped, request, way, replicas)
                if closed and request.kind is RequestKind.SEND:
                    found[name] = replace(found[name], follows=Follows.CLOSED_SENDS)
            known = found[name].way
            best = replace(
                known,
                latency_s=min(known.latency_s, way.latency_s),
                stage_s=min(known.stage_s, way.stage_s),
                call_s=min(known.call_s, way.call_s),
            )
            found[name] = replace(found[name], way=best)
    return tuple(found.values())


def _dispatched(
    topology: Topology, footprint: Footprint, request: Request, replicas: int
) -> CellWay:
    """The way of a dispatch: on uplinks at least what enters them, whatever leaves."""
    assert isinstance(request.kind, Dispatch)
    (way,) = _taken(_model(topology, footprint, request), request.payload_bytes)
    local, members = footprint.local, footprint.members
    counts = range(local, members, local)
    loads = [
        entered_loads(topology, j, request.kind, counts, members)
        for j in range(topology.node_level)
    ]
    if not loads:
        return CellWay(Follows.SHARE, way, (), (0.0, *(0.0 for _ in counts), 0.0))
    units = tuple(replicas * float(one[0]) for one in loads)
    return CellWay(Follows.SHARE, way, units, (0.0, *(loads[0] / loads[0][0]).tolist(), 0.0))


def _probed(
    topology: Topology, footprint: Footprint, request: Request, way: Way, replicas: int
) -> CellWay:
    """A way with its prices per unit of load on each level outside nodes."""
    outer = range(topology.node_level)
    probe = _Probe(topology, footprint, request, (way.algorithm, way.protocol))
    if request.kind is RequestKind.SEND:
        each = tuple(replicas * probe.share(j, 1) for j in outer)
        return CellWay(Follows.SENDS, way, each)
    for follows in (Follows.RING, Follows.PATH, Follows.TREE):
        units = tuple(replicas * probe.along(j, follows) for j in outer)
        if any(units):
            halves = tuple(unit / 2 for unit in units)
            return CellWay(follows, way, halves if follows is Follows.TREE else units)
    local = footprint.local
    counts = range(1, footprint.members // local)
    level = topology.node_level - 1
    sent = [probe.share(level, local * n) for n in counts] if level >= 0 else []
    top = max(sent, default=0.0)
    if not top:
        return CellWay(Follows.SHARE, way, tuple(0.0 for _ in outer), (0.0, 0.0))
    most = local * (1 + sent.index(top))
    units = tuple(replicas * probe.share(j, most) for j in outer)
    part = [one / top for one in sent]
    return CellWay(Follows.SHARE, way, units, (0.0, *part, 0.0))


@dataclass(frozen=True, slots=True)
class _Probe:
    """Prices one unit of load on a level outside nodes, spread evenly over an uplink's ports."""

    topology: Topology
    footprint: Footprint
    request: Request
    name: tuple[str, str]

    def along(self, level: int, follows: Follows) -> float:
        """Seconds per byte of one edge of a ring or path, or one whole edge of trees."""
        unit = {follows.value: 1.0}
        use = LevelUse(level, **unit)  # type: ignore[arg-type]
        return self._price(use)

    def share(self, level: int, inside: int) -> float:
        """Seconds per byte of a group with so many members under the uplink."""
        return self._price(LevelUse(level, ports=(((inside, 1.0),),)))

    def _price(self, use: LevelUse) -> float:
        uses = tuple(sorted((*self.footprint.uses, use), key=lambda one: one.level))
        model = _model(self.topology, replace(self.footprint, uses=uses), self.request)
        ways = _taken(model, self.request.payload_bytes)
        way = next(way for way in ways if (way.algorithm, way.protocol) == self.name)
        return way.level_s_per_byte[use.level] / self.topology.levels[use.level].link.ports


def edges(groups: IntArray, follows: Follows) -> Iterator[tuple[int, int]]:
    """The messages from cell to cell of each group: (from, to), repeated where they are."""
    for row in groups:
        if follows is Follows.TREE:
            _, first = np.unique(row, return_index=True)
            nodes = row[np.sort(first)]
            child, parent = tree_edges(len(nodes))
            yield from zip(nodes[child].tolist(), nodes[parent].tolist(), strict=True)
            yield from zip(nodes[parent].tolist(), nodes[child].tolist(), strict=True)
            continue
        yield from zip(row[:-1].tolist(), row[1:].tolist(), strict=True)
        if follows in (Follows.RING, Follows.CLOSED_SENDS) and row[0] != row[-1]:
            yield int(row[-1]), int(row[0])


# Footprints that some order of the hosts may have: what the latency of a request depends on.
# The members of a group and the nodes are given; how many entities of each level outside nodes a
# group spans, and at which levels the edges of its chain meet, is not.  Latencies are linear in the
# edges, so their least is at a corner of what is possible; the entities are tried one by one.


MOST = 4096


def variants(topology: Topology, footprint: Footprint, kind: RequestKind) -> Iterator[Footprint]:
    """The footprint with other profiles and chains, regular and not; all that may be the least."""
    if kind is RequestKind.SEND:
        yield from _sends(topology, footprint)
        return
    profiles = tuple(_profiles(topology, footprint))
    chains = tuple(_chains(topology, footprint))
    for regular in (False, True):
        for profile in profiles:
            yield replace(footprint, profiles=(profile,), chains=chains[:1], regular=regular)
        for chain in chains[1:]:
            yield replace(footprint, profiles=profiles[:1], chains=(chain,), regular=regular)


def _sends(topology: Topology, footprint: Footprint) -> Iterator[Footprint]:
    """Messages between nodes meet at some level; those inside nodes where they do."""
    inside = [p for p in footprint.profiles if p[topology.node_level] == 1]
    for meeting in range(topology.node_level + 1):
        across = tuple(1 if j < meeting else 2 for j in range(len(topology.levels)))
        yield replace(footprint, profiles=tuple(sorted((*inside, across))))


def _fewest(topology: Topology, nodes: int) -> list[int]:
    """The fewest entities of each level outside nodes that hold so many nodes."""
    assert topology.hosts is not None
    found = []
    for j in range(topology.node_level):
        under = topology.devices_under(j) // topology.devices_under(topology.node_level)
        sizes = sorted(Counter(slot // under for slot in topology.hosts.slots).values())
        count, left = 0, nodes
        while left > 0:
            left -= sizes.pop()
            count += 1
        found.append(count)
    return found


def _entities(topology: Topology) -> list[int]:
    """The entities of each level outside nodes that have hosts."""
    assert topology.hosts is not None
    nodes = topology.devices_under(topology.node_level)
    under = [topology.devices_under(j) // nodes for j in range(topology.node_level)]
    return [len({slot // u for slot in topology.hosts.slots}) for u in under]


def _profiles(topology: Topology, footprint: Footprint) -> Iterator[Profile]:
    """Entities per level, from the outermost: outside nodes all that are possible."""
    node, nodes = topology.node_level, footprint.nodes
    inner = footprint.profiles[0][node:]
    ranges = [
        range(few, min(nodes, most) + 1)
        for few, most in zip(_fewest(topology, nodes), _entities(topology), strict=True)
    ]
    while _size(ranges) > MOST:
        ranges = [range(r[0], r[-1] + 1, max(1, len(r) - 1)) for r in ranges]
    for outer in product(*ranges):
        if list(outer) == sorted(outer):
            yield (*outer, *inner)


def _size(ranges: list[range]) -> int:
    size = 1
    for one in ranges:
        size *= len(one)
    return size


def _chains(topology: Topology, footprint: Footprint) -> Iterator[Profile]:
    """Edges of a chain that meet at each level: the corners of what is possible."""
    node = topology.node_level
    chain = footprint.chains[0]
    edges = sum(chain[: node + 1])
    few = [count - 1 for count in _fewest(topology, footprint.nodes)]
    corners = [sorted({*few[j:], edges}) for j in range(node)]
    for upto in product(*corners):
        if list(upto) == sorted(upto):
            totals = (0, *upto, edges)
            outer = tuple(b - a for a, b in pairwise(totals))
            yield (*outer, *chain[node + 1 :])
