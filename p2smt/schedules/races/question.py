"""The question whether one goal can go wrong, as plain integers for the solver."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from p2smt.problems.race import (
    Counting,
    Event,
    Packet,
    Prefix,
    RaceProblem,
    Read,
    Source,
    Value,
)
from p2smt.schedules.memory import memory_of
from p2smt.schedules.races.cone import events_under
from p2smt.schedules.races.flow import Part
from p2smt.schedules.races.reach import groups_of
from p2smt.schedules.races.replay import OrderItem, Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from p2smt.problems.race import Pairs
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.races.cone import Cone
    from p2smt.schedules.races.flow import GoalOf
    from p2smt.schedules.races.reach import Reach, Web


class Contest(NamedTuple):
    """A counter on which the certain order does not settle who is served when."""

    initial: int
    posts: tuple[int, ...]
    awaits: tuple[int, ...]


class Arrival(NamedTuple):
    """A step that reads a packet, and the writes any of which it may have waited for."""

    step: int
    writes: tuple[OrderItem, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What limits the order of steps beyond the certain order."""

    contests: tuple[Contest, ...] = ()
    arrivals: tuple[Arrival, ...] = ()

    def steps(self) -> Iterator[int]:
        """All steps that they name."""
        for contest in self.contests:
            yield from (*contest.posts, *contest.awaits)
        for step, writes in self.arrivals:
            yield from (step, *(event.step for event in writes))

    def open(self, reach: Reach) -> Rules:
        """Those that the certain order does not imply."""
        contests = [c for c in self.contests if not _settled(c, reach)]
        arrivals = [
            a for a in self.arrivals if not any(reach.ordered(w.step, a.step) for w in a.writes)
        ]
        return Rules(tuple(contests), tuple(arrivals))

    def near(self, reach: Reach, nodes: Iterable[int]) -> Rules:
        """Those by which one of the nodes may have to come before another.

        A rule makes what it waits for (posts, writes) come before what waits.  Where nothing
        that it waits for comes after any of the nodes, all of that can happen before them; where
        nothing that waits comes before any, it can wait until after them.
        """
        nodes = list(nodes)
        ways = [(_causes(rule), _waiting(rule)) for rule in self._all()]
        after = _linked(reach.bit, reach.until, nodes, ways)
        before = _linked(reach.until, reach.bit, nodes, [(b, a) for a, b in ways])
        kept = [k for k, linked in enumerate(zip(after, before, strict=True)) if all(linked)]
        count = len(self.contests)
        return Rules(
            tuple(self.contests[k] for k in kept if k < count),
            tuple(self.arrivals[k - count] for k in kept if k >= count),
        )

    def _all(self) -> Iterator[Contest | Arrival]:
        yield from self.contests
        yield from self.arrivals


def _causes(rule: Contest | Arrival) -> tuple[int, ...]:
    """What a rule may wait for."""
    return rule.posts if isinstance(rule, Contest) else tuple(w.step for w in rule.writes)


def _waiting(rule: Contest | Arrival) -> tuple[int, ...]:
    """What waits by a rule."""
    return rule.awaits if isinstance(rule, Contest) else (rule.step,)


def _linked(
    leave: Callable[[int], int],
    enter: Callable[[int], int],
    nodes: Iterable[int],
    rules: Sequence[tuple[Iterable[int], Iterable[int]]],
) -> list[bool]:
    """Which rules can be entered from the nodes, going on from where each one leads.

    A node can be entered from another if ``enter`` of it and ``leave`` of the other share a bit.
    """
    linked, changed, reached = [False] * len(rules), True, 0
    for node in nodes:
        reached |= leave(node)
    while changed:
        changed = False
        for k, (entries, exits) in enumerate(rules):
            if not linked[k] and any(reached & enter(node) for node in entries):
                linked[k] = changed = True
                for node in exits:
                    reached |= leave(node)
    return linked


def _settled(contest: Contest, reach: Reach) -> bool:
    """Whether every await surely finds what it takes."""
    for wait in contest.awaits:
        posted = sum(reach.ordered(post, wait) for post in contest.posts)
        taken = sum(not reach.ordered(wait, other) for other in contest.awaits)
        if contest.initial + posted < taken:
            return False
    return True


def rules_of(schedule: Schedule) -> Rules:
    """All counters and packets of a schedule.

    Relaxed posts say nothing about data: they count as made; relaxed awaits take nothing.
    """
    posts: dict[str, list[int]] = defaultdict(list)
    awaits: dict[str, list[int]] = defaultdict(list)
    initial: dict[str, int] = defaultdict(int, schedule.initial)
    for number, step in enumerate(schedule.steps):
        for counter in step.posts:
            initial[counter] += step.relaxed
            posts[counter] += [] if step.relaxed else [number]
        for counter in () if step.relaxed else step.awaits:
            awaits[counter].append(number)
    contests = [Contest(initial[c], tuple(posts[c]), tuple(w)) for c, w in awaits.items()]
    return Rules(tuple(contests), tuple(_arrivals(schedule)))


def _arrivals(schedule: Schedule) -> Iterator[Arrival]:
    memory = memory_of(schedule)
    writes: dict[int, list[OrderItem]] = defaultdict(list)
    for number, step in enumerate(schedule.steps):
        for k, span in enumerate(step.writes):
            if span.packet:
                for j, cell in enumerate(memory.cells(span)):
                    writes[cell].append(OrderItem(number, Phase.WRITE, j, k))
    for number, step in enumerate(schedule.steps):
        for span in step.reads:
            if span.packet:
                yield from (Arrival(number, tuple(writes[c])) for c in memory.cells(span))


