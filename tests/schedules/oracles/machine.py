"""A schedule as a machine of atomic events, for the exhaustive oracle; slow and obvious.

Shares the representation (model, contract) with the checker and nothing else.  Every step becomes
an operation with four kinds of events::

    start      its predecessors are complete; the message and the tokens are taken, room on the
               connection it sends on is set aside
    read j k   position j adds what the k-th source holds now
    write j k  position j is stored to the k-th destination, once all sources of j are read
    complete   everything is stored; the message is pushed, counters are raised

Two more operations per rank: its start writes the initial contents of the input, and its end
reads the goals.  Values are interned multisets of contributions; 0 is "not initialised", which
stays so whatever is added.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from p2smt.collectives.contract import Contract, Contribution
from p2smt.schedules.model import Buffer, Connection, Schedule, Span, Step

Cell = tuple[int, str, int]
UNINITIALISED = 0


class Values:
    """Interned multisets of contributions."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[Contribution, int], ...], int] = {(): 1}
        self._parts: list[Counter[Contribution]] = [Counter(), Counter()]
        self._sums: dict[tuple[int, int], int] = {}

    def of(self, parts: Counter[Contribution]) -> int:
        """The number of a multiset."""
        key = tuple(sorted(parts.items()))
        if key not in self._known:
            self._known[key] = len(self._parts)
            self._parts.append(parts)
        return self._known[key]

    def add(self, left: int, right: int) -> int:
        """The number of the sum."""
        if UNINITIALISED in (left, right):
            return UNINITIALISED
        if (left, right) not in self._sums:
            self._sums[left, right] = self.of(self._parts[left] + self._parts[right])
        return self._sums[left, right]

    def parts(self, value: int) -> tuple[Contribution, ...]:
        """The contributions in a value, each as often as it is in there."""
        return tuple(sorted(self._parts[value].elements()))

    def text(self, value: int) -> str:
        """A value for people."""
        if value == UNINITIALISED:
            return "uninitialised"
        return " + ".join(f"{n}*{part}" for part, n in sorted(self._parts[value].items())) or "0"


class Position(NamedTuple):
    """One chunk position of an operation: cells added to ``initial``, stored to others."""

    initial: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    expect: int | None = None


@dataclass(slots=True)
class Operation:
    """A step, or the start or the end of a rank; masks and numbers refer to the machine's lists.

    before: what must be complete first.  needs, marks: cells that must hold a packet, that get one.
    takes: counters, and how much it takes when it starts; owes: the same without waiting for it.
    together: who meets at its barrier.  first, after: closures of ``before``, forwards and back.
    """

    label: str
    positions: tuple[Position, ...] = ()
    before: int = 0
    needs: tuple[int, ...] = ()
    marks: frozenset[int] = frozenset()
    receive: int | None = None
    send: int | None = None
    takes: tuple[tuple[int, int], ...] = ()
    owes: tuple[tuple[int, int], ...] = ()
    posts: tuple[int, ...] = ()
    together: int = 0
    after: int = 0
    first: int = 0


