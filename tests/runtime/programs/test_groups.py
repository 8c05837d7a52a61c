"""Process groups that some ranks have more of than others."""

from __future__ import annotations

import pytest

from p2smt.collectives.names import Collective
from p2smt.runtime.job import Groups, Job, JobRequest, JobStep
from p2smt.runtime.payload import RunOptions, in_short
from p2smt.runtime.ranks.on_ranks import launch
from p2smt.runtime.summary import summarize
from tests.runtime.tools import ALL, request

OVERLAPPING: tuple[Groups, ...] = (
    ((0, 2),),
    ((0, 1), (2, 3)),
    ((0, 1, 2),),
    ((1, 3), (0, 2)),
    ((1, 2, 3),),
    ((0, 1, 2, 3),),
)


def all_reduce(groups: Groups) -> JobRequest:
    return request(ALL, [JobStep("all-reduce", Collective.ALL_REDUCE, groups)], groups)


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_ranks_with_different_numbers_of_groups() -> None:
    """Members of a group must agree on its name, however many groups each is in."""
    job = Job(4, tuple(map(all_reduce, OVERLAPPING)))
    result = summarize(job, launch(job, RunOptions(repeat=1, time_limit_s=600)))
    assert [error for found in result.requests for error in found.errors] == []


def test_errors_in_short() -> None:
    nccl = "NCCL error in: x.cpp:9, invalid usage\n\nncclInvalidUsage: ..\nDuplicate GPU\n"
    assert in_short(RuntimeError(nccl)) == "NCCL error in: x.cpp:9, invalid usage; Duplicate GPU"
    assert in_short(RuntimeError("one line")) == "one line"
    assert in_short(RuntimeError()) == ""
