"""The rounds a chunk that every schedule takes, proved by prices: the simplest of the best proofs.

What ranks and parts must take and give is bounded in no time; flows through all edges step by step
bound more, where the question is not too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.errors import EncodingBug, InputError, OutOfTimeError
from p2smt.problems.flow import FlowPrices, FlowProblem, Pairs
from p2smt.problems.flow_orbits import FlowOrbits, flow_orbits, least_of_orbits
from p2smt.result import SearchLimits, StopWatch
from p2smt.schedules.certificate.certificate import (
    BoundedCollective,
    BoundKind,
    BoundPrices,
    CertifiedFabric,
    CertifiedMap,
    CutPrice,
    PartitionPrice,
    ScheduleCertificate,
)
from p2smt.schedules.certificate.check import derived_bound
from p2smt.schedules.certificate.duality import NoProof
from p2smt.search.schedule.bounds.crossings import (
    PairEnds,
    RankParts,
    Ranks,
    cut_crossing,
    edge_ends,
    pair_ends,
    part_cuts,
    partition_crossing,
    partitions,
    single_cuts,
)
from p2smt.search.schedule.bounds.exact import ExactPrices, exact_prices
from p2smt.search.schedule.bounds.min_cuts import narrow_cut
from p2smt.search.schedule.bounds.question import FabricMap, bounded, flow_problem, groups_of
from p2smt.search.schedule.bounds.steps import farthest_pair
from p2smt.solvers.ask import ask_prices

LARGE_EDGES, LARGE_RANKS = 20_000, 512
"""Of a fabric that has more, all that sets of ranks prove takes seconds, and is limited by time."""
SMALL_EDGES = 2_000
"""Of one that has more, what sets of several ranks prove: the others are milliseconds."""
_NO_LIMIT = StopWatch(SearchLimits(), 0.0)
_DENOMINATORS = (100, 1000, 10**4, 10**6)
_CLOSE = 1e-9
MOST_SHARES = 150_000
"""Flows of more ways, edges and steps, counted up to symmetry, are not asked for."""
MOST_LOOKS = 20_000_000
"""Of sets of ranks at edges: of a large fabric only the first sets are looked at."""
MOST_WAYS = 500_000
"""Nor those of more ways and edges: to see what symmetries make of them takes too long."""


@dataclass(frozen=True, slots=True)
class RateBound:
    """R/C is at least ``value`` for every number of chunks, unless chunks are mixed.

    Of kind DISTANCE, ``value`` is the least number of steps: with fewer there is no schedule.
    """

    value: Fraction
    kind: BoundKind
    certificate: ScheduleCertificate


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is asked; ``edges`` and ``pairs`` of ranks by their ends; ``groups``: of the pairs.

    ``watch``: of the flows; ``whole``: of everything, if the fabric is large.
    """

    fabric: Fabric
    collective: BoundedCollective
    root: int
    watch: StopWatch
    whole: StopWatch
    groups: tuple[Pairs, ...]
    edges: PairEnds
    pairs: PairEnds

    def certificate(self, kind: BoundKind, steps: int | None = None) -> ScheduleCertificate:
        """A certificate without prices."""
        return _certificate(self.fabric, self.collective, self.root, kind, steps)


def _scene(
    fabric: Fabric, collective: BoundedCollective, root: int, watch: StopWatch, whole: StopWatch
) -> _Scene:
    large = len(fabric.edges) > LARGE_EDGES or fabric.ranks > LARGE_RANKS
    whole = whole if large else _NO_LIMIT
    whole.check()
    groups = groups_of(collective, fabric.ranks, root)
    pairs = pair_ends(groups, fabric.ranks)
    return _Scene(fabric, collective, root, watch, whole, groups, edge_ends(fabric), pairs)


def _certificate(
    fabric: Fabric,
    collective: BoundedCollective,
    root: int,
    kind: BoundKind,
    steps: int | None = None,
) -> ScheduleCertificate:
    """A certificate without prices."""
    return ScheduleCertificate(
        kind,
        collective,
        root if collective.rooted else None,
        steps,
        Fraction(0),
        CertifiedFabric(
            fabric.name,
            fabric.ranks,
            fabric.bandwidths,
            fabric.edge_rows,
        ),
        (),
        BoundPrices(),
    )


