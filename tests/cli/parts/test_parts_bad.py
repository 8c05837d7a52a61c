"""Options of searches in parts that cannot be: one line, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.parallel_search.parallel_options import Spread
from tests.cli.tools import H100, SMALL, TINY, assert_one_error, cli

SOLVE = ("solve", "-t", "t.yaml", "--axes", "dp=8", "--reduce", "dp=1MiB")
PLAN = ("plan", "-m", "m.yaml", "-t", "t.yaml", "--global-batch", "16", "--seq", "256")
SYNTHESIZE = (
    *("synthesize", "--fabric", "ring:4", "--collective", "all-gather", "--steps", "2"),
    *("--rounds", "3", "--chunks", "2", "--symmetry", "none"),
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.yaml").write_text(TINY + H100)
    (tmp_path / "m.yaml").write_text("name: m\n" + SMALL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "name"), [(SOLVE, "same.json"), (PLAN, "same.json"), (SYNTHESIZE, "same.xml")]
)
@pytest.mark.parametrize("journal", ["", "./"])
def test_a_journal_is_not_overwritten(
    command: tuple[str, ...], name: str, journal: str, here: Path
) -> None:
    (here / name).write_text("as it was")
    outcome = cli(*command, "--journal", journal + name, "-o", name)
    assert_one_error(outcome)
    assert outcome.err.endswith("is an output as well, which would overwrite it; rename one\n")
    assert (here / name).read_text() == "as it was"


def test_an_empty_address_is_no_scheduler() -> None:
    outcome = cli(*SOLVE, "--engine", "dask", "--scheduler", "")
    assert_one_error(outcome)
    assert "scheduler '': is no address" in outcome.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--scheduler", "tcp://h:1"), "give --engine dask as well"),
        (("--scheduler", "tcp://h:1", "--engine", "processes"), "give --engine dask as well"),
        (("--scheduler", "tcp://h:1", "--engine", "in-process"), "give --engine dask as well"),
        (("--scheduler", "tcp://h:1", "--engine", "dask", "--processes", "2"), "drop --processes"),
        (("--scheduler", "tcp://h:1", "--engine", "dask", "--processes", "1"), "drop --processes"),
        (("--engine", "in-process", "--processes", "2"), "is one process"),
    ],
)
@pytest.mark.parametrize("command", [SOLVE, PLAN, SYNTHESIZE], ids=lambda words: words[0])
def test_options_that_would_have_no_effect_are_refused(
    command: tuple[str, ...], options: tuple[str, ...], words: str, here: Path
) -> None:
    outcome = cli(*command, *options, "--journal", "j.jsonl")
    assert_one_error(outcome)
    assert words in outcome.err
    assert not (here / "j.jsonl").exists()


def test_a_scheduler_has_workers_of_its_own() -> None:
    with pytest.raises(InputError, match="has workers of its own"):
        Spread(processes=2, engine="dask", scheduler="tcp://h:1")


def test_counts_of_a_journal_that_were_changed_are_refused(here: Path) -> None:
    """Where the search goes on from it, and where it is over."""
    asked = ("placements", "--levels", "2,4", "--axes", "2,4", "--journal", "j.jsonl")
    assert cli(*asked).code == 0
    text = (here / "j.jsonl").read_text()
    (here / "j.jsonl").write_text(text.replace('"count": 1', '"count": 2', 1))
    outcome = cli(*asked)
    assert (outcome.code, outcome.out) == (2, "")
    assert "others are on record; it was changed: search without it" in outcome.err


def test_a_journal_whose_verdicts_were_changed_is_refused(here: Path) -> None:
    """A solved cube that is called bounded, with members that it may not have."""
    journal = here / "j.jsonl"
    several = ("solve", "-t", "dgx-a100:4", "--axes", "dp=8,tp=4", "--reduce", "dp=1GiB")
    first = cli(*several, "--journal", "j.jsonl")
    assert first.code == 0
    assert '"solved"' in journal.read_text()
    journal.write_text(journal.read_text().replace('"solved"', '"bounded"'))
    again = cli(*several, "--journal", "j.jsonl")
    assert (again.code, again.out) == (2, "")
    last = again.err.rstrip("\n").split("\n")[-1]
    assert last.startswith("p2smt: error: a record of cube ")
    assert last.endswith("it was changed since it was written: search without it")
