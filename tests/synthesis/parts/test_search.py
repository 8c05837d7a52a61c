"""Searches for schedules in parts: the answers of searches in one piece, and their journals."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.parallel_search.journal.journal_verification import JournalReport
from p2smt.parallel_search.parallel_options import Spread
from p2smt.parallel_search.subproblem import Closure, OverBudget, Signals, SubproblemTask
from p2smt.result import STOPPED, SearchLimits
from p2smt.schedules.verify.report import Verdict
from p2smt.synthesis import schedule_space as spaces
from p2smt.synthesis.bounds import rate_bound, steps_bound
from p2smt.synthesis.setting import NAMES, Answer, Synthesis
from tests.parallel_search.journal.searched import Lines, change, verdict
from tests.strategies.draws import Draws, draws
from tests.synthesis.parts.cases import circle, fabrics, square
from tests.tiers import examples_of

REFUTED = ("all-reduce", (2, 3, 3))  # of the square; no bound refutes it
FOUND = ("all-gather", (3, 4, 2))
TINY_S = 1e-6


def asked(
    fabric: Fabric | str,
    collective: str,
    size: tuple[int, int, int],
    spread: Spread | None = None,
    limits: SearchLimits | None = None,
) -> Synthesis:
    steps, rounds, chunks = size
    return p2smt.synthesize(
        *(fabric, collective),
        steps=steps,
        rounds=rounds,
        chunks=chunks,
        symmetry=False,
        limits=limits,
        spread=spread,
    )


def journal(path: Path, of: tuple[str, tuple[int, int, int]]) -> Path:
    """The journal of a search over the square."""
    asked(square(), *of, Spread(journal=str(path)))
    return path


def splitting(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    """Let cubes of fewer decisions be over their budget."""
    close = spaces.ScheduleSpace.close

    def short(
        self: spaces.ScheduleSpace, task: SubproblemTask, signals: Signals
    ) -> Closure | OverBudget:
        if len(task.cube.path) < depth and self.split(task.cube):
            return OverBudget(task.cube)
        return close(self, task, signals)

    monkeypatch.setattr(spaces.ScheduleSpace, "close", short)


def again(path: Path, sample: int = 1) -> JournalReport:
    """The journal verified, so many of its verdicts solved again."""
    return p2smt.verify_journal(path, sample=sample)


@pytest.fixture(scope="module")
def refutation(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The journal of a refutation."""
    return journal(tmp_path_factory.mktemp("refuted") / "j.jsonl", REFUTED).read_text()


@given(draws(), fabrics(), st.sampled_from(sorted(NAMES)))
@settings(max_examples=examples_of(50))
def test_parts_say_what_the_whole_says(data: Draws, fabric: Fabric, name: str) -> None:
    """Sizes that no bound refutes, by as little as can be."""
    steps = steps_bound(fabric, name, 0) + data.draw(st.integers(0, 1))
    chunks = data.draw(st.integers(1, 2 if steps < 3 else 1))
    bound = rate_bound(fabric, name, steps, 0).value
    rounds = max(steps, math.ceil(bound * chunks)) + data.draw(st.integers(0, 1))
    whole = asked(fabric, name, (steps, rounds, chunks))
    parts = asked(fabric, name, (steps, rounds, chunks), Spread())
    assert (parts.status, parts.reason) == (whole.status, whole.reason)
    if parts.status is Answer.SCHEDULE:
        assert parts.report is not None
        assert parts.report.verdict is Verdict.VALID
        assert (parts.group_order, len(parts.attempts)) == (1, 1)


@pytest.mark.parametrize("of", [REFUTED, FOUND, ("reduce", (3, 3, 2))])
def test_cubes_over_their_budget_are_split_and_the_journal_proves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: tuple[str, tuple[int, int, int]]
) -> None:
    splitting(monkeypatch, 5)
    path = journal(tmp_path / "j.jsonl", of)
    monkeypatch.undo()
    report = p2smt.verify_journal(path, sample=None)
    assert report.valid
    assert (report.solver, report.another) == ("z3", True)
    assert report.again.agreed == report.again.tried > 0
    assert '"split"' in path.read_text()
    whole = asked(square(), *of)
    assert (whole.status is Answer.SCHEDULE) is report.shown_by_member


def test_what_a_bound_refutes_has_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    found = asked("dgx1", "all-gather", (2, 2, 2), Spread(journal=str(path)))
    assert found.reason == "no schedule (bound)"
    assert not path.exists()


