"""Every short all-reduce program on a shaped test cluster: measured, and predicted.

    python -m experiments.programs_on_testbed.study --nodes 2 --ranks-per-node 8 --rate 200mbit \
        --out experiments/programs_on_testbed/2x8.json

First the cluster is calibrated: each collective on each level, with all groups at once.  Then
every program of length <= 3 for an all-reduce over all ranks is checked and timed once on the same
cluster, the fastest eight are timed against one all-reduce in node order, and the fastest is also
pipelined.  The calibrated model has not seen these times.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.testbed.calibration import fit
from experiments.testbed.model import topology as nominal_topology
from experiments.testbed.network import cluster
from experiments.testbed.ranks import calibration_here, cluster_data, fleet_of, run
from experiments.testbed.script import ended
from experiments.testbed.spec import NetworkSpec, parse_rate, regular
from p2smt.calibration.build import calibrated_yaml
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.scene import Scene
from p2smt.parallelism.placement import Placement
from p2smt.programs.program import Program, parse_program
from p2smt.report.progress import live_line
from p2smt.result import SearchLimits, Status
from p2smt.runtime.job import Job
from p2smt.runtime.programs.plan_job import program_job
from p2smt.runtime.summary import RequestResult, RunResult
from p2smt.search.program_synthesis import Task, list_programs
from p2smt.units import parse_bytes

Data = Mapping[str, Any]
CALIBRATION_BYTES = (96 * 2**10, 384 * 2**10, 3 * 2**19, 5 * 2**20, 10 * 2**20)
"""None of them is a part of 8 MiB that a step works on: every prediction is for a new size."""
LENGTH = 3
FASTEST = 8
CHUNKS = (2, 4, 8)
CHECKED_BYTES = 2**16 + 4


def study(
    spec: NetworkSpec, ranks_per_node: int, payload_bytes: int, repeat: int
) -> dict[str, Any]:
    """Calibrate a cluster, then measure and predict every program on it."""
    nominal = nominal_topology(spec, ranks_per_node)
    with cluster(spec) as nodes, live_line("programs on the test cluster"):
        fleet = fleet_of(nodes)
        rows = calibration_here(nominal, fleet, repeat, CALIBRATION_BYTES)
        calibrated = fit(nominal, rows)
        job = programs_job(calibrated.topology, payload_bytes)
        checked = run(programs_job(calibrated.topology, CHECKED_BYTES), fleet, repeat=0)
        every = run(job, fleet, repeat=1, timed=("steps",))
        chosen = tuple(result.request for result in by_time(every)[:FASTEST])
        fastest = run(Job(job.ranks, chosen), fleet, repeat)
        best = by_time(fastest)[0].request.name
        pipelined = run(pipelined_job(calibrated.topology, best, payload_bytes), fleet, repeat)
    programs = [program_data(request) for request in by_time(every)]
    timed = [program_data(request) for request in by_time(fastest)]
    return {
        "cluster": cluster_data(spec, ranks_per_node),
        "machine": f"{os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("p2smt", "torch", "numpy", "scipy")},
        "date": date.today().isoformat(),
        "payload_bytes": payload_bytes,
        "repeat": repeat,
        "verified": checked.verified and pipelined.verified,
        "topology": calibrated_yaml(calibrated, date.today().isoformat()),
        "calibration": rows,
        **summary(programs, timed),
        "fastest": timed,
        "pipelined": [program_data(request) for request in pipelined.requests],
        "every_once": programs,
    }


def programs_job(topology: Topology, payload_bytes: int) -> Job:
    """Every program of an all-reduce over all ranks, one request each."""
    placement = Placement((topology.sizes,))
    task = Task(RequestKind.ALL_REDUCE, Scene.of(topology, placement, (0,)).hierarchy, LENGTH)
    programs, _ = list_programs(task, SearchLimits())
    if programs.status is not Status.COMPLETE:
        raise RuntimeError(f"the list of programs is {programs.status.value}")
    jobs = [_job(topology, placement, program, payload_bytes) for program in programs.value or ()]
    return Job(topology.devices, tuple(request for job in jobs for request in job.requests))


def pipelined_job(topology: Topology, text: str, payload_bytes: int) -> Job:
    """One program in several numbers of chunks."""
    placement, program = Placement((topology.sizes,)), parse_program(text)
    jobs = [_job(topology, placement, program, payload_bytes, chunks) for chunks in CHUNKS]
    return Job(topology.devices, tuple(request for job in jobs for request in job.requests))


def _job(
    topology: Topology, placement: Placement, program: Program, payload_bytes: int, chunks: int = 1
) -> Job:
    kind, name = RequestKind.ALL_REDUCE, str(program)
    return program_job(topology, placement, (0,), kind, program, payload_bytes, chunks, name)


def by_time(result: RunResult) -> list[RequestResult]:
    """The programs, the fastest first."""
    return sorted(result.requests, key=time_of)


def time_of(result: RequestResult) -> float:
    """Measured time of a program; the sum of its steps where only these were timed."""
    if result.total.median_s is not None:
        return result.total.median_s
    return sum(step.median_s or 0.0 for step in result.steps)


def summary(every: Sequence[Data], fastest: Sequence[Data]) -> dict[str, Any]:
    """The figures of the study, from its programs as :func:`program_data` has them."""
    order = sorted(fastest, key=lambda one: float(one["measured_s"]))
    predicted = sorted(every, key=lambda one: float(one["predicted_s"]))
    errors, best = step_errors(every), order[0]
    baseline = statistics.median(s for one in fastest for s in one["baseline_samples_s"])
    return {
        "baseline_s": baseline,
        "best": best["program"],
        "best_s": best["measured_s"],
        "speedup": baseline / best["measured_s"],
        "step_error_median": statistics.median(errors),
        "step_error_max": max(errors),
        "step_error_median_of_fastest": statistics.median(step_errors(order)),
        "steps": len(errors),
        "measured_first_three": [one["program"] for one in order[:3]],
        "predicted_first_three": [one["program"] for one in predicted[:3]],
    }


def step_errors(programs: Sequence[Data]) -> list[float]:
    """abs(predicted / measured - 1) of every step."""
    return [
        abs(step["predicted_s"] / step["measured_s"] - 1)
        for one in programs
        for step in one["steps"]
        if step["predicted_s"] and step["measured_s"]
    ]


def program_data(result: RequestResult) -> dict[str, Any]:
    """One program: its times, and those of its steps, in seconds."""
    return {
        "program": result.request.name,
        "chunks": result.request.chunks,
        "predicted_s": result.request.predicted_s,
        "measured_s": time_of(result),
        "samples_s": [round(s, 6) for s in result.total.samples],
        "baseline_samples_s": [round(s, 6) for s in result.baseline.samples],
        "steps": [
            {"predicted_s": step.predicted_s, "measured_s": times.median_s}
            for step, times in zip(result.request.steps, result.steps, strict=True)
        ],
    }


def main(arguments: Sequence[str]) -> None:
    """Run the study and write its JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, required=True, help="nodes, in each rack")
    parser.add_argument("--ranks-per-node", type=int, required=True)
    parser.add_argument("--rate", required=True, help="rate of a node's uplink, like 200mbit")
    parser.add_argument("--racks", type=int, default=1)
    parser.add_argument("--rack-rate", help="rate of a rack's uplink")
    parser.add_argument("--payload", default="8MiB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    spec = regular(
        nodes=given.nodes,
        uplink_bytes_per_s=parse_rate(given.rate, "--rate"),
        racks=given.racks,
        rack_bytes_per_s=given.rack_rate and parse_rate(given.rack_rate, "--rack-rate"),
    )
    found = study(spec, given.ranks_per_node, parse_bytes(given.payload, "--payload"), given.repeat)
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
