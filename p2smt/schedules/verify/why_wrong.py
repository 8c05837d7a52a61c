"""Why an output chunk is wrong: the step that went wrong, and the way of each contribution.

The culprit is looked for where the damage first shows: the first sum that holds a contribution
twice, the step that overwrote one before it was passed on, the read of a chunk nobody had written.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from p2smt.collectives.contract import Contribution
from p2smt.schedules.races.replay import ItemKind, OrderItem
from p2smt.schedules.verify.contributions import DataState
from p2smt.schedules.verify.report import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from p2smt.collectives.contract import Goal
    from p2smt.schedules.index import Index
    from p2smt.schedules.multisets import Part
    from p2smt.schedules.order.happens_before import Nodes
    from p2smt.schedules.verify.report import Violation


# Steps of a contribution's way that are shown at each of its ends.
_SHOWN = 5


def explained(
    index: Index, order: Sequence[int], violations: Sequence[Violation]
) -> tuple[Violation, ...]:
    """The violations with culprits and ways, the one that shows first in the run first."""
    provenance = trace_values(index, order)
    goals = {(goal.rank, goal.chunk): goal for goal in index.schedule.contract.goals}
    when = {step: k for k, step in enumerate(order)}
    found = [
        _explained(provenance, goals[v.rank, v.chunk], v)
        for v in violations
        if v.rank is not None and v.chunk is not None
    ]
    return tuple(sorted(found, key=lambda v: when.get(v.steps[0], -1) if v.steps else len(when)))


def depends_on(
    index: Index, order: Sequence[int], violation: Violation, cells: Collection[int]
) -> bool:
    """Whether any of these cells has to do with what a wrong chunk holds after a run."""
    if violation.rank is None or violation.chunk is None:
        return False
    provenance = trace_values(index, order)
    cell = index.memory.output_cell(violation.rank, violation.chunk)
    read = (
        addend.cell
        for chunk in _cone(provenance, provenance.last.get(cell))
        for addend in provenance.addends[chunk]
    )
    return cell in cells or any(source in cells for source in read if source is not None)


def _explained(provenance: Provenance, goal: Goal, violation: Violation) -> Violation:
    root = provenance.last.get(provenance.state.index.memory.output_cell(goal.rank, goal.chunk))
    chunks = list(_cone(provenance, root))
    wanted: Counter[Part] = Counter(goal.parts)
    match violation.kind:
        case Kind.DOUBLED:
            return _doubled(provenance, chunks, wanted, violation)
        case Kind.UNINITIALISED:
            return _undefined(provenance, chunks, violation)
        case Kind.MISSING:
            return _missing(provenance, root, wanted, violation)
        case _:
            return _written_by(provenance, root, violation)


def _cone(provenance: Provenance, root: StepChunk | None) -> Iterator[StepChunk]:
    """What a chunk's value was made from, addends before what adds them."""
    done: set[StepChunk] = set()
    todo: list[tuple[StepChunk, bool]] = [(root, False)] if root else []
    while todo:
        chunk, finished = todo.pop()
        if finished:
            yield chunk
        elif chunk not in done:
            done.add(chunk)
            todo.append((chunk, True))
            todo += [(a.origin, False) for a in provenance.addends[chunk] if a.origin]


def _doubled(
    provenance: Provenance, chunks: list[StepChunk], wanted: Counter[Part], violation: Violation
) -> Violation:
    """The first sum in which a contribution comes together with itself."""
    for chunk in chunks:
        for part in provenance.parts(provenance.values[chunk]):
            addends = [a for a in provenance.addends[chunk] if provenance.contains(a.value, part)]
            if len(addends) > 1 and wanted[part]:
                return _joined(provenance, chunk, part, addends, violation)
    return violation


def _joined(
    provenance: Provenance,
    chunk: StepChunk,
    part: Part,
    addends: list[Addend],
    violation: Violation,
) -> Violation:
    steps = provenance.state.index.schedule.steps
    step = steps[chunk.step]
    both = " and ".join(_addend(provenance, addend) for addend in addends[:2])
    meant = _meant(provenance, addends)
    text = f"{violation.message}: {step} adds {both}, and both hold {part}{meant}"
    ways = [f"{part} by way of {_way(provenance, addend, part)}" for addend in addends]
    culprits = (chunk.step, *(a.origin.step for a in addends if a.origin))
    return replace(violation, message=text, steps=culprits, details=tuple(ways))


def _meant(provenance: Provenance, addends: list[Addend]) -> str:
    """What was probably meant, where a step that adds should not have."""
    if any(addend.cell is None for addend in addends):
        return "; it reduces where a plain receive was probably meant"
    for one, other in permutations(addends, 2):
        if one.origin and other in provenance.addends[one.origin]:
            return "; so the same data is added a second time"
    return "; it reduces where a copy was probably meant, or one of the two is old data"