def test_a_journal_cut_short_goes_on(
    refutation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    lines = refutation.splitlines(keepends=True)
    path.write_text("".join(lines[:10]) + lines[10][:30])
    closed: list[object] = []
    close = spaces.ScheduleSpace.close

    def counted(self: spaces.ScheduleSpace, task: object, signals: object) -> object:
        closed.append(task)
        return close(self, task, signals)  # type: ignore[arg-type]

    monkeypatch.setattr(spaces.ScheduleSpace, "close", counted)
    told: list[str] = []
    found = asked(square(), *REFUTED, Spread(journal=str(path), told=told.append))
    assert found.reason == "no schedule in class G with 1 message (complete search)"
    assert len(closed) == len(lines) - 10
    assert "goes on from 9 closed cubes" in told[0]
    assert again(path).valid
    with pytest.raises(InputError, match="another search"):
        asked(square(), *FOUND, Spread(journal=str(path)))


def forged(path: Path, edit: str, tmp_path: Path) -> None:
    """Tamper with the journal of a refutation, or for one edit of a schedule."""

    def lied(lines: Lines) -> Lines:
        claim = {**verdict(lines, "solved"), "verdict": "empty", "best": [], "bound": None}
        return [lines[0], *({**claim, "cube": root} for root in lines[0]["roots"])]

    if edit == "empty for a cube with a schedule":
        journal(tmp_path / "found.jsonl", FOUND).rename(path)
        change(path, lied)
    elif edit == "a cube is missing":
        change(path, lambda lines: lines[:-1])
    elif edit == "a cube twice under another name":
        change(path, lambda lines: [*lines, {**lines[-1], "cube": lines[-1]["cube"][:-1]}])
    elif edit == "a decision out of order":
        change(path, lambda lines: verdict(lines, "empty")["cube"].reverse())
    elif edit == "a decision that is none":
        change(path, lambda lines: verdict(lines, "empty")["cube"].append("c9.e9.s9=1"))
    elif edit == "another size":
        change(path, lambda lines: lines[0]["description"]["size"].update(rounds=4))
    elif edit == "another class":
        change(path, lambda lines: lines[0]["description"].update({"class": "trees"}))


@pytest.mark.parametrize(
    "edit",
    [
        "empty for a cube with a schedule",
        "a cube is missing",
        "a cube twice under another name",
        "a decision out of order",
        "a decision that is none",
        "another size",
        "another class",
    ],
)
def test_a_journal_that_was_tampered_with_proves_nothing(
    refutation: str, tmp_path: Path, edit: str
) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(refutation)
    forged(path, edit, tmp_path)
    assert path.read_text() != refutation
    try:
        assert not again(path, 99 if "empty" in edit else 0).valid
    except InputError:
        assert edit in ("another size", "another class")


def test_a_member_that_is_none_is_told(tmp_path: Path) -> None:
    path = journal(tmp_path / "j.jsonl", FOUND)
    assert again(path).valid

    def worse(lines: Lines) -> None:
        for line in lines:
            for member in [*line.get("best", []), line]:
                if "witness" in member:
                    member["witness"] = member["witness"].replace('"edge":0', '"edge":1', 1)

    change(path, worse)
    assert not again(path).valid


@pytest.mark.cluster
def test_two_processes_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    none = asked(square(), *REFUTED, Spread(2, journal=str(path)))
    assert none.reason == "no schedule in class G with 1 message (complete search)"
    assert p2smt.verify_journal(path).valid
    found = asked(circle(), "all-gather", (2, 2, 1), Spread(2, budget_s=TINY_S))
    assert found.status is Answer.SCHEDULE


def test_a_model_too_large_is_unknown_and_no_part_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    found = p2smt.synthesize(
        *("mesh:8", "broadcast"),
        steps=2,
        rounds=2**31 + 1,
        chunks=1,
        symmetry=False,
        spread=Spread(journal=str(path)),
    )
    assert (found.status, len(found.attempts)) == (Answer.UNKNOWN, 1)
    assert "more than" in found.detail
    assert not path.exists()


def test_time_and_interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j.jsonl"
    late = asked(square(), *REFUTED, Spread(journal=str(path)), SearchLimits(0.0))
    assert (late.status, late.detail) == (Answer.UNKNOWN, "the time limit came")
    monkeypatch.setattr(spaces.ScheduleSpace, "find", interrupted)
    found = asked(square(), *REFUTED, Spread(journal=str(path)))
    assert (found.status, found.interrupted) == (Answer.UNKNOWN, True)
    assert found.detail == STOPPED
    monkeypatch.undo()
    assert asked(square(), *REFUTED, Spread(journal=str(path))).status is Answer.NO_SCHEDULE


def interrupted(*given: object) -> None:
    """Let the first look pass, which asks whether the model is too large."""
    if given[-1] != SearchLimits(0.0):
        raise KeyboardInterrupt


def test_symmetries_are_not_searched_in_parts() -> None:
    with pytest.raises(InputError, match="symmetry none"):
        p2smt.synthesize(*(square(), "all-gather"), steps=2, rounds=3, chunks=2, spread=Spread())
