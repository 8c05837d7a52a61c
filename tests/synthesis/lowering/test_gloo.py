"""Lowered schedules on eight real processes over Gloo: exact on integers."""

from __future__ import annotations

import pytest

from p2smt.fabric.fabric_file import load_fabric
from p2smt.problems.schedule import SumSchedule
from p2smt.runtime.payload import DataType, RunOptions
from p2smt.runtime.ranks.run_schedule import run_schedule
from p2smt.runtime.schedules.schedule_job import schedule_job
from p2smt.synthesis.lowering import lowered
from tests.synthesis.lowering.copies import solved
from tests.synthesis.lowering.sums import edges_of, ring_all_reduce
from tests.tiers import but_the_first

CASES = but_the_first(
    ("ring:8", "allreduce", 8, ()),
    ("dgx1", "allgather", 2, (2, 3, 2)),
    ("dgx1", "reduce_scatter", 2, (2, 3, 2)),
    ("dgx1", "alltoall", 1, (2, 4, 1)),
    ("cube:3", "reduce", 3, (3, 4, 3)),
)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]} on {case[0]}")
def test_eight_ranks(case: tuple[str, str, int, tuple[int, int, int] | tuple[()]]) -> None:
    name, collective, chunks, point = case
    edges = edges_of(load_fabric(name))
    sums: SumSchedule = solved(name, collective, point) if point else ring_all_reduce(edges, 8)
    schedule = lowered(
        sums, edges=edges, ranks=8, collective=collective, chunks=chunks, name=collective
    )
    options = RunOptions(time_limit_s=600.0, repeat=1, data_type=DataType.INT64)
    result = run_schedule(schedule_job(schedule, 8192), options)
    assert result is not None
    assert result.errors == ()
    assert (result.verified, result.verdict) == (True, "valid")
