"""`p2smt export` to frameworks: every row, numberings, and bad input in a line."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.interop.exports import writer_named
from tests.cli.tools import EXIT_CODES, assert_one_error, cli

FRAMEWORKS = ("device-mesh", "jax-mesh", "megatron", "torchtitan", "deepspeed", "python", "jax")
CODE = ("device-mesh", "jax-mesh", "deepspeed", "python", "jax")


@pytest.fixture
def file(tmp_path: Path, plan: dict[str, Any]) -> str:
    """A plan file on two nodes of four devices."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    return str(path)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_stdout_or_a_file(name: str, file: str, tmp_path: Path) -> None:
    assert writer_named(name).name == name
    assert name in cli("export", "--help").out
    out = cli("export", file, "--to", name)
    written = cli("export", file, "--to", name, "-o", str(tmp_path / "out"))
    assert (out.code, written.code, written.out) == (0, 0, ""), out.err
    assert (tmp_path / "out").read_text() == out.out
    if name in CODE:
        ast.parse(out.out)
        assert max(map(len, out.out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by-host", "--launched", "dp,tp"], "number the ranks both"),
        (["--launched", "dp"], "the axes of the plan are"),
        (["--launched", "none"], "No such file"),
        (["--launched", "{folder}"], "is a directory"),
        (["--launched", "{binary}"], "is not UTF-8"),
        (["--launched", "{others}"], "has no rank in plan"),
        (["--launched", "{half}"], "is not started"),
        (["--launched", "{twice}"], "is named twice"),
        (["--launched", "{swapped}"], "torch sorts the ranks of a group"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, file: str, tmp_path: Path
) -> None:
    contents = {
        "others": b"a\nb\n",
        "half": b"node0\n",
        "twice": b"node0\nnode1\nnode0\n",
        "swapped": b"node1\nnode0\n",
        "binary": b"\xff\xfe",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    names = {"folder": str(tmp_path), **{name: str(tmp_path / name) for name in contents}}
    words = [word.format(**names) for word in arguments]
    outcome = cli("export", file, "--to", "device-mesh", "-o", str(tmp_path / "out"), *words)
    assert_one_error(outcome)
    assert message in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", CODE)
def test_a_name_of_a_file_ends_no_string(name: str, plan: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / 'a"""\nraise SystemExit #\\.json'
    path.write_text(json.dumps(plan))
    out = cli("export", str(path), "--to", name)
    assert out.code == 0, out.err
    found = ast.parse(out.out)
    assert not any(isinstance(node, ast.Raise) for node in found.body)
    assert isinstance(found.body[0], ast.Expr)


MUTATIONS = st.tuples(
    st.sampled_from(["groups", "instruction"]),
    st.integers(0, 5),
    st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4)
    | st.sampled_from(
        ["reduce-scatter inside node", "all-gather inside root", "broadcast inside node", "x"]
    ),
)


@given(MUTATIONS, st.sampled_from(["python", "jax"]))
def test_any_steps_are_exported_or_refused_in_a_line(
    tmp_path_factory: pytest.TempPathFactory,
    plan: dict[str, Any],
    change: tuple[str, int, object],
    name: str,
) -> None:
    """What is exported is Python at least."""
    key, at, value = change
    changed = json.loads(json.dumps(plan))
    steps = [step for request in changed["requests"] for step in request["steps"]]
    steps[at % len(steps)][key] = value
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(json.dumps(changed))
    outcome = cli("export", str(path), "--to", name)
    assert outcome.code in EXIT_CODES
    if outcome.code:
        assert_one_error(outcome)
    else:
        ast.parse(outcome.out)