@dataclass(slots=True)
class Machine:
    """All operations and the initial state; ``broken`` says why there is nothing to run."""

    values: Values = field(default_factory=Values)
    operations: list[Operation] = field(default_factory=list)
    cells: dict[Cell, int] = field(default_factory=dict)
    connections: dict[Connection, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    initial: dict[str, int] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()

    def cell_of(self, contract: Contract, rank: int, buffer: Buffer, chunk: int) -> int | None:
        """The number of a cell that some operation touches."""
        return self.cells.get(place(contract, rank, buffer, chunk))


def place(contract: Contract, rank: int, buffer: Buffer, chunk: int) -> Cell:
    """Where a chunk lies; in place, input and output are one memory."""
    if not contract.in_place or buffer is Buffer.SCRATCH:
        return (rank, buffer.value, chunk)
    shift = contract.shift[rank]
    moved = max(shift, 0) if buffer is Buffer.INPUT else max(-shift, 0)
    return (rank, "io", chunk + moved)


def compile_schedule(schedule: Schedule) -> Machine:
    """The machine of a schedule."""
    machine = Machine(initial=dict(schedule.initial), broken=frozenset(_broken(schedule)))
    if machine.broken:
        return machine
    for name in schedule.initial:
        machine.counters.setdefault(name[0], len(machine.counters))
    for rank in range(schedule.ranks):
        machine.operations.append(_start(machine, schedule, rank))
    for step in schedule.steps:
        machine.operations.append(_operation(machine, schedule, step))
    for rank in range(schedule.ranks):
        machine.operations.append(_end(machine, schedule, rank))
    _order(machine, schedule)
    return machine


def _broken(schedule: Schedule) -> list[str]:
    """What is wrong without running anything."""
    known = {(s.rank, s.block, s.index) for s in schedule.steps}
    found = [] if len(known) == len(schedule.steps) else ["step numbers"]
    for goal in schedule.contract.goals:
        if goal.chunk >= schedule.sizes[goal.rank].output:
            found.append("bounds")
    for step in schedule.steps:
        if any(span.count != step.count for span in step.reads + step.writes):
            found.append("count")
        if not all(_inside(schedule, span) for span in step.reads + step.writes):
            found.append("bounds")
        for way, end in ((step.receive, 1), (step.send, 0)):
            others = set(range(schedule.ranks)) - {step.rank}
            if way and (way[end] != step.rank or way[1 - end] not in others):
                found.append("peer")
        if step.count and (step.writes or step.send) and not (step.reads or step.receive):
            found.append("no source")
        refs = step.waits + (step.after or ())
        if any((step.rank, ref.block, ref.index) not in known for ref in refs):
            found.append("unknown dependency")
    return found + _shared(schedule)


def _shared(schedule: Schedule) -> list[str]:
    """One block at each end of a connection, in a certain order; barriers are met equally often."""
    ends: dict[tuple[Connection, bool], set[int]] = {}
    visits: dict[tuple[int, str], Counter[int]] = {}
    for step in schedule.steps:
        for way, out in ((step.receive, False), (step.send, True)):
            if way:
                ends.setdefault((way, out), set()).add(step.block)
        if step.barrier is not None:
            visits.setdefault((step.rank, step.barrier), Counter())[step.block] += 1
    for step in schedule.steps:
        moves = (step.reads, step.writes, step.send, step.receive, step.posts)
        if step.barrier is not None and any(moves):
            return ["barrier"]
    found = ["shared connection"] if any(len(blocks) > 1 for blocks in ends.values()) else []
    uneven = any(len(set(visit.values())) > 1 for visit in visits.values())
    return found + ["barrier"] * uneven + ["overtaking"] * _overtakes(schedule)


def _overtakes(schedule: Schedule) -> bool:
    """Whether two steps use the same end of a connection in no certain order."""
    before: dict[tuple[int, int, int], set[tuple[int, int, int]]] = {}
    for step in schedule.steps:
        refs = [(ref.block, ref.index) for ref in step.waits + (step.after or ())]
        if step.after is None and step.index:
            refs.append((step.block, step.index - 1))
        before[step.rank, step.block, step.index] = {(step.rank, *ref) for ref in refs}
    for _ in before:
        for mine in before.values():
            mine |= {far for near in mine for far in before.get(near, ())}
    ends: dict[tuple[Connection, bool], list[tuple[int, int, int]]] = {}
    for step in schedule.steps:
        for way, out in ((step.receive, False), (step.send, True)):
            if way:
                ends.setdefault((way, out), []).append((step.rank, step.block, step.index))
    return any(a not in before[b] for users in ends.values() for a, b in pairwise(users))


def _inside(schedule: Schedule, span: Span) -> bool:
    if not 0 <= span.rank < schedule.ranks:
        return False
    size = schedule.sizes[span.rank].of(span.buffer)
    return span.start >= 0 and span.count >= 0 and span.start + span.count <= size


def _cell(machine: Machine, contract: Contract, span: Span, j: int) -> int:
    cell = place(contract, span.rank, span.buffer, span.start + j)
    return machine.cells.setdefault(cell, len(machine.cells))


def _start(machine: Machine, schedule: Schedule, rank: int) -> Operation:
    positions = []
    for chunk, given in enumerate(schedule.contract.starts[rank]):
        span = Span(rank, Buffer.INPUT, chunk, 1)
        value = UNINITIALISED if given is None else machine.values.of(Counter([given]))
        cell = _cell(machine, schedule.contract, span, 0)
        positions.append(Position(value, (), (cell,)))
    return Operation(f"start of rank {rank}", tuple(positions))


def _end(machine: Machine, schedule: Schedule, rank: int) -> Operation:
    positions = []
    for goal in schedule.contract.goals:
        if goal.rank == rank:
            cell = _cell(machine, schedule.contract, Span(rank, Buffer.OUTPUT, goal.chunk, 1), 0)
            expect = machine.values.of(goal.multiset())
            positions.append(Position(1, (cell,), (), expect))
    return Operation(f"end of rank {rank}", tuple(positions))


def _operation(machine: Machine, schedule: Schedule, step: Step) -> Operation:
    def cells(spans: tuple[Span, ...], j: int) -> tuple[int, ...]:
        return tuple(_cell(machine, schedule.contract, span, j) for span in spans)

    def packets(spans: tuple[Span, ...]) -> list[int]:
        flagged = tuple(span for span in spans if span.packet)
        return [cell for j in range(step.count) for cell in cells(flagged, j)]

    ways, names = machine.connections, machine.counters
    for way in (step.receive, step.send):
        if way:
            ways.setdefault(way, len(ways))
    for name in step.posts + step.awaits:
        names.setdefault(name, len(names))
    return Operation(
        str(step),
        tuple(Position(1, cells(step.reads, j), cells(step.writes, j)) for j in range(step.count)),
        needs=tuple(packets(step.reads)),
        marks=frozenset(packets(step.writes)),
        receive=ways[step.receive] if step.receive else None,
        send=ways[step.send] if step.send else None,
        takes=tuple((names[name], n) for name, n in Counter(step.awaits).items()),
        posts=tuple(names[name] for name in step.posts),
    )


def _order(machine: Machine, schedule: Schedule) -> None:
    """Fill in what comes before what on each rank, and the barriers."""
    ranks = schedule.ranks
    number = {(s.rank, s.block, s.index): ranks + n for n, s in enumerate(schedule.steps)}
    groups = _barriers(schedule)
    ends = len(machine.operations) - ranks
    for n, step in enumerate(schedule.steps):
        here = machine.operations[ranks + n]
        here.before = 1 << step.rank
        for ref in step.waits + (step.after or ()):
            here.before |= 1 << number[step.rank, ref.block, ref.index]
        previous = number.get((step.rank, step.block, step.index - 1))
        if step.after is None and previous is not None:
            here.before |= 1 << previous
        if n in groups:
            here.together = sum(1 << (ranks + m) for m in groups[n])
        if not step.background:
            machine.operations[ends + step.rank].before |= 1 << (ranks + n)
    for rank in range(ranks):
        machine.operations[ends + rank].before |= 1 << rank
    close(machine.operations)


def _barriers(schedule: Schedule) -> dict[int, list[int]]:
    """Per step with a barrier: all steps that meet there."""
    seen: Counter[tuple[int, int, str]] = Counter()
    meetings: dict[tuple[int, str, int], list[int]] = {}
    ordered = sorted(range(len(schedule.steps)), key=lambda n: schedule.steps[n].index)
    for n in ordered:
        step = schedule.steps[n]
        if step.barrier is not None:
            place_in_block = (step.rank, step.block, step.barrier)
            key = (step.rank, step.barrier, seen[place_in_block])
            seen[place_in_block] += 1
            meetings.setdefault(key, []).append(n)
    return {n: group for group in meetings.values() for n in group}


def close(operations: list[Operation]) -> None:
    """Fill in ``first``: all that must be complete before; and
    ``after``: all that wait for it."""
    for operation in operations:
        operation.first = operation.before
    changed = True
    while changed:
        changed = False
        for operation in operations:
            wider = operation.first
            for n in bits(operation.first):
                wider |= operations[n].first
            changed = changed or wider != operation.first
            operation.first = wider
    for n, operation in enumerate(operations):
        for m in bits(operation.first):
            operations[m].after |= 1 << n


def bits(mask: int) -> list[int]:
    """The numbers of the bits that are set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
