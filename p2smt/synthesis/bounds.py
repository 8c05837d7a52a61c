"""The rounds a chunk that every schedule takes, proved by prices: the simplest of the best proofs.

What ranks and parts must take and give is bounded in no time; flows through all edges step by step
bound more, where the question is not too large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from math import lcm
from typing import Protocol

from p2smt.errors import EncodingBug, InputError, OutOfTimeError, did_you_mean
from p2smt.fabric.fabric import Fabric
from p2smt.problems.flow import (
    FlowCrossing,
    FlowOrbits,
    FlowPrices,
    FlowProblem,
    FlowSymmetry,
    Pairs,
    flow_orbits,
    least_of_orbits,
)
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import ask_prices
from p2smt.synthesis.certificate.certificate import (
    BoundedCollective,
    BoundKind,
    BoundPrices,
    CertifiedFabric,
    CertifiedMap,
    CutPrice,
    PartitionPrice,
    ScheduleCertificate,
)
from p2smt.synthesis.certificate.check import derived_bound
from p2smt.synthesis.certificate.duality import NoProof
from p2smt.synthesis.min_cuts import (
    PairEnds,
    RankParts,
    Ranks,
    cut_crossing,
    edge_ends,
    narrow_cut,
    pair_ends,
    part_cuts,
    partition_crossing,
    partitions,
    single_cuts,
)

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
    waiting = sorted(set(least_of_orbits(len(ranks), [one.ranks for one in symmetries]).tolist()))
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


# What a collective asks of a fabric, as a question for prices.


class FabricMap(Protocol):
    """A symmetry of a fabric: where it takes ranks and edges, by their numbers."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """Images of the ranks."""
        ...

    @property
    def edges(self) -> tuple[int, ...]:
        """Images of the edges."""
        ...


def bounded(collective: str) -> BoundedCollective:
    """The collective of a name such as ``all-gather``, or ``allgather`` as schedules have it.

    Raises:
        InputError: there are no bounds for it.
    """
    names = {one.value.replace("-", ""): one for one in BoundedCollective}
    found = names.get(collective.lower().replace("-", "").replace("_", ""))
    if found is None:
        rule = f"is none of {', '.join(BoundedCollective)}"
        remedy = did_you_mean(collective, tuple(BoundedCollective)) or ""
        raise InputError(f"collective {collective[:40]!r}", rule, remedy)
    return found


def groups_of(collective: BoundedCollective, ranks: int, root: int) -> tuple[Pairs, ...]:
    """For every kind of chunk the pairs of ranks between which its data must find a way."""
    every, own = range(ranks), BoundedCollective
    pairs = tuple(permutations(every, 2))
    if collective is own.ALL_REDUCE:
        return (pairs,)
    if collective is own.ALL_GATHER:
        return tuple(tuple((origin, goal) for goal in every if goal != origin) for origin in every)
    if collective is own.REDUCE_SCATTER:
        return tuple(tuple((origin, goal) for origin in every if goal != origin) for goal in every)
    if collective is own.ALL_TO_ALL:
        return tuple((pair,) for pair in pairs)
    outward = collective in (own.BROADCAST, own.SCATTER)
    rooted = tuple(pair for pair in pairs if pair[0 if outward else 1] == root)
    together = collective in (own.BROADCAST, own.REDUCE)
    return (rooted,) if together else tuple((pair,) for pair in rooted)


def flow_problem(
    fabric: Fabric,
    groups: tuple[Pairs, ...],
    crossings: Sequence[FlowCrossing],
    steps: int | None,
    symmetries: Sequence[FabricMap] = (),
) -> FlowProblem:
    """The question for the prices that prove most."""
    return FlowProblem(
        fabric.ranks,
        fabric.edge_rows,
        fabric.bandwidths,
        groups,
        tuple(crossings),
        steps,
        tuple(FlowSymmetry(one.ranks, one.edges) for one in symmetries),
    )


# The steps that every schedule has: data goes over one edge a step.


def steps_bound(fabric: Fabric, collective: str, root: int = 0) -> int:
    """The least number of steps that the distances allow; 0 where nothing has to go.

    Raises:
        InputError: the collective has no bounds, or some rank no way to one that wants its data.
    """
    pair = farthest_pair(fabric, collective, root)
    return 0 if pair is None else _distances(_after(fabric), pair[0])[pair[1]]


def farthest_pair(fabric: Fabric, collective: str, root: int = 0) -> tuple[int, int] | None:
    """Two ranks that are farthest apart of those between which data must go: the first such.

    Raises:
        InputError: as :func:`steps_bound`.
    """
    if not 0 <= root < fabric.ranks:
        raise InputError(f"root {root}", f"must be one of the ranks 0 to {fabric.ranks - 1}")
    best: tuple[int, int, int] | None = None
    after = _after(fabric)
    for source, targets in _wanted(bounded(collective), fabric.ranks, root):
        found = _distances(after, source)
        if lost := [target for target in targets if target not in found]:
            rule = f"has no way to rank {lost[0]}, which needs its data"
            raise InputError(f"rank {source} of fabric {fabric.name[:60]}", rule)
        far = max(targets, key=found.__getitem__)
        if far != source and (best is None or found[far] > best[0]):
            best = (found[far], source, far)
    return None if best is None else best[1:]


def _wanted(
    collective: BoundedCollective, ranks: int, root: int
) -> Iterator[tuple[int, Sequence[int]]]:
    """Ranks with those that need their data; a rank may be among its own."""
    every = range(ranks)
    own = BoundedCollective
    inward = collective in (own.GATHER, own.REDUCE)
    sources = [root] if collective.rooted and not inward else every
    return ((source, [root] if inward else every) for source in sources)


def _after(fabric: Fabric) -> list[list[int]]:
    """Of every rank those to which an edge leads, ascending."""
    after: list[set[int]] = [set() for _ in range(fabric.ranks)]
    for edge in fabric.edges:
        after[edge.source].add(edge.target)
    return [sorted(targets) for targets in after]


def _distances(after: Sequence[Sequence[int]], start: int) -> dict[int, int]:
    """Edges from a rank to every one that it reaches."""
    found, frontier = {start: 0}, [start]
    for rank in frontier:
        if len(found) == len(after):
            break
        for other in after[rank]:
            if other not in found:
                found[other] = found[rank] + 1
                frontier.append(other)
    return found


# Fractions of a solver's floats that are prices by every rule, exactly.
# Any prices prove something; near those of an optimum are fractions of small denominators that
# prove it, measured in the price of a step's dearest capacity.  So each float becomes the nearest
# fraction of some denominator, and then everything is scaled or filled up until the rules hold:
# capacities cost 1 a round, crossings no more than their edges, and the shares of a group in an
# edge together what it costs.


_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class ExactPrices:
    """As :class:`~p2smt.problems.flow.FlowPrices`, in fractions that keep every rule."""

    capacities: Mapping[tuple[int, int], Fraction]
    shares: Mapping[tuple[int, int, int], Fraction]
    crossings: Mapping[int, Fraction]


def exact_prices(
    problem: FlowProblem, orbits: FlowOrbits, given: FlowPrices, denominator: int
) -> ExactPrices:
    """Prices near those given, with fractions of at most so large a denominator at first."""
    dearest = _dearest(problem, given)
    capacities = _of_unit(problem, orbits, given, dearest, denominator)
    costs = _costs(problem, orbits, capacities)
    units = [
        (dearest[s], max(price for (_, at), price in capacities.items() if at == s))
        for s in range(problem.steps or 1)
    ]
    crossings = _crossings(problem, costs, given, units[0], denominator)
    for x, price in crossings.items():
        for e in problem.crossings[x].edges:
            for s in range(problem.steps or 1):
                costs[e, s] -= price
    shares = _shares(problem, orbits, given, units, denominator, costs)
    return ExactPrices(capacities, shares, crossings)


_Unit = tuple[float, Fraction]
"""The price of a step's dearest capacity, as given and as it has become."""


