"""Measured times of which it is said by which algorithm they ran: whether they can have."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.calibration.predict import Predictor
from p2smt.calibration.samples import Sample
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.collectives.names import Collective
from p2smt.cost.named import NamedStep, named_notes, running


def sample_notes(
    topology: Topology, samples: Sequence[Sample], algorithms: tuple[Algorithm, ...] | None
) -> tuple[str, ...]:
    """Notes on the samples that cannot have run by the algorithms named (None: none are).

    Raises:
        InputError: one of them nothing runs by there, or no sample can have run by them.
    """
    if algorithms is None:
        return ()
    asked = running(topology, algorithms)
    ran = Predictor.of(asked, samples).steps(asked)
    steps = [
        NamedStep(_text(sample), sample.operation, step.algorithm)
        for sample, step in zip(samples, ran, strict=True)
        if isinstance(sample.operation, Collective)
    ]
    return named_notes(topology, algorithms, steps)


def _text(sample: Sample) -> str:
    """The operation and its table; sources are lines of tables."""
    table = sample.source.rpartition(":")[0]
    return f"{sample.operation.value} ({table})" if table else sample.operation.value
