"""Decides whether accesses in no certain order can make an output chunk wrong, and how soonest.

For every goal that does not hold the right value in every order by the flow of data alone, the
solver is asked for an order in which it is wrong.  Such an order is completed to one of the whole
schedule and replayed by an independent interpreter, and only what that shows is believed.  Then
shorter and shorter counterexamples are looked for until there is none.

Packets publish their own words only.  A run in which a goal is wrong is one in which their readers
wait; but that no run is wrong is believed only if it holds although they make nothing else visible.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from enum import StrEnum
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from p2smt.errors import EncodingBug, OutOfTimeError, TooLarge
from p2smt.result import OUT_OF_EFFORT, OUT_OF_TIME, Status, StopWatch
from p2smt.schedules.races.cone import cone_of, flow_of, graph_of, happens_before
from p2smt.schedules.races.goal_question import Questions, rules_of, writers
from p2smt.schedules.races.replay import ImpossibleOrder, ItemKind, OrderItem, replay
from p2smt.solvers.ask import Solver, Witness, ask

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence, Set

    from p2smt.problems.race import RaceAnswer, RaceProblem
    from p2smt.result import SearchLimits
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.order.happens_before import Nodes, OrderedRun
    from p2smt.schedules.order.unordered_accesses import Race
    from p2smt.schedules.races.cone import Cone, Flow, GoalValue, Graph
    from p2smt.schedules.races.goal_question import GoalQuestion, Rules
    from p2smt.schedules.races.replay import Part


DEFAULT_EFFORT = 200_000_000
"""What the solver may spend on a schedule, in z3's units of resources: about a minute's work."""

UNDECIDED = "before the solver could say whether that does harm"

UNPUBLISHED = (
    "it is not proved that this does no harm: packets that several steps write may order them, and "
    "publish their own words only"
)


class Outcome(StrEnum):
    """What unordered accesses can do to the result."""

    HARMLESS = "harmless"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer.

    verdict: HARMLESS and WRONG are proved; UNKNOWN: neither is.
    reason: why it is unknown, in words.
    goal: (rank, chunk) that is wrong; ``got``: what it holds.
    order: up to where that chunk is final; its items also name starts and ends of ranks if their
        place matters.  ``rest``: a possible continuation; replaying both shows ``got``.
    minimal: whether no order makes any goal wrong with fewer steps executed; of the goals that
        races can make wrong, if there is one.
    by_race: whether the goal depends on what unordered accesses see; else every order is wrong.
    open_goals: how many goals were not settled.
    """

    verdict: Outcome
    reason: str = ""
    goal: tuple[int, int] | None = None
    got: Counter[Part] = field(default_factory=Counter)
    order: tuple[OrderItem, ...] = ()
    rest: tuple[OrderItem, ...] = ()
    minimal: bool = False
    by_race: bool = True
    open_goals: int = 0

    def steps(self, count: int) -> tuple[int, ...]:
        """The order as step numbers below ``count``, once where a step's items follow directly."""
        numbers = (step for step, _ in groupby(item.step for item in self.order))
        return tuple(step for step in numbers if step < count)

    def executed(self, count: int) -> int:
        """How many steps (numbers below ``count``) the order executes."""
        return len(set(self.steps(count)))


def decide(
    schedule: Schedule,
    run: OrderedRun,
    races: Iterable[Race],
    limits: SearchLimits,
    depth: int | None = None,
) -> Decision:
    """Can any goal be wrong in some order?

    Args:
        schedule: structurally sound and free of deadlocks.
        run: a run of it, and what is certain about its order.
        races: at least one for every cell whose accesses are not all ordered.
        limits: of time and effort for all questions together.
        depth: of connections, if the order is that which full ones cause.

    Raises:
        EncodingBug: the solver's order does not show what it should when replayed.
    """
    watch = StopWatch.start(limits)
    try:
        search = _prepare(schedule, run, {race.cell for race in races}, watch, depth)
    except OutOfTimeError:
        return _unknown(schedule, f"{OUT_OF_TIME} {UNDECIDED}")
    except TooLarge as error:
        return _unknown(schedule, f"whether that does harm is too large a question: {error}")
    goals, races_first = search.goals, [g for g in search.goals if search.by_race(g)]
    found = replace(search, goals=races_first)
    decision = found.shortest(found.first())
    if decision.verdict is Outcome.WRONG or len(races_first) == len(goals):
        return decision
    rest = replace(search, goals=[g for g in goals if not search.by_race(g)])
    return replace(rest.shortest(rest.first()), by_race=False)


