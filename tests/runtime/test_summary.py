"""What the reports of all ranks say together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.collectives.names import Collective
from p2smt.runtime.job import Job, JobRequest, JobStep
from p2smt.runtime.payload import RankReport, RequestRun, named, report_of
from p2smt.runtime.summary import RunResult, Times, summarize
from tests.runtime.tools import ALL, request

STEP = JobStep("all-reduce", Collective.ALL_REDUCE, ((0, 1), (2, 3)))
ASKED = request(ALL, [STEP, STEP], ((0, 1), (2, 3)), name="all-reduce dp")


def joined(*runs: RequestRun, asked: JobRequest = ASKED) -> RunResult:
    reports = [RankReport(rank, [run], {"host": f"h{rank}"}) for rank, run in enumerate(runs)]
    return summarize(Job(4, (asked,)), reports)


def timed(total: list[float], baseline: list[float]) -> RequestRun:
    return RequestRun(total_s=total, baseline_s=baseline, steps_s=[total, baseline], checked=True)


def test_times_are_of_the_slowest_rank() -> None:
    runs = [timed([1, 5, 2], [4, 4, 4]), timed([2, 4, 9], [4, 8, 4])] * 2
    result = joined(*runs)
    (found,) = result.requests
    assert found.total.samples == (2, 5, 9)
    assert (found.total.median_s, found.baseline.median_s) == (5, 4)
    assert found.speedup == pytest.approx(0.8)
    assert [step.samples for step in found.steps] == [(2, 5, 9), (4, 8, 4)]
    assert (result.total_s, result.baseline_s) == (5, 4)
    assert [machine["host"] for machine in result.machines] == ["h0", "h1", "h2", "h3"]


def test_an_iteration_needs_requests_several_times() -> None:
    runs = [timed([2.0], [6.0])] * 4
    result = joined(*runs, asked=replace(ASKED, times=10))
    assert (result.total_s, result.baseline_s) == (20, 60)


def test_without_times() -> None:
    (found,) = joined(*[RequestRun()] * 4).requests
    assert (found.total.median_s, found.total.spread_s, found.speedup) == (None, None, None)
    assert joined(*[RequestRun()] * 4).total_s is None
    assert [step.samples for step in found.steps] == [(), ()]


def test_spread_is_the_interquartile_range() -> None:
    assert Times((1, 2, 3, 4, 5)).spread_s == 2
    assert Times((1,)).spread_s is None


def test_one_wrong_rank_is_enough() -> None:
    runs = [RequestRun(), RequestRun(errors=["b", "a"]), RequestRun(errors=["a"]), RequestRun()]
    result = joined(*runs)
    assert not result.verified
    assert result.requests[0].errors == ("b", "a")


def test_what_was_not_compared_is_not_verified() -> None:
    good = RequestRun(checked=True)
    assert joined(good, good, good, good).verified
    assert not joined(good, good, RequestRun(), good).verified


def test_digests_of_a_group_must_agree() -> None:
    same = [RequestRun(digest=d, random_digest=d, checked=True) for d in ("x", "x", "y", "y")]
    assert joined(*same).verified
    assert joined(*same).requests[0].replicas_agree is True
    differ = [RequestRun(digest=d, random_digest="r") for d in ("x", "x", "y", "x")]
    result = joined(*differ)
    assert result.requests[0].errors == (
        "all-reduce dp: rank 3: its result is not the same as rank 2's (hashes differ)",
    )
    assert result.requests[0].replicas_agree is True


def test_random_digests_are_told_apart_from_errors() -> None:
    runs = [RequestRun(digest="x", random_digest=r, checked=True) for r in ("a", "b", "a", "a")]
    result = joined(*runs)
    assert result.verified
    assert result.requests[0].replicas_agree is False
    assert joined(*[RequestRun()] * 4).requests[0].replicas_agree is None


def test_reports_survive_json() -> None:
    run = RequestRun(["e"], "d", "r", True, [1.0], [2.0], [[3.0]])
    data: dict[str, object] = {
        "rank": 2,
        "requests": [
            {name: getattr(run, name) for name in RequestRun.__slots__},
        ],
        "machine": {"host": "h"},
    }
    assert report_of(data) == RankReport(2, [run], {"host": "h"})


def test_names_of_ranks() -> None:
    assert (named([3]), named([1, 2])) == ("rank 3", "ranks 1, 2")
    assert named(range(20)).endswith("15, ..")
