"""Jobs of p2smt on a test cluster: its nodes as a fleet, runs, calibration, and its description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.testbed.calibration import Rows, rows_of
from experiments.testbed.spec import NetworkSpec, Node
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective
from p2smt.runtime.job import Job
from p2smt.runtime.payload import RunOptions
from p2smt.runtime.ranks.measure import measure
from p2smt.runtime.ranks.on_ranks import Fleet, StartCommand, launch
from p2smt.runtime.summary import RunResult, summarize

LIMIT_S = 3000.0


def fleet_of(nodes: Sequence[Node]) -> Fleet:
    """The nodes as machines of the launcher."""
    machines = tuple(StartCommand(node.prefix, node.variables) for node in nodes)
    return Fleet(machines, nodes[0].address, int(nodes[0].variables["MASTER_PORT"]))


def run(
    job: Job, fleet: Fleet, repeat: int, timed: tuple[str, ...] = ("program", "baseline", "steps")
) -> RunResult:
    """Run all requests of a job.  Results are checked where nothing is timed, or in chunks."""
    check = repeat == 0 or any(request.chunks > 1 for request in job.requests)
    options = RunOptions(repeat=repeat, warmup=0, time_limit_s=LIMIT_S, check=check, timed=timed)
    return summarize(job, launch(job, options, fleet))


def calibration_here(nominal: Topology, fleet: Fleet, repeat: int, sizes: Sequence[int]) -> Rows:
    """Measured times of every collective on every level with payloads of these bytes."""
    options = RunOptions(repeat=repeat, warmup=0, time_limit_s=LIMIT_S)
    samples = measure(nominal, options, sizes, lambda job, how: launch(job, how, fleet))
    if samples is None:
        raise RuntimeError("ranks of our own hand in no report")
    return rows_of([sample for sample in samples if isinstance(sample.operation, Collective)])


def cluster_data(spec: NetworkSpec, ranks_per_node: int) -> dict[str, Any]:
    """A test cluster as plain data; rates in Mbit/s, nodes of unequal racks one by one."""
    return {
        "racks": len(spec.racks),
        "nodes_per_rack": spec.racks[0] if spec.equal else list(spec.racks),
        **({"hosts": list(spec.hosts)} if spec.hosts else {}),
        "ranks_per_node": ranks_per_node,
        "uplink_mbit_per_s": spec.uplink_bytes_per_s * 8 / 1e6,
        "rack_mbit_per_s": spec.rack_bytes_per_s and spec.rack_bytes_per_s * 8 / 1e6,
    }
