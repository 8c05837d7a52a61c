"""Brute force for all-reduces with partial sums: all sets of values that ranks can come to hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations, product

from p2smt.problems.schedule import AllReduceProblem

Value = frozenset[int]
"""The ranks whose inputs a value adds up."""
Held = tuple[frozenset[Value], ...]
"""What each rank holds of a chunk."""


def has_all_reduce(problem: AllReduceProblem) -> bool:
    """Whether some schedule with any partial sums answers the problem; symmetries are ignored."""
    own = tuple(frozenset([frozenset([rank])]) for rank in range(problem.ranks))
    start = (own,) * problem.chunks
    for rounds in product(range(1, problem.rounds + 1), repeat=problem.steps):
        if sum(rounds) == problem.rounds:
            states = {start}
            for count in rounds[:-1]:
                states = _best({after for at in states for after in _steps(problem, at, count)})
            if any(_finishes(problem, state, rounds[-1]) for state in states):
                return True
    return False


def _finishes(problem: AllReduceProblem, state: tuple[Held, ...], rounds: int) -> bool:
    """Whether one more step is enough: how many messages each edge must carry, chunk by chunk."""
    whole, edges = frozenset(range(problem.ranks)), range(len(problem.edges))
    ways: list[list[dict[int, int]]] = []
    for held in state:
        for rank in range(problem.ranks):
            into = [e for e in edges if problem.edges[e][1] == rank]
            sent = [_messages(held[problem.edges[e][0]], problem.messages) for e in into]
            counts = {
                tuple(map(len, chosen))
                for chosen in product(*sent)
                if whole in sums(held[rank].union(*chosen))
            }
            ways.append([dict(zip(into, count, strict=True)) for count in counts])
    return any(
        _carried(problem, [sum(way.get(e, 0) for way in chosen) for e in edges], rounds)
        for chosen in product(*ways)
    )


def sums(values: Iterable[Value]) -> set[Value]:
    """The sums of values that have no input in common, one value or more."""
    found: set[Value] = set()
    for value in values:
        found |= {one | value for one in found if not one & value} | {value}
    return found


def _best(states: set[tuple[Held, ...]]) -> set[tuple[Held, ...]]:
    """States that no other one holds more than: more never hurts."""
    kept: list[tuple[Held, ...]] = []
    for state in sorted(states, key=_size, reverse=True):
        if not any(_within(state, other) for other in kept):
            kept.append(state)
    return set(kept)


def _size(state: tuple[Held, ...]) -> int:
    return sum(len(values) for held in state for values in held)


def _within(state: tuple[Held, ...], other: tuple[Held, ...]) -> bool:
    pairs = zip(state, other, strict=True)
    return all(a <= b for held, more in pairs for a, b in zip(held, more, strict=True))


def _steps(
    problem: AllReduceProblem, state: tuple[Held, ...], rounds: int
) -> Iterator[tuple[Held, ...]]:
    """The states after a step: those of every choice of messages that fits."""
    ways = [
        _messages(state[c][source], problem.messages)
        for c in range(problem.chunks)
        for source, _, _ in problem.edges
    ]
    for chosen in product(*ways):
        if _fits(problem, chosen, rounds):
            yield tuple(
                _after(problem, held, chosen[c * len(problem.edges) :])
                for c, held in enumerate(state)
            )


def _messages(values: frozenset[Value], most: int) -> list[tuple[Value, ...]]:
    """What may go over an edge: so many sums or fewer."""
    every = sorted(sums(values), key=sorted)
    return [some for count in range(most + 1) for some in combinations(every, count)]


def _after(problem: AllReduceProblem, held: Held, chosen: tuple[tuple[Value, ...], ...]) -> Held:
    after = [set(values) for values in held]
    for (_, target, _), sent in zip(problem.edges, chosen, strict=False):
        after[target] |= set(sent)
    return tuple(map(frozenset, after))


def _fits(problem: AllReduceProblem, chosen: tuple[tuple[Value, ...], ...], rounds: int) -> bool:
    edges = len(problem.edges)
    counts = [sum(map(len, chosen[e::edges])) for e in range(edges)]
    return _carried(problem, counts, rounds)


def _carried(problem: AllReduceProblem, counts: list[int], rounds: int) -> bool:
    """Whether so many messages over each edge fit into a step."""
    return all(
        sum(n for n, (_, _, named) in zip(counts, problem.edges, strict=True) if k in named)
        <= bandwidth * rounds
        for k, bandwidth in enumerate(problem.capacities)
    )


def has_accumulators(problem: AllReduceProblem) -> bool:
    """The same for schedules with one sum on every rank, empty or not."""
    start = tuple(frozenset([rank]) for rank in range(problem.ranks))
    edges = range(len(problem.edges))
    whole = (frozenset(range(problem.ranks)),) * problem.ranks
    return any(
        any(
            all(kept == whole for kept in state)
            for state in _reached(problem, rounds, (start,) * problem.chunks, edges)
        )
        for rounds in product(range(1, problem.rounds + 1), repeat=problem.steps)
        if sum(rounds) == problem.rounds
    )


def _reached(
    problem: AllReduceProblem,
    rounds: tuple[int, ...],
    start: tuple[tuple[Value, ...], ...],
    edges: range,
) -> set[tuple[tuple[Value, ...], ...]]:
    states = {start}
    for count in rounds:
        states = {
            after
            for state in states
            for sent in product([False, True], repeat=problem.chunks * len(edges))
            if _fits(problem, tuple((frozenset[int](),) * one for one in sent), count)
            for after in product(
                *(
                    _kept(problem, kept, sent[c * len(edges) : (c + 1) * len(edges)])
                    for c, kept in enumerate(state)
                )
            )
        }
    return states


def _kept(
    problem: AllReduceProblem, kept: tuple[Value, ...], sent: tuple[bool, ...]
) -> list[tuple[Value, ...]]:
    """What the ranks may keep of a chunk when these messages come: each adds, or drops first."""
    ways: list[list[Value]] = []
    for rank in range(problem.ranks):
        came = [
            kept[source]
            for (source, target, _), x in zip(problem.edges, sent, strict=True)
            if x and target == rank
        ]
        if not came:
            ways.append([kept[rank]])
            continue
        whole = frozenset().union(*came)
        if len(whole) < sum(map(len, came)):
            return []
        ways.append([whole] if kept[rank] & whole else [whole, whole | kept[rank]])
    return list(product(*ways))


def has_trees(problem: AllReduceProblem) -> bool:
    """The same for schedules over two trees a chunk."""
    trees = list(_trees(problem))
    for chosen in product(trees, repeat=problem.chunks):
        for rounds in product(range(1, problem.rounds + 1), repeat=problem.steps):
            if sum(rounds) == problem.rounds and _fit_trees(problem, chosen, rounds):
                return True
    return False


def _trees(problem: AllReduceProblem) -> Iterator[frozenset[tuple[int, int]]]:
    """(edge, step) of every pair of trees that meet in a root, each at its time."""
    steps, ranks = range(problem.steps), range(problem.ranks)
    for root in ranks:
        others = [rank for rank in ranks if rank != root]
        out = [[e for e, edge in enumerate(problem.edges) if edge[0] == v] for v in others]
        into = [[e for e, edge in enumerate(problem.edges) if edge[1] == v] for v in others]
        for ups in product(*(product(way, steps) for way in out)):
            sent = {problem.edges[e][0]: s for e, s in ups} | {root: 1 + max(s for _, s in ups)}
            if all(s < sent[problem.edges[e][1]] for e, s in ups):
                for downs in product(*(product(way, steps) for way in into)):
                    came = {problem.edges[e][1]: s for e, s in downs} | {root: sent[root] - 1}
                    if all(came[problem.edges[e][0]] < s for e, s in downs):
                        yield frozenset((*ups, *downs))


def _fit_trees(
    problem: AllReduceProblem,
    chosen: tuple[frozenset[tuple[int, int]], ...],
    rounds: tuple[int, ...],
) -> bool:
    for k, bandwidth in enumerate(problem.capacities):
        loads = [0] * problem.steps
        for e, s in (send for tree in chosen for send in tree):
            loads[s] += k in problem.edges[e][2]
        if any(load > bandwidth * count for load, count in zip(loads, rounds, strict=True)):
            return False
    return True
