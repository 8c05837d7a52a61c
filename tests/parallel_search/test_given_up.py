"""A cube at which workers die: given up, told in every output, tried again by who goes on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from p2smt.parallel_search.coordinate import MOST_DEATHS, search
from p2smt.parallel_search.engine import Ended, SearchOutcome, WorkerDied
from p2smt.parallel_search.parallel_options import InProcess
from p2smt.parallel_search.subproblem import SearchKind, Space, Subproblem, SubproblemTask
from p2smt.result import Status
from tests.cli.tools import H100, SMALL, TINY, cli
from tests.parallel_search.journal.searched import change, open_journal, verified
from tests.parallel_search.journal.words import Words

FATAL = Subproblem(("b",))
SPACES = [Words(), Words(skeleton=SearchKind.ENUMERATE)]


class Deadly(InProcess):
    """An engine whose worker dies at some cubes: ``fatal`` of them, each time."""

    fatal: frozenset[Subproblem] | None = frozenset({FATAL})

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self.deaths: Counter[Subproblem] = Counter()
        self._cube: Subproblem | None = None

    def submit(self, task: SubproblemTask) -> None:
        """Note the cube."""
        self._cube = task.cube
        super().submit(task)

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        """Die, or close it."""
        cube = self._cube
        if cube is not None and (self.fatal is None or cube in self.fatal):
            self._cube, self._task = None, None
            self.deaths[cube] += 1
            return (WorkerDied(cube),)
        return super().wait(timeout_s)


def searched(path: Path, space: Words, engine: InProcess) -> SearchOutcome:
    with open_journal(path, space) as journal:
        return search(space, engine, journal=journal)


@pytest.mark.parametrize("space", SPACES, ids=lambda one: one.skeleton.value)
def test_a_search_that_goes_on_tries_it_again(space: Words, tmp_path: Path) -> None:
    whole, path = search(space, InProcess(space)), tmp_path / "j.jsonl"
    first = searched(path, space, Deadly(space))
    assert not first.status.settled
    assert first.given_up == ((FATAL, MOST_DEATHS),)
    assert first.reason == "1 cube was given up after 3 deaths of workers"
    report = verified(path, space)
    assert report.given_up == ((FATAL, MOST_DEATHS),)
    assert not report.proved
    again = searched(path, space, InProcess(space))
    for name in ("status", "best", "bound", "count", "digest", "given_up", "reason"):
        assert getattr(again, name) == getattr(whole, name), name
    report = verified(path, space)
    assert report.proved
    assert (report.given_up, report.repeated) == ((), 0)


def test_deaths_are_counted_anew(tmp_path: Path) -> None:
    """As often as the search goes on, and each time it says so."""
    space, path = Words(), tmp_path / "j.jsonl"
    for _ in range(2):
        engine = Deadly(space)
        outcome = searched(path, space, engine)
        assert engine.deaths == {FATAL: MOST_DEATHS}
        assert (outcome.given_up, outcome.deaths) == (((FATAL, MOST_DEATHS),), MOST_DEATHS)
    assert verified(path, space).given_up == ((FATAL, MOST_DEATHS),)


def test_one_without_a_proof_that_no_worker_died_of_stays(tmp_path: Path) -> None:
    """Its solver would say again what it has said."""
    space, path = Words(), tmp_path / "j.jsonl"
    searched(path, space, Deadly(space))
    change(path, lambda lines: [line.pop("deaths", None) for line in lines] and None)
    again = searched(path, space, InProcess(space))
    assert again.status is Status.FEASIBLE
    assert again.given_up == ()
    assert again.reason == "1 cube was closed without a proof"


TRAINED = ("--global-batch", "16", "--seq", "128")
COMMANDS = {
    "placements": ("placements", "--levels", "2,4", "--axes", "2,4"),
    "solve": ("solve", "-t", "t.yaml", "-a", "dp=2,tp=4", "--reduce", "dp=1GiB"),
    "plan": ("plan", "-m", "m.yaml", "-t", "t.yaml", *TRAINED, "--fix", "tp=4"),
    "synthesize": (
        *("synthesize", "--fabric", "ring:3", "--collective", "broadcast", "--steps", "2"),
        *("--rounds", "2", "--chunks", "1", "--symmetry", "none"),
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_so(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its text and its JSON, and so does the verification of its journal."""
    (tmp_path / "t.yaml").write_text(TINY + H100)
    (tmp_path / "m.yaml").write_text("name: m\n" + SMALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Deadly, "fatal", None)
    with monkeypatch.context() as patch:
        patch.setattr("p2smt.parallel_search.parallel_options.InProcess", Deadly)
        text = cli(*COMMANDS[name], "--journal", "text.jsonl")
        data = cli(*COMMANDS[name], "--journal", "data.jsonl", "--json")
    assert (text.code, data.code) == (3, 3), text
    lines = (tmp_path / "text.jsonl").read_text().splitlines()
    cubes = [json.loads(line).get("deaths") for line in lines].count(MOST_DEATHS)
    one = "cube was" if cubes == 1 else "cubes were"
    words = f"{cubes} {one} given up after {MOST_DEATHS * cubes} deaths of workers"
    assert words in " ".join(text.out.split())
    assert words in data.out
    data.json()
    checked = cli("verify", "text.jsonl")
    assert words in checked.out
    shown = cli("verify", "text.jsonl", "--json").json()["given_up"]
    assert [one["deaths"] for one in shown] == [MOST_DEATHS] * cubes
    again, whole = cli(*COMMANDS[name], "--journal", "text.jsonl"), cli(*COMMANDS[name])
    assert again.code == whole.code
    assert "given up" not in again.out
