"""docs/redistribution-jax.md: its commands run and print what is shown, its script runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports import ROOT
from tests.pages import blocks, commands, printed, with_programs

PAGE = ROOT / "docs" / "redistribution-jax.md"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_reader_exports_a_plan(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "use.py").write_text(blocks(PAGE, "python")[0])
    environment, done = with_programs(tmp_path), 0
    for command, lines in commands(PAGE):
        assert printed(command, tmp_path, environment) == lines, command
        done += 1
    assert done == 4
