"""Which steps surely come before which: vector clocks over chains, for many questions at once.

The order is cut into chains (each node extends the chain of one predecessor, if it is that
chain's last).  A node's clock says how far along each chain everything before it reaches; a is
before b if b's clock for a's chain has reached a.  Clocks are computed only for the chains that
the questions name, a block of chains at a time, one level of the graph at a time: memory stays
bounded and the work is linear in edges times chains asked about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from p2smt.schedules.order.happens_before import Edge

# Entries of the clock table that is in memory at a time (4 bytes each).
_TABLE = 1 << 26


@dataclass(frozen=True, slots=True)
class Order:
    """A partial order given by edges along a linear one.

    levels: nodes by longest path from a root, each with the predecessors of its nodes, flattened,
        and where those of each node begin.
    chain, place: of every node; ``place`` counts from 1.
    """

    levels: Sequence[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
    chain: NDArray[np.int64]
    place: NDArray[np.int64]

    def before(self, pairs: Sequence[Edge]) -> NDArray[np.bool_]:
        """For each pair (a, b) of different nodes: is a before b in every linear extension?"""
        asked = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        first, second = asked[:, 0], asked[:, 1]
        answer = np.zeros(len(asked), dtype=np.bool_)
        same = self.chain[first] == self.chain[second]
        answer[same] = self.place[first[same]] < self.place[second[same]]
        rest = np.flatnonzero(~same)
        for chosen, clock, column in self._clocks(self.chain[first[rest]]):
            some = rest[chosen]
            reached = clock[second[some], column[self.chain[first[some]]]]
            answer[some] = reached >= self.place[first[some]]
        return answer

    def _clocks(
        self, chains: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]]:
        """Clock tables for some of the chains named at a time, and the questions they answer."""
        names = np.unique(chains)
        width = max(1, _TABLE // max(1, len(self.chain)))
        for start in range(0, len(names), width):
            block = names[start : start + width]
            column = np.full(int(self.chain.max()) + 1, -1, dtype=np.int64)
            column[block] = np.arange(len(block))
            yield np.flatnonzero(column[chains] >= 0), self._clock(column, len(block)), column

    def _clock(self, column: NDArray[np.int64], width: int) -> NDArray[np.int32]:
        """The clock of every node, for the chains that have a column."""
        clock = np.zeros((len(self.chain), width), dtype=np.int32)
        own = column[self.chain]
        for nodes, before, begins in self.levels:
            if len(before):
                clock[nodes] = np.maximum.reduceat(clock[before], begins, axis=0)
            mine = nodes[own[nodes] >= 0]
            clock[mine, own[mine]] = self.place[mine]
        return clock


def order_of(total: int, edges: Sequence[Edge]) -> Order:
    """The order that the edges over nodes 0 .. total-1 make.

    Raises:
        ValueError: they have a cycle.
    """
    before: list[list[int]] = [[] for _ in range(total)]
    after: list[list[int]] = [[] for _ in range(total)]
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    line = linear(before, after)
    chain, place = _chains(line, before)
    return Order(_levels(line, before), chain, place)


def linear(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> list[int]:
    """A linear extension of an order, given as what is next before and next after each node.

    Raises:
        ValueError: the order has a cycle.
    """
    missing = [len(nodes) for nodes in before]
    line = [node for node, count in enumerate(missing) if count == 0]
    for node in line:
        for later in after[node]:
            missing[later] -= 1
            if missing[later] == 0:
                line.append(later)
    if len(line) < len(before):
        raise ValueError(f"{len(before) - len(line)} nodes come before themselves")
    return line


def _chains(
    line: Sequence[int], before: Sequence[Sequence[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Greedy chains: a node goes on with a predecessor that nothing has gone on with yet."""
    chain, place = [0] * len(line), [0] * len(line)
    last: list[int] = []
    for node in line:
        tail = next((p for p in before[node] if last[chain[p]] == p), None)
        if tail is None:
            chain[node], place[node] = len(last), 1
            last.append(node)
        else:
            chain[node], place[node] = chain[tail], place[tail] + 1
            last[chain[tail]] = node
    return np.asarray(chain, dtype=np.int64), np.asarray(place, dtype=np.int64)


def _levels(
    line: Sequence[int], before: Sequence[Sequence[int]]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    level = [0] * len(line)
    rows: list[list[int]] = []
    for node in line:
        level[node] = 1 + max((level[p] for p in before[node]), default=-1)
        if level[node] == len(rows):
            rows.append([])
        rows[level[node]].append(node)
    return [_row(nodes, before) for nodes in rows]


def _row(
    nodes: Sequence[int], before: Sequence[Sequence[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    flat = [p for node in nodes for p in before[node]]
    counts = [len(before[node]) for node in nodes]
    begins = np.cumsum([0, *counts[:-1]], dtype=np.int64)
    return np.asarray(nodes, dtype=np.int64), np.asarray(flat, dtype=np.int64), begins
