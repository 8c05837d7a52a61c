"""Predicts the measured programs anew, from the times of each cluster's calibration alone.

    python -m experiments.programs_on_testbed.predict

writes predictions, fit and figures into the JSON files; measured times stay.  A calibration that
was kept as a fit without a library (``first_fit``) counts as the times that this fit gives for the
measured sizes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.programs_on_testbed.study import (
    CALIBRATION_BYTES,
    Data,
    pipelined_job,
    programs_job,
    summary,
)
from experiments.testbed.calibration import Rows, cluster_topology, fit, restored
from experiments.testbed.script import ended
from p2smt.calibration.build import calibrated_yaml
from p2smt.runtime.job import JobRequest

HERE = Path(__file__).resolve().parent


def calibration_rows(data: Data) -> Rows:
    """The measured times of a calibration, or those of the fit that was kept of it."""
    found: Rows = data.get("calibration") or restored(data["first_fit"], CALIBRATION_BYTES)
    return found


def predicted(data: Data) -> dict[str, Any]:
    """The results of a cluster with predictions by the fit to its calibration."""
    found = fit(cluster_topology(data["cluster"]), calibration_rows(data))
    requests = list(programs_job(found.topology, data["payload_bytes"]).requests)
    for name in {one["program"] for one in data["pipelined"]}:
        requests += pipelined_job(found.topology, name, data["payload_bytes"]).requests
    lists = {
        name: list(_with(data[name], requests)) for name in ("fastest", "pipelined", "every_once")
    }
    return {
        **data,
        "topology": calibrated_yaml(found, data["date"]),
        **summary(lists["every_once"], lists["fastest"]),
        **lists,
    }


def _with(programs: Iterable[Data], requests: Sequence[JobRequest]) -> Iterable[dict[str, Any]]:
    """The programs with the times that these requests are predicted to take."""
    known = {(request.name, request.chunks): request for request in requests}
    for one in programs:
        request = known[one["program"], one["chunks"]]
        steps = [
            {**step, "predicted_s": now.predicted_s}
            for step, now in zip(one["steps"], request.steps, strict=True)
        ]
        yield {**one, "predicted_s": request.predicted_s, "steps": steps}


def main(_: Sequence[str]) -> None:
    """Predict every cluster."""
    for path in sorted(HERE.glob("*.json")):
        found = predicted(json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{path.stem}: median error of a step {found['step_error_median']:.3f}")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
