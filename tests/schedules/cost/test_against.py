"""Schedules beside the library's own choice: what prices are made of, and where one overtakes."""

from __future__ import annotations

import pytest

import p2smt
from p2smt.cluster.file import load_topology
from p2smt.cluster.library.registry import newest_version
from p2smt.errors import InputError
from p2smt.schedules.classics import classic
from p2smt.schedules.cost.against import (
    CLOSE,
    LibraryPrices,
    TimedCurve,
    TimedWay,
    fastest_runs,
    step_s,
)
from p2smt.schedules.cost.predict import schedule_cost

MIB = 2**20


def test_a_schedule_costs_its_best_protocol_and_a_call() -> None:
    """A ring in a node of eight: the least of three protocols, and what the library's price has."""
    topology = load_topology("dgx-a100:1")
    prices = LibraryPrices(topology, "allreduce")
    ring = classic("ring-all-reduce", 8)
    for payload in (1024, 64 * MIB):
        every = {
            name: schedule_cost(ring, topology, payload, protocol=name).time_s
            for name in ("ll", "ll128", "simple")
        }
        found = prices.of(ring, payload)
        assert every[found.way] == min(every.values())
        assert found.seconds == pytest.approx(min(every.values()) + prices.call_s(payload))
    assert prices.of(ring, 1024).way != prices.of(ring, 64 * MIB).way


@pytest.mark.parametrize("payload", [1024, MIB, 64 * MIB])
def test_the_librarys_own_is_that_of_the_cost_model(payload: int) -> None:
    topology = load_topology("dgx-a100:2")
    problem = p2smt.Problem(topology, p2smt.parse_axes("r=16"), (p2smt.reduce(f"r={payload}B"),))
    placement = p2smt.Placement(((2, 8),))
    (answer,) = p2smt.cost_of(problem, placement).requests
    own = LibraryPrices(topology, "allreduce").own(payload)
    assert own is not None
    assert own.seconds == answer.seconds
    call_s = answer.steps[0].call_s
    assert 0 < call_s == LibraryPrices(topology, "allreduce").call_s(payload)


def test_what_no_library_runs_has_no_price_of_it() -> None:
    bare, known = (load_topology("dgx-a100:1").under(name) for name in ("none", "nccl-2.30"))
    assert LibraryPrices(bare, "allreduce").name is None
    assert LibraryPrices(bare, "allreduce").own(MIB) is None
    assert LibraryPrices(known, "scatter").name is None
    assert LibraryPrices(known, "scatter").call_s(MIB) == 0
    ring = classic("ring-all-reduce", 8)
    assert LibraryPrices(bare, "allreduce").of(ring, MIB).seconds > 0


def test_other_ranks_than_devices_are_refused() -> None:
    with pytest.raises(InputError, match="must have as many as"):
        LibraryPrices(load_topology("dgx-a100:2"), "allreduce").of(
            classic("ring-all-reduce", 8), MIB
        )


def test_a_step_costs_the_slowest_level_that_joins_anything() -> None:
    one, two = (step_s(load_topology(f"dgx-a100:{n}")) for n in (1, 2))
    assert 0 < one < two


@pytest.mark.parametrize(
    ("name", "newest"),
    [
        ("nccl-2.12", "nccl-2.30"),
        ("nccl-2.30", "nccl-2.30"),
        ("openmpi-4", "openmpi-5"),
        ("gloo", "gloo"),
        ("mine-1", "mine-1"),
    ],
)
def test_the_newest_version_of_a_library(name: str, newest: str) -> None:
    assert newest_version(name) == newest


def line(name: str, at_zero: int, slope: int) -> TimedCurve:
    return TimedCurve(name, lambda n: TimedWay(at_zero + slope * n, ""))


@pytest.mark.parametrize("crossing", [3, 70, 128, 5000, 99_999])
def test_where_one_overtakes_is_found_between_payloads(crossing: int) -> None:
    """At ``crossing`` both are equal: the second is the faster beyond it, found to 2 %."""
    curves = [line("steep", 0, 2), line("flat", crossing, 1)]
    payloads = [2**n for n in range(18)]
    (first, then) = fastest_runs(curves, payloads)
    assert (first.curve, first.low, then.curve) == (0, 1, 1)
    assert crossing < then.low <= max(crossing + 1, CLOSE * crossing)


def test_one_that_is_always_faster_runs_alone() -> None:
    curves = [line("slow", 10, 2), line("fast", 9, 1)]
    assert [one.curve for one in fastest_runs(curves, [1, 8, 64])] == [1]
