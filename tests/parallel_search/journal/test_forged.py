"""Forged journals: whatever a line is changed to, no other answer than the true one is proved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from p2smt.parallel_search.journal.journal_verification import JournalReport
from p2smt.parallel_search.subproblem import SearchKind
from tests.cli.tools import cli
from tests.parallel_search.journal.searched import Lines, search, verified
from tests.parallel_search.journal.words import Words

EMPTY: dict[str, Any] = {
    "verdict": "empty",
    "best": [],
    "bound": None,
    "count": None,
    "digest": None,
}
ELSE = {"value": 0, "tie": [98, 98, 98], "witness": "bbb"}
CHANGES: tuple[dict[str, Any], ...] = (
    EMPTY,
    {**EMPTY, "verdict": "bounded", "bound": 10**6},
    {**EMPTY, "verdict": "bounded", "bound": 10**6, "by_formula": True},
    {**EMPTY, "verdict": "unknown", "bound": 10**6},
    {**EMPTY, "verdict": "unknown", "bound": 10**6, "deaths": 3},
    {"bound": 0},
    {"bound": 10**6},
    {"by_formula": True},
    {"best": []},
    {"best": [ELSE]},
    {"verdict": "solved", "best": [{**ELSE, "value": 6}]},
    {"count": 0},
    {"count": 10**30},
    {"digest": "0" * 64},
    {"cube": []},
    {"cube": ["b"]},
    {"seed": 2**40},
    {"seed": -1},
    {"member": ELSE},
    {"children": []},
)


def said(report: JournalReport) -> object:
    """The answer that a report proves."""
    found = report.answer
    return found and (found.status, found.best, found.bound, found.count, found.digest)


def forged(lines: Lines) -> Iterator[Lines]:
    """A journal with one line changed, or all closed cubes, or without one line."""
    for number in range(1, len(lines)):
        yield [*lines[:number], *lines[number + 1 :]]
        for keys in CHANGES:
            if set(keys) - {"deaths"} <= set(lines[number]):
                yield [*lines[:number], {**lines[number], **keys}, *lines[number + 1 :]]
    for keys in CHANGES:
        yield [{**one, **keys} if one["record"] == "closed" else one for one in lines]


@pytest.mark.parametrize("skeleton", [SearchKind.ENUMERATE, SearchKind.OPTIMISE])
def test_what_is_proved_is_true(skeleton: SearchKind, tmp_path: Path) -> None:
    """Every verdict is solved again, or none: it is refused, not proved, or what it was before."""
    space, path = Words(skeleton=skeleton), tmp_path / "j.jsonl"
    search(path, space)
    whole = verified(path, space)
    assert whole.proved
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    tried = 0
    for text in forged(lines):
        path.write_text("".join(json.dumps(line) + "\n" for line in text))
        for sample in (0, 1, None):
            try:
                report = verified(path, space, sample=sample)
            except ValueError:  # no line of a journal
                continue
            tried += 1
            assert not report.proved or said(report) == said(whole), text
            assert report.proved is (report.valid and not report.unchecked)
    assert tried > 50


@pytest.fixture(scope="module")
def schedules(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The journal of a search for a schedule that there is, and the same with each cube empty."""
    path = tmp_path_factory.mktemp("schedules") / "j.jsonl"
    done = cli(
        *("synthesize", "--fabric", "ring:3", "--collective", "broadcast", "--steps", "2"),
        *("--rounds", "2", "--chunks", "1", "--symmetry", "none", "--journal", str(path)),
    )
    assert done.code == 0, done.err
    header, *lines = map(json.loads, path.read_text().splitlines())
    closed = next(one for one in lines if one["record"] == "closed")
    cubes = [{**closed, **EMPTY, "cube": root} for root in header["roots"]]
    return path, "".join(json.dumps(one) + "\n" for one in (header, *cubes))


def test_a_forger_proves_no_lack_of_schedules(schedules: tuple[Path, str], tmp_path: Path) -> None:
    path, text = schedules
    true = cli("verify", str(path), "--details")
    assert (true.code, true.out.splitlines()[1]) == (0, "proved: yes")
    lie = tmp_path / "lie.jsonl"
    lie.write_text(text)
    unseen = cli("verify", str(lie), "--sample", "0", "--details")
    assert unseen.code == 3
    assert unseen.out.startswith("valid: decide over synthesize, infeasible")
    assert "proved: no, " in unseen.out
    assert "not checked (--all solves them again)" in unseen.out
    data = cli("verify", str(lie), "--sample", "0", "--json").json()
    assert data["proved"] is False
    assert data["verdicts"]["unchecked"] == data["verdicts"]["recorded"] > 0
    seen = cli("verify", str(lie), "--all", "--details")
    assert seen.code == 1
    assert "proved: no, something is wrong" in seen.out
