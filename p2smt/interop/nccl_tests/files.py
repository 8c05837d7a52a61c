"""Files of nccl-tests to what a calibration takes: a starting topology and samples."""

from __future__ import annotations

import os
from collections.abc import Sequence

from p2smt.calibration.samples import Measurements
from p2smt.cluster.topology import Topology
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.read import RankedTable, read_nccl_tests
from p2smt.interop.nccl_tests.samples import derived_topology, samples_of

MAX_FILES = 100


def measurements_of(
    paths: Sequence[str],
    topology: Topology | None = None,
    operation: Operation | None = None,
    ranks: int | Sequence[int | None] | None = None,
) -> Measurements:
    """The measurements in some files; without a topology, that of their device lists.

    ``ranks`` holds for every file, or one number for each (None: as the file tells).

    Raises:
        InputError: a file is malformed, or leaves open what ran or where.
    """
    if not 1 <= len(paths) <= MAX_FILES:
        raise InputError(f"{len(paths)} files", f"give 1 to {MAX_FILES} files of nccl-tests")
    if len(set(paths)) != len(paths):
        raise InputError("the list of files", "names a file twice", "name each once")
    counts = _per_file(paths, ranks)
    tables = [
        found
        for path, count in zip(paths, counts, strict=True)
        for found in read_nccl_tests(path, operation, count)
    ]
    start = topology or derived_topology(tables)
    named = [(measured, _file(measured.table.source, paths)) for measured in tables]
    return Measurements(
        start,
        tuple(sample for measured, file in named for sample in samples_of(measured, start, file)),
        tuple(_source(measured, start, file) for measured, file in named),
        tuple(f"{file}:{line}" for measured, file in named for line in measured.table.wrong),
    )


def _per_file(
    paths: Sequence[str], ranks: int | Sequence[int | None] | None
) -> Sequence[int | None]:
    if ranks is None or isinstance(ranks, int):
        return [ranks] * len(paths)
    if len(ranks) != len(paths):
        given = f"{len(ranks)} numbers of ranks for {len(paths)} files"
        raise InputError(given, "give one for all files, or one for each")
    return ranks


def _file(path: str, paths: Sequence[str]) -> str:
    """The name of a file; its path where another one has the same name."""
    name = os.path.basename(path)
    return name if [os.path.basename(other) for other in paths].count(name) == 1 else path


def _source(measured: RankedTable, topology: Topology, file: str) -> str:
    some = [sample.members for sample in samples_of(measured, topology, file)[:1]]
    inner = topology.levels[-1]
    part = [f"{members} of {inner.name} {inner.size}" for members in some if members]
    hosts = [] if measured.hosts is None else [f"hosts: {measured.hosts}"]
    where = f" ({'; '.join((*part, *hosts))})" if part or hosts else ""
    ran, times = f"{measured.operation.value}, {measured.ranks} ranks", len(measured.table.timings)
    return f"nccl-tests {file}: {ran}{where}, {times} times"
