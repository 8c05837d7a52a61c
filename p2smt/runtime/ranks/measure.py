"""Measures every collective on every grouping of a cluster's levels, for calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from p2smt.calibration.fitted_levels import with_library
from p2smt.calibration.samples import Measurements, Sample
from p2smt.cluster.library.registry import library_names
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.errors import ExecutionError, InputError
from p2smt.programs.program import Grouping, groupings, local_groups
from p2smt.runtime.job import Job, JobRequest, JobStep, ordered
from p2smt.runtime.payload import RankReport, RunOptions
from p2smt.runtime.ranks.on_ranks import execute
from p2smt.runtime.summary import Times, summarize

Run = Callable[[Job, RunOptions], list[RankReport] | None]
"""Runs a job; None on ranks that do not get the reports."""

_KINDS = {collective: kind for kind, collective in DIRECT.items()}
"""Requests whose ranks start with the rows that a collective needs; the others start with all."""


_MPIS = ("openmpi", "mpich")
"""How the names of libraries that are MPI's begin."""


@dataclass(frozen=True, slots=True)
class _Point:
    collective: Collective
    grouping: Grouping
    payload_bytes: int


def points(topology: Topology, sizes: Sequence[int]) -> Iterator[_Point]:
    """What is measured.  All groups of a grouping run at once, so sharing is measured too:
    one device of each entity (master), all of them side by side (parallel), whole subtrees.
    """
    depth = sum(size > 1 for size in topology.sizes)
    for grouping in groupings(depth):
        for collective in Collective:
            for payload in sizes:
                yield _Point(collective, grouping, payload)


def measurement_job(topology: Topology, sizes: Sequence[int]) -> Job:
    """A request of one step per point; its results are not those of a request.

    Raises:
        InputError: the topology has places without a host.
    """
    if topology.installed < topology.devices:
        rule = "has places without a host, so that its levels cannot be measured evenly"
        raise InputError(f"topology {topology.name}", rule, "measure equal parts of it")
    factors = [size for size in topology.sizes if size > 1]
    return Job(topology.devices, tuple(_request(factors, p) for p in points(topology, sizes)))


def _request(factors: Sequence[int], point: _Point) -> JobRequest:
    groups = ordered(local_groups(factors, point.grouping).tolist())
    step = JobStep(point.collective.value, point.collective, groups)
    kind = _KINDS.get(point.collective, RequestKind.ALL_REDUCE)
    name = f"{point.collective.value} over levels {point.grouping.outer} to {point.grouping.inner}"
    return JobRequest(name, kind, groups, (step,), point.payload_bytes)


def measure(
    topology: Topology, options: RunOptions, sizes: Sequence[int], run: Run
) -> list[Sample] | None:
    """Measured times of every point, medians over the repetitions of the slowest rank.

    Returns None where ``run`` does.

    Raises:
        ExecutionError: a rank died or failed.
    """
    job = measurement_job(topology, sizes)
    reports = run(job, replace(options, check=False, timed=("program",)))
    if reports is None:
        return None
    found = summarize(job, reports)
    return [
        _sample(point, result.total)
        for point, result in zip(points(topology, sizes), found.requests, strict=True)
    ]


def _sample(point: _Point, times: Times) -> Sample:
    if times.median_s is None:
        raise ExecutionError(f"{point.collective.value}: was not timed on any rank")
    return Sample(
        point.collective,
        point.grouping,
        point.payload_bytes,
        times.median_s,
        times.spread_s or 0.0,
        source="measured",
    )


def measurements_here(
    topology: Topology, options: RunOptions, sizes: Sequence[int]
) -> Measurements | None:
    """Measure every level of a topology on this cluster's ranks, a rank per device.

    The topology gives levels and sizes.  Its rates are where a fit starts, and bound nothing.  The
    backend is the library, unless the topology is to have none: then its overrides become the
    algorithms that the times show.
    Returns None on every rank but 0 of ranks that existed already.

    Raises:
        InputError, BackendError, ExecutionError: as for
            :func:`p2smt.runtime.ranks.on_ranks.execute`.
    """
    samples = measure(topology, options, sizes, execute)
    if samples is None:
        return None
    what = f"measured: {topology.devices} ranks, {options.backend}, {options.data_type.value}"
    found = _under(topology, options.backend) if topology.library else topology
    found = found if found.library else with_library(found, samples)
    return Measurements(found, tuple(samples), (what,), here=True)


def _under(topology: Topology, backend: str) -> Topology:
    """The topology with the library that ran: of nccl and mpi there are several, which it names."""
    if backend == "mpi" and not topology.library_name.startswith(_MPIS):
        return topology.under("none")
    return topology.under(backend) if backend in library_names() else topology
