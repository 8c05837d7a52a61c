"""Payloads and forests from Python: the same as the commands say, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest

import p2smt
from p2smt.cluster.file import load_topology
from p2smt.errors import InputError
from p2smt.synthesis.certificate.forest import check_forest
from p2smt.synthesis.certificate.sizes import check_sizes

NODE = ("dgx1-v100:1", "all-gather")


def test_payloads_are_proved() -> None:
    found = p2smt.synthesize_by_size(*NODE, 2**10, 2**30, fabric="dgx1")
    assert found.proved
    assert [str(one.found.size) for one in found.pieces] == ["(2,3,2)", "(3,7,6)"]
    assert found.certificate is not None
    assert check_sizes(found.certificate).valid
    one = p2smt.synthesize_by_size(load_topology("dgx1-v100:1"), "broadcast", 2**10)
    assert (one.low, one.high) == (2**10, 2**10)


@pytest.mark.parametrize(
    ("ends", "fabric"), [((2**20, 2**10), "dgx1"), ((0, 4), "dgx1"), ((4, 8), "ring:4")]
)
def test_payloads_that_cannot_be(ends: tuple[int, int], fabric: str) -> None:
    with pytest.raises(InputError):
        p2smt.synthesize_by_size(*NODE, *ends, fabric=fabric)


def test_a_forest_with_failures_becomes_a_schedule() -> None:
    whole = p2smt.throughput_forest("dgx1", "all-gather")
    less = p2smt.throughput_forest("dgx1", "all-gather", without=["link 0-4"])
    assert whole is not None
    assert less is not None
    assert less.rate < whole.rate
    assert check_forest(less.claim).valid
    made = p2smt.forest_schedule(less, pieces=3)
    assert made is not None
    assert p2smt.verify(made.schedule).verdict.value == "valid"
    with pytest.raises(InputError):
        p2smt.forest_schedule(less, pieces=0)


def test_levels_and_their_fabric_have_one_rate() -> None:
    levels = p2smt.throughput_forest(load_topology("dgx-h100:2"), "reduce", root=3)
    edges = p2smt.throughput_forest("dgx-h100:2", "reduce", root=3)
    assert levels is not None
    assert edges is not None
    assert levels.rate == edges.rate > Fraction(0)
