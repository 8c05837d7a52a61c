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

from p2smt.problems.packing import PackedColumn, PackingProblem, PackingShares
from p2smt.result import SearchLimits, StopWatch
from p2smt.solvers.ask import ask_packing
from p2smt.synthesis.certificate.forest import Orbits, WeightedTree
from p2smt.synthesis.forests.cheapest import TreeSearch
from p2smt.synthesis.forests.network import ForestGround

_NEAR = 1e-9
_LONG = 1e-6
"""What an arc costs beside its price, as a part of an even one: of like ways the short one."""
_DENOMINATORS = (1, 2, 3, 4, 6, 8, 12, 24, 60, 120, 720, 5040)
_FINEST = 10**6

Ways = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class PackedForest:
    """Trees, 1 in all for the roots of each orbit, and the time of the busiest arc, exactly."""

    trees: tuple[WeightedTree, ...]
    time: Fraction


@dataclass(frozen=True, slots=True)
class _Tree:
    """A tree of a kind of roots; by kind of arc what it takes of the least time there."""

    kind: int
    ways: Ways
    loads: Mapping[int, Fraction]


class ForestPacking:
    """The trees known so far, and weights of them that load the busiest arc least."""

    def __init__(self, ground: ForestGround, least: Fraction) -> None:
        self.ground, self.least = ground, least
        self.search = TreeSearch(ground.network)
        self.trees: list[_Tree] = []
        self._known: set[tuple[int, frozenset[tuple[int, Fraction]]]] = set()
        self._prices: Sequence[float] = [1 / len(self.rooms)] * len(self.rooms)

    @cached_property
    def orbits(self) -> Orbits:
        """What symmetries make of each other."""
        return self.ground.orbits

    @cached_property
    def kinds(self) -> list[tuple[int, int]]:
        """The first root of each orbit, and how many there are."""
        return sorted(Counter(self.orbits.vertices[root] for root in self.ground.roots).items())

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
        watch, shares = StopWatch.start(limits), None
        self._add(self._prices)
        while not watch.expired():
            columns = tuple(
                PackedColumn(tree.kind, {k: float(load) for k, load in tree.loads.items()})
                for tree in self.trees
            )
            problem = PackingProblem(len(self.kinds), len(self.rooms), columns)
            found = ask_packing(problem, watch.left()).value
            if found is None:
                return shares
            shares = found
            if shares.load <= 1 + _NEAR:
                return shares
            between = [(a + b) / 2 for a, b in zip(self._prices, shares.prices, strict=True)]
            self._prices = between
            if not self._add(between) and not self._add(shares.prices):
                return shares
        return shares

    def _add(self, prices: Sequence[float]) -> bool:
        """Add a cheapest tree for each kind of root; whether one of them is new."""
        even = _LONG / len(self.rooms)
        per_arc = [even] * len(self.orbits.arcs)
        for arc, orbit in enumerate(self.orbits.arcs):
            if orbit in self.rooms:
                number, part = self.rooms[orbit]
                per_arc[arc] = (prices[number] + even) * float(part)
        new = False
        for kind, (root, count) in enumerate(self.kinds):
            new |= self._keep(kind, count, self.search.tree(root, per_arc))
        return new

    def _keep(self, kind: int, count: int, ways: Ways) -> bool:
        loads: dict[int, Fraction] = defaultdict(Fraction)
        for way in ways:
            for arc in way:
                if (orbit := self.orbits.arcs[arc]) in self.rooms:
                    number, part = self.rooms[orbit]
                    loads[number] += part * count
        key = (kind, frozenset(loads.items()))
        if key in self._known:
            return False
        self._known.add(key)
        self.trees.append(_Tree(kind, ways, dict(loads)))
        return True

    # From floats to fractions.

    def exact(self, shares: PackingShares) -> PackedForest:
        """Weights as fractions: of the least time, where some are found; else nearly so."""
        for weights in self._candidates(shares):
            if self._load(weights) <= 1:
                return self._forest(weights)
        return self._forest(self._rounded(shares.weights, _FINEST))

    def _candidates(self, shares: PackingShares) -> Iterator[dict[int, Fraction]]:
        for finest in _DENOMINATORS:
            yield self._rounded(shares.weights, finest)
        yield self._solved(shares)

    def _rounded(self, weights: Sequence[float], finest: int) -> dict[int, Fraction]:
        """Near fractions, made 1 in all for each kind."""
        near = [Fraction(weight).limit_denominator(finest) for weight in weights]
        sums: dict[int, Fraction] = defaultdict(Fraction)
        for tree, weight in zip(self.trees, near, strict=True):
            sums[tree.kind] += weight
        if any(sums[kind] == 0 for kind in range(len(self.kinds))):
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
        whole = all(sums[kind] == 1 for kind in range(len(self.kinds)))
        if not whole or min(weights.values()) < 0:
            return Fraction(len(self.trees) + 10**9)
        return max(loads.values())

    def _solved(self, shares: PackingShares) -> dict[int, Fraction]:
        """The weights at which all arcs that take the whole time do so exactly."""
        used = [n for n, weight in enumerate(shares.weights) if weight > _NEAR]
        loads: dict[int, float] = defaultdict(float)
        rows: dict[int, dict[int, Fraction]] = defaultdict(dict)
        for n in used:
            for k, load in self.trees[n].loads.items():
                loads[k] += float(load) * shares.weights[n]
                rows[k][n] = load
        equations = [
            ({n: Fraction(1) for n in used if self.trees[n].kind == kind}, Fraction(1))
            for kind in range(len(self.kinds))
        ]
        equations += [(rows[k], Fraction(1)) for k in sorted(rows) if loads[k] > 1 - 1e-7]
        start = {n: Fraction(shares.weights[n]).limit_denominator(1000) for n in used}
        return _solution(equations, start)

    def _forest(self, weights: Mapping[int, Fraction]) -> PackedForest:
        trees = tuple(
            WeightedTree(self.kinds[self.trees[n].kind][0], weight, self.trees[n].ways)
            for n, weight in sorted(weights.items())
            if weight
        )
        return PackedForest(trees, self._load(weights) * self.least)


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


def packed(ground: ForestGround, least: Fraction, limits: SearchLimits) -> PackedForest | None:
    """A forest of the least time, or as near as was found; None: the time came before any."""
    packing = ForestPacking(ground, least)
    shares = packing.grow(limits)
    return None if shares is None else packing.exact(shares)
