"""`p2smt calibrate --runs`: efficiencies fitted to measured iterations, and bad runs files."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2smt.training.efficiencies.efficiency_files import read_efficiency
from p2smt.training.measured.efficiency_fit import STEP
from p2smt.training.measured.prediction_errors import error_of_other_models, fit_error, rows_of
from tests.cli.tools import cli
from tests.schemas.tools import complaints
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
    done = cli("calibrate", "--runs", str(published), "-o", str(path), "--details")
    assert done.code == 0, done.err
    assert "nemo-h100" in done.out
    assert "6 runs whose strategy is not published in full" in done.out
    assert read_efficiency(str(path)).fraction == read_efficiency("nemo-h100").fraction


def test_bad_runs_files_are_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    whole = text_of({}, {"group": "k22-b"})
    assert "no column mbs" in refusal(path, whole.replace(",mbs,", ",batch,"))
    assert "more than 0" in refusal(path, text_of({}, {"group": "k22-b", "step_s": "0"}))
    assert "no run that counts" in refusal(path, text_of({"mbs": ""}))
    assert "line 2" in refusal(path, text_of({"tp": "x"}))
    assert "fp8" in refusal(path, text_of({"precision": "fp8"}, {"group": "k22-b"}))
    assert "none of the columns" in refusal(path, "")


def fitted(path: Path, text: str, *more: str) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8")
    done = cli("calibrate", "--runs", str(path), *more, "--json")
    assert done.code == 0, done
    assert complaints("calibrate-runs", done.json()) == []
    (found,) = done.json()["efficiencies"]
    assert isinstance(found, dict)
    return found


def some(*groups: tuple[str, int]) -> str:
    """The first published runs of groups, as a file."""
    header, *lines = RUNS.read_text(encoding="utf-8").splitlines()
    kept = [[one for one in lines if f",{name}," in one][:most] for name, most in groups]
    return "\n".join([header, *(line for mine in kept for line in mine), ""])


def test_of_one_group_runs_are_left_out_and_what_that_cannot_tell_is_said(tmp_path: Path) -> None:
    path, out = tmp_path / "runs.csv", tmp_path / "ours.yaml"
    found = fitted(path, some(("dgxc-8b", 3)), "-o", str(out))
    assert "of another model it says nothing" in found["cannot_tell"]
    assert len({one["left_out_fraction"] for one in found["runs"]}) > 1
    assert found["mean_error"] < error_of_other_models()
    written = read_efficiency(str(out))
    assert written.error == pytest.approx(error_of_other_models(), rel=1e-3)
    told = " ".join(out.read_text(encoding="utf-8").split())
    assert "of another model it says nothing" in told
    shown = cli("calibrate", "--runs", str(path))
    assert "of another model it says nothing" in " ".join(shown.out.split())
    assert "left out of the fit in turn" not in shown.out


def test_one_run_has_no_error_of_its_own(tmp_path: Path) -> None:
    found = fitted(tmp_path / "runs.csv", some(("dgxc-8b", 1)))
    assert "one run, of which nothing can be left out" in found["cannot_tell"]
    assert found["mean_error"] == found["max_error"] == pytest.approx(error_of_other_models())


def test_one_group_beside_others_is_fitted_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    groups = [("sc21t1-7.5B", 1), ("sc21t1-76B", 1), ("dgxc-8b", 1)]
    several = fitted(path, some(*groups))
    assert several["name"] == "megatron-a100"
    assert "cannot_tell" not in several
    alone = fitted(path, some(*groups), "--efficiency", "nemo-h100")
    assert alone["groups"] == ["dgxc-8b"]
    assert "cannot_tell" in alone


def test_a_fit_of_ones_own_has_not_the_errors_of_its_namesake() -> None:
    shipped = read_efficiency("nemo-h100")
    own = replace(shipped, fraction=0.5, runs=2, error=0.2)
    assert rows_of(shipped)
    assert rows_of(own) == ()
    assert fit_error(own, "h100").spread > fit_error(shipped, "h100").spread


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
