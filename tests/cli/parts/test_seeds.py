"""Twenty seeds on one, two and four workers of both engines: one plan file, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.tools import H100, SMALL, TINY, cli

pytestmark = pytest.mark.evidence

ASKED = (
    *("plan", "-m", "m.yaml", "-t", "t.yaml", "--prices", "programs", "--within", "20%"),
    *("--global-batch", "16", "--seq", "256"),
)
BUDGETS = ((), ("--budget", "1us"), ("--budget", "20ms"))
"""Without splits, with all of them, and with those that chance makes."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster, a model, and the plan of a search in one piece."""
    folder = tmp_path_factory.mktemp("seeds")
    (folder / "t.yaml").write_text(TINY + H100)
    (folder / "m.yaml").write_text("name: m\n" + SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert cli(*ASKED, "-o", "whole.json").code == 0
    return folder


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_every_seed_gives_the_same_file(
    files: Path, monkeypatch: pytest.MonkeyPatch, engine: str, processes: int, seed: int
) -> None:
    if engine == "dask":
        pytest.importorskip("distributed")
    monkeypatch.chdir(files)
    spread = ("--engine", engine, "--processes", str(processes), *BUDGETS[seed % len(BUDGETS)])
    assert cli(*ASKED, *spread, "--seed", str(seed), "-o", "parts.json").code == 0
    text, known = (files / "parts.json").read_text(), f'"seed": {seed},'
    assert known in text  # all that may differ
    assert text.replace(known, '"seed": 0,') == (files / "whole.json").read_text()
