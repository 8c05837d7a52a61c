"""Where the data of a wrong chunk went through in the interleaving that shows it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from p2smt.schedules.races.replay import ItemKind, OrderItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from p2smt.schedules.index import Index
    from p2smt.schedules.order.happens_before import Nodes


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
