"""Several requests at once on four and five levels: one search, many tables."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import p2smt
from p2smt.parallelism.request import Problem
from p2smt.result import Status
from tests.strategies.clusters import switches

SPEEDS = {"dc": 5e9, "pod": 1.2e10, "rack": 2.5e10, "node": 5e10, "gpu": 3e11}


def cluster(*sizes: int) -> p2smt.Topology:
    """The innermost of these levels, as switches of the textbook."""
    names = list(SPEEDS)[-len(sizes) :]
    levels = [(name, size, SPEEDS[name]) for name, size in zip(names, sizes, strict=True)]
    return switches(*levels, latency_s=5e-6)


FOUR = Problem(
    cluster(8, 8, 8, 8),
    p2smt.parse_axes("pp=8,dp=8,cp=4,ep=2,tp=8"),
    (
        *map(p2smt.reduce, ("dp=1GiB", "tp=64MiB*128", "cp=32MiB*64", "ep=128MiB*16")),
        p2smt.all_gather("dp+cp=512MiB"),
        p2smt.reduce_scatter("dp=512MiB"),
    ),
)
FIVE = Problem(
    cluster(2, 4, 4, 8, 8),
    p2smt.parse_axes("pp=8,dp=16,cp=2,tp=8"),
    (
        *map(p2smt.reduce, ("dp=1GiB", "tp=64MiB*128", "cp=32MiB*64")),
        p2smt.all_gather("dp+cp=512MiB"),
    ),
)


@pytest.mark.parametrize(
    "problem", [pytest.param(FOUR, id="4096-on-4"), pytest.param(FIVE, id="2048-on-5")]
)
def test_many_requests(benchmark: BenchmarkFixture, problem: Problem) -> None:
    found = benchmark.pedantic(p2smt.solve, (problem,), rounds=2, warmup_rounds=1)
    assert found.status is Status.OPTIMAL
