"""The question whether one goal can go wrong, as plain integers for the solver."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from p2smt.problems.race import (
    Access,
    Counting,
    Packet,
    Prefix,
    RaceProblem,
    Read,
    Source,
    Sum,
)
from p2smt.schedules.memory_cells import memory_of
from p2smt.schedules.multisets import Part
from p2smt.schedules.races.cone import accesses_under, groups_of
from p2smt.schedules.races.replay import ItemKind, OrderItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from p2smt.problems.race import Pairs
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.races.cone import Cone, GoalValue, Graph, HappensBefore


class PacketRule(NamedTuple):
    """A step that reads a packet, and the writes any of which it may have waited for."""

    step: int
    writes: tuple[OrderItem, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What limits the order of steps beyond happens-before: counters and packets."""

    counters: tuple[Counting, ...] = ()
    packets: tuple[PacketRule, ...] = ()

    def steps(self) -> Iterator[int]:
        """All steps that they name."""
        for counter in self.counters:
            yield from (*counter.posts, *counter.awaits)
        for step, writes in self.packets:
            yield from (step, *(write.step for write in writes))

    def not_implied(self, order: HappensBefore) -> Rules:
        """Those that happens-before does not imply."""
        counters = [c for c in self.counters if not _implied(c, order)]
        packets = [
            p for p in self.packets if not any(order.ordered(w.step, p.step) for w in p.writes)
        ]
        return Rules(tuple(counters), tuple(packets))

    def concerning(self, order: HappensBefore, nodes: Iterable[int]) -> Rules:
        """Those by which one of the nodes may have to come before another.

        A rule makes what it waits for (posts, writes) come before what waits.  Where nothing
        that it waits for comes after any of the nodes, all of that can happen before them; where
        nothing that waits comes before any, it can wait until after them.
        """
        nodes = list(nodes)
        rules: list[Counting | PacketRule] = [*self.counters, *self.packets]
        ways = [(_causes(rule), _waiting(rule)) for rule in rules]
        after = _linked(order.bit, order.until, nodes, ways)
        before = _linked(order.until, order.bit, nodes, [(b, a) for a, b in ways])
        kept = [k for k, linked in enumerate(zip(after, before, strict=True)) if all(linked)]
        count = len(self.counters)
        return Rules(
            tuple(self.counters[k] for k in kept if k < count),
            tuple(self.packets[k - count] for k in kept if k >= count),
        )


def _causes(rule: Counting | PacketRule) -> tuple[int, ...]:
    """What a rule may wait for."""
    return rule.posts if isinstance(rule, Counting) else tuple(w.step for w in rule.writes)


def _waiting(rule: Counting | PacketRule) -> tuple[int, ...]:
    """What waits by a rule."""
    return rule.awaits if isinstance(rule, Counting) else (rule.step,)


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


def _implied(counter: Counting, order: HappensBefore) -> bool:
    """Whether every await surely finds what it takes."""
    for wait in counter.awaits:
        posted = sum(order.ordered(post, wait) for post in counter.posts)
        taken = sum(not order.ordered(wait, other) for other in counter.awaits)
        if counter.initial + posted < taken:
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
    counters = [Counting(initial[c], tuple(posts[c]), tuple(w)) for c, w in awaits.items()]
    return Rules(tuple(counters), tuple(_packets(schedule)))


def _packets(schedule: Schedule) -> Iterator[PacketRule]:
    memory = memory_of(schedule)
    writes: dict[int, list[OrderItem]] = defaultdict(list)
    for number, step in enumerate(schedule.steps):
        for k, span in enumerate(step.writes):
            if span.packet:
                for j, cell in enumerate(memory.cells(span)):
                    writes[cell].append(OrderItem(number, ItemKind.WRITE, j, k))
    for number, step in enumerate(schedule.steps):
        for span in step.reads:
            if span.packet:
                yield from (PacketRule(number, tuple(writes[c])) for c in memory.cells(span))


@dataclass(frozen=True, slots=True)
class GoalQuestion:
    """A problem and what its numbers mean.

    relaxation: whether rules were left out: then only a proof counts, an order may break them.
    """

    problem: RaceProblem
    nodes: tuple[int, ...]
    accesses: tuple[OrderItem, ...]
    relaxation: bool


