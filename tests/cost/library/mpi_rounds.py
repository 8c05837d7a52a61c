"""The algorithms of MPI libraries as rounds of messages, replayed chunk by chunk.

Written from the libraries' sources alone (Open MPI 5.0.9 coll/base, MPICH 5.0 src/mpi/coll);
imports types only.  A message carries chunks from one member to another and is added to what is
there, or takes its place; members of a group are numbered 0 to p - 1, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Collective, Operation, RequestKind


@dataclass(frozen=True)
class Sent:
    """A message of one round; of an all-to-all chunk s * p + t is what s has for t."""

    source: int
    target: int
    chunks: frozenset[int]
    add: bool = False


Round = list[Sent]
Phase = list[Round]
"""Rounds that load links one way; phases follow each other."""


def phases(algorithm: Algorithm, operation: Operation, p: int, local: int = 1) -> list[Phase]:
    """Of a group of p members, ``local`` in each node."""
    everyone, every = list(range(p)), frozenset(range(p))
    match algorithm, operation:
        case Algorithm.RECURSIVE_DOUBLING, Collective.ALL_REDUCE:
            return [_doubling(everyone, every)]
        case Algorithm.NEAREST_FIRST, Collective.ALL_REDUCE:
            return [_nearest(everyone)]
        case Algorithm.RING, Collective.ALL_REDUCE:
            return [_ring(everyone, _parts(p, p), add=True) + _ring(everyone, _parts(p, p))]
        case Algorithm.RING, Collective.ALL_GATHER:
            return [_ring(everyone, _parts(p, p))]
        case Algorithm.BRUCK, Collective.ALL_GATHER:
            return [_bruck_gather(p)]
        case Algorithm.BRUCK, RequestKind.ALL_TO_ALL:
            return [_bruck_exchange(p)]
        case Algorithm.PAIRWISE, Collective.REDUCE_SCATTER:
            return [_others(p, lambda _, t: frozenset({t}), add=True)]
        case Algorithm.PAIRWISE, RequestKind.ALL_TO_ALL:
            return [_others(p, lambda s, t: frozenset({s * p + t}))]
        case Algorithm.LINEAR, Collective.ALL_REDUCE:
            return [
                [[Sent(r, 0, every, add=True) for r in range(1, p)]],
                [[Sent(0, r, every) for r in range(1, p)]],
            ]
        case Algorithm.ROOTED, Collective.REDUCE:
            return [_up(everyone, every)]
        case Algorithm.ROOTED, Collective.BROADCAST:
            return [_down(everyone, every)]
        case Algorithm.BINOMIAL, Collective.BROADCAST:
            near = [[Sent(r - d, r, every) for r in range(d, min(2 * d, p))] for d in _powers(p)]
            return [near]
        case Algorithm.RECURSIVE_DOUBLING, Collective.REDUCE_SCATTER:
            return [_doubling_apart(p)]
        case Algorithm.NEAREST_FIRST, Collective.REDUCE_SCATTER:
            return [_nearest(everyone)[: len(_powers(p))]]
        case Algorithm.NEAREST_FIRST, Collective.REDUCE:
            return [_nearest(everyone)[: len(_powers(p))], _gathered(p)]
        case Algorithm.NEIGHBOUR, Collective.ALL_GATHER:
            return [_neighbours(p)]
        case Algorithm.CHAIN | Algorithm.BINARY | Algorithm.KNOMIAL, Collective.BROADCAST:
            return [[[Sent(a, b, every) for a, b in depth]] for depth in _depths(algorithm, p)]
        case Algorithm.CHAIN | Algorithm.BINARY, Collective.REDUCE:
            depths = reversed(_depths(algorithm, p))
            return [[[Sent(b, a, every, add=True) for a, b in depth]] for depth in depths]
        case Algorithm.SPLIT_BINARY, Collective.BROADCAST:
            return _split(p)
        case Algorithm.SCATTER_DOUBLING, Collective.BROADCAST:
            return [_scattered(p), _doubled(p)]
        case Algorithm.ROOTED, Collective.ALL_REDUCE:
            return [_up(everyone, every), _down(everyone, every)]
        case Algorithm.ROOTED, Collective.REDUCE_SCATTER:
            parts = [Sent(0, r, frozenset({r})) for r in range(1, p)]
            return [_up(everyone, every), [parts]]
    return _by_roots(algorithm, operation, p, local)


def _by_roots(algorithm: Algorithm, operation: Operation, p: int, local: int) -> list[Phase]:
    nodes, every = [list(range(a, a + local)) for a in range(0, p, local)], frozenset(range(p))
    roots = [node[0] for node in nodes]
    down = _together(_down(node, every) for node in nodes)
    if operation is Collective.ALL_GATHER:
        up: Phase = [[Sent(r, n[0], frozenset({r})) for n in nodes for r in n[1:]]]
        return [up, _ring(roots, [frozenset(node) for node in nodes]), down]
    up = _together(_up(node, every) for node in nodes)
    parts = _parts(p, len(roots))
    match algorithm:
        case Algorithm.ROOTS_RING:
            between = [_ring(roots, parts, add=True) + _ring(roots, parts)]
        case Algorithm.ROOTS_TREE:
            between = [_up(roots, every), _down(roots, every)]
        case Algorithm.ROOTS_DOUBLING:
            between = [_doubling(roots, every)]
        case _:
            between = [_nearest(roots, parts)]
    return [up, *between, down]


def _powers(p: int) -> list[int]:
    return [1 << k for k in range((p - 1).bit_length())]


def _parts(p: int, count: int) -> list[frozenset[int]]:
    """Chunks 0 to p - 1 in so many parts."""
    return [frozenset(range(p)[i::count]) for i in range(count)]


def _together(many: Iterable[Phase]) -> Phase:
    return [[sent for one in step for sent in one] for step in zip(*many, strict=True)]


def _doubling(members: Sequence[int], every: frozenset[int]) -> Phase:
    found, d = Phase(), 1
    while d < len(members):
        found.append([Sent(r, members[i ^ d], every, add=True) for i, r in enumerate(members)])
        d *= 2
    return found


def _nearest(members: Sequence[int], parts: Sequence[frozenset[int]] | None = None) -> Phase:
    """Each keeps the part whose bit is its own, nearest partner first; and gathers back."""
    p = len(members)
    parts = [frozenset({i}) for i in range(p)] if parts is None else parts
    kept = {i: set(range(p)) for i in range(p)}
    halves, d = Phase(), 1
    while d < p:
        step = Round()
        for i in range(p):
            away = {part for part in kept[i] if (part ^ i) & d}
            step.append(Sent(members[i], members[i ^ d], _joined(parts, away), add=True))
            kept[i] -= away
        halves.append(step)
        d *= 2
    back = [[Sent(s.target, s.source, s.chunks) for s in step] for step in reversed(halves)]
    return halves + back


def _joined(parts: Sequence[frozenset[int]], which: Iterable[int]) -> frozenset[int]:
    return frozenset(chunk for part in which for chunk in parts[part])


def _ring(members: Sequence[int], parts: Sequence[frozenset[int]], *, add: bool = False) -> Phase:
    """Part i begins behind member i where it is added up, and at member i where it is spread."""
    p, shift = len(members), 1 if add else 0
    return [
        [
            Sent(r, members[(i + 1) % p], parts[(i - step - shift) % p], add)
            for i, r in enumerate(members)
        ]
        for step in range(p - 1)
    ]


def _bruck_gather(p: int) -> Phase:
    found, d = Phase(), 1
    while d < p:
        count = min(d, p - d)
        found.append(
            [Sent(r, (r - d) % p, frozenset((r + i) % p for i in range(count))) for r in range(p)]
        )
        d *= 2
    return found


def _bruck_exchange(p: int) -> Phase:
    """What has i ranks to go moves d of them in the round of the bit d of i."""
    found, d = Phase(), 1
    while d < p:
        step = Round()
        for r in range(p):
            moved = set()
            for i in range(p):
                if i & d:
                    source = (r - i % d) % p
                    moved.add(source * p + (source + i) % p)
            step.append(Sent(r, (r + d) % p, frozenset(moved)))
        found.append(step)
        d *= 2
    return found


def _others(p: int, what: Callable[[int, int], frozenset[int]], *, add: bool = False) -> Phase:
    return [
        [Sent(r, (r + d) % p, what(r, (r + d) % p), add) for r in range(p)] for d in range(1, p)
    ]


def _up(members: Sequence[int], every: frozenset[int]) -> Phase:
    found, d, p = Phase(), 1, len(members)
    while d < p:
        senders = [i for i in range(p) if i % (2 * d) == d]
        found.append([Sent(members[i], members[i - d], every, add=True) for i in senders])
        d *= 2
    return found


def _down(members: Sequence[int], every: frozenset[int]) -> Phase:
    return [
        [Sent(s.target, s.source, s.chunks) for s in step] for step in reversed(_up(members, every))
    ]


def _doubling_apart(p: int) -> Phase:
    """Of the whole vector what the partner's half, quarter, .. of the ranks needs is all but what
    the sender's has, as Open MPI's reduce_scatter_block sends it."""
    return [
        [Sent(r, r ^ d, frozenset(range(p)) - _side(r, d), add=True) for r in range(p)]
        for d in _powers(p)
    ]


def _side(rank: int, d: int) -> frozenset[int]:
    return frozenset(range(rank // d * d, rank // d * d + d))


def _gathered(p: int) -> Phase:
    """After halves at distance 1, quarters at 2, ..: the far half sends first, to rank 0."""
    found = Phase()
    for d in reversed(_powers(p)):
        senders = range(d, 2 * d)
        found.append([Sent(r, r - d, _same_low_bits(r, 2 * d, p)) for r in senders])
    return found


def _same_low_bits(rank: int, modulus: int, p: int) -> frozenset[int]:
    return frozenset(range(rank % modulus, p, modulus))


def _neighbours(p: int) -> Phase:
    """What came last is passed on, to the next rank and to the one before in turns."""
    last, found = {r: frozenset({r}) for r in range(p)}, Phase()
    for turn in range(p // 2):
        partner = {r: (r + (1 if r % 2 == turn % 2 else -1)) % p for r in range(p)}
        found.append([Sent(r, partner[r], last[r]) for r in range(p)])
        came = {r: last[partner[r]] for r in range(p)}
        last = {r: last[r] | came[r] for r in range(p)} if turn == 0 else came
    return found


def _parent(algorithm: Algorithm, rank: int) -> int:
    """As coll_base_topo.c finds it, of a rank that is not the root."""
    match algorithm:
        case Algorithm.CHAIN:
            return rank - 1
        case Algorithm.KNOMIAL:
            mask = 1
            while rank % (4 * mask) == 0:
                mask *= 4
            return rank // (4 * mask) * (4 * mask)
    level = (rank + 1).bit_length() - 1
    above = rank
    while rank > 2 and above >= 2**level - 1:
        above -= 2**level // 2
    return above if rank > 2 else 0


def _depths(algorithm: Algorithm, p: int) -> list[list[tuple[int, int]]]:
    found, level = list[list[tuple[int, int]]](), [0]
    parents = {r: _parent(algorithm, r) for r in range(1, p)}
    while edges := [(a, b) for b, a in parents.items() if a in level]:
        found.append(edges)
        level = [b for _, b in edges]
    return found


def _split(p: int) -> list[Phase]:
    """Odd ranks are below 1 and have the first half, even ones are below 2 and have the second."""
    left = frozenset(range(p - p // 2))
    halves = {1: left, 0: frozenset(range(p)) - left}
    down = [[Sent(a, b, halves[b % 2]) for a, b in depth] for depth in _depths(Algorithm.BINARY, p)]
    swap = [Sent(a, b, halves[a % 2]) for r in range(1, p - 1, 2) for a, b in _both(r, r + 1)]
    last = [Sent(0, p - 1, halves[0])] if p % 2 == 0 else []
    return [*([step] for step in down), [swap + last]]


def _both(a: int, b: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (a, b), (b, a)


def _scattered(p: int) -> Phase:
    return [
        [Sent(r, r + d, _side(r + d, d) & frozenset(range(p))) for r in range(0, p - d, 2 * d)]
        for d in reversed(_powers(p))
    ]


def _doubled(p: int) -> Phase:
    return [[Sent(r, r ^ d, _side(r, d)) for r in range(p)] for d in _powers(p)]


# Replay -----------------------------------------------------------------------------------

State = list[dict[int, frozenset[int]]]


def replayed(operation: Operation, p: int, found: Iterable[Phase]) -> State:
    """Who has which chunks in the end, and whose contributions are in them.

    Raises:
        ValueError: a message carries what its sender does not have, or adds something twice.
    """
    at = _start(operation, p)
    for phase in found:
        for step in phase:
            came = [(s, {c: _had(at, s, c) for c in s.chunks}) for s in step]
            for sent, data in came:
                for chunk, parts in data.items():
                    own = at[sent.target].get(chunk, frozenset())
                    if sent.add and own & parts:
                        raise ValueError(f"{sent} adds {sorted(own & parts)} again")
                    at[sent.target][chunk] = own | parts if sent.add else parts
    return at


def _had(at: State, sent: Sent, chunk: int) -> frozenset[int]:
    if chunk not in at[sent.source]:
        raise ValueError(f"{sent} has no chunk {chunk}")
    return at[sent.source][chunk]


def _start(operation: Operation, p: int) -> State:
    match operation:
        case Collective.ALL_GATHER:
            return [{r: frozenset({r})} for r in range(p)]
        case RequestKind.ALL_TO_ALL:
            return [{r * p + t: frozenset({r}) for t in range(p)} for r in range(p)]
        case Collective.BROADCAST:
            return [dict.fromkeys(range(p), frozenset({0})) if r == 0 else {} for r in range(p)]
    return [dict.fromkeys(range(p), frozenset({r})) for r in range(p)]


def reached(operation: Operation, p: int, at: State) -> bool:
    """Whether every member has what the operation promises it."""
    every = frozenset(range(p))
    match operation:
        case Collective.ALL_REDUCE:
            return all(at[r][c] == every for r in range(p) for c in range(p))
        case Collective.REDUCE:
            return all(at[0][c] == every for c in range(p))
        case Collective.REDUCE_SCATTER:
            return all(at[r][r] == every for r in range(p))
        case Collective.BROADCAST:
            return all(at[r][c] == {0} for r in range(p) for c in range(p))
        case Collective.ALL_GATHER:
            return all(at[r][c] == {c} for r in range(p) for c in range(p))
    return all(at[t][s * p + t] == {s} for s in range(p) for t in range(p))


# What it costs ----------------------------------------------------------------------------


def loads(found: Iterable[Phase], sizes: Sequence[int]) -> list[float]:
    """By level, outermost first: the most that enters or leaves an entity, of the vector, phase
    after phase.  ``sizes``: how many siblings each level has."""
    p = 1
    for size in sizes:
        p *= size
    whole, inside, answer = p, p, []
    for size in sizes:
        inside //= size
        total = 0.0
        for phase in found:
            ends = dict[tuple[int, str], int]()
            for sent in (one for step in phase for one in step):
                places = sent.source // inside, sent.target // inside
                if places[0] != places[1]:
                    for key in ((places[0], "out"), (places[1], "in")):
                        ends[key] = ends.get(key, 0) + len(sent.chunks)
            total += max(ends.values(), default=0) / whole
        answer.append(total)
    return answer


def rounds(found: Iterable[Phase], sizes: Sequence[int]) -> list[int]:
    """By level: rounds whose furthest message crosses it and nothing further out."""
    counts = [0] * len(sizes)
    unders = [1]
    for size in reversed(sizes):
        unders.insert(0, unders[0] * size)
    for phase in found:
        for step in phase:
            met = [
                next(
                    j for j, (_, u) in enumerate(pairwise(unders)) if s.source // u != s.target // u
                )
                for s in step
            ]
            if met:
                counts[min(met)] += 1
    return counts


def _apart(sent: Sent, under: int) -> bool:
    return sent.source // under != sent.target // under
