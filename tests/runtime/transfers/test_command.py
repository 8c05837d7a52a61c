"""`p2smt run` with the plan of a transfer: what is printed, refused and found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p2smt.report.run_tables import transfer_run_lines
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.run_transfer import TransferRunResult
from p2smt.runtime.summary import Times
from tests.cli.tools import TINY, assert_one_error, cli
from tests.runtime.transfers.tools import interleaved, job_of
from tests.transfer.files import COLUMNS, ROWS

ASKED = ("transfer", "-t", "tiny.yaml", "--from", "rows.json", "--to", "columns.json")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows of four devices to columns of four others."""
    monkeypatch.chdir(tmp_path)
    for name, data in (("rows.json", ROWS), ("columns.json", COLUMNS)):
        Path(name).write_text(json.dumps(data))
    Path("tiny.yaml").write_text(TINY)
    assert cli(*ASKED, "--to-device-ids", "4-7", "--memory", "20B", "-o", "plan.json").code in (
        0,
        3,
    )
    return Path("plan.json")


def changed(plan: Path, **values: Any) -> str:
    plan.write_text(json.dumps(json.loads(plan.read_text()) | values))
    return str(plan)


def broken(plan: Path) -> str:
    """A piece is lost."""
    return changed(plan, pieces=json.loads(plan.read_text())["pieces"][1:])


def test_reference(plan: Path) -> None:
    done = cli("run", str(plan), "--backend", "reference", "--ranks", "8")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(
        "verified: 8 ranks, reference, 1 tensor\nfollowed all 64 values of 4 receivers\n"
    )
    assert "sent 128 B in 16 messages of 16 pieces" in done.out


def test_a_broken_plan_is_refused_first_and_found_by_who_runs_it(plan: Path) -> None:
    done = cli("run", broken(plan), "--backend", "reference")
    assert_one_error(done, 2)
    assert "is in no piece" in done.err
    assert "--unverified runs it all the same" in done.err
    done = cli("run", str(plan), "--backend", "reference", "--unverified")
    assert done.code == 1
    assert done.out.startswith("WRONG RESULT: 8 ranks, reference")
    assert "of tensor 'w' did not arrive" in done.out


@pytest.mark.parametrize(
    ("more", "block", "verdict"),
    [(0, 1, "verified"), (1, 1, "MORE STAGED THAN PLANNED"), (1, 512, "verified")],
)
def test_a_rank_that_stages_more_than_planned_is_not_right(
    more: int, block: int, verdict: str
) -> None:
    """Memory of a GPU is given out in blocks."""
    job = job_of(interleaved())
    result = TransferRunResult(
        job=job,
        errors=(),
        checked=True,
        float_checked=False,
        repetitions_checked=0,
        total=Times(()),
        staged_bytes=job.staging_bytes + more,
        block_bytes=block,
        machines=(),
    )
    assert result.verified == (verdict == "verified")
    assert next(transfer_run_lines(result, RunOptions())).startswith(f"{verdict}: ")


@pytest.mark.slow
@pytest.mark.cluster
def test_more_staged_than_planned_on_ranks(plan: Path) -> None:
    done = cli("run", changed(plan, staging_bytes=1), "--repeat", "0", "--unverified")
    assert done.code == 1
    assert done.out.startswith("MORE STAGED THAN PLANNED: 8 ranks, gloo")
    assert "at most on a rank, planned 1 B" in done.out


@pytest.mark.slow
@pytest.mark.cluster
def test_gloo(plan: Path) -> None:
    done = cli("run", str(plan), "--repeat", "2", "--json")
    assert (done.code, done.err) == (0, "")
    data = done.json()
    assert (data["verified"], data["repetitions_checked"], data["compared"]) == (True, 2, 64)
    assert data["staged_bytes"] == data["staging_bytes"] <= 20
    assert data["buckets"] > 1
    assert len(data["samples_s"]) == 2
    assert (data["messages"], data["sent_bytes"]) == (16, 128)


@pytest.mark.exhaustive
@pytest.mark.cluster
def test_a_broken_plan_on_ranks(plan: Path) -> None:
    done = cli("run", broken(plan), "--repeat", "0", "--unverified")
    assert done.code == 1
    assert "elements of tensor 'w' are wrong, the first at [" in done.out


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--dtype", "int64"), "takes none of them"),
        (("--payload", "1KiB"), "a transfer with --payload: takes none of them"),
        (("--pipeline", "2"), "takes none of them"),
        (("--topology", "dgx-a100"), "takes none of them"),
        (("--axes", "dp=4"), "takes none of them"),
        (("--ranks", "3"), "there are 8 devices; start as many"),
        (("--fifo-depth", "3"), "--fifo-depth"),
    ],
)
def test_options_of_others_are_refused(plan: Path, options: tuple[str, ...], rule: str) -> None:
    done = cli("run", str(plan), *options)
    assert_one_error(done, 2)
    assert rule in done.err


def test_more_than_there_is_memory_for_is_refused(plan: Path) -> None:
    """The same plan of a matrix that no machine holds."""
    data = json.loads(plan.read_text())
    (pattern,) = data["patterns"]
    pattern["shape"] = [2**24, 2**24]
    for side in ("before", "after"):
        for one in pattern[side]:
            one["box"] = [[end * 2**21 for end in ends] for ends in one["box"]]
    for piece in data["pieces"]:
        piece["start"], piece["stop"] = (end * 2**42 for end in (piece["start"], piece["stop"]))
    done = cli("run", changed(plan, **data), "--unverified")
    assert_one_error(done, 2)
    assert "1 tensor on 8 ranks: needs about" in done.err
    assert "plan a smaller model for this check" in done.err
