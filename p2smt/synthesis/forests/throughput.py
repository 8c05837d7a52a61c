"""The greatest throughput of a collective, with a forest that has it and what proves both.

All-gathers and broadcasts copy along trees; reduce-scatters and reduces add up along the trees of
the network turned round.  An all-reduce does one after the other; how much of it each root has is
free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from p2smt.errors import EncodingBug, InputError
from p2smt.result import SearchLimits, StopWatch
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.duality import NoProof
from p2smt.synthesis.certificate.forest import (
    INWARD,
    OUTWARD,
    ForestClaim,
    Moves,
    TreeNetwork,
    check_forest,
    entering,
    first_of,
    join,
    proved_time,
    time_of_trees,
)
from p2smt.synthesis.forests.network import ForestGround
from p2smt.synthesis.forests.packing import ForestPacking
from p2smt.synthesis.min_cuts import Network
from p2smt.synthesis.setting import shown_collective

_OWN = BoundedCollective


def forest_collective(collective: str) -> BoundedCollective:
    """The collective by its name in schedules, if trees carry it.

    Raises:
        InputError: they do not.
    """
    found = BoundedCollective(shown_collective(collective))
    if found not in (*OUTWARD, *INWARD):
        known = ", ".join(dict.fromkeys((*OUTWARD, *INWARD)))
        rule = "has data of its own for each pair of ranks, so it is not carried by trees"
        raise InputError(f"the throughput of {found}", rule, f"name one of {known}")
    return found


@dataclass(frozen=True, slots=True)
class Throughput:
    """A forest that was checked, the flows that its bound took, and the seconds of all.

    ``height``: that its trees were to have at most; None: any.
    """

    claim: ForestClaim
    flows: int
    wall_s: float
    height: int | None = None

    @property
    def rate(self) -> Fraction:
        """Bytes (or chunks a round) of all that is gathered or added up, a second."""
        return self.units / self.claim.time

    @property
    def units(self) -> int:
        """What the time is for: a unit of every root."""
        return 1 if self.claim.root is not None else self.claim.network.ranks

    @property
    def gap(self) -> Fraction:
        """How much of the time may be too much: 0 where it is optimal."""
        return 1 - self.claim.bound / self.claim.time


def throughput(
    ground: ForestGround,
    collective: BoundedCollective,
    limits: SearchLimits,
    height: int | None = None,
) -> Throughput | None:
    """The forest of the greatest throughput that was found; None: the time came before one.

    ``height``: of its trees, in messages, at most; the bound is that of trees of any height.

    Raises:
        InputError: some rank is more messages away.
        EncodingBug: what was found does not hold.
    """
    watch, found = StopWatch.start(limits), list[LeastTime]()
    for outward in (True, False):
        if collective in (OUTWARD if outward else INWARD):
            found.append(least_time(ground if outward else ground.reversed()))
    parts, bound = _proof(ground, collective, found)
    packing = ForestPacking(ground, collective, bound, height)
    shares = packing.grow(watch.left())
    if shares is None:
        return None
    trees = packing.exact(shares)
    claim = ForestClaim(
        collective,
        ground.root,
        Fraction(0),
        bound,
        ground.network,
        ground.symmetries,
        parts,
        trees.get(True, ()),
        trees.get(False, ()),
    )
    claim = replace(claim, time=time_of_trees(claim))
    if faults := check_forest(claim).faults:
        raise EncodingBug(f"the forest is wrong: {faults[0]}", ground, claim)
    return Throughput(claim, sum(one.flows for one in found), watch.elapsed_s(), height)


_Ranks = frozenset[int]
_Parts = tuple[frozenset[int], ...]


def _proof(
    ground: ForestGround, collective: BoundedCollective, found: list[LeastTime]
) -> tuple[_Parts, Fraction]:
    """What proves most, and what it proves."""
    if collective is not _OWN.ALL_REDUCE:
        return (found[0].part,), found[0].time
    proved: list[tuple[Fraction, _Parts]] = []
    for parts in _partitions(ground, found):
        try:
            proved.append((proved_time(ground.network, collective, None, parts), parts))
        except NoProof:
            continue
    bound, parts = max(proved, key=lambda one: (one[0], -len(one[1])))
    return parts, bound


def _partitions(ground: ForestGround, found: list[LeastTime]) -> Iterator[_Parts]:
    """The ranks that stay together without the slower arcs; narrow parts and their images, and the
    other ranks one by one.
    """
    net, known = ground.network, dict[_Ranks, frozenset[int]]()
    every = frozenset(range(net.ranks))

    def around(groups: Iterable[_Ranks]) -> _Parts:
        for ranks in groups:
            if ranks not in known:
                part = narrowest_around(net, ranks)
                known.update((image & every, image) for image in _images(part, ground.symmetries))
        return tuple(known[ranks] for ranks in groups)

    yield from (around(groups) for groups in _together(net) if len(groups) > 1)
    for part in dict.fromkeys(one.part for one in found):
        images = {image & every for image in _images(part, ground.symmetries)}
        covered = frozenset[int]().union(*images)
        if len(covered) == sum(map(len, images)):
            yield around(
                [*sorted(images, key=min), *(frozenset([r]) for r in sorted(every - covered))]
            )


def _together(net: TreeNetwork) -> Iterator[list[_Ranks]]:
    """The ranks one by one, and for every bandwidth those that faster arcs join."""
    rates = sorted({rate for _, _, rate in net.arcs if rate is not None})
    yield [frozenset([rank]) for rank in range(net.ranks)]
    for least in rates:
        leads = list(range(len(net.vertices)))
        for tail, head, rate in net.arcs:
            if rate is None or rate > least:
                join(leads, tail, head)
        groups = defaultdict[int, set[int]](set)
        for rank in range(net.ranks):
            groups[first_of(leads, rank)].add(rank)
        yield list(map(frozenset, groups.values()))


def _images(part: frozenset[int], symmetries: Iterable[Moves]) -> list[frozenset[int]]:
    """A set of vertices, and those that symmetries make of it."""
    found, known = [part], {part}
    for one in found:
        for moves in symmetries:
            image = frozenset(moves.get(vertex, vertex) for vertex in one)
            if image not in known:
                known.add(image)
                found.append(image)
    return found


# How long every forest takes at least, exactly: Newton's method on cuts, each found by a max flow.
#
# Data of all roots that are inside a cut has to leave it, if a rank is outside.  The least time is
# the greatest ratio of what is inside to what leaves in a second (Edmonds, "Edge-disjoint
# branchings", 1973, with fractions: trees that pack exist at that time).  A time is too short if
# some rank cannot take in, at once, a flow of everything; its narrowest cut gives the next time.


@dataclass(frozen=True, slots=True)
class LeastTime:
    """Seconds for a byte of each root (rounds for a chunk), what proves it, and how many flows.

    ``part``: the vertices that all data outside has to enter.
    """

    time: Fraction
    part: frozenset[int]
    flows: int


def least_time(ground: ForestGround) -> LeastTime:
    """The least time of all forests.

    Raises:
        EncodingBug: a part without a way in; a network that is joined has none.
    """
    net, found = ground.network, LeastTime(Fraction(0), frozenset(), 0)
    firsts = sorted({ground.orbits.vertices[rank] for rank in range(net.ranks)})
    for rank in firsts:
        if ground.roots == (rank,):
            continue
        while True:
            part = _too_narrow(net, ground.roots, rank, found.time)
            flows = found.flows + 1
            if part is None:
                found = LeastTime(found.time, found.part, flows)
                break
            room = entering(net, part)
            if not room:
                raise EncodingBug("a part has no way in, or one without limit", ground, part)
            outside = sum(1 for root in ground.roots if root not in part)
            found = LeastTime(Fraction(outside) / room, part, flows)
    return found


def _too_narrow(
    net: TreeNetwork, roots: Sequence[int], target: int, time: Fraction
) -> frozenset[int] | None:
    """Beyond the narrowest cut between roots and a rank, if too little flows; else None."""
    flow, unit = _rooms(net, time, len(roots))
    source = len(net.vertices)
    for root in roots:
        flow.join(source, root, unit)
    if flow.fill(source, target) >= len(roots) * unit:
        return None
    return frozenset(range(source)) - flow.reached(source)


def narrowest_around(net: TreeNetwork, ranks: frozenset[int]) -> frozenset[int]:
    """The vertices on the side of some ranks, where least enters from the other ranks."""
    plenty = sum((rate for _, _, rate in net.arcs if rate is not None), Fraction(1))
    flow, unit = _rooms(net, Fraction(1), plenty)
    source, target = len(net.vertices), len(net.vertices) + 1
    for rank in range(net.ranks):
        ends = (rank, target) if rank in ranks else (source, rank)
        flow.join(*ends, int(plenty * unit))
    flow.fill(source, target)
    return frozenset(range(source)) - flow.reached(source)


def _rooms(net: TreeNetwork, time: Fraction, plenty: Fraction | int) -> tuple[Network, int]:
    """What arcs carry in a time as whole numbers, and how many 1 is; at most ``plenty``."""
    rates = [plenty if rate is None else min(plenty, rate * time) for _, _, rate in net.arcs]
    unit = lcm(*(Fraction(rate).denominator for rate in rates))
    flow = Network(len(net.vertices) + 2)
    for (tail, head, _), rate in zip(net.arcs, rates, strict=True):
        flow.join(tail, head, int(rate * unit))
    return flow, unit
