"""`p2smt calibrate --runs`: efficiencies fitted to measured iterations, and bad runs files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from p2smt.training.efficiencies.file import read_efficiency
from p2smt.training.measured.fit import STEP
from tests.cli.tools import cli
from tests.training.measured.csv_rows import text_of

RUNS = Path(__file__).resolve().parents[3] / "experiments" / "training_runs" / "runs.csv"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The published runs of NeMo and of Megatron on H100."""
    with RUNS.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    group = header.index("group")
    path = tmp_path / "runs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [header, *(row for row in rows if row[group].startswith(("dgxc", "mlm24", "dsv3")))]
        )
    return path


def refusal(path: Path, text: str, *more: str) -> str:
    path.write_text(text, encoding="utf-8")
    done = cli("calibrate", "--runs", str(path), *more)
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    return done.err


@pytest.mark.exhaustive
def test_the_efficiency_that_ships_is_found_again(published: Path) -> None:
    done = cli("calibrate", "--runs", str(published), "--json")
    assert done.code == 0, done.err
    (found,) = done.json()["efficiencies"]
    shipped = read_efficiency("nemo-h100")
    assert found["name"] == shipped.name
    assert found["fraction"] == pytest.approx(shipped.fraction, abs=STEP / 2)
    assert found["mean_error"] == pytest.approx(shipped.error, abs=1e-3)
    assert found["mean_error"] < 0.04
    assert len(found["runs"]) == shipped.runs
    assert len(done.json()["not_counted"]) == 6
    assert [one["run"] for one in done.json()["refused"]] == ["r0150"]


@pytest.mark.exhaustive
def test_an_efficiency_is_written(published: Path, tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    done = cli("calibrate", "--runs", str(published), "-o", str(path))
    assert done.code == 0, done.err
    assert "nemo-h100" in done.out
    assert "6 runs whose strategy is not published in full" in done.out
    assert read_efficiency(str(path)).fraction == read_efficiency("nemo-h100").fraction


def test_bad_runs_files_are_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    whole = text_of({}, {"group": "k22-b"})
    assert "no column mbs" in refusal(path, whole.replace(",mbs,", ",batch,"))
    assert "more than 0" in refusal(path, text_of({}, {"group": "k22-b", "step_s": "0"}))
    assert "two groups or more" in refusal(path, text_of({}, {"layers": "8"}))
    single = refusal(path, text_of({"mbs": ""}, {"group": "k22-b"}))
    assert "one run that counts, of 1 group" in single
    assert "two groups or more" in single
    assert "line 2" in refusal(path, text_of({"tp": "x"}))
    assert "fp8" in refusal(path, text_of({"precision": "fp8"}, {"group": "k22-b"}))
    assert "none of the columns" in refusal(path, "")


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    two = text_of(*({"group": g, "step_s": "0.05"} for g in ("k22-a", "k22-b", "mpt-a", "mpt-b")))
    out = ("-o", str(tmp_path / "x.yaml"))
    assert "--efficiency" in refusal(path, two, *out)
    assert "did you mean" in refusal(path, two, "--efficiency", "fsdp-a10")
    assert "drop one" in refusal(path, two, "--topology", "dgx-a100:2")
    done = cli("calibrate", "--efficiency", "nemo-h100")
    assert done.code == 2
    assert "--runs" in done.err
    chosen = cli("calibrate", "--runs", str(path), "--efficiency", "fsdp-a100", *out, "--json")
    assert chosen.code == 0, chosen.err
    assert [one["name"] for one in chosen.json()["efficiencies"]] == ["fsdp-a100"]
    assert read_efficiency(out[1]).framework.name == "fsdp"
