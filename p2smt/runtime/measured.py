"""Measurements of the cluster that p2smt runs on, as a calibration takes them."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.calibration.library import with_library
from p2smt.calibration.nccl_files import Measurements
from p2smt.runtime.measure import measure
from p2smt.runtime.options import RunOptions
from p2smt.runtime.run import execute
from p2smt.topology import Topology


def measurements_here(
    topology: Topology, options: RunOptions, sizes: Sequence[int], port: int = 0
) -> Measurements | None:
    """Measure every level of a topology on this cluster's ranks, a rank per device.

    The topology gives levels and sizes; its library becomes the one that the times show.
    Returns None on every rank but 0 of ranks that existed already.

    Raises:
        InputError, BackendError, ExecutionError: as for :func:`p2smt.runtime.run.execute`.
    """
    samples = measure(topology, options, sizes, lambda job, how: execute(job, how, port=port))
    if samples is None:
        return None
    what = f"measured: {topology.devices} ranks, {options.backend}, {options.data_type.value}"
    found = with_library(topology, samples)
    return Measurements(found, tuple(samples), (what,), always_own=True)
