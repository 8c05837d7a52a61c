"""`p2smt synthesize` in parts: the same words and codes, journals, bad input in one line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.tools import Outcome, assert_one_error, cli

NONE = "--fabric cube:2 --collective all-reduce --steps 2 --rounds 3 --chunks 3 --symmetry none"
RING = "--fabric ring:4 --collective all-gather --steps 2 --rounds 3 --chunks 2"
SOME = f"{RING} --symmetry none"
REASON = "no schedule in class G with 1 message (complete search)"


def synthesize(*arguments: str) -> Outcome:
    return cli("synthesize", *(word for one in arguments for word in shlex.split(one)))


def test_a_refutation_has_a_journal_that_goes_on_and_verifies(tmp_path: Path) -> None:
    path = str(tmp_path / "j.jsonl")
    done = synthesize(NONE, "--journal", path, "--json")
    assert (done.code, done.err, done.json()["reason"]) == (4, "", REASON)
    (search,) = done.json()["searches"]
    assert (search["group_order"], search["class"], search["status"]) == (
        *(1, "partial-sums"),
        "infeasible",
    )
    checked = cli("verify", path, "--sample", "1", "--details")
    assert checked.code == 3
    first, proved, cover, _ = checked.out.splitlines()
    assert first == "valid: decide over synthesize, infeasible: no member"
    assert proved.startswith("proved: no, 15 verdicts of solvers were not checked")
    assert "16 closed cubes hold the whole space of decisions, each once" in cover
    lines = Path(path).read_text().splitlines(keepends=True)
    Path(path).write_text("".join(lines[:5]))
    cut = cli("verify", path, "--sample", "0", "--details")
    assert (cut.code, "4 closed cubes hold 1/4 of the space of decisions" in cut.out) == (1, True)
    again = synthesize(NONE, "--journal", path)
    assert (again.code, again.out.splitlines()[0]) == (4, REASON)
    assert again.err.startswith("note: journal ")


def test_a_schedule_is_lowered_written_and_verified(tmp_path: Path) -> None:
    path = str(tmp_path / "a.xml")
    done = synthesize(SOME, "--engine", "in-process", "--budget", "10s", "-o", path)
    assert (done.code, done.err, done.out.splitlines()[0]) == (0, "", "schedule")
    assert "verified: right in every interleaving" in done.out
    assert "found without symmetry" in done.out
    assert cli("verify", path).code == 0
    late = synthesize(NONE, "--engine", "in-process", "--time-limit", "0")
    assert (late.code, late.out.splitlines()[0]) == (3, "unknown: the time limit came")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--processes 2", "--processes 2: asks for parts of the complete search"),
        ("--symmetry auto --journal j.jsonl", "add --symmetry none"),
        ("--symmetry none --processes 0", "--processes"),
        ("--symmetry none --engine spark", "in-process, processes, dask"),
        ("--symmetry none --scheduler tcp://127.0.0.1:1", "--engine dask"),
        ("--symmetry none --budget soon", "--budget"),
        ("--symmetry none --journal /nowhere/j.jsonl", "/nowhere"),
    ],
)
def test_bad_values_are_one_line(options: str, words: str) -> None:
    done = synthesize(RING, options)
    assert_one_error(done)
    assert words in done.err


def test_a_frontier_is_not_searched_in_parts() -> None:
    asked = "--fabric ring:4 --collective all-gather --pareto --symmetry none --budget 1s"
    done = synthesize(asked)
    assert_one_error(done)
    assert "--budget 1s: does not go with --pareto" in done.err
