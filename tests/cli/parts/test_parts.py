"""--processes, --engine, --journal and --budget: the same answers, and bad values in one line."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests.cli.tools import H100, RACKS, SMALL, TINY, Outcome, assert_one_error, cli

PLACEMENTS = ("placements", "--levels", "4,4", "--axes", "a=4,b=2,c=2")
REQUESTS = ("--axes", "dp=2,tp=4", "--reduce", "dp=1MiB", "--reduce", "tp=64KiB*9")
TRAINED = ("--global-batch", "16", "--seq", "256", "--max-pp", "2")
WAYS = [
    ("--engine", "in-process"),
    ("--engine", "in-process", "--budget", "1us"),
    ("--journal", "j.jsonl"),
    ("--processes", "2", "--workers", "1"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with a cluster and a model."""
    (tmp_path / "t.yaml").write_text(TINY + H100)
    (tmp_path / "m.yaml").write_text("name: m\n" + SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(outcome: Outcome, word: str) -> None:
    """Bad input, told in one line that has a word."""
    assert_one_error(outcome)
    assert word in outcome.err


@pytest.mark.parametrize("way", WAYS[:3])
def test_placements_are_the_same(here: Path, way: tuple[str, ...]) -> None:
    assert cli(*PLACEMENTS, *way) == cli(*PLACEMENTS)
    Path("j.jsonl").unlink(missing_ok=True)  # a search that goes on says so
    assert cli(*PLACEMENTS, *way, "--json") == cli(*PLACEMENTS, "--json")
    none = ("--require", "a within l1", "--forbid", "a within l1")
    found = cli(*PLACEMENTS, *none, "--engine", "in-process")
    assert found == cli(*PLACEMENTS, *none)
    assert "exclude each other" in found.out
    assert here


@pytest.mark.parametrize("way", WAYS)
def test_solve_writes_the_same_plan(here: Path, way: tuple[str, ...]) -> None:
    whole = cli("solve", "-t", "t.yaml", *REQUESTS, "-o", "whole.json")
    parts = cli("solve", "-t", "t.yaml", *REQUESTS, "-o", "parts.json", *way)
    assert (parts.code, parts.err) == (0, "")
    assert parts.out.replace("parts.json", "whole.json") == whole.out
    assert (here / "parts.json").read_bytes() == (here / "whole.json").read_bytes()


@pytest.mark.parametrize("way", WAYS[1:3])
def test_plan_writes_the_same_plan(here: Path, way: tuple[str, ...]) -> None:
    asked = ("plan", "-m", "m.yaml", "-t", "t.yaml", *TRAINED, "--prices", "programs")
    whole = cli(*asked, "-o", "whole.json")
    parts = cli(*asked, "-o", "parts.json", *way)
    assert (whole.code, parts.code, parts.err) == (0, 0, "")
    assert parts.out.replace("parts.json", "whole.json") == whole.out
    assert (here / "parts.json").read_bytes() == (here / "whole.json").read_bytes()


def test_a_journal_goes_on_and_verifies(here: Path) -> None:
    asked = ("solve", "-t", "t.yaml", *REQUESTS, "--journal", "j.jsonl", "--json")
    first = cli(*asked).json()
    lines = (here / "j.jsonl").read_text().splitlines(keepends=True)
    (here / "j.jsonl").write_text("".join(lines[:2]))
    again = cli(*asked).json()
    assert again["plan"] == first["plan"]
    records = [json.loads(line)["record"] for line in lines]
    assert records.count("header") == 1
    assert cli("verify", "j.jsonl", "--all").code == 0
    refused(cli(*PLACEMENTS, "--journal", "j.jsonl"), "another search")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--processes", "0"), "--processes"),
        (("--processes", "-1"), "--processes"),
        (("--processes", "two"), "--processes"),
        (("--processes", "5000"), "--processes"),
        (("--engine", "spark"), "in-process, processes, dask"),
        (("--engine", "in-process", "--processes", "2"), "one process"),
        (("--scheduler", "tcp://127.0.0.1:1"), "--engine dask"),
        (("--budget", "0"), "above 0"),
        (("--budget", "soon"), "--budget"),
        (("--journal", "/nowhere/j.jsonl"), "/nowhere"),
        (("--journal", ""), "output"),
        (("--journal", "t.yaml"), "t.yaml"),
        (("--processes", "2", "--limit", "1"), "--limit"),
    ],
)
def test_bad_values_are_one_line(here: Path, options: tuple[str, ...], word: str) -> None:
    refused(cli(*PLACEMENTS, *options), word)
    assert here


@pytest.mark.skipif(importlib.util.find_spec("distributed") is not None, reason="it is installed")
@pytest.mark.parametrize("command", [PLACEMENTS, ("solve", "-t", "t.yaml", *REQUESTS)])
def test_an_engine_that_is_not_installed(here: Path, command: tuple[str, ...]) -> None:
    outcome = cli(*command, "--engine", "dask")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (5, "", 1)
    assert "p2smt[cluster]" in outcome.err
    assert here


def test_hosts_are_searched_in_one_piece(here: Path) -> None:
    (here / "r.yaml").write_text(RACKS)
    asked = ("solve", "-t", "r.yaml", "--axes", "dp=10", "--reduce", "dp=1MiB")
    refused(cli(*asked, "--processes", "2"), "--processes")