@dataclass(frozen=True, slots=True)
class Questions:
    """Makes the question of each goal; with a bound, that of a shorter counterexample."""

    graph: Graph
    order: HappensBefore
    cone: Cone
    rules: Rules

    def of(self, goal: GoalValue, at_most: int | None = None) -> GoalQuestion:
        """Can this goal go wrong (within so many steps)?

        Without a bound it is a relaxation: rules that cannot make a difference to that are left
        out.  They still say what else must be executed, so an order is complete only with all of
        them.
        """
        value = self.cone.fold(goal.value)
        reads = self.cone.reads_under(value)
        seen = list(accesses_under(self.cone, reads))
        concerned = {access.step for access in seen} | set(writers(goal, self.cone))
        rules = self.rules if at_most is not None else self.rules.concerning(self.order, concerned)
        packets = (write for packet in rules.packets for write in packet.writes)
        accesses = tuple(dict.fromkeys([*seen, *packets]))
        nodes = tuple(sorted(concerned.union(rules.steps())))
        names = _Names(
            {n: i for i, n in enumerate(nodes)},
            {a: i for i, a in enumerate(accesses)},
            {r: i for i, r in enumerate(reads)},
            self._parts(goal, value, reads),
        )
        problem = RaceProblem(
            before=tuple(self._mask(node, nodes) for node in nodes),
            accesses=tuple(
                Access(names.node[a.step], a.kind is ItemKind.WRITE, a.position) for a in accesses
            ),
            reads=tuple(self._read(read, names) for read in reads),
            value=self._sum(value, names),
            wanted=names.counts(Counter[Part](goal.goal.multiset())),
            counters=tuple(
                Counting(
                    c.initial,
                    tuple(names.node[p] for p in c.posts),
                    tuple(names.node[w] for w in c.awaits),
                )
                for c in rules.counters
            ),
            packets=tuple(
                Packet(names.node[p.step], tuple(names.access[w] for w in p.writes))
                for p in rules.packets
            ),
            prefix=None if at_most is None else self._prefix(goal, nodes, at_most),
        )
        return GoalQuestion(problem, nodes, accesses, rules != self.rules)

    def _mask(self, node: int, nodes: Sequence[int]) -> int:
        """The nodes before a node, by their positions in ``nodes``."""
        before, number = self.order.before[self.order.number[node]], self.order.number
        return sum((before >> number[other] & 1) << i for i, other in enumerate(nodes))

    def _parts(self, goal: GoalValue, value: int, reads: Sequence[int]) -> dict[Part, int]:
        """Numbers for parts: one for those that always occur alike, one for all unwanted ones.

        Numbered as they occur, so that questions of the same form are equal.
        """
        table, wanted = self.cone.flow.table, goal.goal.multiset()
        places = [value, *(self.cone.fold(s.value) for r in reads for s in self.cone.sources[r])]
        seen: dict[Part, list[tuple[int, int]]] = {}
        for place in dict.fromkeys(places):
            for part, count in sorted(table.known[place].parts.items(), key=str):
                where = seen.setdefault(part, [])
                if part in wanted:
                    where.append((place, count))
        for part, count in wanted.items():
            seen.setdefault(part, []).append((-1, count))
        alike: dict[tuple[tuple[int, int], ...], int] = {}
        return {part: alike.setdefault(tuple(where), len(alike)) for part, where in seen.items()}

    def _sum(self, number: int, names: _Names) -> Sum:
        whole = self.cone.flow.table.known[self.cone.fold(number)]
        reads = sorted((names.read[r], n) for r, n in whole.reads.items())
        return Sum(names.counts(whole.parts), tuple(reads))

    def _read(self, read: int, names: _Names) -> Read:
        sources = [
            Source(None if s.write is None else names.access[s.write], self._sum(s.value, names))
            for s in self.cone.sources[read]
        ]
        return Read(names.access[self.cone.flow.reads[read].access], tuple(sources))

    def _prefix(self, goal: GoalValue, nodes: Sequence[int], at_most: int) -> Prefix:
        weights, group_of, closed = groups_of(self.graph, nodes)
        number = {node: i for i, node in enumerate(nodes)}
        needs = tuple(number[node] for node in writers(goal, self.cone))
        read = None if goal.read is None else self.cone.flow.reads[goal.read].access.step
        end = None if read is None else number.get(read)
        return Prefix(tuple(weights), tuple(group_of), tuple(sorted(closed)), needs, end, at_most)


def writers(goal: GoalValue, cone: Cone) -> list[int]:
    """The nodes that may leave what a goal's chunk holds in the end."""
    if goal.read is None:
        return [] if goal.writer is None else [goal.writer]
    writes = (source.write for source in cone.sources[goal.read])
    return list(dict.fromkeys(write.step for write in writes if write is not None))


class _Names(NamedTuple):
    """Numbers in the problem."""

    node: Mapping[int, int]
    access: Mapping[OrderItem, int]
    read: Mapping[int, int]
    part: Mapping[Part, int]

    def counts(self, parts: Mapping[Part, int]) -> Pairs:
        """A multiset by numbers of parts.

        Wanted parts with one number have one count; of unwanted ones any count is too many.
        """
        return tuple(sorted({self.part[part]: n for part, n in parts.items()}.items()))
