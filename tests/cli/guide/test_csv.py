"""``--csv``: what ``--json`` has, as rows."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from p2smt.cli.app import command_named
from p2smt.cli.guide.commands import COMMANDS
from p2smt.cli.guide.csv_rows import ROWS, csv_text
from tests.cli.tools import H100, SMALL, TINY, assert_one_error, cli

ASKED = "-t t.yaml --axes dp=2,tp=4 --reduce dp=1MiB"
PLACED = f"{ASKED} --placement [[2,1],[1,4]]"
LINES = [
    (f"cost {PLACED}", "steps"),
    (f"cost {PLACED} --reduce tp=64KiB", "requests"),
    (f"cost {PLACED} --sizes 1MiB,64MiB", "sizes"),
    (f"solve {ASKED}", "alternatives"),
    (f"solve {ASKED} --within 500%", "near_optimal_placements"),
    (f"compare {ASKED} default", "orders"),
    ("placements -t t.yaml --axes dp=2,tp=4", "placements"),
    (f"programs {PLACED}", "programs"),
    ("crossings --factors 4,8 --bandwidth-ratio 1..16", "cells"),
    ("redistribute -t t.yaml --mesh tp=8 --shape 64,64 --from S(tp),R --to R,R", "steps"),
    ("run plan.json --backend reference", "steps"),
    ("synthesize --fabric ring:4 --collective all-gather --pareto", "points"),
    ("synthesize -t dgx1-v100:1 --fabric dgx1 --collective all-gather --size 1KiB", "sizes"),
    ("plan -m m.yaml -t h.yaml --global-batch 16 --seq 256", "top"),
    ("estimate -m m.yaml -t h.yaml --global-batch 16 --seq 256 -s dp=8", "requests"),
    ("models", "models"),
    ("classics", "classics"),
    ("schema", "schemas"),
    ("topology list", "presets"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clusters, a model and a plan, in the working folder."""
    (tmp_path / "t.yaml").write_text(TINY)
    (tmp_path / "h.yaml").write_text(TINY + H100)
    (tmp_path / "m.yaml").write_text("name: m\n" + SMALL)
    monkeypatch.chdir(tmp_path)
    assert cli("solve", *ASKED.split(), "-o", "plan.json").code == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "key"), LINES, ids=lambda one: str(one).split(" -", maxsplit=1)[0]
)
def test_the_rows_are_those_of_the_json(line: str, key: str) -> None:
    as_csv, as_json = cli(*line.split(), "--csv"), cli(*line.split(), "--json")
    assert as_csv.code == as_json.code == 0, as_csv.err
    rows, data = list(csv.DictReader(io.StringIO(as_csv.out))), as_json.json()[key]
    assert len(rows) == len(data) > 0
    for row, one in zip(rows, data, strict=True):
        told = one if isinstance(one, dict) else {key.removesuffix("s"): one}
        for name, value in told.items():
            if isinstance(value, str) or (value and isinstance(value, float)):
                assert name == "measured_s" or row[name] == str(value), name
            elif isinstance(value, dict) and value:
                assert {f"{name}.{inner}" for inner in value} <= {*row, *_tables(name, value)}


def _tables(name: str, value: dict[str, Any]) -> set[str]:
    """Keys inside a value that have no column: tables and what has parts of its own."""
    return {f"{name}.{key}" for key, one in value.items() if isinstance(one, dict | list)}


@pytest.mark.usefixtures("folder")
def test_two_answers_are_two_rows() -> None:
    rows = list(csv.DictReader(io.StringIO(cli("compare", "plan.json", "plan.json", "--csv").out)))
    assert [row["path"] for row in rows] == ["plan.json", "plan.json"]


def test_cells() -> None:
    row: dict[str, Any] = {
        "a": None,
        "b": [1, 2],
        "c": {"d": "x,y", "e": []},
        "f": [{"g": 1}],
        "h": True,
    }
    row["m"] = [[1, 2]]
    text = csv_text({"rows": [row, {"z": 1}], "none": None}, ("none", "rows"))
    assert list(csv.reader(io.StringIO(text))) == [
        ["a", "b", "c.d", "c.e", "h", "m", "z"],
        ["", "1 2", "x,y", "", "true", "[[1, 2]]", ""],
        ["", "", "", "", "", "", "1"],
    ]
    assert text.endswith("\r\n")
    assert csv_text({}, ("rows",)) == ""


@pytest.mark.usefixtures("folder")
def test_one_of_them_alone() -> None:
    both = cli("solve", *ASKED.split(), "--csv", "--json")
    assert both.code == 2
    assert "--csv and --json" in json.loads(both.out)["error"]["given"]
    assert_one_error(cli("verify", "plan.json", "--csv"))
    assert_one_error(cli("solve", "--csv"))


def test_who_has_a_table_has_the_option() -> None:
    for name in COMMANDS:
        options = {x for one in command_named(name).params for x in one.opts}
        assert ("--csv" in options) == (name in ROWS), name