def _addend(provenance: Provenance, addend: Addend) -> str:
    index = provenance.state.index
    maker = index.schedule.steps[addend.origin.step] if addend.origin else None
    if addend.cell is None:
        return f"the message from {maker}"
    name = index.memory.name(addend.cell)
    return f"{name} (written by {maker})" if maker else f"{name} (there from the start)"


def _way(provenance: Provenance, addend: Addend, part: Part) -> str:
    """The steps that a contribution went through before it got here, latest first."""
    steps, found = provenance.state.index.schedule.steps, []
    while addend.origin is not None:
        found.append(str(steps[addend.origin.step]))
        inside = provenance.addends[addend.origin]
        addend = next(a for a in inside if provenance.contains(a.value, part))
    if len(found) > 2 * _SHOWN:
        between = f"{len(found) - 2 * _SHOWN} more"
        found = [*found[:_SHOWN], between, *found[-_SHOWN:]]
    start = provenance.state.index.memory.name(addend.cell) if addend.cell is not None else "?"
    return " <- ".join([*found, f"{start} at the start"])


def _undefined(provenance: Provenance, chunks: list[StepChunk], violation: Violation) -> Violation:
    """The first read of a chunk that nobody had written."""
    for chunk in chunks:
        for addend in provenance.addends[chunk]:
            value = provenance.parts(addend.value)
            if addend.origin is None and any(isinstance(part, str) for part in value):
                step = provenance.state.index.schedule.steps[chunk.step]
                text = f"{violation.message}: {step} reads it"
                return replace(violation, message=text, steps=(chunk.step,))
    return violation


def _missing(
    provenance: Provenance, root: StepChunk | None, wanted: Counter[Part], violation: Violation
) -> Violation:
    """A step that overwrote what is missing, or who still holds it."""
    have = provenance.parts(provenance.values[root]) if root else {}
    part = min(p for p in wanted if have.get(p, 0) < wanted[p] and isinstance(p, Contribution))
    index = provenance.state.index
    for cell, old, chunk in provenance.overwritten:
        lost = provenance.contains(old, part) and not provenance.contains(
            provenance.values[chunk], part
        )
        if lost and not _passed_on(provenance, cell, chunk, part):
            step = index.schedule.steps[chunk.step]
            what = f"overwrites {index.memory.name(cell)}, which held {part}"
            text = f"{violation.message}: {step} {what}"
            return replace(violation, message=text, steps=(chunk.step,))
    return _written_by(provenance, root, violation, _holders(provenance, part))


def _passed_on(provenance: Provenance, cell: int, by: StepChunk, part: Part) -> bool:
    """Whether any step used what a cell held of a contribution before it was overwritten."""
    return any(
        addend.cell == cell and provenance.contains(addend.value, part)
        for chunk, addends in provenance.addends.items()
        if chunk != by
        for addend in addends
    )


def _holders(provenance: Provenance, part: Contribution) -> str:
    """In words, the ranks that hold a contribution at the end."""
    state = provenance.state
    starts = state.index.memory.starts
    ranks = [
        rank
        for rank in range(state.index.schedule.ranks)
        if any(
            value >= 0 and provenance.contains(value, part)
            for value in state.cells[starts[rank] : starts[rank + 1]]
        )
    ]
    shown = ", ".join(map(str, ranks[:8])) + (", .." if len(ranks) > 8 else "")
    return f"; at the end {part} is held by rank {shown}" if ranks else ""


def _written_by(
    provenance: Provenance, root: StepChunk | None, violation: Violation, more: str = ""
) -> Violation:
    if root is None:
        return replace(violation, message=violation.message + more)
    step = provenance.state.index.schedule.steps[root.step]
    text = f"{violation.message}: {step} wrote it last{more}"
    return replace(violation, message=text, steps=(root.step,))


# Where the data of every step comes from, along one run.
# What a step makes at one of its positions is a chunk of its own.  It adds up the sender's chunk
# that came as the message and, for every cell it reads, the chunk that was written there last
# (none: what is there was there at the start).


class StepChunk(NamedTuple):
    """What step ``step`` makes at its position ``place``."""

    step: int
    place: int


class Addend(NamedTuple):
    """Something that is added up: where it comes from, and its value's number.

    cell: the cell that was read; None for a message.
    origin: the chunk that it is; None if it was there at the start.
    """

    cell: int | None
    origin: StepChunk | None
    value: int


