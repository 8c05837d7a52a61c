"""The certain order between the few nodes of a schedule that a question is about."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from p2smt.schedules.order.clocks import linear

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from p2smt.schedules.model import Schedule

Edge = tuple[int, int]

# Bits that the masks of one order may have together.
_MOST_BITS = 4_000_000_000


class EdgesLike(Protocol):
    """Edges (a, b): a is complete before b starts.  Relaxed ones do not order data.

    Nodes: steps 0 .. n-1, the starts of the ranks, their ends, and any further ones.
    """

    @property
    def visible(self) -> Sequence[Edge]: ...
    @property
    def relaxed(self) -> Sequence[Edge]: ...


class GraphLike(Protocol):
    """The certain order of a schedule: a run, the sender of each receive, and edges."""

    @property
    def order(self) -> Sequence[int]: ...
    @property
    def sender_of(self) -> Mapping[int, int]: ...
    @property
    def edges(self) -> EdgesLike: ...


@dataclass(frozen=True, slots=True)
class Web:
    """All nodes and edges of a schedule's order.

    steps, ranks: the first nodes are the steps, then come starts and ends of ranks.
    line: all nodes in an order that keeps all edges.
    before: predecessors of each node by visible edges; ``quiet``: by relaxed ones.
    """

    steps: int
    ranks: int
    line: Sequence[int]
    before: Sequence[Sequence[int]]
    quiet: Mapping[int, Sequence[int]]

    def is_start(self, node: int) -> bool:
        """Whether a node is the start of a rank."""
        return self.steps <= node < self.steps + self.ranks

    def all_before(self, node: int) -> Iterator[int]:
        """Direct predecessors in execution, by any edge."""
        yield from self.before[node]
        yield from self.quiet.get(node, ())

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
        return sum(node < self.steps for node in nodes)


def web_of(schedule: Schedule, edges: EdgesLike) -> Web:
    """The nodes and edges of a schedule."""
    steps, ranks = len(schedule.steps), schedule.ranks
    total = steps + 2 * ranks
    total = max([total, *(1 + max(edge) for edge in (*edges.visible, *edges.relaxed))])
    before: list[list[int]] = [[] for _ in range(total)]
    quiet: dict[int, list[int]] = defaultdict(list)
    for a, b in edges.visible:
        before[b].append(a)
    for a, b in edges.relaxed:
        quiet[b].append(a)
    return Web(steps, ranks, _line(before, quiet), before, quiet)


def _line(before: Sequence[Sequence[int]], quiet: Mapping[int, Sequence[int]]) -> list[int]:
    """The nodes, each after those before it, ``quiet`` ones included."""
    every = [(*earlier, *quiet.get(node, ())) for node, earlier in enumerate(before)]
    after: list[list[int]] = [[] for _ in before]
    for node, earlier in enumerate(every):
        for a in earlier:
            after[a].append(node)
    return linear(every, after)


@dataclass(frozen=True, slots=True)
class Reach:
    """Which of some nodes, the keys, are surely before which.

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


def reach_of(web: Web, keys: Iterable[int]) -> Reach:
    """The order among keys.

    The contents that a rank starts with are there before its start: for the start of a rank
    relaxed edges count.

    Raises:
        TimeoutError: there are too many keys.
    """
    number = {key: k for k, key in enumerate(sorted(set(keys)))}
    if len(number) * len(web.before) > _MOST_BITS:
        raise TimeoutError
    data, starts = [0] * len(web.before), [0] * len(web.before)
    for node in web.line:
        for a in web.before[node]:
            data[node] |= data[a]
        for a in web.all_before(node):
            starts[node] |= starts[a]
        # From here on the masks include the node itself.
        if node in number:
            masks = starts if web.is_start(node) else data
            masks[node] |= 1 << number[node]
    both = [(data[key] | starts[key]) & ~(1 << k) for key, k in number.items()]
    return Reach(number, both)


def groups_of(web: Web, keys: Sequence[int]) -> tuple[list[int], list[int], set[Edge]]:
    """Nodes by which keys they must be executed before: groups, as they are executed together.

    Returns the number of steps of each group, the group of each key, and the pairs (a, b) such
    that group b is executed only if group a is.
    """
    needed = [0] * len(web.before)
    for k, key in enumerate(keys):
        needed[key] = 1 << k
    for node in reversed(web.line):
        if needed[node]:
            for a in web.all_before(node):
                needed[a] |= needed[node]
    group = {mask: g for g, mask in enumerate(dict.fromkeys(m for m in needed if m))}
    weights, closed = [0] * len(group), set[Edge]()
    for node, mask in enumerate(needed):
        if mask:
            weights[group[mask]] += node < web.steps
            for a in web.all_before(node):
                if needed[a] != mask:
                    closed.add((group[needed[a]], group[mask]))
    return weights, [group[needed[key]] for key in keys], closed
