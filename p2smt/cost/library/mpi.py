"""What the algorithms of MPI libraries send that GPU libraries do not have.

Volumes are fractions of the payload n, as in :mod:`p2smt.cost.algorithms`.  Ranks lie node by node.
Sources: Open MPI 5.0.9, ompi/mca/coll/base and han; MPICH 5.0, src/mpi/coll; Thakur, Rabenseifner,
Gropp, IJHPCA 19(1) 2005; Bruck et al., IEEE TPDS 8(11) 1997.

========================= =====================================================================
recursive-doubling        partners at distance 1, 2, 4, .. exchange the whole vector
nearest-first             halves at distance 1, quarters at 2, .., and the same back: the largest
                          messages stay in the node, where halving-doubling sends them far; a
                          reduce-scatter the way there, a reduce gathers back to the root alone
bruck                     to the rank 1, 2, 4, .. away, what each round doubles or has to pass on
pairwise                  p - 1 rounds, each with another partner
linear                    the root with every other rank at once; an all-reduce there and back
rooted                    a binomial tree whose far ranks come first on the way down; an
                          all-reduce up and down, a reduce-scatter up, and to each its part
neighbour                 with the next rank and the one before it in turns, two parts at once
chain                     from rank to rank, the whole vector each time (also Open MPI's pipeline,
                          which has segments only where a file or a setting says so)
binary                    the root to ranks 1 and 2, these to 3 and 5, 4 and 6, ..
split-binary              its halves down one side of that tree each, then neighbours exchange them
knomial                   a tree of rounds in which who has the vector sends it to three others
scatter-doubling          parts down a binomial tree, far ranks first, then recursive doubling
roots-tree, -ring, ..     reduce in every node, an all-reduce of the nodes' roots, broadcast
========================= =====================================================================
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from p2smt.cluster.topology import Algorithm
from p2smt.collectives.names import Collective, Operation, RequestKind
from p2smt.cost.algorithms import (
    Rule,
    distances,
    doublings,
    exchange_rule,
    outermost,
    rule_of,
)
from p2smt.cost.loads.level_use import Footprint, LevelUse, Profile, new_entities

_Crossing = Callable[[int], float]
_Steps = Callable[[Profile], Profile]
_Edge = tuple[int, int]
_Depths = Callable[[int], Sequence[Sequence[_Edge]]]
_ROOTED = (Collective.REDUCE, Collective.BROADCAST)
RADIX = 4
"""Of Open MPI's k-nomial trees, unless a setting says otherwise (coll_tuned_bcast_decision.c)."""


def _nowhere(_: LevelUse) -> float:
    return math.inf


def mpi_rules(
    algorithm: Algorithm, operation: Operation, footprint: Footprint, node_level: int
) -> tuple[Rule | None, Rule | None]:
    """What loads links inside nodes and between them, and the steps; None: it cannot run that."""
    p, nodes = footprint.members, footprint.nodes
    inner = _ROOTS.get(algorithm)
    if inner is not None:
        return _by_roots(inner, operation, nodes, footprint.local, node_level)
    found = _FLAT[algorithm](operation, p)
    return found, found


def _recursive_doubling(operation: Operation, p: int) -> Rule | None:
    """A reduce-scatter leaves out what the partner's side has no need of: d parts at distance d."""
    match operation:
        case Collective.ALL_REDUCE:
            return Rule(lambda q: q * math.log2(p / q), _nowhere, doublings)
        case Collective.REDUCE_SCATTER:
            return Rule(lambda q: q * math.log2(p / q) - q * (p - q) / p, _nowhere, doublings)
    return None


def _nearest_first(operation: Operation, p: int) -> Rule | None:
    """What is left of the vector when rounds leave an entity of q is 1/q of it."""
    match operation:
        case Collective.ALL_REDUCE | Collective.REDUCE:
            return Rule(lambda q: 2 * (1 - q / p), _nowhere, _twice(doublings))
        case Collective.REDUCE_SCATTER:
            return Rule(lambda q: 1 - q / p, _nowhere, doublings)
    return None


def _bruck(operation: Operation, p: int) -> Rule | None:
    """Rank r sends to r - d; of q neighbours so many have a target that is none of them."""
    if operation is Collective.ALL_GATHER:
        sent = {d: min(d, p - d) for d in distances(p)}
    elif operation is RequestKind.ALL_TO_ALL:
        sent = {d: sum(1 for i in range(p) if i & d) for d in distances(p)}
    else:
        return None

    def crossing(q: int) -> float:
        leaving = {d: q - max(0, q - d) - max(0, q - (p - d)) for d in sent}
        return sum(leaving[d] * count for d, count in sent.items()) / p

    return Rule(crossing, _nowhere, lambda profile: outermost(profile, len(sent)))


