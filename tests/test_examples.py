"""Each script of examples/ runs as a user would run it, and prints an answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAYS = {
    "check_a_schedule": ("ring: valid", "without its last step: invalid"),
    "compare_programs": ("one call", "three"),
    "place_a_job": ("optimal: ", "reduce-scatter inside node"),
    "plan_a_training_run": ("optimal: tp=",),
    "reshard_an_array": ("optimal: ", "all-to-all tp from dim 1 to dim 0"),
}


def test_every_example_is_tried() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    """In a folder of its own: it leaves nothing behind, and needs nothing beside it."""
    script = ROOT / "examples" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [words for words in SAYS[name] if words not in done.stdout] == []
    assert list(tmp_path.iterdir()) == []
