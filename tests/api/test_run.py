"""Runs, exports, runtimes and topology files from Python, as the commands give them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import p2smt
from tests.calibration.fixtures import INSIDE, TRUTH, made_samples, printed

REFERENCE = p2smt.RunOptions(backend="reference", repeat=1)


@pytest.fixture
def read(tmp_path: Path, plan: dict[str, Any]) -> Any:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    return p2smt.read_plan(path)


def test_a_plan_is_run_with_its_changes(read: Any) -> None:
    found = p2smt.run(read, REFERENCE, payload_bytes=2**10)
    assert found is not None
    assert found.verified
    assert {result.request.payload_bytes for result in found.requests} == {2**10}
    assert len(found.requests) == len(read.requests)


def test_a_schedule_is_verified_and_run() -> None:
    ring = p2smt.classic("ring-all-reduce", 4)
    found = p2smt.run(ring, REFERENCE, fifo_depth=2)
    assert found is not None
    assert (found.verdict, found.verified, found.job.fifo_depth) == ("valid", True, 2)


def test_a_wrong_program_is_run_and_not_verified() -> None:
    cluster, axes = p2smt.load_topology("dgx-a100:2"), p2smt.parse_axes("dp=4,tp=4")
    problem = p2smt.Problem(cluster, axes, (p2smt.reduce("dp=4KiB"),))
    placement = p2smt.Placement(((2, 2), (1, 4)))
    wrong = ["all-reduce inside node; all-reduce inside root"]
    right, other = (
        p2smt.run_programs(problem, placement, programs, REFERENCE) for programs in ((), wrong)
    )
    assert right is not None
    assert other is not None
    assert (right.verified, other.verified) == (True, False)


def test_arguments_of_the_other_kind_of_work_are_refused(read: Any) -> None:
    ring: Any = p2smt.classic("ring-all-reduce", 4)
    with pytest.raises(p2smt.InputError, match="chunks: is not for a schedule"):
        p2smt.run(ring, REFERENCE, chunks=2)
    with pytest.raises(p2smt.InputError, match="fifo_depth: is not for a plan"):
        p2smt.run(read, REFERENCE, fifo_depth=2)


@pytest.mark.parametrize("end", ["xml", "json", "yaml"])
def test_exported_files_have_as_many_steps_as_is_said(tmp_path: Path, read: Any, end: str) -> None:
    made = p2smt.write_plan_schedules(read, tmp_path / f"out.{end}", request=1)
    assert made.files
    for file in made.files:
        assert len(p2smt.read_schedule(file.path).steps) == file.steps
    with pytest.raises(p2smt.InputError, match="request 0: the requests are 1 to 5"):
        p2smt.write_plan_schedules(read, tmp_path / f"out.{end}", request=0)


def test_a_schedule_is_judged_with_and_without_its_file(tmp_path: Path) -> None:
    long = p2smt.classic("chain-broadcast", 2, chunks=257)
    assert p2smt.runnable(long)
    assert not p2smt.runnable(long, "msccl")
    assert p2smt.runnable(p2smt.classic("chain-broadcast", 2, chunks=16), "msccl")
    p2smt.write_schedule(long, tmp_path / "long.xml", force=True)
    again = p2smt.read_schedule(tmp_path / "long.xml")
    assert not p2smt.runnable(again)
    with pytest.raises(p2smt.InputError, match="runtime 'nccl': is not known"):
        p2smt.runnable(long, "nccl")


def test_a_calibration_keeps_what_it_was_fitted_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = tuple(2**i for i in range(12, 33, 2))
    Path("run.txt").write_text(printed(made_samples(TRUTH, INSIDE, sizes=sizes), 8, 1))
    found = p2smt.calibrate(p2smt.read_measurements("run.txt"))
    p2smt.write_topology(found, "mine.yaml")
    text = Path("mine.yaml").read_text()
    assert text.startswith("# Fitted by p2smt calibrate on ")
    assert "# level gpu, all-reduce by " in text
    assert p2smt.load_topology("mine.yaml") == found.topology


def test_what_no_other_file_can_say_is_not_written(tmp_path: Path) -> None:
    ring = p2smt.classic("ring-all-reduce", 4)
    piped = replace(ring, warnings=("pipelines are checked for 3 units per chunk",))
    with pytest.raises(p2smt.InputError, match="no other file can express"):
        p2smt.write_schedule(piped, tmp_path / "out.yaml")
    assert not (tmp_path / "out.yaml").exists()