def _pairwise(operation: Operation, p: int) -> Rule | None:
    if operation not in (Collective.REDUCE_SCATTER, RequestKind.ALL_TO_ALL):
        return None
    return exchange_rule(p, lambda profile: outermost(profile, p - 1))


def _linear(operation: Operation, p: int) -> Rule | None:
    if operation in _ROOTED:
        return rule_of(Algorithm.DIRECT, Collective.BROADCAST, p)
    if operation is not Collective.ALL_REDUCE:
        return None
    return Rule(lambda q: 2.0 * (p - q), _nowhere, lambda profile: outermost(profile, 2))


def _rooted(operation: Operation, p: int) -> Rule | None:
    """First into the root's entity, then out of it: one after the other."""
    up = _tree(p)
    match operation:
        case Collective.REDUCE | Collective.BROADCAST:
            return Rule(up, _nowhere, _tree_steps)
        case Collective.ALL_REDUCE:
            return Rule(lambda q: 2 * up(q), _nowhere, _twice(_tree_steps))
        case Collective.REDUCE_SCATTER:
            return Rule(
                lambda q: up(q) + (p - q) / p,
                _nowhere,
                lambda profile: _sum(_tree_steps(profile), outermost(profile, 1)),
            )
    return None


def _neighbour(operation: Operation, p: int) -> Rule | None:
    """Edges at the even ranks in turn with those at the odd ones: at the ends of an entity."""
    if operation is not Collective.ALL_GATHER:
        return None
    sent = [1, *(2 for _ in range(1, p // 2))]
    at_even, at_odd = (sum(sent[first::2]) / p for first in (0, 1))

    def steps(profile: Profile) -> Profile:
        even, odd = (_by_round(profile, [_pairs(p, first)]) for first in (0, 1))
        return tuple(
            len(sent[::2]) * a + len(sent[1::2]) * b for a, b in zip(even, odd, strict=True)
        )

    def crossing(q: int) -> float:
        if q == p:
            return 0.0
        return 2 * at_odd if q % 2 == 0 else at_even + at_odd

    return Rule(crossing, _nowhere, steps)


def _pairs(p: int, first: int) -> list[_Edge]:
    return [(r, (r + 1) % p) for r in range(first, p, 2)]


def _along(operations: Sequence[Operation], tree: _Depths) -> Callable[..., Rule | None]:
    """A tree whose ranks pass on the whole vector when they have it: one depth after the other."""

    def rule(operation: Operation, p: int) -> Rule | None:
        if operation not in operations:
            return None
        depths = tree(p)
        return Rule(
            lambda q: float(sum(_most(edges, q) for edges in depths)),
            _nowhere,
            lambda profile: _by_round(profile, depths),
        )

    return rule


def _chain(p: int) -> Sequence[Sequence[_Edge]]:
    return [[(r, r + 1)] for r in range(p - 1)]


def _binary(p: int) -> Sequence[Sequence[_Edge]]:
    """The children of a rank at a depth of d ranks are d and 2d ranks on."""
    depths = [range(2**k - 1, 2 ** (k + 1) - 1) for k in range(p.bit_length())]
    found = [[(r, r + i * len(d)) for r in d for i in (1, 2) if r + i * len(d) < p] for d in depths]
    return [edges for edges in found if edges]


def _knomial(p: int) -> Sequence[Sequence[_Edge]]:
    """The parent of a rank has a 0 for its last digit that is none, in base 4."""
    depths = dict[int, list[_Edge]]()
    for rank in range(1, p):
        digits = [rank // RADIX**k % RADIX for k in range(p.bit_length())]
        place = next(k for k, digit in enumerate(digits) if digit)
        parent = rank - digits[place] * RADIX**place
        depths.setdefault(sum(digit > 0 for digit in digits), []).append((parent, rank))
    return [depths[depth] for depth in sorted(depths)]


def _split_binary(operation: Operation, p: int) -> Rule | None:
    """Half the vector on every edge; then each odd rank and the next exchange their halves."""
    if operation is not Collective.BROADCAST:
        return None
    depths, last = _binary(p), [(0, p - 1)] if p % 2 == 0 else []
    pairs = [pair for r in range(1, p - 1, 2) for pair in ((r, r + 1), (r + 1, r))]
    rounds = [*depths, [*pairs, *last]]
    return Rule(
        lambda q: sum(_most(edges, q) for edges in rounds) / 2,
        _nowhere,
        lambda profile: _by_round(profile, rounds),
    )


def _scatter_doubling(operation: Operation, p: int) -> Rule | None:
    if operation is not Collective.BROADCAST:
        return None
    return Rule(
        lambda q: (p - q) / p + q * (1 - q / p),
        _nowhere,
        lambda profile: _sum(_tree_steps(profile), doublings(profile)),
    )


_FLAT: dict[Algorithm, Callable[[Operation, int], Rule | None]] = {
    Algorithm.RECURSIVE_DOUBLING: _recursive_doubling,
    Algorithm.NEAREST_FIRST: _nearest_first,
    Algorithm.BRUCK: _bruck,
    Algorithm.PAIRWISE: _pairwise,
    Algorithm.LINEAR: _linear,
    Algorithm.ROOTED: _rooted,
    Algorithm.NEIGHBOUR: _neighbour,
    Algorithm.CHAIN: _along(_ROOTED, _chain),
    Algorithm.BINARY: _along(_ROOTED, _binary),
    Algorithm.SPLIT_BINARY: _split_binary,
    Algorithm.KNOMIAL: _along((Collective.BROADCAST,), _knomial),
    Algorithm.SCATTER_DOUBLING: _scatter_doubling,
}
_PASSES: dict[Operation, int] = {Collective.ALL_REDUCE: 2, Collective.ALL_GATHER: 1}
_ROOTS = {
    Algorithm.ROOTS_TREE: Algorithm.ROOTED,
    Algorithm.ROOTS_RING: Algorithm.RING,
    Algorithm.ROOTS_DOUBLING: Algorithm.RECURSIVE_DOUBLING,
    Algorithm.ROOTS_NEAREST: Algorithm.NEAREST_FIRST,
}
"""What the roots of the nodes run among each other."""


def _by_roots(
    between: Algorithm, operation: Operation, nodes: int, local: int, node_level: int
) -> tuple[Rule | None, Rule | None]:
    """The program: reduce inside node; all-reduce of the roots; broadcast inside node.

    Of an all-gather: gather inside node, all-gather of the roots, broadcast inside node.
    """
    outer, gathers = _of_roots(between, operation, nodes), operation is Collective.ALL_GATHER
    if outer is None or nodes == 1 or node_level < 0:
        return None, None
    crossing, outer_steps = outer
    tree, p = _tree(local), nodes * local

    def steps(profile: Profile) -> Profile:
        across = tuple(min(count, nodes) for count in profile)
        inside = tuple(max(1, count // nodes) for count in profile)
        up = outermost(inside, int(local > 1)) if gathers else _tree_steps(inside)
        return _sum(_sum(up, _tree_steps(inside)), outer_steps(across))

    def within(q: int) -> float:
        """Of the root's entity, which also has what the root sends to other nodes."""
        return tree(q) + ((local - q) / p if gathers else tree(q)) + crossing(1)

    return (
        Rule(within, _nowhere, steps),
        Rule(lambda q: crossing(max(1, q // local)), _nowhere, steps),
    )


def _of_roots(
    between: Algorithm, operation: Operation, nodes: int
) -> tuple[_Crossing, _Steps] | None:
    """What one rank a node sends, of whole nodes that an entity holds."""
    if between is Algorithm.RING:
        passes = _PASSES.get(operation)
        if passes is None:
            return None
        return (
            lambda _: passes * (nodes - 1) / nodes,
            lambda profile: tuple(passes * n for n in new_entities(profile)),
        )
    rule = _FLAT[between](operation, nodes) if operation is Collective.ALL_REDUCE else None
    return None if rule is None else (rule.crossing, rule.steps)


def _edges(p: int, d: int) -> range:
    """Who has a child d ranks on in the tree: multiples of 2d, as far as there is such a child."""
    return range(0, p - d, 2 * d)


def _tree(p: int) -> _Crossing:
    """Messages between the root's entity, of members 0 to q - 1, and the others."""
    return lambda q: float(sum(r < q <= r + d for d in distances(p) for r in _edges(p, d)))


def _tree_steps(profile: Profile) -> Profile:
    """A round pays for the outermost level that some message of it crosses."""
    p = profile[-1]
    inside = [p // count for count in profile]
    crossed = [
        next(j for j, q in enumerate(inside) if any(r // q < (r + d) // q for r in _edges(p, d)))
        for d in distances(p)
    ]
    return tuple(crossed.count(j) for j in range(len(profile)))


def _most(edges: Iterable[_Edge], q: int) -> int:
    """The most messages out of or into an entity of q ranks."""
    crossing = [(a // q, b // q) for a, b in edges if a // q != b // q]
    out, into = Counter(a for a, _ in crossing), Counter(b for _, b in crossing)
    return max((*out.values(), *into.values()), default=0)


def _by_round(profile: Profile, rounds: Iterable[Sequence[_Edge]]) -> Profile:
    """A round pays for the outermost level that some message of it crosses."""
    inside = [profile[-1] // count for count in profile]
    crossed = [
        next(j for j, q in enumerate(inside) if any(a // q != b // q for a, b in edges))
        for edges in rounds
    ]
    return tuple(crossed.count(j) for j in range(len(profile)))


def _twice(steps: _Steps) -> _Steps:
    return lambda profile: tuple(2 * count for count in steps(profile))


def _sum(one: Profile, other: Profile) -> Profile:
    return tuple(a + b for a, b in zip(one, other, strict=True))
