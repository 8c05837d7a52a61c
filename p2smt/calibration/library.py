"""Which algorithm a library runs for each collective, found from measured times.

A library such as Gloo has one algorithm per collective, not always the fastest.  The measured
times tell which: groups of different shapes load the links in different ways, and only the
right algorithm's loads and latencies fit all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.calibration.levels import fit_levels
from p2smt.calibration.samples import Sample, footprint_of
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.algorithms import rules

_CLEARLY = 0.9  # a ring is believed unless another algorithm's error is below this part of its


def with_library(topology: Topology, samples: Sequence[Sample]) -> Topology:
    """The topology with the algorithm of each measured collective that explains its times best."""
    measured = [c for c in Collective if any(sample.operation is c for sample in samples)]
    found = tuple(
        (c, _best(topology, c, [sample for sample in samples if sample.operation is c]))
        for c in measured
    )
    return replace(topology, overrides=found)


def _best(topology: Topology, collective: Collective, samples: Sequence[Sample]) -> Algorithm:
    errors = {
        algorithm: _error(_with(topology, collective, algorithm), samples)
        for algorithm in Algorithm
        if _applies(_with(topology, collective, algorithm), algorithm, samples)
    }
    best = min(errors, key=lambda algorithm: errors[algorithm])
    return best if errors[best] < _CLEARLY * errors[Algorithm.RING] else Algorithm.RING


def _with(topology: Topology, collective: Collective, algorithm: Algorithm) -> Topology:
    return replace(topology, overrides=((collective, algorithm),))


def _applies(topology: Topology, algorithm: Algorithm, samples: Sequence[Sample]) -> bool:
    """Whether the algorithm can run every sample; elsewhere the model falls back on a ring."""
    for sample in samples:
        cluster = sample.cluster(topology)
        footprint = footprint_of(cluster, sample.grouping)
        if [name for name, _ in rules(cluster, footprint, sample.operation)] != [algorithm.value]:
            return False
    return True


def _error(topology: Topology, samples: Sequence[Sample]) -> float:
    """Mean of abs(log(predicted / measured)) over all samples, outliers too."""
    _, levels = fit_levels(topology, samples, (Algorithm.RING,))
    logs = [
        abs(np.log(predicted / sample.seconds))
        for level in levels
        for fit in level.collectives
        for sample, predicted in zip(fit.samples, fit.predicted_s, strict=True)
    ]
    return float(np.mean(logs))
