"""What near-optimal strategies have in common, and the measured one that is nearest."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.training.search.known import (
    FAR,
    distance,
    distances,
    ever_nearer,
    known,
    most_known,
    nearest,
    not_seen,
    outside,
)
from p2smt.training.search.plan import common, differing
from p2smt.training.search.plan_answer import StrategyRun
from p2smt.training.strategy import Recompute, Strategy, parse_strategy

ONE = Strategy(tp=8, pp=2, dp=32, vpp=4, micro_batch=1, sequence_parallel=True, zero=1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 0.0),
        ({"tp": 4}, 1.0),
        ({"tp": 1, "pp": 32}, 5.0),
        ({"zero": 3}, 1.0),
        ({"ep": 4, "etp": 2}, math.sqrt(5)),
        ({"modules": ("moe_act",)}, 1.0),
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dp=8,recompute=full:2", "recompute=full:2: measured is none"),
        ("dp=8,recompute=mlp+layernorm", "recompute=layernorm+mlp: measured is none"),
        ("dp=8,offload=0.5", "offload=0.5: measured is 0"),
        ("dp=8,optimizer_bytes=8", "optimizer_bytes=8: measured is 12"),
        ("dp=8,dropout=1", "dropout=yes: measured is no"),
    ],
)
def test_what_few_trainings_have_is_told_where_no_run_had_it(text: str, value: str) -> None:
    runs = [StrategyRun("plain", Strategy(dp=8))]
    assert [one.text for one in not_seen(parse_strategy(text), runs)] == [value]


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


SOME = st.builds(
    replace,
    st.just(ONE),
    tp=st.sampled_from([1, 2, 8]),
    pp=st.sampled_from([1, 4]),
    ep=st.sampled_from([1, 16]),
    micro_batch=st.sampled_from([1, 3]),
    zero=st.integers(0, 3),
    sequence_parallel=st.booleans(),
    modules=st.sampled_from([(), ("moe_act",), ("moe_act", "layernorm")]),
)
MANY = st.lists(SOME, min_size=1, max_size=8)


@given(MANY, MANY)
def test_distances_side_by_side_are_those_one_by_one(
    strategies: list[Strategy], ran: list[Strategy]
) -> None:
    runs = [StrategyRun(str(n), one) for n, one in enumerate(ran)]
    apart, at = distances(strategies, runs)
    for n, one in enumerate(strategies):
        each = [distance(one, run.strategy) for run in runs]
        assert math.isclose(apart[n], min(each), abs_tol=1e-8)
        assert math.isclose(each[at[n]], min(each), abs_tol=1e-8)
    for many in range(1, len(strategies) + 1):
        first, _, _ = nearest(strategies[:many], runs)
        most, run, far = most_known(strategies[:many], runs)
        assert {first, most} <= set(ever_nearer(strategies, runs))
        assert (run, far) == (at[most], apart[most])
        inside = [known(one, runs, {}, "h100").inside for one in strategies[:many]]
        rank = [(not known_, apart[n]) for n, known_ in enumerate(inside)]
        assert most == rank.index(min(rank))


def test_what_is_known_is_the_error_of_runs_that_are_like_it() -> None:
    names = ("m on 8 h100 (nemo, r1)", "m on 8 h100 (nemo, r2)", "m on 8 h100 (nemo, r3)")
    others = (ONE, replace(ONE, tp=4, zero=0), replace(ONE, tp=1, pp=64))
    runs = [StrategyRun(name, one) for name, one in zip(names, others, strict=True)]
    errors = {"r1": 0.02, "r2": -0.06, "r3": 5.0}
    found = known(ONE, runs, errors, "h100")
    assert (found.like, found.runs, found.off, found.apart) == (2, 3, 0.04, 0.0)
    assert (found.nearest, found.inside) == (runs[0], True)
    assert known(ONE, runs, {}, "h100").off is None
    odd = known(replace(ONE, zero=3), runs, errors, "h100")
    assert [one.text for one in odd.missing] == ["zero=3: measured are 0, 1"]
    assert (odd.like, odd.off, odd.inside) == (2, None, False)
    far = known(replace(ONE, dp=512, cp=1, vpp=1, pp=1), runs, errors, "h100")
    assert (far.like, far.off, far.inside) == (0, None, False)
    nothing = known(ONE, (), errors, "h100")
    assert (nothing.runs, nothing.nearest, nothing.inside) == (0, None, False)
