"""What near-optimal strategies have in common, and the measured one that is nearest."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from p2smt.training.search.answer import StrategyRun
from p2smt.training.search.known import FAR, distance, nearest, outside
from p2smt.training.search.plan import common, differing
from p2smt.training.strategy import Recompute, Strategy

ONE = Strategy(tp=8, pp=2, dp=32, vpp=4, micro_batch=1, sequence_parallel=True, zero=1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 0.0),
        ({"tp": 4}, 1.0),
        ({"tp": 1, "pp": 32}, 5.0),
        ({"zero": 3}, 1.0),
        ({"recompute": Recompute.FULL, "dp": 64, "cp": 2, "sequence_parallel": False}, 2.0),
    ],
)
def test_distances_count_doublings_and_switches(change: dict[str, Any], expected: float) -> None:
    other = replace(ONE, **change)
    assert math.isclose(distance(ONE, other), expected)
    assert distance(other, ONE) == distance(ONE, other)


def test_the_nearest_pair_is_found() -> None:
    members = [ONE, replace(ONE, tp=4), replace(ONE, zero=0)]
    runs = [StrategyRun("far", replace(ONE, tp=1)), StrategyRun("near", replace(ONE, tp=2))]
    assert nearest(members, runs) == (1, 1, 1.0)
    assert nearest([ONE], [StrategyRun("same", ONE)] * 2) == (0, 0, 0.0)


def test_common_fields_and_the_others() -> None:
    members = [ONE, replace(ONE, vpp=10, recompute=Recompute.FULL), replace(ONE, vpp=2)]
    assert dict(common(members)) == {
        "tp": "8", "pp": "2", "dp": "32", "cp": "1", "micro_batch": "1",
        "sequence_parallel": "yes", "zero": "1",
    }  # fmt: skip
    assert dict(differing(members)) == {"vpp": ("2", "4", "10"), "recompute": ("full", "none")}


def test_what_lies_outside_is_said_by_field() -> None:
    runs = [StrategyRun("a", replace(ONE, tp=2, zero=0)), StrategyRun("b", replace(ONE, pp=8))]
    assert outside(replace(ONE, tp=4, zero=0), runs) == ()
    assert outside(replace(ONE, tp=16, zero=2), runs) == (
        "tp=16: measured are 2 to 8",
        "zero=2: measured are 0, 1",
        "nothing near it was measured: b is 2.4 away",
    )
    assert outside(ONE, ()) == ()
    odd = outside(replace(ONE, pp=8, micro_batch=2, sequence_parallel=False), runs)
    assert odd == ("mbs=2: measured are 1 only", "sp=no: measured is yes")


def test_what_is_far_from_every_run_is_outside_though_each_field_is_inside() -> None:
    runs = [
        StrategyRun("wide", replace(ONE, tp=1, pp=1, dp=512)),
        StrategyRun("deep", replace(ONE, tp=8, pp=64, dp=1)),
    ]
    between = replace(ONE, tp=8, pp=1, dp=64)
    assert outside(between, runs) == ("nothing near it was measured: wide is 4.2 away",)
    assert outside(replace(between, tp=1, pp=1, dp=512), runs) == ()
    assert FAR == 2.0
    assert outside(replace(ONE, tp=2), [StrategyRun("at 2", replace(ONE, tp=2, zero=1))]) == ()
