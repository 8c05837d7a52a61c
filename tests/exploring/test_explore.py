"""Exploring, from a false property to a mended one, in folders of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests.exploring.__main__ import told
from tests.exploring.found import FOUND, read_cases
from tests.exploring.turns import Tried, Turns
from tests.imports import ROOT
from tests.parallel_search.slices import marked
from tests.tiers import but_the_first

FALSE = """
from dataclasses import dataclass
from enum import Enum

from hypothesis import given, settings, strategies as st
from tests.strategies.draws import Draws, Shuffle, draws, shuffles


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Pair:
    number: int
    colour: Colour


PAIRS = st.builds(Pair, st.integers(0, 10**6), st.sampled_from(Colour))


@settings(max_examples=1)
@given(PAIRS, shuffles())
def test_numbers_are_small(pair: Pair, shuffle: Shuffle) -> None:
    shuffle.random()
    assert pair.number <= LIMIT or pair.colour is Colour.RED


@given(draws())
def test_what_is_drawn_is_small(data: Draws) -> None:
    number = data.draw(st.integers(0, 10**6))
    assert number <= LIMIT or data.draw(st.integers(0, number)) % 2 == 0


@given(PAIRS)
def test_true(pair: Pair) -> None:
    assert pair.number >= 0


@given(st.booleans())
def test_of_few_values(_: bool) -> None:
    pass
"""


GIVEN = ("--workers=2", "--found=found.json", "--plugin=tests.conftest")
"""Of ``tests.exploring`` in a folder of a test."""


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"}


def ran(folder: Path, *line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *line],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )


def explored(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A round of two processes that tries each property at most so often, however long it takes."""
    return ran(folder, "tests.exploring", "--minutes=9", *GIVEN, *options, "test_it.py")


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    plugins = ("-p", "tests.conftest", "-p", "no:cacheprovider")
    return ran(folder, "pytest", "-q", *plugins, "--found=found.json", "test_it.py")


def write(folder: Path, limit: int) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(f"LIMIT = {limit}\n{FALSE}")


@pytest.mark.slow
def test_a_false_property_is_found_written_and_tried_ever_after(tmp_path: Path) -> None:
    write(tmp_path, 990_000)  # so that eight examples do not find it
    assert checked(tmp_path).returncode == 0
    done = explored(tmp_path, "--most=2000")
    assert done.returncode == 1, done.stdout + done.stderr
    cases = {case.test.partition("::")[2]: case for case in read_cases(tmp_path / "found.json")}
    assert set(cases) == {"test_numbers_are_small", "test_what_is_drawn_is_small"}
    small = cases["test_numbers_are_small"]
    assert small.values["pair"] == "Pair(number=990001, colour=Colour.BLUE)"
    assert small.values["shuffle"].startswith("Shuffle(")
    assert small.names == {
        "Pair": "test_it",
        "Colour": "test_it",
        "Shuffle": "tests.strategies.draws",
    }
    assert small.said.startswith("AssertionError: assert (990001 <= 990000 or ")
    assert cases["test_what_is_drawn_is_small"].values["data"].startswith("Draws(990001, ")
    counts = json.loads((tmp_path / ".explore" / "counts.json").read_text())
    assert counts["test_it.py::test_true"]["examples"] >= 1000
    assert counts["test_it.py::test_of_few_values"]["rests"] == "tried in full"
    assert "2 failed" in done.stdout, "an ordinary run says so"
    again = checked(tmp_path)
    assert again.returncode == 1
    assert "2 failed, 2 passed" in again.stdout
    assert "number=990001" in again.stdout
    write(tmp_path, 2 * 10**6)
    assert checked(tmp_path).returncode == 0


@pytest.mark.slow
def test_a_round_that_tries_nothing_says_so(tmp_path: Path) -> None:
    write(tmp_path, 0)
    done = explored(tmp_path, "--minutes=0")
    assert done.returncode == 1
    assert "no property was tried" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", but_the_first(signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
def test_an_interrupted_round_leaves_no_process_and_loses_no_case(
    tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, 10)
    mark = f"MARK={uuid.uuid4()}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.exploring", "--minutes=600", *GIVEN, "test_it.py"],
        cwd=tmp_path,
        env={**environment(tmp_path), "MARK": mark[5:]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while process.poll() is None and not any(tmp_path.glob(".explore/cases/*.json")):
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=3600)
        left = marked(mark)
    finally:
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
    assert left == [], "workers outlived the round"
    assert (process.returncode, err) == (128 + number, "")
    assert "examples of each property" in out
    assert "written to found.json" in out
    assert read_cases(tmp_path / "found.json")


def test_a_case_whose_values_cannot_be_made_again_fails_its_test(tmp_path: Path) -> None:
    write(tmp_path, 2 * 10**6)
    case = {"test": "test_it.py::test_true", "said": "", "names": {"Gone": "test_it"}}
    (tmp_path / "found.json").write_text(json.dumps([{**case, "values": {"pair": "Gone(1)"}}]))
    done = checked(tmp_path)
    assert "1 failed, 3 passed" in done.stdout
    assert "has no attribute 'Gone'" in done.stdout


def test_cases_are_of_tests_that_are_there() -> None:
    cases = read_cases(FOUND)
    assert all(case.arguments() for case in cases)
    if tests := {case.test for case in cases}:
        done = ran(ROOT, "pytest", "--collect-only", "-q", *tests)
        assert done.returncode == 0, f"of what is gone the case goes too: {done.stderr}"


def test_the_least_tried_is_next_and_one_process_has_it(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    names = ["a", "b", "c"]
    assert [turns.take(names, 1) for _ in range(4)] == ["a", "b", "c", None]
    turns.give_back("a", Tried(5, 1.0))
    turns.give_back("b", Tried(3, 1.0))
    turns.give_back("c", Tried(1, 1.0, "failed"))
    assert turns.take(names, 1) == "b"
    turns.start("b", 1)
    assert turns.take(names, 1) == "a"
    assert turns.left_by(1, "died") == ["b"]
    assert turns.take(names, 2) == "a", "it waited only"
    turns.begin()
    assert [turns.take(names, 3) for _ in range(3)] == ["c", "b", "a"]


def test_those_tried_little_are_told_with_their_seconds() -> None:
    text = told({"much": Tried(2000, 1.0), "little": Tried(4, 2.0, "", "Odd: 1")})
    assert "2,000  much" in text
    below = text.partition("below 1,000")[2]
    assert "4      0.500 s  little" in below
    assert "much" not in below
    assert "little: Odd: 1" in text
