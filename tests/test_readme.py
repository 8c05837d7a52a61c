"""The README is short, shows real output, and says no more than its sources."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest

from experiments.gains import page as gains
from p2smt.cluster.file import preset_names
from tests.imports import ROOT
from tests.pages import script

README = (ROOT / "README.md").read_text(encoding="utf-8")
RENEWER = script(ROOT / "docs" / "readme.py")
BOXES = RENEWER.BLOCK.findall(README)
COMMANDS = {picture: command for command, _, picture in BOXES if picture}
RENEW = "run: python docs/readme.py"
MOST_LINES, MOST_WORDS = 150, 600


def needs(command: str) -> None:
    """Skips where the command needs what is not installed."""
    if "--compare dtensor" in command:
        pytest.importorskip("torch")


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES
    assert len(re.sub(r"```.*?```", "", README, flags=re.S).split()) <= MOST_WORDS


def test_the_set_up_commands_come_first() -> None:
    first = re.findall(r"```console\n(.*?)```", README, re.S)[0]
    assert re.findall(r"^\$ (\w+ \w+)", first, re.M) == ["make solve", "make test"]


def test_there_are_four_boxes_of_few_lines() -> None:
    assert [picture for *_, picture in BOXES] == ["train", "collective", "reshard", ""]
    assert all(len(shown.splitlines()) <= RENEWER.MOST_LINES for _, shown, _ in BOXES)
    assert README.count("```console") == 1 + len(BOXES)


def test_make_solve_runs_the_first_of_them() -> None:
    recipe = re.search(r"^\t\$\(BIN\)/p2smt (plan .*)$", (ROOT / "Makefile").read_text(), re.M)
    assert recipe is not None
    assert recipe[1] == COMMANDS["train"]


@pytest.mark.parametrize(("command", "shown"), [(one, lines) for one, lines, _ in BOXES])
def test_every_line_shown_is_printed_in_this_order(command: str, shown: str) -> None:
    needs(command)
    rest = iter(RENEWER.printed(command))
    assert [line for line in shown.splitlines() if line not in rest] == [], RENEW


def test_a_line_that_is_not_printed_would_be_renewed() -> None:
    printed = ["run      tp=8", "time     2 s", "fastest  1 s"]
    assert [*RENEWER.alike(["run      tp=4", "fastest  3 s"], printed)] == [printed[0], printed[2]]


@pytest.mark.parametrize("picture", COMMANDS)
def test_a_picture_shows_the_numbers_of_now(picture: str) -> None:
    pytest.importorskip("matplotlib")
    needs(COMMANDS[picture])
    facts = RENEWER.pictures().facts(picture, RENEWER.answer(COMMANDS[picture]))
    drawn = (ROOT / "docs" / "figures" / f"{picture}.svg").read_text(encoding="utf-8")
    assert f">{facts}<" in drawn, RENEW


def test_the_file_that_lost_a_dependency_is_the_classic_without_it(tmp_path: Path) -> None:
    from p2smt.cli import run

    path = tmp_path / "ring.xml"
    assert run(shlex.split(f"classics ring-all-reduce --ranks 4 -o {path}")) == 0
    whole = path.read_text().splitlines()
    lost = (ROOT / "examples" / "lost_dependency.xml").read_text().splitlines()
    (place,) = [i for i, pair in enumerate(zip(whole, lost, strict=True)) if pair[0] != pair[1]]
    assert re.sub(r'depid="\d+"', 'depid="-1"', whole[place]) == lost[place]
    assert place + 1 == 5


def test_gains_are_those_of_the_study() -> None:
    programs, _, runs = (
        [cell.strip() for cell in row.split("|")[1:-1]]
        for row in gains.paragraph().strip().splitlines()[2:]
    )
    text = " ".join(README.split())
    assert f"of ten published training runs {runs[2]} already have the best layout" in text
    assert f"{programs[2]} of {programs[1]} programs gain nothing" in text
    assert f"of the {programs[3]} that gain over 5 %, {programs[4]} would be measurable" in text


def test_the_racks_are_those_of_their_study() -> None:
    study = (ROOT / "experiments/unequal_racks/README.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| alphabetical \| n1 .*\| (\S+) \| (\S+) \|$", study, re.M)
    predicted, measured = (f"{100 * (float(cell) - 1):.0f} %" for cell in row)
    text = " ".join(README.split())
    assert f"takes {predicted} longer by the model, {measured} measured" in text


def test_the_measured_run_is_as_published() -> None:
    with (ROOT / "experiments/training_runs/runs.csv").open(encoding="utf-8") as file:
        (run,) = (row for row in csv.reader(file) if row[0] == "r0047")
    assert "has this very strategy and took 14.72 s" in README
    assert "14.72" in run


def test_nothing_is_left_to_fill_in() -> None:
    assert re.findall(r"@[A-Z]+@|TODO|TBD", README) == []


def test_the_presets_are_counted() -> None:
    concepts = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    assert re.findall(r"(\d+) presets", concepts) == [str(len(preset_names()))]
