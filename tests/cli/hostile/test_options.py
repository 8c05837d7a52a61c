"""Numbers that are none and ugly texts, for every option of every command: one line, exit 2."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path

import pytest

from tests.cli.hostile.readers import ARRAY, SCENE, TRAINED
from tests.cli.test_options import OPTIONS
from tests.cli.tools import EXIT_CODES, H100, SMALL, TINY, Outcome, assert_one_error, cli

NUMBERS = ("9" * 5000, "1e400", "NaN", "-Infinity")
UGLY = (
    *("", " ", "\n", "a\nb\r\nc", "\x00", "\x1b[31mred", "\u202eltr", "\udcff", "\u2028"),
    "x" * 100_000,
)
MATRIX = "--placement [[1,2],[2,2]]"
LINES: Mapping[str, str] = {
    "solve": SCENE,
    "placements": "--levels 2,4 --axes 2,4",
    "programs": "--factors 2,2 --length 2",
    "cost": f"{SCENE} {MATRIX}",
    "compare": SCENE,
    "crossings": "--factors 2,3",
    "calibrate": "none.txt",
    "plan": f"--model small.yaml {TRAINED} --fix tp=4",
    "estimate": f"--model small.yaml {TRAINED} --strategy tp=4,dp=2",
    "transfer": "-t tiny.yaml --from layout.json --to layout.json",
    "redistribute": f"-t tiny.yaml {ARRAY} --from 'S(x),R' --to 'R,S(x)'",
    "synthesize": "--fabric ring:3 --collective broadcast --steps 2 --rounds 2 --chunks 1",
    "classics": "ring-all-reduce --ranks 3",
    "run": f"{SCENE} {MATRIX} --backend reference --payload 1KiB",
    "verify": "none.json",
    "export": "none.json --to csv",
    "order": "none.json --hosts n[1-4]",
    "convert": "none.xml -o none.yaml",
    "report": "none.json -o page.html",
    "topology import": "none.conf",
    "topology fabric": "ring:4",
    "topology show": "tiny.yaml",
    "topology check": "tiny.yaml",
    "topology detect": "--node dgx-h100",
    "topology export": "tiny.yaml --to astra-sim",
}
"""A command line that is right, or lacks its file alone."""
FILES = (
    *("--output", "--journal", "--svg", "--html", "--certificate", "--export", "--trace"),
    "--code",
)
"""Whose value is any text: the name of a file that is written."""


TAKING: dict[str, list[tuple[str, ...]]] = defaultdict(list)
"""The spellings of every option that takes a value, the long one last."""
for _path, _option in OPTIONS:
    if not _option.is_flag:
        TAKING[" ".join(_path)].append(tuple(sorted(_option.opts, key=len)))


def test_every_command_with_options_is_tried() -> None:
    assert set(TAKING) <= set(LINES)


def outcomes(
    name: str, folder: Path, values_of: Callable[[int], Sequence[str]]
) -> Iterator[tuple[str, str, Outcome]]:
    """What becomes of a command with each value of each of its options, by the option's number."""
    for file, text in (("tiny.yaml", TINY), ("gpus.yaml", TINY + H100), ("small.yaml", SMALL)):
        (folder / file).write_text(text)
    given = shlex.split(LINES[name])
    for at, spellings in enumerate(TAKING[name]):
        words, option = list(given), spellings[-1]
        if option in FILES:
            continue
        for where in (given.index(spelt) for spelt in spellings if spelt in given):
            del words[where : where + 2]
        for value in values_of(at):
            with chdir(folder):
                yield option, value, cli(*name.split(), *words, option, value)


@pytest.mark.parametrize("name", LINES)
def test_every_option(name: str, tmp_path: Path) -> None:
    for option, _, outcome in outcomes(name, tmp_path, lambda at: [NUMBERS[at % len(NUMBERS)]]):
        if outcome.code == 2:
            assert_one_error(outcome)
        else:
            assert outcome.code in EXIT_CODES, (option, outcome)


EMPTY = {
    *("solve --processes", "placements --processes", "plan --processes"),
    *("crossings --bandwidth-ratio", "crossings --cost-per-call"),
    *("cost --objective", "run --dtype", "run --device"),
}
"""Options for which an empty text is what holds without them."""
NO_STEPS = "run --program"
"""A program without steps is run, and its result refuted."""


def assert_all_refused(name: str, folder: Path, values_of: Callable[[int], Sequence[str]]) -> None:
    for option, value, outcome in outcomes(name, folder, values_of):
        called = f"{name} {option}"
        if (called in EMPTY and not value) or (called == NO_STEPS and not value.strip()):
            assert outcome.code in (0, 1), (called, outcome)
        else:
            assert_one_error(outcome)
            assert "give the option once" not in outcome.err, called


@pytest.mark.parametrize("name", LINES)
def test_no_option_takes_an_ugly_value(name: str, tmp_path: Path) -> None:
    """An empty one each, and one of the others in turn."""
    assert_all_refused(name, tmp_path, lambda at: ["", UGLY[1 + at % (len(UGLY) - 1)]])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LINES)
def test_no_option_takes_any_ugly_value(name: str, tmp_path: Path) -> None:
    assert_all_refused(name, tmp_path, lambda _: UGLY)