def _near(value: float, denominator: int) -> Fraction:
    return max(_ZERO, Fraction(value).limit_denominator(denominator))


def _in_units(value: float, unit: _Unit, denominator: int) -> Fraction:
    given, exact = unit
    return _near(value / given, denominator) * exact


_NOTHING = 1e-12
"""A price below it, where the largest bandwidth is 1, is none: a solution's rounding is larger."""


def _dearest(problem: FlowProblem, given: FlowPrices) -> list[float]:
    """The price of the dearest capacity of every step; 1 where all cost next to nothing."""
    found = [0.0] * (problem.steps or 1)
    for (_, s), value in given.capacities:
        found[s] = max(found[s], value)
    nothing = _NOTHING / float(max(problem.capacities, default=1))
    return [value if value > nothing else 1.0 for value in found]


def _of_unit(
    problem: FlowProblem,
    orbits: FlowOrbits,
    given: FlowPrices,
    dearest: Sequence[float],
    denominator: int,
) -> dict[tuple[int, int], Fraction]:
    """Prices of capacities, which cost 1 together in every step."""
    found = {(k, s): _near(value / dearest[s], denominator) for (k, s), value in given.capacities}
    sizes = Counter(orbits.capacities)
    for s in range(problem.steps or 1):
        parts = [(k, problem.capacities[k] * sizes[k]) for k in sizes]
        spent = sum((rate * found.get((k, s), _ZERO) for k, rate in parts), _ZERO)
        if spent == 0:  # nothing is sent in this step: any prices will do
            found.update({(k, s): Fraction(1) for k, _ in parts})
            spent = sum((rate for _, rate in parts), _ZERO)
        for k, _ in parts:
            if (k, s) in found:
                found[k, s] /= spent
    return {at: price for at, price in found.items() if price}


