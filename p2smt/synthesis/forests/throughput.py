"""The greatest throughput of a collective, with a forest that has it and what proves both.

All-gathers and broadcasts copy along trees; reduce-scatters and reduces add up along the trees of
the network turned round.  An all-reduce does one after the other; how much of it each root has is
free.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

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
    first_of,
    join,
    proved_time,
    time_of_trees,
)
from p2smt.synthesis.forests.network import ForestGround
from p2smt.synthesis.forests.packing import ForestPacking
from p2smt.synthesis.forests.rate import LeastTime, least_time, narrowest_around
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