def distance_bound(fabric: Fabric, collective: str, root: int = 0) -> RateBound:
    """The least number of steps, with its certificate.

    Raises:
        InputError: the collective has no bounds, or a rank no way to one that wants its data.
    """
    named = bounded(collective)
    pair = farthest_pair(fabric, collective, root)
    if pair is None:
        given = f"{named} on {fabric.ranks} rank"
        raise InputError(given, "has nothing to send", "name a fabric with more ranks")
    claim = _certificate(fabric, named, root, BoundKind.DISTANCE)
    return _proved(replace(claim, prices=BoundPrices(pair=pair)))


def rate_bound(
    fabric: Fabric,
    collective: str,
    steps: int | None,
    root: int = 0,
    symmetries: Sequence[FabricMap] = (),
    watch: StopWatch | None = None,
    whole: StopWatch | None = None,
) -> RateBound:
    """The greatest bound on R/C that is found, for ``steps`` steps or, None, for any number.

    Args:
        fabric: ranks, edges and capacities.
        collective: such as ``all-gather``; chunks are counted per rank, per pair or in all.
        steps: fewer than the distances allow give a bound of kind DISTANCE.
        root: of the collectives that have one.
        symmetries: of the fabric; those that keep the collective make the question smaller, and
            change nothing else.  Ones that reverse time are left out.
        watch: of the flows; when its time is over, what sets of ranks prove must do.
        whole: of everything, where the fabric is large (``LARGE_EDGES``, ``LARGE_RANKS``), and of
            sets of several ranks, unless it is small; None: the same.

    Raises:
        InputError: the collective has no bounds, or a rank no way to one that wants its data.
        OutOfTimeError: of a large fabric: the time came before anything was proved.
    """
    if steps is not None and steps < 1:
        raise InputError(f"{steps} steps", "must be at least 1")
    least = distance_bound(fabric, collective, root)
    if steps is not None and steps < least.value:
        return least
    watch = watch or _NO_LIMIT
    scene = _scene(fabric, bounded(collective), root, watch, whole or watch)
    best = _by_sets(scene, whole or watch)
    usable = _usable(scene, symmetries)
    if flow_size(flow_problem(fabric, scene.groups, [], steps, usable)) is None:
        return _by_narrow_cuts(scene, usable, best)
    return _by_flows(scene, steps, usable, best.value) or best


def _usable(scene: _Scene, symmetries: Sequence[FabricMap]) -> list[FabricMap]:
    """The symmetries that keep the root, and do not reverse time."""
    ahead = [one for one in symmetries if not getattr(one, "reverses", False)]
    rooted, root = scene.collective.rooted, scene.root
    return [one for one in ahead if not rooted or one.ranks[root] == root]


def _by_sets(scene: _Scene, watch: StopWatch) -> RateBound:
    """The best bound by what sets of ranks take, give and exchange; of equal ones the simplest.

    Raises:
        OutOfTimeError: the time came before there was one.
    """
    found: list[RateBound] = []
    try:
        found.extend(_each_by_sets(scene, watch))
    except OutOfTimeError:
        if not found:
            raise
    return max(found, key=lambda one: one.value)


