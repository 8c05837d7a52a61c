"""The calibration of a test cluster as data: its measured times, and the fit to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.testbed.model import topology
from experiments.testbed.spec import NetworkSpec
from p2smt.calibration.build import Calibration, calibrate
from p2smt.calibration.samples import Predictor, Sample
from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import NO_LIBRARY, Topology
from p2smt.collectives.names import Collective
from p2smt.programs.program import Grouping, groupings

Rows = list[list[Any]]
"""A measured time each: collective, outer, inner, master (as groupings have them), bytes, s."""


def rows_of(samples: Sequence[Sample]) -> Rows:
    """Samples as rows."""
    return [
        [s.operation.value, *_levels(s.grouping), s.payload_bytes, float(f"{s.seconds:.6g}")]
        for s in samples
    ]


def _levels(grouping: Grouping) -> tuple[int, int, bool]:
    return grouping.outer, grouping.inner, grouping.master


def samples_of(rows: Rows) -> list[Sample]:
    """The samples of rows."""
    return [
        Sample(Collective(name), Grouping(outer, inner, master), size, seconds, source="measured")
        for name, outer, inner, master, size, seconds in rows
    ]


def restored(text: str, sizes: Sequence[int]) -> Rows:
    """The times of an earlier calibration, by the fit that was kept of it.

    Such a file has latencies and rates of its own for each collective on each level, fitted to
    measured times of these sizes and priced without a library.
    """
    fitted = parse_topology(text, "a stored fit").under(NO_LIBRARY)
    depth = sum(size > 1 for size in fitted.sizes)
    asked = [
        Sample(collective, grouping, size, 1.0)
        for grouping in groupings(depth)
        for collective in Collective
        for size in sizes
    ]
    seconds = Predictor.of(fitted, asked).seconds(fitted)
    return rows_of([replace(s, seconds=t) for s, t in zip(asked, seconds.tolist(), strict=True)])


def cluster_topology(cluster: Mapping[str, Any]) -> Topology:
    """The nominal topology of a cluster that :func:`cluster_data` describes."""
    rack, nodes = cluster["rack_mbit_per_s"], cluster["nodes_per_rack"]
    spec = NetworkSpec(
        tuple(nodes) if isinstance(nodes, list) else (nodes,) * cluster["racks"],
        cluster["uplink_mbit_per_s"] * 1e6 / 8,
        rack and rack * 1e6 / 8,
        tuple(cluster.get("hosts", ())),
    )
    return topology(spec, cluster["ranks_per_node"])


def fit(nominal: Topology, rows: Rows) -> Calibration:
    """The constants of Gloo on a test cluster.

    Rates above the nominal ones are allowed: the shaper lets a burst pass, and the loopback's is
    rough.
    """
    return calibrate(nominal, samples_of(rows), allow_above_nominal=True)
