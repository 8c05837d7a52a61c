"""A calibrated topology: fitted to measured times from several tables together.

With a library its algorithms run, and the fit seeks what they make of the nominal links
(:mod:`p2smt.calibration.effective`); without one the links themselves are fitted in pieces
(:mod:`p2smt.calibration.levels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from p2smt.calibration.effective.fit import FittedConstant, fit_constants
from p2smt.calibration.levels import LevelFit, fit_levels
from p2smt.calibration.limits import check_pieces, check_times
from p2smt.calibration.named import sample_notes
from p2smt.calibration.predict import Predictor
from p2smt.calibration.samples import Sample, usages
from p2smt.calibration.tables import TableFit, table_errors, table_fits
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cost.named import running
from p2smt.errors import InputError

RING = (Algorithm.RING,)
LEAST_SIZES = 2
"""Of one message size a rate and a latency may each stand for the other."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibrated topology, and how well it meets what it was fitted to.

    ``levels`` reports the pieces of each level, outermost first (none with a library),
    ``constants`` what was fitted or kept of a library's (none without one).  ``tables`` holds
    errors by table, ``unexplained`` the times that a library's constants cannot explain, with the
    predicted one: those off by more than a factor of ``unexplained_beyond`` (1 without a library).
    ``notes`` says in words which samples cannot have run by the algorithms named.
    """

    topology: Topology
    levels: tuple[LevelFit, ...]
    sources: tuple[str, ...] = ()
    constants: tuple[FittedConstant, ...] = ()
    tables: tuple[TableFit, ...] = ()
    unexplained: tuple[tuple[Sample, float], ...] = ()
    unexplained_beyond: float = 1.0
    notes: tuple[str, ...] = ()


def calibrate(
    topology: Topology,
    samples: Sequence[Sample],
    algorithms: Sequence[Algorithm] | None = None,
    sources: Sequence[str] = (),
    always_own: bool = False,
    allow_above_nominal: bool = False,
) -> Calibration:
    """The topology fitted to ``samples``, which come from one table or several.

    ``sources`` join those it has.  ``algorithms`` is what ran; None: what the library chooses, a
    ring without one.  ``always_own``: without a library, every collective gets pieces of its own.

    Raises:
        InputError: no sample, too few message sizes, a sample whose groups the topology does not
            have, algorithms by which none can have run, or a rate above the nominal one that is
            not allowed.
    """
    if not samples:
        raise InputError("a calibration", "has no measurement", "give at least one file")
    start = replace(topology, sources=(*topology.sources, *sources))
    ran = None if algorithms is None else tuple(algorithms)
    notes, allow = sample_notes(start, samples, ran), allow_above_nominal
    if topology.library:
        found = _with_library(running(start, ran), samples, tuple(sources), allow)
    else:
        found = _in_pieces(start, samples, ran or RING, tuple(sources), always_own, allow)
    return replace(found, notes=notes)


def _with_library(
    topology: Topology, samples: Sequence[Sample], sources: tuple[str, ...], allow: bool
) -> Calibration:
    _check_sizes(samples)
    if not allow:
        check_times(topology, samples)
    found = fit_constants(topology, samples, allow)

    def again(seen: Sequence[Sample], asked: Sequence[Sample]) -> NDArray[np.float64]:
        return _predicted(fit_constants(topology, seen, allow).topology, asked)

    tables = table_fits(samples, found.predicted_s, again)
    return Calibration(
        replace(found.topology, errors=table_errors(found.topology, tables)),
        (),
        sources,
        found.constants,
        tables,
        tuple((samples[i], found.predicted_s[i]) for i in found.outliers),
        found.outlying,
    )


def _check_sizes(samples: Sequence[Sample]) -> None:
    """Refuse times of so few sizes that a rate and a latency may each stand for the other."""
    if len({sample.payload_bytes for sample in samples}) < LEAST_SIZES:
        rule = f"a fit needs at least {LEAST_SIZES} different ones"
        raise InputError("1 message size", rule, "measure more sizes, up to what matters to you")


def _in_pieces(
    topology: Topology,
    samples: Sequence[Sample],
    algorithms: Sequence[Algorithm],
    sources: tuple[str, ...],
    always_own: bool,
    allow: bool,
) -> Calibration:
    fitted, levels = fit_levels(topology, samples, algorithms, always_own)
    if not allow:
        check_pieces(topology, fitted)

    def again(seen: Sequence[Sample], asked: Sequence[Sample]) -> NDArray[np.float64] | None:
        if not _level_set(topology, asked) <= _level_set(topology, seen):
            return None
        try:
            found, _ = fit_levels(topology, seen, algorithms, always_own)
        except InputError:  # too few sizes are left
            return None
        return _predicted(found, asked)

    predicted = _predicted(fitted, samples).tolist()
    tables = table_fits(samples, predicted, again)
    known = replace(fitted, errors=table_errors(fitted, tables))
    return Calibration(known, levels, sources, tables=tables)


def _predicted(topology: Topology, samples: Sequence[Sample]) -> NDArray[np.float64]:
    return Predictor.of(topology, samples).seconds(topology)


def _level_set(topology: Topology, samples: Sequence[Sample]) -> set[int]:
    """The levels that samples are measurements of."""
    return {usages(topology, sample)[0].level for sample in samples}
