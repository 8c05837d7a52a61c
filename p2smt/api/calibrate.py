"""Links fitted to measured times: measurements from files or made here, and the fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from p2smt.api.files import StrPath
from p2smt.calibration import build
from p2smt.calibration.build import Calibration
from p2smt.calibration.fit import SIZES_PER_PIECE
from p2smt.calibration.samples import Measurements
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cost.algorithms import Operation
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.calibration_files import measurements_of
from p2smt.interop.osu import OSU
from p2smt.runtime.payload import RunOptions

SIZES = (2**14, 2**16, 2**18, 2**20, 2**22, 2**23)


def read_measurements(
    *paths: StrPath,
    topology: Topology | None = None,
    operation: Operation | None = None,
    ranks: int | Sequence[int | None] | None = None,
    algorithms: Sequence[tuple[Algorithm, ...] | None] | None = None,
    source: Literal["nccl-tests", "osu"] = "nccl-tests",
) -> Measurements:
    """The measurements in outputs of nccl-tests, in their -J reports, or of OSU micro-benchmarks.

    Args:
        paths: the files, each once.
        topology: where they ran; without, that of their device lists.
        operation: what ran, where a file does not tell.
        ranks: of every file, if not as it says; or one number for each (None: as it says).  Those
            of OSU never say.
        algorithms: what ran, for each file (None: nothing is known of it).
        source: who printed the files.

    Raises:
        InputError: a file is malformed, or leaves open what ran or where.
    """
    printed = OSU if source == "osu" else None
    names = [os.fspath(path) for path in paths]
    return measurements_of(names, topology, operation, ranks, algorithms, printed)


def measure(
    topology: Topology, options: RunOptions | None = None, sizes: Sequence[int] = SIZES
) -> Measurements | None:
    """Run every collective on every grouping of a cluster, on a rank per device.

    Args:
        topology: its levels and sizes; its times do not count.
        options: backend (gloo or nccl), repetitions, time limit and so on.
        sizes: payloads in bytes.

    Returns:
        None on every rank but 0 of ranks that existed already (torchrun, srun).

    Raises:
        InputError: too few sizes for a fit, or a backend without links.
        BackendError, ExecutionError: the ranks could not be run.
    """
    from p2smt.runtime.ranks.measure import measurements_here

    options = options or RunOptions()
    if options.backend == "reference":
        raise InputError("backend reference", "has no links to measure", "use gloo or nccl")
    payloads = sorted(set(sizes))
    if len(payloads) < SIZES_PER_PIECE:
        rule = f"a fit needs at least {SIZES_PER_PIECE} different ones"
        raise InputError(f"sizes {payloads}"[:80], rule, "give more, up to what matters to you")
    return measurements_here(topology, options, payloads)


def calibrate(
    measurements: Measurements,
    algorithms: Sequence[Algorithm] | None = None,
    allow_above_nominal: bool = False,
) -> Calibration:
    """The topology of the measurements, fitted to their times.

    With a library its own algorithms run, and what it makes of the nominal links is fitted:
    efficiencies, hops and the cost of a call.  Without one the links themselves are.

    Args:
        measurements: by :func:`read_measurements` or :func:`measure`.
        algorithms: what ran; None: what the library chooses, a ring without one.
        allow_above_nominal: a rate may be fitted that is higher than the link's own.

    Raises:
        InputError: too few sizes were measured, or a rate of files is above the nominal one.
    """
    return build.calibrate(
        measurements.topology,
        measurements.samples,
        algorithms,
        measurements.sources,
        measurements.here,
        allow_above_nominal,
    )
