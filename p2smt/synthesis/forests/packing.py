"""Weights for trees such that no arc takes longer than the least time, as exact fractions.

A linear program says which parts of the trees known so far load the busiest arc least, and what
each arc's load is worth; a cheapest tree at these prices is new, or there is none better.  All of
it on orbits of roots and arcs.  Floats of the solver only say which trees count: their weights are
made fractions, and are believed once sums and loads are right in fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from p2smt.errors import InputError
from p2smt.problems.packing import PackedColumn, PackingProblem, PackingShares
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import ask_packing
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.forest import INWARD, OUTWARD, Orbits, WeightedTree
from p2smt.synthesis.forests.cheapest import LowTreeSearch, TreeSearch
from p2smt.synthesis.forests.network import ForestGround

_NEAR = 1e-9
_LONG = 1e-6
"""What an arc costs beside its price, as a part of an even one: of like ways the short one."""
_DENOMINATORS = (1, 2, 3, 4, 6, 8, 12, 24, 60, 120, 720, 5040)
_FINEST = 10**6
_STEP = 4
"""How fast prices grow while the first trees keep off each other."""
_TRIES = 12
"""Where no low tree is new, others are sought at so many prices by chance near these."""

Ways = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RootedTrees:
    """A tree from a root, a tree to it, or both; by kind of arc what they take of the time.

    ``ways``: by whether they lead outwards.  ``share``: of a root of this kind, for a weight of 1.
    """

    kind: int
    root: int
    ways: Mapping[bool, Ways]
    loads: Mapping[int, Fraction]
    share: Fraction


class ForestPacking:
    """The trees known so far, and weights of them that load the busiest arc least.

    Each root has trees for one unit; in an all-reduce roots are free: all have one for each in all.
    ``least``: the time that is hoped for; ``height``: of trees, in messages, at most.  The lowest
    are sought first, and higher ones where these do not help, so that more height finds no less.

    Raises:
        InputError: some rank is more messages away.
    """

    def __init__(
        self,
        ground: ForestGround,
        collective: BoundedCollective,
        least: Fraction,
        height: int | None = None,
    ) -> None:
        self.ground, self.collective, self.least = ground, collective, least
        nets = {True: ground.network, False: ground.network.reversed()}
        used = {True: collective in OUTWARD, False: collective in INWARD}
        kind = TreeSearch if height is None else LowTreeSearch
        self._searches = {out: kind(net) for out, net in nets.items() if used[out]}
        self.free = len(self._searches) == 2
        self._low = [one for one in self._searches.values() if isinstance(one, LowTreeSearch)]
        self._needs = [max((s.needs(root) for s in self._low), default=0) for root, _ in self.roots]
        tries, many = _TRIES if self._low else 0, len(self.rooms)
        self._uneven = np.random.default_rng(0).uniform(0, 1 / many, (tries, many)).tolist()
        self._highest = 0 if height is None else self._checked(height)
        self.trees: list[RootedTrees] = []
        self._known: set[tuple[int, frozenset[tuple[int, Fraction]]]] = set()
        self._prices: Sequence[float] = [1 / len(self.rooms)] * len(self.rooms)

    @cached_property
    def orbits(self) -> Orbits:
        """What symmetries make of each other."""
        return self.ground.orbits

    @cached_property
    def roots(self) -> list[tuple[int, int]]:
        """The first root of each orbit, and how many there are."""
        return sorted(Counter(self.orbits.vertices[root] for root in self.ground.roots).items())

    @property
    def kinds(self) -> int:
        """How many kinds of trees have weights of 1 in all."""
        return 1 if self.free else len(self.roots)

    @cached_property
    def rooms(self) -> dict[int, tuple[int, Fraction]]:
        """By orbit of arcs its number, and what one unit of data takes of the least time there."""
        sizes, found = Counter(self.orbits.arcs), dict[int, tuple[int, Fraction]]()
        for arc, count in sorted(sizes.items()):
            rate = self.ground.network.arcs[arc][2]
            if rate is not None:
                found[arc] = (len(found), 1 / (rate * count * self.least))
        return found

    def grow(self, limits: SearchLimits) -> PackingShares | None:
        """Add trees until no arc takes longer than the least time, or none helps; None: no time."""
        shares = self._shares(StopWatch.start(limits))
        if shares is not None:  # the last may be added when the time is over
            del self.trees[len(shares.weights) :]
        return shares

    def _shares(self, watch: StopWatch) -> PackingShares | None:
        """Adds trees; of the first ones their shares."""
        shares = None
        alike = len(self.roots) > 1 and not self.trees
        bound = self._add(self._prices)
        while not watch.expired():
            columns = tuple(
                PackedColumn(tree.kind, {k: float(load) for k, load in tree.loads.items()})
                for tree in self.trees
            )
            problem = PackingProblem(self.kinds, len(self.rooms), columns)
            found = ask_packing(problem, watch.left()).value
            if found is None or found.load <= max(1.0, bound) + _NEAR:
                return found or shares
            shares, known = found, len(self.trees)
            if alike:
                self._prices, alike = self._spread(self._spread(self._prices)), False
                continue
            self._prices = [(a + b) / 2 for a, b in zip(self._prices, found.prices, strict=True)]
            bound = max(bound, self._add(self._prices))
            if len(self.trees) == known:
                bound = max(bound, self._add(found.prices))
            for uneven in self._uneven:
                if len(self.trees) == known:
                    self._add([a + b for a, b in zip(found.prices, uneven, strict=True)])
            if len(self.trees) == known and not self._higher():
                return shares
        return shares

    def _spread(self, prices: Sequence[float]) -> Sequence[float]:
        """Add a tree for each kind of root that keeps off what those before load; prices then.

        Prices grow by what is loaded (Garg and Koenemann, 1998).
        """
        for number in self._rooted():
            loads = self._tree(number, self._per_arc(prices))
            grown = [a * (1 + _STEP * float(loads.get(k, 0))) for k, a in enumerate(prices)]
            prices = [price / sum(grown) for price in grown]
        return prices

    def _add(self, prices: Sequence[float]) -> float:
        """Add a cheapest tree for each kind of root; what no weights load less, at these prices."""
        per_arc, costs = self._per_arc(prices), list[float]()
        for number in self._rooted():
            loads = self._tree(number, per_arc)
            costs.append(sum(prices[k] * float(load) for k, load in loads.items()))
        if self._low:
            return 0.0  # a low tree may not be the cheapest, which proves nothing
        return (min if self.free else sum)(costs) - 2 * _LONG

    def _rooted(self) -> list[int]:
        """The kinds of roots that have trees, by number; others need higher ones."""
        most = min((search.height for search in self._low), default=0)
        return [number for number, needs in enumerate(self._needs) if needs <= most]

    def _per_arc(self, prices: Sequence[float]) -> list[float]:
        even = _LONG / len(self.rooms)
        per_arc = [even] * len(self.orbits.arcs)
        for arc, orbit in enumerate(self.orbits.arcs):
            if orbit in self.rooms:
                number, part = self.rooms[orbit]
                per_arc[arc] = (prices[number] + even) * float(part)
        return per_arc

    def _tree(self, number: int, per_arc: Sequence[float]) -> Mapping[int, Fraction]:
        """Add a cheapest tree of a kind of roots; returns what it loads."""
        root, count = self.roots[number]
        ways = {out: search.tree(root, per_arc) for out, search in self._searches.items()}
        return self.keep(number, root, count, ways)

    def keep(
        self, number: int, root: int, count: int, ways: Mapping[bool, Ways]
    ) -> Mapping[int, Fraction]:
        """Add a tree of a kind of roots, which are ``count``; returns what it loads."""
        loads: dict[int, Fraction] = defaultdict(Fraction)
        many = self.ground.network.ranks if self.free else count
        for way in (way for each in ways.values() for way in each):
            for arc in way:
                if (orbit := self.orbits.arcs[arc]) in self.rooms:
                    k, part = self.rooms[orbit]
                    loads[k] += part * many
        key = (number, frozenset(loads.items()))
        if key not in self._known:
            self._known.add(key)
            kind = 0 if self.free else number
            self.trees.append(RootedTrees(kind, root, ways, dict(loads), Fraction(many, count)))
        return loads

    # Trees that are not too high.

    def _checked(self, height: int) -> int:
        """The height, where the lowest trees have no more; searches begin with theirs."""
        least = (min if self.free else max)(self._needs)
        if least > height:
            root = self.roots[self._needs.index(least)][0]
            rule = f"rank {root} needs {least} to reach all ranks"
            raise InputError(f"trees of height {height}", rule, f"allow {least} or more")
        for search in self._low:
            search.height = least
        return min(height, self.ground.network.ranks - 1)

    def _higher(self) -> bool:
        """Let trees be a message higher, if they may."""
        for search in self._low:
            search.height += 1
        return any(search.height <= self._highest for search in self._low)

    # From floats to fractions.

    def exact(self, shares: PackingShares) -> Mapping[bool, tuple[WeightedTree, ...]]:
        """Trees with weights as fractions: of the least time, or of the least that was found."""
        tried: list[tuple[Fraction, int, dict[int, Fraction]]] = []
        for weights in self._candidates(shares):
            tried.append((self._load(weights), len(tried), weights))
            if tried[-1][0] <= 1:
                break
        _, _, best = min(tried)
        return {
            out: tuple(
                WeightedTree(tree.root, weight * tree.share, tree.ways[out])
                for tree, weight in ((self.trees[n], w) for n, w in sorted(best.items()) if w)
            )
            for out in self._searches
        }

    def _candidates(self, shares: PackingShares) -> Iterator[dict[int, Fraction]]:
        for finest in _DENOMINATORS:
            yield self._rounded(shares.weights, finest)
        yield self._solved(shares)
        yield self._rounded(shares.weights, _FINEST)

    def _rounded(self, weights: Sequence[float], finest: int) -> dict[int, Fraction]:
        """Near fractions, made 1 in all for each kind."""
        near = [Fraction(weight).limit_denominator(finest) for weight in weights]
        sums: dict[int, Fraction] = defaultdict(Fraction)
        for tree, weight in zip(self.trees, near, strict=True):
            sums[tree.kind] += weight
        if any(sums[kind] == 0 for kind in range(self.kinds)):
            return self._rounded(weights, finest * 10)
        return {n: weight / sums[self.trees[n].kind] for n, weight in enumerate(near) if weight > 0}

    def _load(self, weights: Mapping[int, Fraction]) -> Fraction:
        """The greatest load, as a part of the least time; more than any where a weight is wrong."""
        sums: dict[int, Fraction] = defaultdict(Fraction)
        loads: dict[int, Fraction] = defaultdict(Fraction)
        for n, weight in weights.items():
            sums[self.trees[n].kind] += weight
            for k, load in self.trees[n].loads.items():
                loads[k] += load * weight
        whole = all(sums[kind] == 1 for kind in range(self.kinds))
        if not whole or min(weights.values()) < 0:
            return Fraction(len(self.trees) + 10**9)
        return max(loads.values())

    def _solved(self, shares: PackingShares) -> dict[int, Fraction]:
        """The weights at which all arcs that are as busy as the busiest are so exactly."""
        used = [n for n, weight in enumerate(shares.weights) if weight > _NEAR]
        loads: dict[int, float] = defaultdict(float)
        rows: dict[int, dict[int, Fraction]] = defaultdict(dict)
        for n in used:
            for k, load in self.trees[n].loads.items():
                loads[k] += float(load) * shares.weights[n]
                rows[k][n] = load
        time, one = len(self.trees), Fraction(1)
        equations = [
            ({n: one for n in used if self.trees[n].kind == kind}, one)
            for kind in range(self.kinds)
        ]
        full = max(loads.values()) - 1e-7
        equations += [
            ({**rows[k], time: -one}, Fraction(0)) for k in sorted(rows) if loads[k] > full
        ]
        start = {n: Fraction(shares.weights[n]).limit_denominator(1000) for n in used}
        found = _solution(equations, {**start, time: one})
        return {n: weight for n, weight in found.items() if n != time}


_Equation = tuple[dict[int, Fraction], Fraction]


def _solution(equations: Sequence[_Equation], free: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """A solution of linear equations, as far as they have one; what is free stays as it is."""
    solved: list[tuple[int, dict[int, Fraction], Fraction]] = []
    for row, right in equations:
        left = dict(row)
        for pivot, other, value in solved:
            factor = left.pop(pivot, None)
            if factor:
                right -= factor * value
                for n, number in other.items():
                    left[n] = left.get(n, Fraction(0)) - factor * number
        left = {n: number for n, number in left.items() if number}
        if left:
            pivot = min(left)
            first = left.pop(pivot)
            solved.append((pivot, {n: x / first for n, x in left.items()}, right / first))
    found = dict(free)
    for pivot, other, value in reversed(solved):
        found[pivot] = value - sum((x * found[n] for n, x in other.items()), Fraction(0))
    return found
