"""Every property takes values that can be written down, so that what fails is tried ever after."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.exploring.test_explore import ran
from tests.imports import ROOT

HIDDEN = re.compile(r"st\.(data|randoms|random_module|runner)\(")
MAY = {Path("tests/strategies/draws.py"), Path("tests/exploring/test_written.py")}


def test_no_test_draws_what_cannot_be_written_down() -> None:
    every = {path.relative_to(ROOT): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    assert len(every) > 300
    assert {path for path, text in every.items() if HIDDEN.search(_code(text))} - MAY == set()
    assert HIDDEN.search("@given(st.data())")


def _code(text: str) -> str:
    """Without what is said of it in texts and comments."""
    return re.sub(r"``.*?``", "", text)


@pytest.mark.exhaustive
def test_the_values_of_every_property_have_a_text(tmp_path: Path) -> None:
    """One example of each, in two processes: the same ones every time."""
    found = tmp_path / "found.json"
    options = ["--minutes=60", "--most=1", "--steadily", "--workers=2"]
    options += [f"--state={tmp_path}", f"--found={found}"]
    done = ran(ROOT, "tests.exploring", *options)
    _, _, unwritable = done.stdout.partition("values that cannot be written down:\n")
    lines = unwritable.partition("\n\n")[0].splitlines()
    assert lines == []
    assert done.returncode == 0, done.stdout
