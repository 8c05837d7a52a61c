"""What each algorithm sends, and in how many steps: the rows of the cost table as data.

Volumes are fractions of the payload n (bytes of the whole vector per device; all-gather: of
its output).  Sources: Thakur, Rabenseifner, Gropp, IJHPCA 19(1) 2005 (ring, recursive
halving and doubling, pairwise, binomial tree, scatter and all-gather); Sanders, Speck, Traff
2009 (double binary tree; what it loads: :mod:`p2smt.cost.loads.rings`); Sack, Gropp, ACM TOPC
1(2) 2015 (the torus).  Reduction arithmetic (gamma) is not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from p2smt.cluster.link import MPI_ALGORITHMS, OF_LIBRARIES
from p2smt.cluster.topology import Algorithm, Level, LinkKind, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.collectives.names import Operation as Operation
from p2smt.cost.loads.level_use import Along, Footprint, LevelUse, Profile, new_entities
from p2smt.cost.loads.rings import parallel_rings

_PASSES = {Collective.ALL_REDUCE: 2}  # up and down, or scatter and gather


def _nowhere(_: LevelUse) -> float:
    return math.inf


@dataclass(frozen=True, slots=True)
class Rule:
    """One algorithm for one operation on p members.

    ``crossing(q)``: fraction of n that leaves an entity holding q of the members.
    ``siblings(use)``: the same for the worst link of a ring, torus or full-mesh level.
    ``along``: instead of both, messages of ``crossing(1)`` n that follow the members' order.
    ``steps(profile)``: latencies paid per level, for a group spanning these entities; for
    messages along a ring or path, for one whose chain has so many edges at each level.
    ``pipelined``: the latency hides behind the transfer as in a two-tree pipeline.
    """

    crossing: Callable[[int], float]
    siblings: Callable[[LevelUse], float]
    steps: Callable[[Profile], Profile]
    pipelined: bool = False
    along: Along | None = None

    def load(self, use: LevelUse, kind: LinkKind) -> float:
        """Fraction of n on the worst link of a level."""
        if self.along is not None:
            return self.crossing(1) * use.carried(self.along)
        return use.port_load(self.crossing) if kind is LinkKind.SWITCH else self.siblings(use)

    def drawn(self, use: LevelUse, kind: LinkKind) -> float:
        """Fraction of n that one device sends over a level, by its members' equal shares.

        Between siblings that of groups which span nothing outside the level, for the others
        leave an entity over outer links too.
        """
        if self.along is not None:
            return self.crossing(1) * use.drawn(self.along)
        inside = use.least_inside if kind is LinkKind.SWITCH else use.closed_inside
        return self.crossing(inside) / inside if inside else 0.0

    def latencies(self, footprint: Footprint) -> list[Profile]:
        """Latencies paid per level, for each shape that a group of the footprint has."""
        ordered = self.along in (Along.RING, Along.PATH)
        return [self.steps(s) for s in (footprint.chains if ordered else footprint.profiles)]


def outermost(profile: Profile, count: int) -> tuple[int, ...]:
    """``count`` steps, paid at the outermost level that the group crosses."""
    first = next((j for j, n in enumerate(profile) if n > 1), 0)
    return tuple(count * (j == first) for j in range(len(profile)))


def doublings(profile: Profile) -> tuple[int, ...]:
    """Rounds of doubling at each level: ceil(log2) of the level's split."""
    return tuple(math.ceil(math.log2(b / a)) for a, b in zip((1, *profile), profile, strict=False))


def _times(steps: tuple[int, ...], factor: int) -> tuple[int, ...]:
    return tuple(factor * s for s in steps)


def _ring(op: Collective, p: int) -> Rule:
    passes = _PASSES.get(op, 1)
    chain = op in (Collective.REDUCE, Collective.BROADCAST)
    volume = 1.0 if chain else passes * (p - 1) / p
    return Rule(
        lambda _: volume,
        _nowhere,
        lambda chain: _times(chain, passes),
        along=Along.PATH if chain else Along.RING,
    )


def _tree(op: Collective, _: int) -> Rule | None:
    if op in (Collective.REDUCE_SCATTER, Collective.ALL_GATHER):
        return None
    passes = _PASSES.get(op, 1)
    return Rule(
        lambda _: 1.0,
        _nowhere,
        lambda profile: _times(doublings(profile), passes),
        pipelined=True,
        along=Along.TREE if op is Collective.ALL_REDUCE else None,
    )


def _halving_doubling(op: Collective, p: int) -> Rule | None:
    """Distances halve from the outermost level inwards, then double back."""
    if op in (Collective.REDUCE, Collective.BROADCAST):
        return None
    passes = _PASSES.get(op, 1)
    return Rule(
        lambda q: passes * q * (1 - q / p),
        _nowhere,
        lambda profile: _times(doublings(profile), passes),
    )


