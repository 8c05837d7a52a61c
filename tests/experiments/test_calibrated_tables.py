"""Calibration on published tables predicts a table that it has not seen."""

from __future__ import annotations

import numpy as np

from experiments.accuracy.hold_out import FAMILIES, samples_of
from experiments.tables.tables import tables
from p2smt.calibration.build import calibrate
from p2smt.calibration.predict import Predictor
from p2smt.cluster.file import load_topology


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
