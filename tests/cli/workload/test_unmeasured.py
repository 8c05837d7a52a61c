"""Calibrations that measured some collectives: what a plan rests on besides is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import H100, SMALL, TINY, cli
from tests.schemas.tools import complaints

TABLES = Path(__file__).resolve().parents[2] / "interop" / "nccl_tests" / "nccl_tables"
TRAINED = ("-m", "small.yaml", "--global-batch", "16", "--seq", "1024", "-t", "ours.yaml")
SENT = ("all-gather", "reduce-scatter")


def calibrated(*operations: str) -> str:
    """A cluster by a calibration of these."""
    lines = [
        f"  - {{level: {level}, operation: {one}, least: 1 B, error: 0.1, basis: in sample}}\n"
        for level in ("node", "gpu")
        for one in operations
    ]
    return TINY + H100 + "errors:\n" + "".join(lines)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("measured", "missing"),
    [(("all-reduce",), SENT), (("all-reduce", "all-gather"), SENT[1:]), (SENT, ()), ((), ())],
)
@pytest.mark.parametrize("command", ["plan", "estimate"])
def test_what_the_calibration_did_not_measure_is_said(
    command: str, measured: tuple[str, ...], missing: tuple[str, ...], folder: Path
) -> None:
    text = calibrated(*measured) if measured else TINY + H100
    (folder / "ours.yaml").write_text(text)
    strategy = ("-s", "tp=2,sp=1,zero=1") if command == "estimate" else ()
    fixed = [word for one in ("tp=2", "sp=1", "zero=1", "pp=1") for word in ("--fix", one)]
    words = (*TRAINED, *(strategy or fixed), *(() if strategy else ("--max-cp", "1")))
    done = cli(command, *words, "--json")
    assert done.code == 0, done
    assert complaints("plan-training" if command == "plan" else command, done.json()) == []
    assert tuple(done.json().get("unmeasured", ())) == missing
    shown = " ".join(cli(command, *words).out.split())
    assert ("unmeasured: the calibration is of" in shown) == bool(missing)
    if missing:
        assert f"rests on {', '.join(missing)}, unmeasured" in shown


@pytest.mark.parametrize(
    ("table", "alone"),
    [("mi300x-1n8g-allreduce.txt", True), ("b200-vultr-1n8g-allgather.txt", False)],
)
def test_a_calibration_by_all_reduce_alone_says_so(table: str, alone: bool) -> None:
    words = ("calibrate", "--from-nccl-tests", str(TABLES / table), "--topology")
    preset = "mi300x:1" if table.startswith("mi300x") else "dgx-b200:1"
    done = cli(*words, preset)
    assert done.code == 0, done
    assert ("all-reduce alone was measured: a plan also rests on" in done.out) == alone
    data = cli(*words, preset, "--json").json()
    assert complaints("calibrate", data) == []
    assert ("all-gather" in data.get("unmeasured", ())) == alone