def _direct(op: Collective, p: int) -> Rule:
    """Every member exchanges its part with every other at once (all-reduce: two shots)."""
    passes = _PASSES.get(op, 1)
    if op in (Collective.REDUCE, Collective.BROADCAST):
        return Rule(
            lambda q: float(p - q),
            # the root's entity sends (receives) the vector once per member of each sibling
            lambda use: use.pairs / max(use.least_inside, 1),
            lambda profile: outermost(profile, 1),
        )
    return Rule(
        lambda q: passes * q * (p - q) / p,
        lambda use: passes * use.pairs / p,
        lambda profile: outermost(profile, passes),
    )


def _one_shot(op: Collective, p: int) -> Rule | None:
    if op is not Collective.ALL_REDUCE:
        return None
    return Rule(
        lambda q: float(q * (p - q)), lambda use: use.pairs, lambda profile: outermost(profile, 1)
    )


def distances(p: int) -> list[int]:
    """Of a binomial tree's rounds: in each, members i < d meet i + d, as far as these exist."""
    return [2**r for r in range((p - 1).bit_length())]


def _binomial_steps(profile: Profile) -> tuple[int, ...]:
    """A round pays for the outermost level that it crosses.

    It crosses a level if the furthest member that it reaches is outside the root's entity.
    """
    p = profile[-1]
    reached = [min(2 * d, p) for d in distances(p)]
    crossed = [next(j for j, m in enumerate(profile) if r * m > p) for r in reached]
    return tuple(crossed.count(j) for j in range(len(profile)))


def _binomial(op: Collective, p: int) -> Rule | None:
    """A binomial tree whose distances double from 1: the near members first, then the far."""
    if op not in (Collective.REDUCE, Collective.BROADCAST):
        return None

    def crossing(q: int) -> float:
        """Messages out of (into) the root's entity, of members 0 to q - 1.

        No other exchanges as many: in a round fewer of its members have the vector.
        """
        return float(sum(max(0, min(q, d, p - d) - max(0, q - d)) for d in distances(p)))

    return Rule(crossing, _nowhere, _binomial_steps)


def _scatter_gather(op: Collective, p: int) -> Rule | None:
    """Reduce: a ring reduce-scatter, then each member sends its part to the root, all at once.

    Broadcast: the reverse, a scatter and a ring all-gather.  The root's entity has the most
    traffic: the ring's, and the parts of all members outside.
    """
    if op not in (Collective.REDUCE, Collective.BROADCAST):
        return None

    def steps(profile: Profile) -> tuple[int, ...]:
        ring, last = new_entities(profile), outermost(profile, 1)
        return tuple(a + b for a, b in zip(ring, last, strict=True))

    return Rule(lambda q: (p - 1) / p + (p - q) / p, _nowhere, steps)


def _in_switch(op: Collective, _: int) -> Rule | None:
    if op is not Collective.ALL_REDUCE:
        return None
    return Rule(lambda _: 1.0, _nowhere, lambda profile: outermost(profile, 2))


def torus_phases(dims: tuple[int, ...]) -> tuple[int, float]:
    """Hops of one pass over a whole torus, and what its worst link carries, per payload.

    As many programs run at once as dimensions are longer than 1, each on an equal part of the
    payload.  Program r reduces (gathers) along dimension r first, then r + 1, and so on round: by a
    ring in both directions, or over the one link of two.  So in every phase each program has a
    dimension of its own; a phase waits for the longest.
    """
    lengths = [length for length in dims if length > 1]
    load = 0.0
    for phase in range(len(lengths)):
        for_each = []
        for first in range(len(lengths)):
            order = lengths[first:] + lengths[:first]
            moved = (1 - 1 / order[phase]) / math.prod(order[:phase])
            for_each.append(moved / min(order[phase] - 1, 2))
        load += max(for_each) / len(lengths)
    return len(lengths) * (max(lengths, default=1) - 1), load


def _torus(op: Operation, level: Level) -> Rule | None:
    """All devices of a torus, one each; groups that share a device's links add up."""
    if op not in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.ALL_GATHER):
        return None
    passes = _PASSES.get(op, 1)
    hops, load = torus_phases(level.link.torus)
    return Rule(
        lambda q: passes * q * (1 - q / level.size),
        lambda use: passes * load * use.ring * parallel_rings(level),
        lambda profile: outermost(profile, passes * hops),
    )


def _of_libraries_only(_: Collective, __: int) -> Rule | None:
    return None


_RULES: dict[Algorithm, Callable[[Collective, int], Rule | None]] = {
    Algorithm.RING: _ring,
    Algorithm.TREE: _tree,
    Algorithm.HALVING_DOUBLING: _halving_doubling,
    Algorithm.DIRECT: _direct,
    Algorithm.ONE_SHOT: _one_shot,
    Algorithm.IN_SWITCH: _in_switch,
    Algorithm.BINOMIAL: _binomial,
    Algorithm.SCATTER_GATHER: _scatter_gather,
    **dict.fromkeys((Algorithm.TORUS, *OF_LIBRARIES), _of_libraries_only),
}


def rule_of(algorithm: Algorithm, collective: Collective, members: int) -> Rule | None:
    """The rule of an algorithm for a collective on so many members; None: it has none."""
    return _RULES[algorithm](collective, members)


