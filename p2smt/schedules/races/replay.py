"""Runs a schedule under one given order of its accesses, and says what every goal chunk holds.

An independent interpreter: it shares the representation of schedules with the analysis of their
order and the solver's encoding, and nothing else, and it checks that the order is a possible one.
Accesses take effect where they stand; a step takes its message, signals and packets at its first
item and is complete after its last one.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from p2smt.collectives.contract import Contribution
from p2smt.schedules.model import Buffer

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from p2smt.schedules.model import Connection, Schedule, Span, Step

Part = Contribution | str
"""What a sum is made of: a contribution, or the name of a chunk that was read before any write."""

Cell = tuple[int, str, int]
"""Memory of a rank: (rank, "data" in place or else a buffer's letter, place)."""


class ItemKind(StrEnum):
    """What of a step happens: all that is left of it, one read, or one write."""

    STEP = "step"
    READ = "read"
    WRITE = "write"


class OrderItem(NamedTuple):
    """One item of an order of execution.

    step: position in Schedule.steps; with n steps and R ranks, n + r is the start of rank r
        (its input appears) and n + R + r its end (its output is read).
    position: the chunk of the step (of the rank's input or output for its start or end).
    operand: which of the step's reads or writes.
    """

    step: int
    kind: ItemKind = ItemKind.STEP
    position: int = 0
    operand: int = 0


class ImpossibleOrder(ValueError):
    """No execution has this order."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a run leaves.

    goals: (rank, chunk) -> what was there at the end of the rank (at the end of the order for
        ranks whose end is not in it).
    executed: steps of which something was done, in order of their first item.
    """

    goals: Mapping[tuple[int, int], Counter[Part]]
    executed: tuple[int, ...]

    def wrong(self, schedule: Schedule) -> Iterator[tuple[int, int]]:
        """The goals that are not met."""
        for goal in schedule.contract.goals:
            if self.goals[goal.rank, goal.chunk] != goal.multiset():
                yield goal.rank, goal.chunk


@dataclass(slots=True)
class _Run:
    """The state of a run."""

    schedule: Schedule
    depth: int | None
    cells: dict[Cell, Counter[Part]] = field(default_factory=dict)
    packets: set[Cell] = field(default_factory=set)
    queues: dict[Connection, deque[list[Counter[Part]]]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    counters: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    values: dict[int, list[Counter[Part]]] = field(default_factory=dict)
    left: dict[int, set[OrderItem]] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)
    events: set[OrderItem] = field(default_factory=set)
    blocks: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    goals: dict[tuple[int, int], Counter[Part]] = field(default_factory=dict)
    held: Counter[Connection] = field(default_factory=Counter)
    starts: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.counters.update(self.schedule.initial)
        for number, step in enumerate(self.schedule.steps):
            self.blocks[step.rank, step.block].append(number)
            if step.relaxed:
                for counter in step.posts:
                    self.counters[counter] += 1

    def cell(self, rank: int, buffer: Buffer, chunk: int) -> Cell:
        """Where a chunk is; in place, input and output are parts of the same data."""
        if buffer is Buffer.SCRATCH or not self.schedule.in_place:
            return rank, buffer.value, chunk
        shift = self.schedule.contract.shift[rank]
        offset = shift if buffer is Buffer.INPUT else -shift
        return rank, "data", chunk + max(offset, 0)

    def of(self, span: Span, position: int) -> Cell:
        """The cell of a chunk of a span."""
        return self.cell(span.rank, span.buffer, span.start + position)

    def look(self, cell: Cell) -> Counter[Part]:
        """What a cell holds."""
        return self.cells[cell] if cell in self.cells else Counter({self._name(cell): 1})

    def _name(self, cell: Cell) -> str:
        """A cell for people; the output's name where it has two."""
        rank, buffer, place = cell
        if buffer == "data":
            shift = self.schedule.contract.shift[rank]
            place -= max(-shift, 0)
            buffer = "o"
            if not 0 <= place < self.schedule.sizes[rank].output:
                buffer, place = "i", place - shift
        return f"{buffer}[{place}] of rank {rank}"

    def start_rank(self, rank: int, chunks: Iterable[int]) -> None:
        """Input chunks of a rank appear."""
        for chunk in chunks:
            given = self.schedule.contract.starts[rank][chunk]
            cell = self.cell(rank, Buffer.INPUT, chunk)
            self.cells[cell] = Counter({self._name(cell) if given is None else given: 1})
        self.starts.add(rank)

    def end_rank(self, rank: int) -> None:
        """The output of a rank is read; again, where a goal was read before, it stays."""
        for goal in self.schedule.contract.goals:
            if goal.rank == rank and (rank, goal.chunk) not in self.goals:
                self.goals[rank, goal.chunk] = self.look(self.cell(rank, Buffer.OUTPUT, goal.chunk))

    def end(self, rank: int, item: OrderItem) -> None:
        """The end of a rank, or the reading of one chunk at its end."""
        for block in (b for (r, _), b in self.blocks.items() if r == rank):
            for number in block:
                if not self.schedule.steps[number].background and number not in self.complete:
                    raise ImpossibleOrder(f"rank {rank} ends before step {number}")
        if item.kind is ItemKind.STEP:
            self.end_rank(rank)
        else:
            cell = self.cell(rank, Buffer.OUTPUT, item.position)
            self.goals[rank, item.position] = self.look(cell)

    def begin(self, number: int) -> None:
        """A step starts: it takes its message and signals."""
        step = self.schedule.steps[number]
        self._possible(number, step)
        value: list[Counter[Part]] = [Counter() for _ in range(step.count)]
        if step.receive:
            value = [Counter(part) for part in self.queues[step.receive].popleft()]
        for counter in () if step.relaxed else step.awaits:
            self.counters[counter] -= 1
        self.values[number] = value
        self.left[number] = set(_accesses(number, step))

    def _possible(self, number: int, step: Step) -> None:
        if number in self.left:
            raise ImpossibleOrder(f"step {number} happens twice")
        waiting = [e for e in self._before(step) if e not in self.complete]
        if waiting or step.rank not in self.starts:
            raise ImpossibleOrder(f"step {number} before what it comes after: {waiting}")
        if step.receive and not self.queues[step.receive]:
            raise ImpossibleOrder(f"step {number} without its message")
        if step.send and self.depth is not None and self.held[step.send] >= self.depth:
            raise ImpossibleOrder(f"step {number} without room for its message")
        for counter, needed in Counter(() if step.relaxed else step.awaits).items():
            if self.counters[counter] < needed:
                raise ImpossibleOrder(f"step {number} without its signal {counter}")
        packets = (self.of(s, j) for s in step.reads if s.packet for j in range(step.count))
        if any(cell not in self.packets for cell in packets):
            raise ImpossibleOrder(f"step {number} without its packet")

    def _before(self, step: Step) -> Iterator[int]:
        """Steps that are complete before a step starts."""
        block = self.blocks[step.rank, step.block]
        if step.after is None and step.index:
            yield block[step.index - 1]
        for ref in (*step.waits, *(step.after or ())):
            yield self.blocks[step.rank, ref.block][ref.index]

    def access(self, item: OrderItem) -> None:
        """One read or write of a step that has started."""
        left, step = self.left[item.step], self.schedule.steps[item.step]
        if item not in left:
            raise ImpossibleOrder(f"{item} is not an access of its step, or happens twice")
        left.remove(item)
        if item.kind is ItemKind.READ:
            span = step.reads[item.operand]
            self.values[item.step][item.position].update(self.look(self.of(span, item.position)))
            return
        if any(o.kind is ItemKind.READ and o.position == item.position for o in left):
            raise ImpossibleOrder(f"{item} before the reads of its position")
        span = step.writes[item.operand]
        self.cells[self.of(span, item.position)] = Counter(self.values[item.step][item.position])
        if span.packet:
            self.packets.add(self.of(span, item.position))

    def finish(self, number: int) -> None:
        """A step is complete, unless it waits for others at a barrier."""
        meeting = self._meeting(number)
        if any(self.left.get(m, {number}) for m in meeting):
            return
        for member in meeting:
            step = self.schedule.steps[member]
            self.complete.add(member)
            if step.receive:
                self.held[step.receive] -= 1
            if step.send:
                self.held[step.send] += 1
                self.queues[step.send].append(self.values[member])
            for counter in () if step.relaxed else step.posts:
                self.counters[counter] += 1

    def _meeting(self, number: int) -> list[int]:
        """The steps that complete together with a step: itself, or those at its barrier."""
        step = self.schedule.steps[number]
        if step.barrier is None:
            return [number]
        mine = self._at(step.rank, step.block, step.barrier)
        turn = mine.index(number)
        blocks = [block for rank, block in self.blocks if rank == step.rank]
        reached = [self._at(step.rank, block, step.barrier) for block in blocks]
        return [numbers[turn] for numbers in reached if turn < len(numbers)]

    def _at(self, rank: int, block: int, barrier: str) -> list[int]:
        steps = self.schedule.steps
        return [n for n in self.blocks[rank, block] if steps[n].barrier == barrier]


def _accesses(number: int, step: Step) -> Iterator[OrderItem]:
    """All accesses of a step in the order in which an undisturbed step does them."""
    for kind, spans in ((ItemKind.READ, step.reads), (ItemKind.WRITE, step.writes)):
        for position in range(step.count):
            for operand in range(len(spans)):
                yield OrderItem(number, kind, position, operand)


def _item(run: _Run, item: OrderItem) -> None:
    steps, ranks = len(run.schedule.steps), run.schedule.ranks
    if item.step >= steps + ranks:
        run.end(item.step - steps - ranks, item)
    elif item.step >= steps:
        rank = item.step - steps
        chunks = range(len(run.schedule.contract.starts[rank]))
        run.start_rank(rank, chunks if item.kind is ItemKind.STEP else [item.position])
    else:
        _step(run, item)


def _step(run: _Run, item: OrderItem) -> None:
    if item.kind is ItemKind.STEP or item.step not in run.left:
        run.begin(item.step)
    whole = item.kind is ItemKind.STEP
    step = run.schedule.steps[item.step]
    for access in list(_accesses(item.step, step)) if whole else [item]:
        run.access(access)
    if not run.left[item.step]:
        run.finish(item.step)


def replay(schedule: Schedule, order: Iterable[OrderItem], depth: int | None = None) -> Replayed:
    """Executes a schedule, whose structure must be sound, in an order.

    Ranks whose start is not in the order start before everything; those whose end is not in it
    end after everything, though perhaps before they have done all their steps: an order may be
    the beginning of one.  A step's posts and awaits order nothing where it is relaxed.

    Args:
        depth: messages that a connection holds; None: any number.

    Raises:
        ImpossibleOrder: no execution has this order.
    """
    run, items = _Run(schedule, depth), list(order)
    n, ranks = len(schedule.steps), schedule.ranks
    explicit: set[Hashable] = {item.step - n for item in items if n <= item.step < n + ranks}
    for rank in range(ranks):
        if rank not in explicit:
            run.start_rank(rank, range(len(schedule.contract.starts[rank])))
    for item in items:
        _item(run, item)
    for rank in range(ranks):
        run.end_rank(rank)
    executed = dict.fromkeys(item.step for item in items if item.step < n)
    return Replayed(run.goals, tuple(executed))
