"""All kinds of work reach the ranks as they were, and their reports come back so."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import asdict

import pytest

from p2smt.runtime.job import Job
from p2smt.runtime.payload import DataType, RankReport, RequestRun, RunOptions, report_of
from p2smt.runtime.ranks.on_ranks import launch
from p2smt.runtime.schedules.schedule_job import schedule_job
from p2smt.runtime.work import NodeSetup, Work
from p2smt.schedules.classics import classic
from tests.interpreter import assert_silent
from tests.runtime.schedules.tools import ring
from tests.runtime.tools import ALL, BLUE, program_request
from tests.runtime.transfers.tools import interleaved, job_of
from tests.schedules.small_schedules import meeting, put
from tests.tiers import but_the_first

KINDS: dict[str, Work] = {
    "job": Job(4, (program_request(ALL, BLUE, (2, 2), 1000, chunks=2),)),
    "ring": schedule_job(ring(4), 6000, 2),
    "put": schedule_job(put()),
    "meeting": schedule_job(meeting()),
    "classic": schedule_job(classic("bruck-all-gather", 3)),
    "sent": job_of(interleaved()),
}
SAYS_WHAT_IT_READ = """
import pickle, sys
setup = pickle.load(sys.stdin.buffer)
assert "torch" not in sys.modules, "the launcher waits while torch is imported"
print(type(setup.work).__name__, setup.work.ranks)
"""


def _setup(work: Work) -> NodeSetup:
    options = RunOptions(data_type=DataType.BFLOAT16, timed=("program",))
    return NodeSetup(work, options, 2, 2, "127.0.0.1", 0)


@pytest.mark.parametrize("name", KINDS)
def test_a_setup_is_read_as_it_was_written(name: str) -> None:
    setup = _setup(KINDS[name])
    assert pickle.loads(pickle.dumps(setup)) == setup


@pytest.mark.parametrize(
    ("name", "read"), [("job", "Job 4"), ("ring", "ScheduleJob 4"), ("sent", "TransferJob 7")]
)
def test_a_setup_is_read_without_torch(name: str, read: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IT_READ],
        input=pickle.dumps(_setup(KINDS[name])),
        capture_output=True,
        check=False,
    )
    assert (found.returncode, found.stdout.decode().strip()) == (0, read), found.stderr.decode()


@pytest.mark.parametrize(
    "module", ["p2smt.runtime.job", "p2smt.runtime.work", "p2smt.runtime.ranks.on_ranks"]
)
def test_what_starts_ranks_does_not_load_torch(module: str) -> None:
    assert_silent(f"import sys, {module}; sys.exit('torch' in sys.modules)")


def test_a_report_is_read_as_it_was_written() -> None:
    run = RequestRun(["wrong"], "ab", "cd", True, [0.1, 1e-9], [0.3], [[0.1], [0.2]], True)
    for report in (RankReport(3, [run, RequestRun()], {"host": "here"}), RankReport(0, [], {})):
        assert report_of(json.loads(json.dumps(asdict(report)))) == report


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("name", but_the_first("ring", "job"))
def test_ranks_do_either_kind(name: str) -> None:
    reports = launch(KINDS[name], RunOptions(repeat=1, warmup=0, time_limit_s=600.0))
    assert [report.rank for report in reports] == list(range(4))
    for report in reports:
        (run,) = report.requests
        assert (run.checked, run.float_checked, run.errors) == (True, True, [])
        assert len(run.total_s) == 1
