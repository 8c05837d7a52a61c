"""Random command lines of half-valid words: never a traceback, always a documented exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cli.tools import EXIT_CODES, TINY, assert_one_error, cli
from tests.strategies.draws import Draws, draws
from tests.tiers import examples_of

ODD = st.sampled_from(["", "x", "-1", "0", "1e400", "nan", "\n", "[]", "--", "-", "=", ",", ":"])
NUMBERS = st.sampled_from(["1", "2", "3", "4", "8", "0", "99"])
SIZES = st.sampled_from(["2,4", "2,2,2", "8", "4,2", "1", "3,5", "2,,4"])
AXES = st.sampled_from(
    ["dp=2,tp=4", "dp=8", "dp=4,tp=2", "2,4", "dp=2,tp=2,pp=2", "dp=3", "dp=2,dp=4"]
)
REQUESTS = st.sampled_from(
    ["dp=1GiB", "tp=64MiB*3", "dp+tp=1 MiB", "dp", "zz=1GiB", "tp=1", "tp=1B"]
)
RULES = st.sampled_from(["dp within node", "tp across gpu", "dp within", "tp=node:2", "dp=gpu:1"])
LAYOUTS = st.sampled_from(["[[2,1],[1,4]]", "[[1,2],[2,2]]", "[0,1,2,3,4,5,6,7]", "[[8]]", "{}"])
PROGRAMS = st.sampled_from(
    ["all-reduce inside root", "reduce inside node; broadcast inside node", "all-reduce", ";"]
)
WORDS = st.sampled_from(
    ["cpsat", "z3", "sum", "max", "ring", "auto", "inside", "all-gather", "plan"]
)
VALUES: dict[str, st.SearchStrategy[str]] = {
    "--levels": SIZES,
    "--factors": SIZES,
    "--axes": AXES,
    "--reduce": REQUESTS,
    "--reduce-scatter": REQUESTS,
    "--all-gather": REQUESTS,
    "--all-to-all": REQUESTS,
    "--send": REQUESTS,
    "--require": RULES,
    "--forbid": RULES,
    "--fix": RULES,
    "--placement": LAYOUTS,
    "--compare": LAYOUTS,
    "--program": PROGRAMS,
    "--top": NUMBERS,
    "--limit": NUMBERS,
    "--seed": NUMBERS,
    "--length": st.sampled_from(["1", "2", "3", "0"]),
    "--time-limit": st.sampled_from(["0", "1", "1s", "-1"]),
    "--solver": WORDS,
    "--objective": WORDS,
    "--algorithm": WORDS,
    "--kind": WORDS,
    "--forbid-form": WORDS,
    "--max-steps-at": st.sampled_from(["node=1", "gpu=0", "root=1", "node"]),
}
COMMANDS = st.sampled_from(["solve", "placements", "programs", "cost", "verify", "topology show"])


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with a good topology and axes more often than not, and up to five options."""
    found = draw(COMMANDS).split()
    if draw(st.integers(0, 3)):
        found += ["-t", "TINY", "--axes", draw(st.just("dp=2,tp=4") | AXES)]
    names = sorted(VALUES.keys() - set(found))
    for name in draw(st.lists(st.sampled_from(names), max_size=5, unique=True)):
        found += [name, draw(ODD if draw(st.integers(0, 9)) == 0 else VALUES[name])]
    found += draw(st.lists(ODD | WORDS, max_size=1)) if draw(st.integers(0, 4)) == 0 else []
    return found + (["--json"] if draw(st.booleans()) else [])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cluster") / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


@settings(max_examples=examples_of(250))
@given(arguments=command_lines())
@example(arguments=["solve", "-t", "TINY", "--axes", "dp=2,tp=4", "--send", "tp=1B", "--json"])
def test_random_command_lines(tiny: str, arguments: list[str]) -> None:
    outcome = cli(*(tiny if word == "TINY" else word for word in arguments))
    assert outcome.code in EXIT_CODES, outcome
    if outcome.code == 2:
        assert_one_error(outcome)
        return
    assert outcome.err == ""
    if "--json" in arguments and "--help" not in arguments:
        outcome.json()


RESTRICTIONS = (
    *("--require", "tp across node", "--fix", "tp=node:2", "--forbid-form", "master"),
    *("--max-steps-at", "node=2", "--algorithm", "ring,tree", "--pipeline", "2"),
)
SCALARS: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, 1, -1, 3, 2**31, 10**30, 0.5, float("nan"), 1e308, "", "x", "\n", [], {}]
)


def places(value: object) -> list[tuple[str | int, ...]]:
    """The path of every value inside a JSON value."""
    pairs: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    return [(key, *more) for key, inner in pairs for more in [(), *places(inner)]]


@settings(max_examples=examples_of(200))
@given(data=draws())
def test_a_plan_with_random_changes(tiny: str, data: Draws) -> None:
    plan = tiny.replace("tiny.yaml", "plan.json")
    requests = ("--reduce-scatter", "tp=1GiB", "--send", "dp=1MiB", *RESTRICTIONS)
    if not Path(plan).exists():
        assert cli("solve", "-t", tiny, "--axes", "dp=2,tp=4", *requests, "-o", plan).code == 0
    changed = json.loads(Path(plan).read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        *path, last = data.draw(st.sampled_from(places(changed)))
        at: Any = changed
        for key in path:
            at = at[key]
        at[last] = data.draw(SCALARS)
    Path(tiny + ".json").write_text(json.dumps(changed))
    outcome = cli("verify", tiny + ".json", "--json")
    if outcome.code == 2:
        assert_one_error(outcome)
    else:
        assert outcome.code == (0 if outcome.json()["verdict"] == "valid" else 1)
