"""The happens-before graph, and its order of the few nodes that a question is about."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2smt.errors import TooLarge
from p2smt.schedules.order.clocks import linear

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.schedules.order.happens_before import Edges, Nodes

MAX_MASK_BITS = 4_000_000_000
"""Bits that the masks of reachability may have together, one for each key and node."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The happens-before graph of a schedule, as predecessors.

    topological: all nodes in an order that keeps all edges.
    before: predecessors of each node by all edges but relaxed ones; ``relaxed``: by those.
    """

    nodes: Nodes
    topological: Sequence[int]
    before: Sequence[Sequence[int]]
    relaxed: Mapping[int, Sequence[int]]

    def all_before(self, node: int) -> Iterator[int]:
        """Direct predecessors in execution, by any edge."""
        yield from self.before[node]
        yield from self.relaxed.get(node, ())

    def closure(self, nodes: Iterable[int]) -> set[int]:
        """The nodes and all that must have been executed before them."""
        found = set(nodes)
        todo = list(found)
        while todo:
            for earlier in self.all_before(todo.pop()):
                if earlier not in found:
                    found.add(earlier)
                    todo.append(earlier)
        return found

    def size(self, nodes: Iterable[int]) -> int:
        """How many of the nodes are steps."""
        return sum(map(self.nodes.is_step, nodes))


def graph_of(edges: Edges) -> Graph:
    """The graph that edges make."""
    before: list[list[int]] = [[] for _ in range(edges.nodes.total)]
    relaxed: dict[int, list[int]] = defaultdict(list)
    for a, b in edges.done:
        before[b].append(a)
    for a, b in edges.relaxed:
        relaxed[b].append(a)
    return Graph(edges.nodes, _sorted(before, relaxed), before, relaxed)


def _sorted(before: Sequence[Sequence[int]], relaxed: Mapping[int, Sequence[int]]) -> list[int]:
    """The nodes, each after those before it, by ``relaxed`` edges too."""
    every = [(*earlier, *relaxed.get(node, ())) for node, earlier in enumerate(before)]
    after: list[list[int]] = [[] for _ in before]
    for node, earlier in enumerate(every):
        for a in earlier:
            after[a].append(node)
    return linear(every, after)


@dataclass(frozen=True, slots=True)
class HappensBefore:
    """Which of some nodes, the keys, are before which in every order.

    number: the number of each key.
    before: for each key by number, the bit mask of the keys before it.
    """

    number: Mapping[int, int]
    before: Sequence[int]

    def bit(self, key: int) -> int:
        """The mask of a key."""
        return 1 << self.number[key]

    def until(self, key: int) -> int:
        """The mask of a key and of all before it."""
        return self.before[self.number[key]] | self.bit(key)

    def ordered(self, a: int, b: int) -> bool:
        """Whether key a is done before key b starts in every order."""
        return bool(self.before[self.number[b]] >> self.number[a] & 1)


def happens_before(graph: Graph, keys: Iterable[int]) -> HappensBefore:
    """The order among keys.

    The contents that a rank starts with are there before its start: for the start of a rank
    relaxed edges count.

    Raises:
        TooLarge: the masks of so many keys would need more than ``MAX_MASK_BITS``.
    """
    number = {key: k for k, key in enumerate(sorted(set(keys)))}
    total = len(graph.before)
    if len(number) * total > MAX_MASK_BITS:
        raise TooLarge(
            f"the order of {len(number)} among {total} nodes",
            f"it would take more than {MAX_MASK_BITS} bits",
            "order more of the accesses, or verify a smaller instance",
        )
    data, starts = [0] * total, [0] * total
    for node in graph.topological:
        for a in graph.before[node]:
            data[node] |= data[a]
        for a in graph.all_before(node):
            starts[node] |= starts[a]
        # From here on the masks include the node itself.
        if node in number:
            masks = starts if graph.nodes.is_start(node) else data
            masks[node] |= 1 << number[node]
    both = [(data[key] | starts[key]) & ~(1 << k) for key, k in number.items()]
    return HappensBefore(number, both)


def groups_of(
    graph: Graph, keys: Sequence[int]
) -> tuple[list[int], list[int], set[tuple[int, int]]]:
    """Nodes by which keys they must be executed before: groups, as they are executed together.

    Returns the number of steps of each group, the group of each key, and the pairs (a, b) such
    that group b is executed only if group a is.
    """
    needed = [0] * len(graph.before)
    for k, key in enumerate(keys):
        needed[key] = 1 << k
    for node in reversed(graph.topological):
        if needed[node]:
            for a in graph.all_before(node):
                needed[a] |= needed[node]
    group = {mask: g for g, mask in enumerate(dict.fromkeys(m for m in needed if m))}
    weights, closed = [0] * len(group), set[tuple[int, int]]()
    for node, mask in enumerate(needed):
        if mask:
            weights[group[mask]] += graph.nodes.is_step(node)
            for a in graph.all_before(node):
                if needed[a] != mask:
                    closed.add((group[needed[a]], group[mask]))
    return weights, [group[needed[key]] for key in keys], closed
