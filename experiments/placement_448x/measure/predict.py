"""Predicts the measured clusters anew, from the times of their calibrations alone.

    python -m experiments.placement_448x.measure.predict

writes predictions, fit and figures into ``measured_*.json``; measured times stay.  A cluster whose
calibration was kept as a fit without a library (``first_fit``) is calibrated to the times that this
fit gives for the measured sizes.  A cluster that was not calibrated is predicted by the fit of
another one, its uplinks scaled to their rate.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.placement_448x.measure.pairs import pairs_of, predicted_s
from experiments.placement_448x.measure.summary import summary
from experiments.placement_448x.store import HERE, rounded
from experiments.testbed.calibration import Rows, cluster_topology, fit, restored
from experiments.testbed.script import ended
from experiments.testbed.written.results import read, write
from p2smt.calibration.build import calibrated_yaml
from p2smt.cluster.topology import Topology
from p2smt.report.progress import counted

Data = Mapping[str, Any]
LIKE = {"measured_ratio": "measured_2x8"}
"""Clusters that were not calibrated, and those of the same shape that were."""


def calibration_rows(data: Data) -> Rows:
    """The measured times of a calibration, or those of the fit that was kept of it."""
    if data.get("calibration"):
        return list(data["calibration"])
    return restored("\n".join(data["first_fit"]), data["calibration_bytes"])


def predicted(data: Data, topology: Topology) -> dict[str, Any]:
    """The results with predictions by this topology."""
    entries = [dict(entry) for entry in data["entries"]]
    large = [dict(entry) for entry in data["large"]]
    pairs = pairs_of(topology, data["payload_bytes"])
    for case, (_, rows) in zip(data["cases"], pairs.cases, strict=True):
        for (_, own), (_, numbers) in zip(case["placements"], rows, strict=True):
            seconds = {pairs.entries[n].name: predicted_s(pairs.entries[n]) for n in numbers}
            for n in own:
                entries[n]["predicted_s"] = rounded(seconds[entries[n]["program"]], 6)
    if large:
        _predict_large(large, topology, data["large_payload_bytes"])
    return {**data, "entries": entries, "large": large}


def _predict_large(large: Sequence[dict[str, Any]], topology: Topology, payload: int) -> None:
    """The same for what was timed with a larger payload, once for each shape of group."""
    pairs, known = pairs_of(topology, payload), dict[tuple[tuple[int, ...], str], float]()
    for factors, request in zip(pairs.factors, pairs.entries, strict=True):
        known.setdefault((factors, request.name), predicted_s(request))
    for entry in large:
        seconds = known[tuple(entry["factors"]), entry["program"]]
        entry["predicted_s"] = rounded(seconds, 6)


def calibrated(data: Data) -> dict[str, Any]:
    """A calibrated cluster, predicted anew."""
    found = fit(cluster_topology(data["cluster"]), calibration_rows(data))
    again = predicted(data, found.topology)
    date = data["header"]["date"]
    again["topology"] = calibrated_yaml(found, date).split("\n")
    return {**again, "summary": summary(again["entries"], again["cases"], predicted=True)}


def borrowed(data: Data, other: Data) -> dict[str, Any]:
    """A cluster that was not calibrated, predicted by the fit of another with other uplinks."""
    found = fit(cluster_topology(other["cluster"]), calibration_rows(other)).topology
    factor = data["cluster"]["uplink_mbit_per_s"] / other["cluster"]["uplink_mbit_per_s"]
    again = predicted(data, found.with_bandwidth_factor(found.names.index("node"), factor))
    return {**again, "summary": summary(again["entries"], again["cases"], predicted=False)}


def _path(name: str) -> Path:
    return HERE / f"{name}.json"


def main(names: Sequence[str]) -> None:
    """Predict the clusters of these files, or of all."""
    every = sorted(path.stem for path in HERE.glob("measured_*.json"))
    for name in counted(names or every, "clusters"):
        data = read(_path(name))
        other = LIKE.get(name)
        found = borrowed(data, read(_path(other))) if other else calibrated(data)
        write(_path(name), found)
        print(f"{name}: {len(found['entries'])} entries")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