@dataclass(slots=True)
class Provenance:
    """Addends and values of all chunks; ``last``: what was written last to each cell."""

    state: DataState
    addends: dict[StepChunk, list[Addend]] = field(default_factory=dict)
    values: dict[StepChunk, int] = field(default_factory=dict)
    last: dict[int, StepChunk] = field(default_factory=dict)
    overwritten: list[tuple[int, int, StepChunk]] = field(default_factory=list)

    def parts(self, value: int) -> Mapping[Part, int]:
        """What a value is made of."""
        return self.state.table.known[value].parts

    def contains(self, value: int, part: Part) -> int:
        """How often a contribution is in a value."""
        return self.parts(value).get(part, 0)

    def do(self, number: int, inbox: dict[object, deque[int]]) -> None:
        """Performs a step and notes its addends; ``inbox`` holds the senders of messages."""
        step = self.state.index.schedule.steps[number]
        sender = inbox[step.receive].popleft() if step.receive else None
        message = self.state.messages[step.receive][0] if step.receive else []
        for place in range(step.count):
            found = list(self._reads(number, place))
            if sender is not None:
                found.insert(0, Addend(None, StepChunk(sender, place), message[place]))
            self.addends[StepChunk(number, place)] = found
        old = {
            c: self.state.cells[c] for s in step.writes for c in self.state.index.memory.cells(s)
        }
        self.state.do(number)
        self._store(number, old)
        if step.send:
            inbox.setdefault(step.send, deque()).append(number)

    def _reads(self, number: int, place: int) -> Iterator[Addend]:
        memory = self.state.index.memory
        for span in self.state.index.schedule.steps[number].reads:
            cell = memory.cells(span)[place]
            yield Addend(cell, self.last.get(cell), self.state.read(cell))

    def _store(self, number: int, old: dict[int, int]) -> None:
        for place in range(self.state.index.schedule.steps[number].count):
            chunk = StepChunk(number, place)
            values = [addend.value for addend in self.addends[chunk]]
            if values:
                self.values[chunk] = self._sum(values)
        for span in self.state.index.schedule.steps[number].writes:
            for place, cell in enumerate(self.state.index.memory.cells(span)):
                if old[cell] >= 0:
                    self.overwritten.append((cell, old[cell], StepChunk(number, place)))
                self.last[cell] = StepChunk(number, place)

    def _sum(self, values: Sequence[int]) -> int:
        total = values[0]
        for value in values[1:]:
            total = self.state.table.add(total, value)
        return total


def trace_values(index: Index, order: Sequence[int]) -> Provenance:
    """The provenance of everything along a run."""
    provenance = Provenance(DataState(index))
    inbox: dict[object, deque[int]] = {}
    for number in order:
        provenance.do(number, inbox)
    return provenance


# Where the data of a wrong chunk went through in the interleaving that shows it.


class StepPosition(NamedTuple):
    """One chunk of a step, or of the start of a rank, by its node."""

    node: int
    position: int


@dataclass(slots=True)
class ShownFlow:
    """What was read from whom.

    accesses: (node, cell) in order.  last: who wrote each cell last.  sources: of each chunk of a
    step, the cells it read and who had written them.
    """

    index: Index
    nodes: Nodes
    accesses: list[tuple[int, int]] = field(default_factory=list)
    last: dict[int, StepPosition] = field(default_factory=dict)
    sources: dict[StepPosition, list[tuple[int, StepPosition | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _done: set[OrderItem] = field(default_factory=set)

    def run(self, items: Iterable[OrderItem], goal: tuple[int, int]) -> None:
        """Follows an order until a goal, (rank, chunk), is read."""
        end = self.nodes.end(goal[0])
        for item in items:
            if item.step == end and (item.kind is ItemKind.STEP or item.position == goal[1]):
                return
            if self.nodes.is_step(item.step):
                whole = item.kind is ItemKind.STEP
                for access in list(self._accesses(item.step)) if whole else [item]:
                    self._access(access)

    def _accesses(self, number: int) -> Iterator[OrderItem]:
        step = self.index.schedule.steps[number]
        for kind, spans in ((ItemKind.READ, step.reads), (ItemKind.WRITE, step.writes)):
            for k in range(len(spans)):
                yield from (OrderItem(number, kind, j, k) for j in range(step.count))

    def _access(self, access: OrderItem) -> None:
        if access in self._done:
            return
        self._done.add(access)
        step = self.index.schedule.steps[access.step]
        reads = access.kind is ItemKind.READ
        cell = self.index.memory.cells((step.reads if reads else step.writes)[access.operand])[
            access.position
        ]
        place = StepPosition(access.step, access.position)
        self.accesses.append((access.step, cell))
        if reads:
            self.sources[place].append((cell, self.last.get(cell)))
        else:
            self.last[cell] = place

    def way_to(self, cell: int) -> dict[int, tuple[int, ...]]:
        """For every cell that a cell's contents came through, the steps from there, latest first;
        the cell itself by no step."""
        found: dict[int, tuple[int, ...]] = {cell: ()}
        todo: list[tuple[StepPosition | None, tuple[int, ...]]] = [(self.last.get(cell), ())]
        seen: set[StepPosition] = set()
        while todo:
            place, way = todo.pop(0)
            if place is None or place in seen:
                continue
            seen.add(place)
            way = (*way, place.node)
            for source, writer in self.sources[place]:
                found.setdefault(source, way)
                todo.append((writer, way))
            sender = self._sender(place)
            todo.append((sender, way))
        return found

    def _sender(self, place: StepPosition) -> StepPosition | None:
        """Who sent what a step received."""
        connection = self.index.schedule.steps[place.node].receive
        if connection is None:
            return None
        turn = list(self.index.receives[connection]).index(place.node)
        return StepPosition(self.index.sends[connection][turn], place.position)
