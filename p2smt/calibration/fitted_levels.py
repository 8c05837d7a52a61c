"""Links fitted to measured times in pieces, from the inside outwards, where no library is named.

A level's measurements are those whose groups cross it and nothing outside it, so what they pay
at the levels inside is known when it is fitted.  A level without measurements keeps its link.
Each collective is fitted alone, which also finds its outliers; then one link is fitted to all
of them, and a collective that this link serves clearly worse than its own pieces do gets
``measured`` pieces.  The pieces hold for the algorithms of the fit, a ring unless others are
asked for: they take up what the library really ran, so the calibrated topology offers no other.

A library such as Gloo has one algorithm per collective, not always the fastest.  The measured
times tell which: groups of different shapes load the links in different ways, and only the
right algorithm's loads and latencies fit all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.calibration.fit import NEVER_OUTLYING, Fit, fit_kept, fit_pieces
from p2smt.calibration.fit_rows import Row, make_row, pieces_of
from p2smt.calibration.samples import Sample, footprint_of, predicted_s, usages
from p2smt.cluster.topology import Algorithm, Link, Piece, Topology
from p2smt.collectives.names import Collective, RequestKind
from p2smt.cost.algorithms import Operation, rules
from p2smt.errors import InputError
from p2smt.units import format_bytes, format_time

OPERATIONS: tuple[Operation, ...] = (*Collective, RequestKind.ALL_TO_ALL, RequestKind.SEND)
_CLEARLY = 0.02  # a mean held-out error that is higher by no more is no reason for own pieces


@dataclass(frozen=True, slots=True)
class CollectiveFit:
    """One operation at one level.

    ``own``: it has ``measured`` pieces, those of ``fit``; else it runs by the link's.
    ``predicted_s`` are the calibrated model's times of ``samples``, ``outliers`` the indices of
    those that were left out of the fit.
    """

    operation: Operation
    samples: tuple[Sample, ...]
    predicted_s: tuple[float, ...]
    outliers: tuple[int, ...]
    own: bool
    fit: Fit

    @property
    def median_error(self) -> float:
        """Median of abs(predicted / measured - 1), outliers left out."""
        return float(np.median(self._errors()))

    @property
    def max_error(self) -> float:
        """Largest abs(predicted / measured - 1), outliers left out."""
        return max(self._errors())

    def _errors(self) -> list[float]:
        return [
            abs(predicted / sample.seconds - 1)
            for i, (sample, predicted) in enumerate(
                zip(self.samples, self.predicted_s, strict=True)
            )
            if i not in self.outliers
        ]


@dataclass(frozen=True, slots=True)
class LevelFit:
    """What became of one level; ``link`` is None where it kept its link, not being measured."""

    level: str
    link: Fit | None
    collectives: tuple[CollectiveFit, ...] = ()


def fit_levels(
    topology: Topology,
    samples: Sequence[Sample],
    algorithms: Sequence[Algorithm],
    always_own: bool = False,
) -> tuple[Topology, tuple[LevelFit, ...]]:
    """The topology with every measured level's link fitted, and what became of each level.

    Level kinds, ports and caps per device stay as they are; so do its ``overrides``, which go
    before ``algorithms``.  ``always_own``: every collective gets pieces of its own, for libraries
    known to treat each differently.

    Raises:
        InputError: too few message sizes of a collective at a level, or a sample whose groups the
            topology does not have.
    """
    current = replace(topology, algorithms=tuple(algorithms))
    where = [usages(current, sample)[0].level for sample in samples]
    reports: list[LevelFit] = []
    for level in reversed(range(len(topology.levels))):
        mine = [sample for sample, at in zip(samples, where, strict=True) if at == level]
        current, report = _calibrate_level(current, level, mine, always_own)
        reports.insert(0, report)
    return replace(current, calibrated=True), tuple(reports)


def _calibrate_level(
    topology: Topology, level: int, samples: Sequence[Sample], always_own: bool
) -> tuple[Topology, LevelFit]:
    name = topology.levels[level].name
    if not samples:
        return topology, LevelFit(name, None)
    measured = dict.fromkeys(s.operation for s in samples)
    groups = {c: [s for s in samples if s.operation is c] for c in OPERATIONS if c in measured}
    rows = {c: [make_row(topology, sample) for sample in found] for c, found in groups.items()}
    alone = {
        c: fit_pieces(rows[c], _inner_names(topology, level, c), f"level {name}, {c.value}")
        for c in rows
    }
    inner = _inner_names(topology, level, None)
    link, deviating = _shared_link(rows, alone, inner, name)
    deviating = _collectives(rows) if always_own else deviating
    _check_rate(f"level {name}", link, [s for found in groups.values() for s in found])
    for c in deviating:
        _check_rate(f"level {name}, {c.value}", alone[c], groups[c])
    fitted = _with_link(topology, level, link, {c: alone[c] for c in deviating}, set(rows))
    reports = tuple(
        CollectiveFit(
            c,
            tuple(groups[c]),
            tuple(predicted_s(fitted, sample) for sample in groups[c]),
            alone[c].outliers,
            c in deviating,
            alone[c],
        )
        for c in rows
    )
    return fitted, LevelFit(name, link, reports)


UNTOLD_BYTES = 256 * 1024
"""Up to here messages may take a latency alone; larger ones that take as long were disturbed."""


def _check_rate(what: str, link: Fit, samples: Sequence[Sample]) -> None:
    """Refuse a link whose rate no time tells: bytes make up less of each than times scatter.

    Raises:
        InputError: it is one.
    """
    sizes = [sample.payload_bytes for sample in samples]
    if link.wire_share >= NEVER_OUTLYING or max(sizes) > UNTOLD_BYTES:
        return
    span = f"{format_bytes(min(sizes))} to {format_bytes(max(sizes))}"
    took = format_time(float(np.median([sample.seconds for sample in samples])))
    rule = f"take {took} whatever their size: that tells a latency, and no bandwidth"
    remedy = "measure larger messages, up to what matters to you"
    raise InputError(f"{what}: messages of {span}", rule, remedy)


def _inner_names(topology: Topology, level: int, operation: Operation | None) -> tuple[str, ...]:
    """Names of the pieces at the nearest inner level that has several."""
    inside = (pieces_of(lv.link, operation) for lv in topology.levels[level + 1 :])
    names = (tuple(piece.name for piece in pieces) for pieces in inside)
    return next((found for found in names if len(found) > 1), ())


def _shared_link(
    rows: Mapping[Operation, list[Row]],
    alone: Mapping[Operation, Fit],
    inner: tuple[str, ...],
    name: str,
) -> tuple[Fit, list[Collective]]:
    """The link that serves all operations, and the collectives that need pieces of their own.

    The link is fitted again without those that deviate, if any operation remains.
    """
    if len(rows) == 1:
        return next(iter(alone.values())), []
    link = _pooled(rows, alone, inner, name)
    deviating = [c for c in _collectives(rows) if _deviates(c, rows, alone, link)]
    if 0 < len(deviating) < len(rows):
        rest = {c: found for c, found in rows.items() if c not in deviating}
        link = _pooled(rest, alone, inner, name)
    return link, deviating


def _collectives(operations: Iterable[Operation]) -> list[Collective]:
    """Those that can have pieces of their own."""
    return [found for found in operations if isinstance(found, Collective)]


def _pooled(
    rows: Mapping[Operation, list[Row]],
    alone: Mapping[Operation, Fit],
    inner: tuple[str, ...],
    name: str,
) -> Fit:
    every = [row for found in rows.values() for row in found]
    kept = np.array(
        [i not in alone[c].outliers for c, found in rows.items() for i in range(len(found))]
    )
    return fit_kept(every, kept, inner, f"level {name}")


def _deviates(
    collective: Collective,
    rows: Mapping[Operation, list[Row]],
    alone: Mapping[Operation, Fit],
    link: Fit,
) -> bool:
    """Whether held-out errors with the link's pieces are clearly worse than with its own."""
    start = 0
    for c, found in rows.items():
        if c is collective:
            break
        start += len(found)
    own = np.array(alone[collective].held_out_errors)
    kept = np.isfinite(own)
    worse = np.array(link.held_out_errors)[start : start + len(own)][kept] - own[kept]
    return float(worse.mean()) > _CLEARLY


