"""docs/redistribution-training.md: its commands run and print what is shown, its script runs.

As torchrun imports PyTorch once more for every rank, ranks are forked in its place but in one case.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports import ROOT
from tests.pages import blocks, commands, printed, with_programs, without_times
from tests.tiers import but_the_first

TORCHRUN = "torch.distributed.run"
PAGE = ROOT / "docs" / "redistribution-training.md"


@pytest.mark.exhaustive
@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("starter", but_the_first("tests.api.tensors.forked", TORCHRUN))
def test_a_reader_replaces_a_slow_line(starter: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(blocks(PAGE, "yaml")[0])
    (tmp_path / "train.py").write_text(blocks(PAGE, "python")[0])
    environment, done = with_programs(tmp_path), 0
    torchrun = tmp_path / "bin" / "torchrun"
    torchrun.write_text(torchrun.read_text().replace(TORCHRUN, starter))
    for command, lines in commands(PAGE):
        found = printed(command, tmp_path, environment)
        if command.startswith(("p2smt run", "torchrun")):
            found, lines = without_times(found), without_times(lines)
        assert found == lines, command
        done += 1
    assert done == 4
