"""What would make a run fit: each change is tried, and does what it says."""

from __future__ import annotations

import re

import pytest

from p2smt.api.workload import estimate
from p2smt.cluster.file import parse_topology
from p2smt.training.prediction import RunEstimate
from p2smt.training.remedies import remedies
from p2smt.training.strategy import Batch, parse_strategy, strategy_text
from p2smt.training.transformer import Transformer
from tests.cli.tools import H100, TINY

MODEL = Transformer("small", 4, 512, 8, 4, 1024, True, 1000, 64)
CLUSTER = parse_topology(TINY + H100, "tiny")


def estimated(strategy: str, memory: int | None = None) -> RunEstimate:
    return estimate(MODEL, CLUSTER, strategy, Batch(16, 1024), "megatron-h100", memory=memory)


def changed(strategy: str, words: str) -> str:
    """The strategy with the keys that a remedy names."""
    keys = dict(part.split("=") for part in strategy_text(parse_strategy(strategy)).split(","))
    keys |= dict(part.split("=") for part in words.split(","))
    return ",".join(f"{key}={value}" for key, value in keys.items())


@pytest.mark.parametrize("strategy", ["dp=8", "tp=2,dp=4,mbs=2", "pp=2,dp=4,zero=1", "cp=2,dp=4"])
def test_what_is_said_to_fit_does(strategy: str) -> None:
    whole = estimated(strategy).prediction.memory.total
    found = remedies(estimated(strategy, whole - 1))
    assert 1 <= len(found) <= 3
    for text in found:
        (parts,) = re.findall(r"^(\S+) fits: (.*) GB$", text)
        words, size = parts
        again = estimated(changed(strategy, words), whole - 1)
        assert again.fits, text
        assert float(size) == pytest.approx(again.prediction.memory.total / 1e9, rel=1e-2)
    assert found[0].count("=") == 1  # one change suffices, so one is told first


def test_what_fits_nowhere_says_what_lacks_least() -> None:
    lacks, more = remedies(estimated("dp=8", 1000))
    words = lacks.split()[0]
    least = estimated(changed("dp=8", words)).prediction.memory.total
    assert "still lacks" in lacks
    for other in ("dp=8,zero=3,recompute=full", "tp=4,sp=1,dp=2,zero=3,recompute=full"):
        assert least <= estimated(other).prediction.memory.total
    assert "more devices" in more