def _unknown(schedule: Schedule, reason: str) -> Decision:
    """No goal was asked about."""
    return Decision(Outcome.UNKNOWN, reason, open_goals=len(schedule.contract.goals))


def _prepare(
    schedule: Schedule, run: OrderedRun, shared: set[int], watch: StopWatch, depth: int | None
) -> _Search:
    """The search over the goals that the flow of data leaves open.

    Raises:
        OutOfTimeError: the time is up.
        TooLarge: the order is, of the nodes that matter.
    """
    graph = graph_of(run.edges)
    flow, rules = flow_of(schedule, run, shared), rules_of(schedule)
    order = happens_before(graph, _keys(flow, rules))
    cone = cone_of(flow, order, [goal.value for goal in flow.goals], watch)
    questions = Questions(graph, order, cone, rules.not_implied(order))
    return _Search(schedule, questions, watch, depth, list(_open_goals(flow, cone)))


def _keys(flow: Flow, rules: Rules) -> Iterator[int]:
    """The nodes whose order matters."""
    yield from rules.steps()
    yield from (read.access.step for read in flow.reads)
    yield from (write.access.step for writes in flow.writes.values() for write in writes)
    yield from (goal.writer for goal in flow.goals if goal.writer is not None)


def _open_goals(flow: Flow, cone: Cone) -> Iterator[GoalValue]:
    """Goals that do not hold the right value whatever the order."""
    for goal in flow.goals:
        value = flow.table.known[cone.fold(goal.value)]
        if value.reads or dict(value.parts) != dict(goal.goal.multiset()):
            yield goal


