"""From an order of a few accesses to one of everything, with steps whole where possible."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from p2smt.schedules.races.replay import OrderItem, Phase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence, Set

    from p2smt.problems.race import RaceAnswer
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.races.question import Question
    from p2smt.schedules.races.reach import Web

Point = OrderItem | tuple[str, int]
"""An access, or ("start", node), or ("done", node)."""


def points_of(question: Question, answer: RaceAnswer) -> list[tuple[Point, Point]]:
    """The pairs of an answer, by name."""
    events, nodes = question.events, question.nodes

    def named(point: int) -> Point:
        if point < len(events):
            return events[point]
        which, node = divmod(point - len(events), len(nodes))
        return ("done" if which else "start", nodes[node])

    return [(named(x), named(y)) for x, y in answer.before]


def node_of(point: Point) -> int:
    """The node that a point belongs to."""
    return point.step if isinstance(point, OrderItem) else point[1]


def closure(web: Web, pairs: Sequence[tuple[Point, Point]], nodes: Collection[int]) -> set[int]:
    """What is executed before or with some nodes, in the certain order and in that of the pairs."""
    earlier: dict[int, set[int]] = defaultdict(set)
    for x, y in pairs:
        earlier[node_of(y)].add(node_of(x))
    found, new = set[int](), set(nodes)
    while new:
        found |= web.closure(new)
        new = {a for node in found for a in earlier.get(node, ())} - found
    return found


@dataclass(slots=True)
class _Line:
    """Nodes and accesses that are still to come.

    missing: how many points before it a point still waits for.
    outside: how many of those of a node's points belong to other nodes.
    """

    schedule: Schedule
    priority: Sequence[int]
    after: dict[Point, list[Point]] = field(default_factory=lambda: defaultdict(list))
    missing: dict[Point, int] = field(default_factory=lambda: defaultdict(int))
    outside: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    events: dict[int, list[OrderItem]] = field(default_factory=dict)
    begun: dict[int, set[OrderItem]] = field(default_factory=dict)
    apart: set[int] = field(default_factory=set)
    whole: list[tuple[int, int]] = field(default_factory=list)
    out: list[OrderItem] = field(default_factory=list)

    def edge(self, x: Point, y: Point) -> None:
        """Point x before point y."""
        self.after[x].append(y)
        self.missing[y] += 1
        if node_of(x) != node_of(y):
            self.outside[node_of(y)] += 1
        elif isinstance(x, OrderItem) and isinstance(y, OrderItem) and x.phase is Phase.WRITE:
            self.apart.add(node_of(y))

    def split(self, node: int, events: Sequence[OrderItem]) -> None:
        """A node whose accesses may be apart."""
        self.events[node] = list(events)
        for event in events:
            self.edge(("start", node), event)
            self.edge(event, ("done", node))
            for other in events:
                reads_first = event.phase is Phase.READ and other.phase is Phase.WRITE
                if reads_first and event.position == other.position:
                    self.edge(event, other)

    def passed(self, point: Point) -> None:
        """A point is over."""
        for later in self.after[point]:
            self.missing[later] -= 1
            node = node_of(later)
            if node != node_of(point):
                self.outside[node] -= 1
                self.offer(node)

    def offer(self, node: int) -> None:
        """A node that waits for nothing outside can be done as a whole."""
        if self.outside[node] == 0 and node not in self.begun and node not in self.apart:
            heappush(self.whole, (self.priority[node], node))

    def do_whole(self, node: int) -> None:
        """All of a node at once."""
        self.begun[node] = set()
        self.out.append(OrderItem(node))
        for point in (("start", node), *self.events.get(node, ()), ("done", node)):
            self.passed(point)

    def do_some(self, allowed: Set[int]) -> bool:
        """What can be done of a node of which something can be: one that has begun, else the
        one that waits for most others, so that these can be whole."""

        def rank(node: int) -> tuple[bool, int, int]:
            return node not in self.begun, -self.outside[node], self.priority[node]

        return any(self._some_of(node) for node in sorted(self.events.keys() & allowed, key=rank))

    def _some_of(self, node: int) -> bool:
        if node not in self.begun:
            if self.missing["start", node]:
                return False
            ready = [e for e in self.events[node] if self.missing[e] == 1]
            if not ready:
                return False
            self.begun[node] = set(self.events[node])
            self.passed(("start", node))
        count = len(self.out)
        for event in self.events[node]:
            if event in self.begun[node] and self.missing[event] == 0:
                self.begun[node].remove(event)
                self.out.append(event)
                self.passed(event)
        if len(self.out) > count and not self.begun[node]:
            self.passed(("done", node))
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


def lines_of(
    schedule: Schedule,
    web: Web,
    pairs: Sequence[tuple[Point, Point]],
    prefix: Set[int],
) -> tuple[list[OrderItem], list[OrderItem]]:
    """An order of everything in which the pairs hold: the prefix, then the rest.

    Starts and ends of ranks are items; nodes beyond them are left out.
    """
    priority = [0] * len(web.line)
    for place, node in enumerate(web.line):
        priority[node] = place
    line = _Line(schedule, priority)
    for node in sorted({node_of(point) for pair in pairs for point in pair}):
        line.split(node, list(_accesses(schedule, node)))
    for node, earlier in enumerate(web.before):
        for a in earlier:
            line.edge(("done", a), ("start", node))
    for x, y in pairs:
        line.edge(x, y)
    for node in web.line:
        line.offer(node)
    known = web.steps + 2 * web.ranks
    first = [item for item in line.run(prefix) if item.step < known]
    rest = [item for item in line.run(set(web.line)) if item.step < known]
    return first, rest


def _accesses(schedule: Schedule, node: int) -> Iterator[OrderItem]:
    """All accesses of a node."""
    steps, ranks = len(schedule.steps), schedule.ranks
    if node < steps:
        step = schedule.steps[node]
        for phase, spans in ((Phase.READ, step.reads), (Phase.WRITE, step.writes)):
            for j in range(step.count):
                yield from (OrderItem(node, phase, j, k) for k in range(len(spans)))
    elif node < steps + ranks:
        given = schedule.contract.starts[node - steps]
        yield from (OrderItem(node, Phase.WRITE, chunk) for chunk in range(len(given)))
    else:
        rank = node - steps - ranks
        goals = [goal for goal in schedule.contract.goals if goal.rank == rank]
        yield from (OrderItem(node, Phase.READ, goal.chunk) for goal in goals)
