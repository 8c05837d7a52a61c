"""experiments/executor: the summary of its figures, and a small run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.executor.overhead import main, summary


def test_summary() -> None:
    found = summary([(1.0, 2.0), (3.0, 2.0), (2.0, 4.0), (4.0, 4.0), (5.0, 4.0)])
    assert found == {
        "pairs": 5,
        "program_median_s": 3.0,
        "direct_median_s": 4.0,
        "ratio_of_medians": 0.75,
        "paired_ratio_quartiles": [0.5, 1.0, 1.25],
    }


@pytest.mark.cluster
@pytest.mark.exhaustive
def test_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "overhead.json"
    arguments = "--ranks 2 --payload 64KiB --warmup 1 --pairs 3 --out"
    main([*arguments.split(), str(path)])
    found = json.loads(path.read_text())
    assert len(found["pairs_s"]) == found["pairs"] == 3
    assert found["ratio_of_medians"] > 0
    assert json.loads(capsys.readouterr().out)["payload_bytes"] == 65_536
