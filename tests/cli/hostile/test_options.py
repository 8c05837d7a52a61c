"""Numbers that are none, as the value of every option of every command: one line, exit 2."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

import pytest

from tests.cli.hostile.readers import ARRAY, SCENE, TRAINED
from tests.cli.test_options import OPTIONS
from tests.cli.tools import EXIT_CODES, H100, SMALL, TINY, assert_one_error, cli

NUMBERS = ("9" * 5000, "1e400", "NaN", "-Infinity")
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
    "redistribute": f"-t tiny.yaml {ARRAY} --from 'S(x),R' --to 'R,S(x)'",
    "synthesize": "--fabric ring:3 --collective broadcast --steps 2 --rounds 2 --chunks 1",
    "classics": "ring-all-reduce --ranks 3",
    "run": f"{SCENE} {MATRIX} --backend reference --payload 1KiB",
    "verify": "none.json",
    "export": "none.json --to csv",
    "convert": "none.xml -o none.yaml",
    "topology import": "none.conf",
    "topology fabric": "ring:4",
    "topology show": "tiny.yaml",
    "topology check": "tiny.yaml",
    "topology detect": "--node dgx-h100",
    "topology export": "tiny.yaml --to astra-sim",
}
"""A command line that is right, or lacks its file alone."""
FILES = ("--output", "--journal", "--svg", "--html", "--certificate", "--export", "--trace")
"""Whose value is any text: the name of a file that is written."""


TAKING: dict[str, list[str]] = defaultdict(list)
for _path, _option in OPTIONS:
    if not _option.is_flag:
        TAKING[" ".join(_path)].append(max(_option.opts, key=len))


def test_every_command_with_options_is_tried() -> None:
    assert set(TAKING) <= set(LINES)


@pytest.mark.parametrize("name", LINES)
def test_every_option(name: str, tmp_path: Path) -> None:
    for file, text in (("tiny.yaml", TINY), ("gpus.yaml", TINY + H100), ("small.yaml", SMALL)):
        (tmp_path / file).write_text(text)
    given = shlex.split(LINES[name])
    for at, option in enumerate(TAKING[name]):
        if option in FILES:
            continue
        words = list(given)
        if option in words:
            where = words.index(option)
            del words[where : where + 2]
        with chdir(tmp_path):
            outcome = cli(*name.split(), *words, option, NUMBERS[at % len(NUMBERS)])
        if outcome.code == 2:
            assert_one_error(outcome)
        else:
            assert outcome.code in EXIT_CODES, (option, outcome)
