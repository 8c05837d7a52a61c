"""Buckets: they keep to the cap and take no longer; against a count of every part by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest

from p2smt.errors import InputError
from p2smt.result import SearchLimits
from p2smt.transfer.buckets import BucketTimes, bucket_count, bucket_times
from p2smt.transfer.plan import TreePiece
from p2smt.transfer.ports import Port, PortMap
from p2smt.transfer.search import plan_moves
from tests.transfer.cases import cluster, random_case

PORTS = PortMap(cluster(16, 4), "nominal")


def pieces(seed: int) -> tuple[TreePiece, ...]:
    moves = random_case(seed, 8, 12, same=seed % 2 == 0).moves()
    return plan_moves(moves, PORTS, 2, SearchLimits()).pieces


def counted(plan: Sequence[TreePiece], count: int) -> BucketTimes:
    """The same, part by part."""
    staged, seconds = 0, Fraction(0)
    for bucket in range(count):
        loads, stages = Counter[Port](), Counter[int]()
        for piece in plan:
            size = piece.stop - piece.start
            payload = 2 * (size * (bucket + 1) // count - size * bucket // count)
            for edge in piece.edges:
                loads.update(dict.fromkeys(PORTS.message(*edge), payload))
            stages.update(dict.fromkeys({d for edge in piece.edges for d in edge}, payload))
        staged = max(staged, *stages.values())
        seconds += max(Fraction(load) / PORTS.rate(port) for port, load in loads.items())
    return BucketTimes(count, staged, seconds)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 2, 7])
def test_times_and_staging_are_those_of_every_part(seed: int, count: int) -> None:
    plan = pieces(seed)
    assert bucket_times(plan, PORTS, 2, count) == counted(plan, count)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("part", [2, 5, 20])
def test_the_cap_is_kept_and_costs_nothing_but_whole_elements(seed: int, part: int) -> None:
    plan = pieces(seed)
    whole = bucket_times(plan, PORTS, 2, 1)
    cap = whole.staging_bytes // part
    found = bucket_times(plan, PORTS, 2, bucket_count(plan, 2, cap))
    assert found.count >= part
    assert found.staging_bytes <= cap
    assert whole.bandwidth_s <= found.bandwidth_s <= whole.bandwidth_s * Fraction(11, 10)


def test_one_bucket_is_enough_under_a_large_cap() -> None:
    assert bucket_count(pieces(1), 2, 2**40) == 1


@pytest.mark.parametrize(("cap", "said"), [(1, "an element of each piece"), (200, "buckets")])
def test_a_cap_that_nothing_keeps_is_refused(cap: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        bucket_count([TreePiece(0, 0, 10**6, ((0, 1),))] * 3, 2, cap)


def test_no_pieces_take_no_time() -> None:
    assert bucket_times((), PORTS, 2, 1) == BucketTimes(1, 0, Fraction(0))
