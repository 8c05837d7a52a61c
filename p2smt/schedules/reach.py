"""Single questions about the order of nodes, for the few that races concern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.schedules.graph import Edges
    from p2smt.schedules.index import Index


@dataclass(slots=True)
class Graph:
    """The order of a schedule's nodes, asked pair by pair.

    order: a run of all steps.
    sender_of: receiving step -> the step that sends its message.
    start(r) is node ``steps + r``, end(r) is node ``steps + ranks + r``.
    """

    order: Sequence[int]
    sender_of: dict[int, int]
    edges: Edges
    _after: dict[bool, list[list[int]]] = field(default_factory=dict)
    _reached: dict[int, bytearray] = field(default_factory=dict)

    def ordered(self, a: int, b: int) -> bool:
        """Whether node a is complete before node b starts, in every interleaving."""
        if a == b:
            return False
        if a not in self._reached:
            self._reached[a] = self._from(a)
        return bool(self._reached[a][b])

    def _from(self, node: int) -> bytearray:
        """Everything after a node; relaxed signals count for the start of a rank only."""
        nodes = self.edges.nodes
        after = self._successors(nodes.steps <= node < nodes.steps + nodes.ranks)
        reached, todo = bytearray(nodes.total), [node]
        while todo:
            for later in after[todo.pop()]:
                if not reached[later]:
                    reached[later] = 1
                    todo.append(later)
        return reached

    def _successors(self, control: bool) -> list[list[int]]:
        if control not in self._after:
            after: list[list[int]] = [[] for _ in range(self.edges.nodes.total)]
            for a, b in (*self.edges.visible, *(self.edges.relaxed if control else ())):
                after[a].append(b)
            self._after[control] = after
        return self._after[control]


def graph_of(index: Index, edges: Edges, order: Sequence[int]) -> Graph:
    """The order of an index's steps, with one of their runs."""
    sender_of = {
        receive: send
        for connection, receives in index.receives.items()
        for send, receive in zip(index.sends[connection], receives, strict=True)
    }
    return Graph(order, sender_of, edges)