def send_rule() -> Rule:
    """Of a send: every member to the next one."""
    return Rule(lambda _: 1.0, lambda use: use.path, lambda profile: outermost(profile, 1))


def exchange_rule(p: int, steps: Callable[[Profile], Profile]) -> Rule:
    """Of an all-to-all: every one of p members sends its part to every other."""
    return Rule(lambda q: q * (p - q) / p, lambda use: use.pairs / p, steps)


def fits_shape(algorithm: Algorithm, operation: Operation, footprint: Footprint) -> bool:
    """Whether the groups have the shape for which an algorithm, or its load, is known.

    A root's load depends on its entity, which the footprint knows for regular groups; what every
    member sends every other on the size of its group.
    """
    match algorithm:
        case Algorithm.BINOMIAL | Algorithm.SCATTER_GATHER:
            return footprint.regular
        case Algorithm.DIRECT:
            rooted = operation in (Collective.REDUCE, Collective.BROADCAST)
            return footprint.regular or not (rooted or footprint.mixed)
        case Algorithm.ONE_SHOT | Algorithm.PAT | Algorithm.PAIRWISE:
            return not footprint.mixed
        case Algorithm.HALVING_DOUBLING | Algorithm.RECURSIVE_DOUBLING | Algorithm.NEAREST_FIRST:
            return footprint.regular and _powers(n for one in footprint.profiles for n in one)
        case Algorithm.SCATTER_DOUBLING:
            return footprint.regular and _powers((footprint.members,))
        case Algorithm.NEIGHBOUR:
            return footprint.regular and footprint.members % 2 == 0
        case Algorithm.ROOTS_DOUBLING | Algorithm.ROOTS_NEAREST:
            return footprint.regular and _powers((footprint.nodes,))
        case _ if algorithm in MPI_ALGORITHMS:
            return footprint.regular
        case _:
            return True


def _powers(counts: Iterable[int]) -> bool:
    return all(n & (n - 1) == 0 for n in counts)


def rules(topology: Topology, footprint: Footprint, operation: Operation) -> list[tuple[str, Rule]]:
    """The algorithms that can carry out an operation on these groups, by name."""
    p = footprint.members
    if operation is RequestKind.SEND:
        return [("send", send_rule())]
    if operation is RequestKind.ALL_TO_ALL:
        return _exchanges(topology, footprint)
    found = []
    fixed = dict(topology.overrides).get(operation)
    for algorithm in topology.algorithms if fixed is None else (fixed,):
        rule = rule_of(algorithm, operation, p)
        if algorithm is Algorithm.TORUS and (torus := whole_torus(topology, footprint)):
            rule = _torus(operation, torus)
        if rule is not None and _applies(algorithm, topology, footprint, operation):
            found.append((algorithm.value, rule))
    return found or [(Algorithm.RING.value, _ring(operation, p))]


def _exchanges(topology: Topology, footprint: Footprint) -> list[tuple[str, Rule]]:
    """All-to-all: pairwise rounds anywhere; all at once where every link allows it."""
    if _applies(Algorithm.DIRECT, topology, footprint, RequestKind.ALL_TO_ALL):
        return [("direct", exchange_rule(footprint.members, lambda s: outermost(s, 1)))]
    return [("pairwise", exchange_rule(footprint.members, new_entities))]


def _applies(
    algorithm: Algorithm, topology: Topology, footprint: Footprint, operation: Operation
) -> bool:
    """Whether the links (and the group's shape) allow an algorithm of the textbook."""
    kinds = {topology.levels[use.level].link.kind for use in footprint.uses}
    switched = kinds <= {LinkKind.SWITCH}
    match algorithm:
        case Algorithm.RING | Algorithm.TORUS:
            return True
        case _ if algorithm in OF_LIBRARIES:
            return False
        case Algorithm.DIRECT | Algorithm.ONE_SHOT:
            linked = kinds <= {LinkKind.SWITCH, LinkKind.FULL_MESH}
        case Algorithm.IN_SWITCH:
            linked = switched and _one_switch(topology, footprint)
        case _:
            linked = switched
    return linked and fits_shape(algorithm, operation, footprint)


def whole_torus(topology: Topology, footprint: Footprint) -> Level | None:
    """The level on which every group has a member in each sibling of one torus, and no others."""
    if not footprint.regular or footprint.mixed:
        return None
    outer, p = 1, footprint.members
    for level, spanned in zip(topology.levels, footprint.profiles[0], strict=True):
        if level.link.torus and (outer, spanned) == (1, p) and level.size == p:
            return level
        outer = spanned
    return None


def _one_switch(topology: Topology, footprint: Footprint) -> bool:
    """Whether all members meet at one level whose switches reduce groups of this size."""
    crossed = {
        j
        for profile in footprint.profiles
        for j, new in enumerate(new_entities(profile))
        if new > 0
    }
    if len(crossed) != 1:
        return False
    least = topology.levels[crossed.pop()].link.in_switch_members
    return 0 < least <= min(profile[-1] for profile in footprint.profiles)