@dataclass(frozen=True, slots=True)
class Question:
    """A problem and what its numbers mean; ``loose`` if rules were left out."""

    problem: RaceProblem
    nodes: tuple[int, ...]
    events: tuple[OrderItem, ...]
    loose: bool


@dataclass(frozen=True, slots=True)
class Questions:
    """Makes the question of each goal; with a bound, that of a shorter counterexample."""

    web: Web
    reach: Reach
    cone: Cone
    rules: Rules

    def of(self, goal: GoalOf, at_most: int | None = None) -> Question:
        """Can this goal go wrong (within so many steps)?

        Without a bound, rules that cannot make a difference to that are left out.  They still
        say what else must be executed, so an order is complete only with all of them.
        """
        value = self.cone.fold(goal.value)
        reads = self.cone.reads_under(value)
        seen = list(events_under(self.cone, reads))
        concerned = {event.step for event in seen} | set(writers(goal, self.cone))
        rules = self.rules if at_most is not None else self.rules.near(self.reach, concerned)
        packets = (write for arrival in rules.arrivals for write in arrival.writes)
        events = tuple(dict.fromkeys([*seen, *packets]))
        nodes = tuple(sorted(concerned.union(rules.steps())))
        names = _Names(
            {n: i for i, n in enumerate(nodes)},
            {e: i for i, e in enumerate(events)},
            {r: i for i, r in enumerate(reads)},
            self._parts(goal, value, reads),
        )
        problem = RaceProblem(
            before=tuple(self._mask(node, nodes) for node in nodes),
            events=tuple(
                Event(names.node[e.step], e.phase is Phase.WRITE, e.position) for e in events
            ),
            reads=tuple(self._read(read, names) for read in reads),
            value=self._value(value, names),
            wanted=names.counts(Counter[Part](goal.goal.multiset())),
            counters=tuple(
                Counting(
                    c.initial,
                    tuple(names.node[p] for p in c.posts),
                    tuple(names.node[w] for w in c.awaits),
                )
                for c in rules.contests
            ),
            packets=tuple(
                Packet(names.node[a.step], tuple(names.event[w] for w in a.writes))
                for a in rules.arrivals
            ),
            prefix=None if at_most is None else self._prefix(goal, nodes, at_most),
        )
        return Question(problem, nodes, events, rules != self.rules)

    def _mask(self, node: int, nodes: Sequence[int]) -> int:
        """The nodes before a node, by their positions in ``nodes``."""
        before, number = self.reach.before[self.reach.number[node]], self.reach.number
        return sum((before >> number[other] & 1) << i for i, other in enumerate(nodes))

    def _parts(self, goal: GoalOf, value: int, reads: Sequence[int]) -> dict[Part, int]:
        """Numbers for parts: one for those that always occur alike, one for all unwanted ones.

        Numbered as they occur, so that questions of the same form are equal.
        """
        table, wanted = self.cone.flow.table, goal.goal.multiset()
        places = [value, *(self.cone.fold(s.value) for r in reads for s in self.cone.sources[r])]
        seen: dict[Part, list[tuple[int, int]]] = {}
        for place in dict.fromkeys(places):
            for part, count in sorted(table.values[place].parts, key=str):
                where = seen.setdefault(part, [])
                if part in wanted:
                    where.append((place, count))
        for part, count in wanted.items():
            seen.setdefault(part, []).append((-1, count))
        alike: dict[tuple[tuple[int, int], ...], int] = {}
        return {part: alike.setdefault(tuple(where), len(alike)) for part, where in seen.items()}

    def _value(self, number: int, names: _Names) -> Value:
        parts, reads = self.cone.flow.table.values[self.cone.fold(number)]
        return Value(names.counts(dict(parts)), tuple(sorted((names.read[r], n) for r, n in reads)))

    def _read(self, read: int, names: _Names) -> Read:
        sources = [
            Source(None if s.event is None else names.event[s.event], self._value(s.value, names))
            for s in self.cone.sources[read]
        ]
        return Read(names.event[self.cone.flow.reads[read].event], tuple(sources))

    def _prefix(self, goal: GoalOf, nodes: Sequence[int], at_most: int) -> Prefix:
        weights, group_of, closed = groups_of(self.web, nodes)
        number = {node: i for i, node in enumerate(nodes)}
        needs = tuple(number[node] for node in writers(goal, self.cone))
        read = None if goal.read is None else self.cone.flow.reads[goal.read].event.step
        end = None if read is None else number.get(read)
        return Prefix(tuple(weights), tuple(group_of), tuple(sorted(closed)), needs, end, at_most)


def writers(goal: GoalOf, cone: Cone) -> list[int]:
    """The nodes that may leave what a goal's chunk holds in the end."""
    if goal.read is None:
        return [] if goal.writer is None else [goal.writer]
    events = (source.event for source in cone.sources[goal.read])
    return list(dict.fromkeys(event.step for event in events if event is not None))


class _Names(NamedTuple):
    """Numbers in the problem."""

    node: Mapping[int, int]
    event: Mapping[OrderItem, int]
    read: Mapping[int, int]
    part: Mapping[Part, int]

    def counts(self, parts: Mapping[Part, int]) -> Pairs:
        """A multiset by numbers of parts.

        Wanted parts with one number have one count; of unwanted ones any count is too many.
        """
        return tuple(sorted({self.part[part]: n for part, n in parts.items()}.items()))
