"""Verification of schedules: of a few thousand steps, and how the time grows with their number."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from p2smt.schedules.classics import classic
from p2smt.schedules.verify.report import Verdict
from p2smt.schedules.verify.verify import verify


def test_verify_eight_ranks(benchmark: BenchmarkFixture) -> None:
    """A ring all-reduce in 16 channels, 3,584 steps."""
    schedule = classic("ring-all-reduce", 8, channels=16)
    report = benchmark.pedantic(verify, (schedule,), rounds=3)
    assert (report.verdict, len(schedule.steps)) == (Verdict.VALID, 3584)


@pytest.mark.parametrize(("channels", "steps"), [(1, 16_128), (2, 32_256), (6, 96_768)])
def test_verify_64_ranks(benchmark: BenchmarkFixture, channels: int, steps: int) -> None:
    """A ring all-reduce in so many channels."""
    schedule = classic("ring-all-reduce", 64, channels=channels)
    report = benchmark.pedantic(verify, (schedule,), rounds=1)
    assert (report.verdict, len(schedule.steps)) == (Verdict.VALID, steps)


def test_verify_accesses_of_many_blocks(benchmark: BenchmarkFixture) -> None:
    """Two-shot all-pairs on 64 ranks: 127 thread blocks per rank share its chunks."""
    schedule = classic("two-shot-all-reduce", 64)
    report = benchmark.pedantic(verify, (schedule,), rounds=1)
    assert (report.verdict, len(schedule.steps)) == (Verdict.VALID, 16_128)