def _each_by_sets(scene: _Scene, watch: StopWatch) -> Iterator[RateBound]:
    """Degrees, cuts, partitions, as long as there is time."""
    most = max(2, MOST_LOOKS // max(1, len(scene.fabric.edges)))
    single = single_cuts(scene.fabric)[:most]
    yield _by_crossings(scene, BoundKind.DEGREE, single, [])
    if len(scene.fabric.edges) > SMALL_EDGES and watch.expired():
        return
    if parts := part_cuts(scene.fabric)[:most]:
        yield _by_crossings(scene, BoundKind.CUT, single + parts, [])
    if whole := _partitions(scene):
        yield _by_crossings(scene, BoundKind.GOSSIP, [], whole)


def _partitions(scene: _Scene) -> list[RankParts]:
    return partitions(scene.fabric) if scene.collective is BoundedCollective.ALL_REDUCE else []


def _by_crossings(
    scene: _Scene, kind: BoundKind, cuts: Sequence[Ranks], whole: Sequence[RankParts]
) -> RateBound:
    """The bound by what must cross cuts or partitions."""
    crossed = [(ranks, cut_crossing(scene.edges, scene.pairs, ranks)) for ranks in cuts]
    crossed = [(ranks, one) for ranks, one in crossed if one.messages]
    crossings = [one for _, one in crossed]
    crossings += [partition_crossing(scene.fabric, parts) for parts in whole]
    problem = flow_problem(scene.fabric, (), crossings, None)
    scene.whole.check()
    found = ask_prices(problem, scene.whole.left()).value
    scene.whole.check()
    if found is None:
        raise EncodingBug("the prices of crossings have no optimum", scene.fabric.name, kind.value)
    named = [ranks for ranks, _ in crossed]
    return _exact(scene.certificate(kind), problem, found, named, whole, scene.whole)


def _by_flows(
    scene: _Scene, steps: int | None, symmetries: Sequence[FabricMap], beyond: Fraction
) -> RateBound | None:
    """A bound by flows, if there is time for it and it proves more than ``beyond``."""
    whole = _partitions(scene)
    crossings = [partition_crossing(scene.fabric, parts) for parts in whole]
    problem = flow_problem(scene.fabric, scene.groups, crossings, steps, symmetries)
    found = ask_prices(problem, scene.watch.left()).value
    if found is None or found.value <= float(beyond) * (1 + _CLOSE):
        return None
    generators = tuple(CertifiedMap(one.ranks, one.edges) for one in symmetries)
    claim = replace(scene.certificate(BoundKind.FLOW, steps), generators=generators)
    proved = _exact(claim, problem, found, [], whole, scene.watch)
    return proved if proved.value > beyond else None


def _by_narrow_cuts(scene: _Scene, symmetries: Sequence[FabricMap], known: RateBound) -> RateBound:
    """A bound by cuts that are sought, where it proves more than what is known.

    Newton's method: a set that too little can enter in the rounds known bounds them anew.
    """
    best, ranks = known, range(scene.fabric.ranks)
    waiting = sorted(set(least_of_orbits(len(ranks), [one.ranks for one in symmetries])))
    while waiting and not scene.watch.expired():
        rank = waiting[-1]
        cut = narrow_cut(scene.fabric, scene.collective, scene.root, rank, best.value)
        found = None if cut is None else _by_crossings(scene, BoundKind.CUT, [cut], [])
        if found is None or found.value <= best.value:
            waiting.pop()
        else:
            best = found
    return best


def flow_size(problem: FlowProblem) -> int | None:
    """Ways, edges and steps of flows, as far as symmetries leave them different; None: too many."""
    sources = {pairs[0][0] for pairs in problem.groups if len(pairs) == 1}
    ways = len(sources) + sum(len(pairs) for pairs in problem.groups if len(pairs) > 1)
    if ways * len(problem.edges) > MOST_WAYS:
        return None
    size = len(set(flow_orbits(problem).edges)) * (problem.steps or 1)
    return size if size <= MOST_SHARES else None


def _exact(
    claim: ScheduleCertificate,
    problem: FlowProblem,
    found: FlowPrices,
    cuts: Sequence[Ranks],
    whole: Sequence[RankParts],
    watch: StopWatch,
) -> RateBound:
    """The bound of a solver's prices made exact: the first that is as good, or the best.

    Once the time is over, the first must do.
    """
    best: RateBound | None = None
    orbits = flow_orbits(problem)
    for denominator in _DENOMINATORS:
        exact = exact_prices(problem, orbits, found, denominator)
        prices = _named_prices(problem, orbits, exact, cuts, whole)
        proved = _proved(replace(claim, prices=prices))
        if best is None or proved.value > best.value:
            best = proved
        if float(best.value) >= found.value * (1 - _CLOSE) or watch.expired():
            break
    assert best is not None  # there are denominators
    return best


def _proved(claim: ScheduleCertificate) -> RateBound:
    """The bound that a certificate proves by the check's own reckoning, claimed in it."""
    try:
        value = derived_bound(claim)
    except NoProof as fault:
        raise EncodingBug(str(fault), claim.fabric.name, claim.data()) from None
    return RateBound(value, claim.kind, replace(claim, bound=value))


def _named_prices(
    problem: FlowProblem,
    orbits: FlowOrbits,
    exact: ExactPrices,
    cuts: Sequence[Ranks],
    whole: Sequence[RankParts],
) -> BoundPrices:
    """Exact prices as a certificate names them."""
    timed, ways = problem.steps is not None, orbits.ways
    return BoundPrices(
        None,
        tuple((k, s if timed else None, p) for (k, s), p in sorted(exact.capacities.items())),
        tuple(
            (ways[w].source, ways[w].targets[0], e, s if timed else None, p)
            for (w, e, s), p in sorted(exact.shares.items())
        ),
        tuple(CutPrice(r, exact.crossings[x]) for x, r in enumerate(cuts) if x in exact.crossings),
        tuple(
            PartitionPrice(parts, exact.crossings[x])
            for x, parts in enumerate(whole, len(cuts))
            if x in exact.crossings
        ),
    )