def _costs(
    problem: FlowProblem, orbits: FlowOrbits, capacities: Mapping[tuple[int, int], Fraction]
) -> dict[tuple[int, int], Fraction]:
    """What every edge costs in every step; those that load the same cost the same."""
    known = {
        (loads, s): sum((capacities.get((orbits.capacities[k], s), _ZERO) for k in loads), _ZERO)
        for loads in {loads for _, _, loads in problem.edges}
        for s in range(problem.steps or 1)
    }
    return {
        (e, s): known[loads, s]
        for e, (_, _, loads) in enumerate(problem.edges)
        for s in range(problem.steps or 1)
    }


def _crossings(
    problem: FlowProblem,
    costs: Mapping[tuple[int, int], Fraction],
    given: FlowPrices,
    unit: _Unit,
    denominator: int,
) -> dict[int, Fraction]:
    """Prices of crossings, which cost no more than any edge."""
    found = {x: _in_units(value, unit, denominator) for x, value in given.crossings}
    scale, spent = lcm(*(price.denominator for price in found.values())), Counter[int]()
    for x, price in found.items():
        for e in problem.crossings[x].edges:
            spent[e] += int(price * scale)
    steps = range(problem.steps or 1)
    pairs = {(costs[e, s], total) for e, total in spent.items() if total for s in steps}
    fit = min((cost * scale / total for cost, total in pairs), default=Fraction(1))
    return {x: price * min(fit, Fraction(1)) for x, price in found.items() if price * fit}


def _shares(
    problem: FlowProblem,
    orbits: FlowOrbits,
    given: FlowPrices,
    units: Sequence[_Unit],
    denominator: int,
    costs: Mapping[tuple[int, int], Fraction],
) -> dict[tuple[int, int, int], Fraction]:
    """Shares that are together what an edge costs, of the least (group, edge) of every orbit."""
    edges = len(problem.edges)
    near = {at: _in_units(value, units[at[2]], denominator) for at, value in given.shares}
    members: dict[int, list[int]] = defaultdict(list)
    for p, way in enumerate(orbits.ways):
        members[way.group].append(p)
    found: dict[tuple[int, int, int], Fraction] = {}
    for n in sorted(set(orbits.groups)):
        group, e = divmod(n, edges)
        counts = Counter(orbits.edges[p * edges + e] for p in members.get(group, []))
        names = [divmod(least, edges) for least in counts]
        for s in range(problem.steps or 1) if names else ():
            parts = [near.get((*name, s), _ZERO) for name in names]
            spent = sum((n * part for n, part in zip(counts.values(), parts, strict=True)), _ZERO)
            fit = min(Fraction(1), costs[e, s] / spent) if spent else _ZERO
            parts = [part * fit for part in parts]
            first = next(iter(counts.values()))
            parts[0] += (costs[e, s] - spent * fit) / first
            found.update(
                {(*name, s): part for name, part in zip(names, parts, strict=True) if part}
            )
    return found
