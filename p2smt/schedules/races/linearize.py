"""From an order of a few accesses to one of everything, with steps whole where possible."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from p2smt.schedules.races.replay import ItemKind, OrderItem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence, Set

    from p2smt.problems.race import RaceAnswer
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.order.happens_before import Nodes
    from p2smt.schedules.races.question import GoalQuestion
    from p2smt.schedules.races.reach import Graph


class Point(NamedTuple):
    """A moment in an order: a node starts, does one of its accesses, or is done."""

    node: int
    access: OrderItem | None = None
    done: bool = False


def _at(access: OrderItem) -> Point:
    """The moment of an access."""
    return Point(access.step, access)


def points_of(question: GoalQuestion, answer: RaceAnswer) -> list[tuple[Point, Point]]:
    """The pairs of an answer as points."""
    accesses, nodes = question.accesses, question.nodes

    def named(point: int) -> Point:
        if point < len(accesses):
            return _at(accesses[point])
        done, node = divmod(point - len(accesses), len(nodes))
        return Point(nodes[node], done=bool(done))

    return [(named(x), named(y)) for x, y in answer.before]


def closure(graph: Graph, pairs: Sequence[tuple[Point, Point]], nodes: Collection[int]) -> set[int]:
    """What is executed before or with some nodes, in the certain order and in that of the pairs."""
    earlier: dict[int, set[int]] = defaultdict(set)
    for x, y in pairs:
        earlier[y.node].add(x.node)
    found, new = set[int](), set(nodes)
    while new:
        found |= graph.closure(new)
        new = {a for node in found for a in earlier.get(node, ())} - found
    return found


@dataclass(slots=True)
class _Linearization:
    """Nodes and accesses that are still to come.

    missing: how many points before it a point still waits for.
    outside: how many of those of a node's points belong to other nodes.
    accesses: of the nodes whose accesses may be apart; ``apart``: those whose have to be.
    begun: nodes that have started, with the accesses that are still to come.
    whole: nodes that can be done as a whole now, with their priority.
    """

    priority: Sequence[int]
    after: dict[Point, list[Point]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[Point, int] = field(default_factory=lambda: defaultdict(int))
    outside: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    accesses: dict[int, list[OrderItem]] = field(default_factory=dict)
    begun: dict[int, set[OrderItem]] = field(default_factory=dict)
    apart: set[int] = field(default_factory=set)
    whole: list[tuple[int, int]] = field(default_factory=list)
    out: list[OrderItem] = field(default_factory=list)

    def edge(self, x: Point, y: Point) -> None:
        """Point x before point y."""
        self.after[x].append(y)
        self.missing[y] += 1
        if x.node != y.node:
            self.outside[y.node] += 1
        elif x.access and y.access and x.access.kind is ItemKind.WRITE:
            self.apart.add(y.node)

    def split(self, node: int, accesses: Sequence[OrderItem]) -> None:
        """A node whose accesses may be apart."""
        self.accesses[node] = list(accesses)
        for access in accesses:
            self.edge(Point(node), _at(access))
            self.edge(_at(access), Point(node, done=True))
            for other in accesses:
                reads_first = access.kind is ItemKind.READ and other.kind is ItemKind.WRITE
                if reads_first and access.position == other.position:
                    self.edge(_at(access), _at(other))

    def passed(self, point: Point) -> None:
        """A point is over."""
        for later in self.after[point]:
            self.missing[later] -= 1
            if later.node != point.node:
                self.outside[later.node] -= 1
                self.offer(later.node)

    def offer(self, node: int) -> None:
        """A node that waits for nothing outside can be done as a whole."""
        if self.outside[node] == 0 and node not in self.begun and node not in self.apart:
            heappush(self.whole, (self.priority[node], node))

    def do_whole(self, node: int) -> None:
        """All of a node at once."""
        self.begun[node] = set()
        self.out.append(OrderItem(node))
        accesses = map(_at, self.accesses.get(node, ()))
        for point in (Point(node), *accesses, Point(node, done=True)):
            self.passed(point)

    def do_some(self, allowed: Set[int]) -> bool:
        """What can be done of a node of which something can be: one that has begun, else the
        one that waits for most others, so that these can be whole."""

        def rank(node: int) -> tuple[bool, int, int]:
            return node not in self.begun, -self.outside[node], self.priority[node]

        return any(self._some_of(node) for node in sorted(self.accesses.keys() & allowed, key=rank))

    def _some_of(self, node: int) -> bool:
        if node not in self.begun:
            if self.missing[Point(node)]:
                return False
            if not any(self.missing[_at(access)] == 1 for access in self.accesses[node]):
                return False
            self.begun[node] = set(self.accesses[node])
            self.passed(Point(node))
        count = len(self.out)
        for access in self.accesses[node]:
            if access in self.begun[node] and self.missing[_at(access)] == 0:
                self.begun[node].remove(access)
                self.out.append(access)
                self.passed(_at(access))
        if len(self.out) > count and not self.begun[node]:
            self.passed(Point(node, done=True))
        return len(self.out) > count

    def run(self, allowed: Set[int]) -> list[OrderItem]:
        """Everything allowed, in order."""
        self.out = []
        later: list[tuple[int, int]] = []
        while True:
            while self.whole:
                entry = heappop(self.whole)
                if entry[1] in self.begun:
                    continue
                if entry[1] in allowed:
                    self.do_whole(entry[1])
                else:
                    later.append(entry)
            if not self.do_some(allowed):
                self.whole = later
                return self.out


def linearized(
    schedule: Schedule,
    graph: Graph,
    pairs: Sequence[tuple[Point, Point]],
    prefix: Set[int],
) -> tuple[list[OrderItem], list[OrderItem]]:
    """An order of everything in which the pairs hold: the prefix, then the rest.

    Starts and ends of ranks are items; nodes beyond them are left out.
    """
    priority = [0] * len(graph.topological)
    for place, node in enumerate(graph.topological):
        priority[node] = place
    line = _Linearization(priority)
    for node in sorted({point.node for pair in pairs for point in pair}):
        line.split(node, list(_accesses(schedule, graph.nodes, node)))
    done = [Point(node, done=True) for node in range(len(graph.before))]
    for node, earlier in enumerate(graph.before):
        start = Point(node)
        for a in earlier:
            line.edge(done[a], start)
    for x, y in pairs:
        line.edge(x, y)
    for node in graph.topological:
        line.offer(node)
    known = graph.nodes.accessing
    first = [item for item in line.run(prefix) if item.step in known]
    rest = [item for item in line.run(set(graph.topological)) if item.step in known]
    return first, rest


def _accesses(schedule: Schedule, nodes: Nodes, node: int) -> Iterator[OrderItem]:
    """All accesses of a node."""
    if nodes.is_step(node):
        step = schedule.steps[node]
        for kind, spans in ((ItemKind.READ, step.reads), (ItemKind.WRITE, step.writes)):
            for j in range(step.count):
                yield from (OrderItem(node, kind, j, k) for k in range(len(spans)))
    elif nodes.is_start(node):
        given = schedule.contract.starts[nodes.rank(node)]
        yield from (OrderItem(node, ItemKind.WRITE, chunk) for chunk in range(len(given)))
    elif nodes.is_end(node):
        goals = [goal for goal in schedule.contract.goals if goal.rank == nodes.rank(node)]
        yield from (OrderItem(node, ItemKind.READ, goal.chunk) for goal in goals)