@dataclass(slots=True)
class _Search:
    """Asks about goals one by one; what is proved of one holds for others of the same form.

    spent: effort so far.  ended: why a question was left open, last.
    """

    schedule: Schedule
    questions: Questions
    watch: StopWatch
    depth: int | None
    goals: Sequence[GoalValue]
    proved: set[RaceProblem] = field(default_factory=set)
    spent: int = 0
    ended: str = OUT_OF_TIME

    def first(self) -> Decision:
        """A wrong order of any length, or that there is none, or neither."""
        unsettled = 0
        for goal in self.goals:
            found = self.ask(goal, None)
            if isinstance(found, Decision):
                return found
            unsettled += found is Status.UNKNOWN
        if unsettled:
            return Decision(Outcome.UNKNOWN, f"{self.ended} {UNDECIDED}", open_goals=unsettled)
        return self.published()

    def published(self) -> Decision:
        """That no goal can be wrong, if that holds although packets order nothing but themselves.

        Packets with one writer are edges, which are looked at where they are used (unpublished).
        """
        rules = self.questions.rules
        if not rules.packets:
            return Decision(Outcome.HARMLESS)
        questions = replace(self.questions, rules=replace(rules, packets=()))
        found = [self.solved(questions.of(goal).problem) for goal in self.goals]
        unsettled = [answer for answer in found if answer is not Status.INFEASIBLE]
        if not unsettled:
            return Decision(Outcome.HARMLESS)
        ended = all(answer is Status.UNKNOWN for answer in unsettled)
        reason = f"{self.ended} {UNDECIDED}" if ended else UNPUBLISHED
        return Decision(Outcome.UNKNOWN, reason, open_goals=len(unsettled))

    def shortest(self, best: Decision) -> Decision:
        """The shortest counterexample, or the best found when the time is up."""
        if best.verdict is not Outcome.WRONG:
            return best
        minimal = True
        for least, place in sorted((self.least(goal), i) for i, goal in enumerate(self.goals)):
            found: Decision | Status = best
            while isinstance(found, Decision) and least < self.size(best):
                found = self.ask(self.goals[place], self.size(best) - 1)
                best = found if isinstance(found, Decision) else best
            minimal = minimal and found is not Status.UNKNOWN
        return replace(best, minimal=minimal)

    def by_race(self, goal: GoalValue) -> bool:
        """Whether a goal depends on what unordered accesses see."""
        cone = self.questions.cone
        return bool(cone.flow.table.known[cone.fold(goal.value)].reads)

    def size(self, decision: Decision) -> int:
        """How many steps an order executes."""
        return decision.executed(len(self.schedule.steps))

    def least(self, goal: GoalValue) -> int:
        """Steps that must be executed before a goal's chunk is final."""
        return min(self.questions.graph.size(p) for p in self._prefixes(goal, ()))

    def ask(self, goal: GoalValue, at_most: int | None) -> Decision | Status:
        """An order in which a goal is wrong; INFEASIBLE or UNKNOWN."""
        question = self.questions.of(goal, at_most)
        answer = self.solved(question.problem)
        if isinstance(answer, Status):
            return answer
        if question.relaxation:
            return self.ask(goal, len(self.schedule.steps))
        decision = self._replayed(goal, question, answer)
        if at_most is not None and self.size(decision) > at_most:
            raise EncodingBug("the counterexample is too long", question, answer)
        return decision

    def solved(self, problem: RaceProblem) -> RaceAnswer | Status:
        """The solver's answer to a question; INFEASIBLE or UNKNOWN."""
        if problem in self.proved:
            return Status.INFEASIBLE
        limits = self.left()
        if limits is None:
            return Status.UNKNOWN
        result = ask(problem, Witness(), Solver.Z3, limits)
        self.spent += result.stats.effort
        if result.value is not None:
            return result.value
        if result.status is Status.UNKNOWN:
            self.ended = result.stats.reason or self.ended
        if result.status is Status.INFEASIBLE:
            self.proved.add(problem)
        return result.status

    def left(self) -> SearchLimits | None:
        """What is left of the limits, or None where one is used up."""
        effort = self.watch.limits.effort
        if self.watch.expired():
            self.ended = OUT_OF_TIME
            return None
        if effort is not None and self.spent >= effort:
            self.ended = OUT_OF_EFFORT
            return None
        left = self.watch.left()
        return left if effort is None else replace(left, effort=effort - self.spent)

    def _prefixes(self, goal: GoalValue, pairs: Sequence[tuple[Point, Point]]) -> list[set[int]]:
        """What may be executed until a goal's chunk is final."""
        cone, graph = self.questions.cone, self.questions.graph
        final = [writers(goal, cone)]
        if goal.read is not None:
            read = cone.flow.reads[goal.read].access
            if any(x.access == read for x, _ in pairs):
                final = []
            final.append([read.step])
        return [closure(graph, pairs, nodes) for nodes in final]

    def _replayed(self, goal: GoalValue, question: GoalQuestion, answer: RaceAnswer) -> Decision:
        """What a replay of the solver's order shows."""
        pairs, graph = points_of(question, answer), self.questions.graph
        prefix = min(self._prefixes(goal, pairs), key=graph.size)
        kept = {*range(graph.nodes.steps), *question.nodes}
        order, rest = (
            tuple(item for item in items if item.step in kept)
            for items in linearized(self.schedule, graph, pairs, prefix)
        )
        place = (goal.goal.rank, goal.goal.chunk)
        try:
            got = replay(self.schedule, (*order, *rest), self.depth).goals[place]
        except ImpossibleOrder as error:
            raise EncodingBug(str(error), question, answer) from error
        if got == goal.goal.multiset():
            raise EncodingBug("the goal is met in the replay", question, answer)
        return Decision(Outcome.WRONG, goal=place, got=got, order=order, rest=rest)


# From an order of a few accesses to one of everything, with steps whole where possible.


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
