"""``p2smt export --to jax-shard-map``."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from p2smt.resharding.plan_file import redistribution_plan_data, redistribution_text
from p2smt.resharding.redistribution_plan import RedistributionPlan
from tests.cli.tools import cli
from tests.resharding.planning import array_type, best_plan


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """A plan file."""
    path = tmp_path / "plan.json"
    path.write_text(redistribution_text(swapped()))
    return str(path)


def swapped() -> RedistributionPlan:
    """Rows to columns on eight devices."""
    mesh, shape = "a=2,b=4", (16, 16)
    return best_plan(array_type(mesh, shape, "S(a),S(b)"), array_type(mesh, shape, "S(b),S(a)"))


def test_stdout_or_a_file(plan: str, tmp_path: Path) -> None:
    out = cli("export", plan, "--to", "jax-shard-map")
    assert out.code == 0, out.err
    assert "Written by p2smt from plan.json." in str(ast.get_docstring(ast.parse(out.out)))
    path = tmp_path / "moves.py"
    assert cli("export", plan, "--to", "jax-shard-map", "-o", str(path)).code == 0
    assert path.read_text() == out.out


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (("--to", "csv"), "--to 'csv': is not for the plan of a redistribution"),
        (("--to", "jax-shard-map", "--by-host"), "has its devices in order"),
        (("--to", "jax-shard-map", "--hosts", "a,b"), "has its devices in order"),
        (("--to", "jax-shard-map", "-o", "{plan}"), "is a file that is read"),
    ],
)
def test_what_is_refused(options: tuple[str, ...], rule: str, plan: str) -> None:
    out = cli("export", plan, *(option.format(plan=plan) for option in options))
    assert (out.code, len(out.err.splitlines())) == (2, 1)
    assert rule in out.err


def test_no_code_is_written_for_a_plan_that_is_wrong(tmp_path: Path) -> None:
    """Its steps keep their rules and lead elsewhere."""
    data = redistribution_plan_data(swapped())
    path, output = tmp_path / "wrong.json", tmp_path / "moves.py"
    path.write_text(json.dumps(data | {"steps": data["steps"][:-1]}))
    out = cli("export", str(path), "--to", "jax-shard-map", "-o", str(output))
    assert (out.code, len(out.err.splitlines()), output.exists()) == (2, 1, False)
    assert "see p2smt verify" in out.err


def test_it_is_for_redistributions_only(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    out = cli("export", str(other), "--to", "jax-shard-map")
    assert (out.code, "is for the plan of a redistribution" in out.err) == (2, True)
