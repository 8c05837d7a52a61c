"""What a table of reachable states is: nodes, and the steps between them on the way to the goal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from p2smt.encodings.program.reachable_search import GOAL


@dataclass(frozen=True, slots=True)
class Arc:
    """A step: ``instruction`` with a payload of ``rows`` real rows leads to node ``target``."""

    instruction: int
    rows: int
    target: int


@dataclass(frozen=True, slots=True)
class ReachableTable:
    """Nodes reachable within the length limit and from which the goal still is.

    ``arcs[node]`` are its steps in instruction order, ``need[node]`` the least number of
    steps to the goal, ``start`` the initial node.  Node 0 is the goal and has no arcs.
    ``explored`` counts all nodes seen.
    """

    start: int
    arcs: dict[int, tuple[Arc, ...]]
    need: dict[int, int]
    explored: int

    def steps(self, node: int, left: int) -> Iterator[Arc]:
        """Steps from ``node`` after which the goal can be reached in ``left - 1`` steps."""
        return (a for a in self.arcs.get(node, ()) if self.need[a.target] <= left - 1)


def pruned(start: int, arcs: Mapping[int, Sequence[Arc]], explored: int) -> ReachableTable:
    """Keep the nodes from which the goal can be reached."""
    back = defaultdict(set)
    for node, steps in arcs.items():
        for arc in steps:
            back[arc.target].add(node)
    need, frontier = {GOAL: 0}, [GOAL]
    for node in frontier:
        for source in sorted(back[node]):
            if source not in need:
                need[source] = need[node] + 1
                frontier.append(source)
    kept = {
        node: tuple(a for a in steps if a.target in need)
        for node, steps in arcs.items()
        if node in need
    }
    return ReachableTable(start, kept, need, explored)
