"""Trees of few messages from their root: against all trees of small networks, and in forests."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.result import SearchLimits
from p2smt.schedules.verify.report import Verdict
from p2smt.synthesis.certificate.certificate import BoundedCollective
from p2smt.synthesis.certificate.forest import ForestClaim, TreeNetwork, check_forest
from p2smt.synthesis.forests.cheapest import LowTreeSearch, TreeSearch
from p2smt.synthesis.forests.pieces import in_pieces
from p2smt.synthesis.forests.throughput import throughput
from tests.refusals import refusal
from tests.synthesis.forests.adding_up import assert_spans, greatest_load
from tests.synthesis.forests.test_rate import ground

OWN = BoundedCollective
PRICES = st.integers(1, 9)


def complete(ranks: int) -> TreeNetwork:
    """Every rank has an arc to every other."""
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    arcs = tuple((a, b, Fraction(1)) for a, b in pairs)
    return TreeNetwork("all", ranks, False, (), tuple(map(str, range(ranks))), arcs)


def depths(before: dict[int, int]) -> list[int]:
    """Of each rank how many messages it is from rank 0; too many where it is in a circle."""

    def depth(rank: int) -> int:
        steps = 0
        while rank and steps <= len(before):
            rank, steps = before[rank], steps + 1
        return steps

    return [depth(rank) for rank in before]


def least(net: TreeNetwork, prices: list[int], height: int) -> int:
    """The price of the cheapest of all trees from rank 0 that are no higher."""
    cost = {(a, b): price for (a, b, _), price in zip(net.arcs, prices, strict=True)}
    found = []
    for chosen in product(range(net.ranks), repeat=net.ranks - 1):
        before = dict(enumerate(chosen, start=1))
        if all(a != b for b, a in before.items()) and max(depths(before)) <= height:
            found.append(sum(cost[a, b] for b, a in before.items()))
    return min(found)


def bought(net: TreeNetwork, prices: list[int], height: int) -> int:
    """The price of the tree that is found, which is one and low enough."""
    ways = LowTreeSearch(net, height=height).tree(0, prices)
    arcs = [net.arcs[arc] for (arc,) in ways]
    before = {head: tail for tail, head, _ in arcs}
    assert sorted(before) == list(range(1, net.ranks))
    assert max(depths(before)) <= height
    return sum(prices[arc] for (arc,) in ways)


@given(st.lists(PRICES, min_size=20, max_size=20), st.integers(1, 4))
def test_trees_are_low_and_not_dear(prices: list[int], height: int) -> None:
    net = complete(5)
    found, best = bought(net, prices, height), least(net, prices, height)
    assert best <= found <= 2 * best
    if height == 1:
        assert found == best
    if height == 4:
        ways = TreeSearch(net).tree(0, prices)
        assert sum(prices[arc] for (arc,) in ways) == best


@pytest.mark.parametrize(
    ("fabric", "collective", "height"),
    [
        ("dgx1", OWN.ALL_GATHER, 2),
        ("mi250", OWN.ALL_GATHER, 6),
        ("dgx-a100:2", OWN.ALL_REDUCE, 2),
        ("ring:6", OWN.ALL_REDUCE, 3),
        ("torus:4x4", OWN.REDUCE_SCATTER, 4),
        ("dgx1", OWN.BROADCAST, 6),
    ],
)
def test_low_trees_are_as_fast_as_any(
    fabric: str, collective: BoundedCollective, height: int
) -> None:
    where = ground(fabric, collective)
    found = throughput(where, collective, SearchLimits(), height)
    assert found is not None
    assert found.claim.optimal
    assert not check_forest(found.claim).faults
    assert_spans(found.claim)
    assert greatest_load(found.claim) <= found.claim.time
    assert highest(found.claim) <= height


def highest(claim: ForestClaim) -> int:
    """How many messages the farthest rank is from the root of its tree."""
    arcs, found = claim.network.arcs, 0
    for tree, turned in [*((t, False) for t in claim.copying), *((t, True) for t in claim.adding)]:
        before = {}
        for way in tree.ways:
            (first, _, _), (_, last, _) = arcs[way[0]], arcs[way[-1]]
            if turned:
                (_, first, _), (last, _, _) = arcs[way[0]], arcs[way[-1]]
            before[last] = first
        for rank in before:
            steps = 0
            while rank != tree.root:
                rank, steps = before[rank], steps + 1
            found = max(found, steps)
    return found


def test_a_low_forest_is_no_faster_and_is_made_a_schedule() -> None:
    """On a ring of five with one link gone, a line, the ends are four messages apart."""
    where = ground("ring:5", without="link 0-4")
    found = throughput(where, OWN.ALL_GATHER, SearchLimits(), 4)
    assert found is not None
    assert found.claim.optimal
    made = in_pieces(where, found, 2, SearchLimits())
    assert made is not None
    assert made.report.verdict is Verdict.VALID


def test_a_gap_is_told_where_low_trees_are_slower() -> None:
    low, any_height = (
        throughput(ground("dgx1", OWN.BROADCAST), OWN.BROADCAST, SearchLimits(), height)
        for height in (2, None)
    )
    assert low is not None
    assert any_height is not None
    assert highest(low.claim) == 2 < highest(any_height.claim)
    assert any_height.claim.time == any_height.claim.bound == low.claim.bound
    assert low.claim.time == 3 * low.claim.bound, "what docs/synthesis.md says"


@pytest.mark.parametrize("fabric", ["dgx1", "mi250"])
def test_higher_trees_are_no_slower(fabric: str) -> None:
    """Forests of a height are among those of the next, and searches are begun with them."""
    where = ground(fabric, OWN.BROADCAST)
    found = [throughput(where, OWN.BROADCAST, SearchLimits(), height) for height in range(4, 9)]
    times = [one.claim.time for one in found if one is not None]
    assert len(times) == len(found)
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]


def test_ranks_that_are_further_away_are_named() -> None:
    """All-gathers need it of every rank, an all-reduce of one: the middle of a line of five."""
    line = ground("ring:5", without="link 0-4")
    text = refusal(throughput, line, OWN.ALL_GATHER, SearchLimits(), 2)
    assert text == "trees of height 2: rank 0 needs 4 to reach all ranks; allow 4 or more"
    text = refusal(throughput, line, OWN.ALL_REDUCE, SearchLimits(), 1)
    assert text == "trees of height 1: rank 2 needs 2 to reach all ranks; allow 2 or more"
    found = throughput(line, OWN.ALL_REDUCE, SearchLimits(), 2)
    assert found is not None
    assert {tree.root for tree in found.claim.copying} == {2}
