"""Files of nccl-tests to what a calibration takes: a starting topology and samples."""

from __future__ import annotations

import os
from collections.abc import Sequence

from p2smt.calibration.samples import Measurements
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.read import Measured, read_nccl_tests
from p2smt.interop.nccl_tests.samples import derived_topology, samples_of

MAX_FILES = 100


def measurements_of(
    paths: Sequence[str],
    topology: Topology | None = None,
    collective: Collective | None = None,
    ranks: int | None = None,
) -> Measurements:
    """The measurements in some files; without a topology, that of their device lists.

    Raises:
        InputError: a file is malformed, or leaves open what ran or where.
    """
    if not 1 <= len(paths) <= MAX_FILES:
        raise InputError(f"{len(paths)} files", f"give 1 to {MAX_FILES} files of nccl-tests")
    if len(set(paths)) != len(paths):
        raise InputError("the list of files", "names a file twice", "name each once")
    tables = [found for path in paths for found in read_nccl_tests(path, collective, ranks)]
    start = topology or derived_topology(tables)
    return Measurements(
        start,
        tuple(sample for measured in tables for sample in samples_of(measured, start)),
        tuple(_source(measured) for measured in tables),
        tuple(
            f"{_file(measured)}:{number}" for measured in tables for number in measured.table.wrong
        ),
    )


def _file(measured: Measured) -> str:
    return os.path.basename(measured.table.where.split(", line ")[0])


def _source(measured: Measured) -> str:
    hosts = "" if measured.hosts is None else f" (hosts: {measured.hosts})"
    ran, times = f"{measured.collective.value}, {measured.ranks} ranks", len(measured.table.timings)
    return f"nccl-tests {_file(measured)}: {ran}{hosts}, {times} times"