def _with_link(
    topology: Topology,
    level: int,
    link: Fit,
    own: Mapping[Collective, Fit],
    measured: set[Operation],
) -> Topology:
    """The topology with fitted pieces at one level; other collectives keep what they have."""
    old = topology.levels[level]
    kept = [(c, pieces) for c, pieces in old.link.measured if c not in measured]
    found: list[tuple[Collective, tuple[Piece, ...]]] = [(c, fit.pieces) for c, fit in own.items()]
    new: Link = replace(old.link, pieces=link.pieces, measured=(*found, *kept))
    levels = list(topology.levels)
    levels[level] = replace(old, link=new)
    return replace(topology, levels=tuple(levels))


_CLEARLY_BETTER = 0.9
"""A ring is believed unless another algorithm's error is below this part of its."""


def with_library(topology: Topology, samples: Sequence[Sample]) -> Topology:
    """The topology with the algorithm of each measured collective that explains its times best."""
    measured = [c for c in Collective if any(sample.operation is c for sample in samples)]
    found = tuple(
        (c, _best_algorithm(topology, c, [sample for sample in samples if sample.operation is c]))
        for c in measured
    )
    return replace(topology, overrides=found)


def _best_algorithm(
    topology: Topology, collective: Collective, samples: Sequence[Sample]
) -> Algorithm:
    errors = {
        algorithm: _library_error(_with_algorithm(topology, collective, algorithm), samples)
        for algorithm in Algorithm
        if _applies(_with_algorithm(topology, collective, algorithm), algorithm, samples)
    }
    best = min(errors, key=lambda algorithm: errors[algorithm])
    return best if errors[best] < _CLEARLY_BETTER * errors[Algorithm.RING] else Algorithm.RING


def _with_algorithm(topology: Topology, collective: Collective, algorithm: Algorithm) -> Topology:
    return replace(topology, overrides=((collective, algorithm),))


def _applies(topology: Topology, algorithm: Algorithm, samples: Sequence[Sample]) -> bool:
    """Whether the algorithm can run every sample; elsewhere the model falls back on a ring."""
    for sample in samples:
        cluster = sample.cluster(topology)
        footprint = footprint_of(cluster, sample.grouping)
        if [name for name, _ in rules(cluster, footprint, sample.operation)] != [algorithm.value]:
            return False
    return True


def _library_error(topology: Topology, samples: Sequence[Sample]) -> float:
    """Mean of abs(log(predicted / measured)) over all samples, outliers too."""
    _, levels = fit_levels(topology, samples, (Algorithm.RING,))
    logs = [
        abs(np.log(predicted / sample.seconds))
        for level in levels
        for fit in level.collectives
        for sample, predicted in zip(fit.samples, fit.predicted_s, strict=True)
    ]
    return float(np.mean(logs))
