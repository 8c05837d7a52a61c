"""The most that flows through a network, and the narrowest cut (Dinic, 1970), in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Network:
    """Nodes 0, 1, ..; arc 2i goes somewhere and arc 2i + 1 back."""

    nodes: int
    heads: list[int] = field(default_factory=list)
    room: list[int] = field(default_factory=list)
    leaving: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.leaving = [[] for _ in range(self.nodes)]

    def join(self, tail: int, head: int, room: int) -> None:
        """An arc that carries up to ``room``."""
        for start, end, free in ((tail, head, room), (head, tail, 0)):
            self.leaving[start].append(len(self.heads))
            self.heads.append(end)
            self.room.append(free)

    def fill(self, source: int, target: int) -> int:
        """Send as much as can be sent; how much that is."""
        total = 0
        while (level := self._levels(source))[target] >= 0:
            tried = [0] * self.nodes
            while sent := self._one_way(source, target, level, tried):
                total += sent
        return total

    def reached(self, source: int) -> set[int]:
        """The nodes to which more could be sent."""
        return {node for node, level in enumerate(self._levels(source)) if level >= 0}

    def _levels(self, source: int) -> list[int]:
        level = [-1] * self.nodes
        level[source], frontier = 0, [source]
        for node in frontier:
            for arc in self.leaving[node]:
                head = self.heads[arc]
                if self.room[arc] and level[head] < 0:
                    level[head] = level[node] + 1
                    frontier.append(head)
        return level

    def _one_way(self, source: int, target: int, level: list[int], tried: list[int]) -> int:
        """Send along one way up the levels; 0: there is none any more."""
        way: list[int] = []
        node = source
        while node != target:
            arcs = self.leaving[node]
            while tried[node] < len(arcs):
                arc = arcs[tried[node]]
                if self.room[arc] and level[self.heads[arc]] == level[node] + 1:
                    break
                tried[node] += 1
            if tried[node] < len(arcs):
                way.append(arcs[tried[node]])
                node = self.heads[way[-1]]
            elif way:
                node = self.heads[way.pop() ^ 1]
                tried[node] += 1
            else:
                return 0
        sent = min(self.room[arc] for arc in way)
        for arc in way:
            self.room[arc] -= sent
            self.room[arc ^ 1] += sent
        return sent
