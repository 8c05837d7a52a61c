"""What the solver is told about the certain order of a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from p2smt.schedules.graph import Edges
    from p2smt.schedules.index import Index


@dataclass(frozen=True, slots=True)
class Graph:
    """A run of all steps, receiving step -> the step that sends its message, and the edges."""

    order: Sequence[int]
    sender_of: Mapping[int, int]
    edges: Edges


def graph_of(index: Index, edges: Edges, order: Sequence[int]) -> Graph:
    """The certain order of an index's steps, with one of their runs."""
    sender_of = {
        receive: send
        for connection, receives in index.receives.items()
        for send, receive in zip(index.sends[connection], receives, strict=True)
    }
    return Graph(order, sender_of, edges)
