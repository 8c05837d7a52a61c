"""Calibration on published tables predicts a table that it has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.accuracy.hold_out import FAMILIES, samples_of
from experiments.tables.tables import tables
from p2smt.calibration.build import calibrate, doubts
from p2smt.calibration.samples import Predictor
from p2smt.cluster.file import load_topology
from tests.imports import ROOT


def test_one_and_two_nodes_of_h100_predict_four() -> None:
    """All but one of the rows from 1 KiB up within 1.3; the tables are of NCCL 2.20's time."""
    (names,) = (family.names for family in FAMILIES if family.topology == "dgx-h100:4")
    start = load_topology("dgx-h100:4").under("nccl-2.20")
    one, two, four = (samples_of(tables()[name], start) for name in names)
    fitted = calibrate(start, [*one, *two]).topology
    asked = [sample for sample in four if sample.payload_bytes >= 1024]
    ratios = Predictor.of(fitted, asked).seconds(fitted) / [sample.seconds for sample in asked]
    assert len(asked) == 25
    assert (np.maximum(ratios, 1 / ratios) <= 1.3).sum() >= 24


@pytest.mark.exhaustive
def test_a_rate_that_no_long_run_tells_is_kept() -> None:
    """Trees run the tables' small and middling sizes alone: their latencies tell no rate."""
    start = load_topology("dgx-h100:4")
    (names,) = (family.names for family in FAMILIES if family.topology == "dgx-h100:4")
    samples = [sample for name in names for sample in samples_of(tables()[name], start)]
    fitted = calibrate(start, samples)
    inside = start.levels[1].link
    assert fitted.topology.levels[1].link.efficiency_of("tree") == inside.efficiency_of("tree")
    assert not [line for line in doubts(fitted) if "efficiency" in line]


def test_what_the_page_says_of_filling_pipelines_is_what_the_tables_say() -> None:
    """Times of 64 to 512 MiB, less their bytes at the rate of the largest row."""
    page = " ".join((ROOT / "docs" / "cost-model.md").read_text(encoding="utf-8").split())
    for name in ("dell-xe9680-h100-8xNDR400-2x8", "b200-vultr-2x8", "aws-p5-2x8"):
        rows = dict(tables()[name].rows)
        largest = max(rows)
        sizes = [size for size in rows if 2**26 <= size <= 2**29]
        more = [1e6 * (rows[size] - size * rows[largest] / largest) for size in sizes]
        assert f"{min(more):.0f} to {max(more):.0f} us (`{name}`" in page
