"""The algorithm that a library runs is recovered from times that it produced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.calibration.fitted_levels import with_library
from p2smt.calibration.samples import Sample, predicted_s
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.names import Collective
from p2smt.programs.program import groupings

SIZES = (2**16, 2**18, 2**20, 2**22)


def cluster() -> Topology:
    node = Link(LinkKind.SWITCH, (Piece("simple", 100e-6, 25e6),))
    gpu = Link(LinkKind.SWITCH, (Piece("simple", 50e-6, 1e9),))
    return Topology("known", (Level("node", 4, node), Level("gpu", 4, gpu)))


def samples(topology: Topology, collective: Collective, noise: float = 0.0) -> list[Sample]:
    """What a cluster would measure, every time ``noise`` off, up and down in turn."""
    blank = [Sample(collective, g, size, 1.0) for g in groupings(2) for size in SIZES]
    return [
        replace(sample, seconds=predicted_s(topology, sample) * (1 + noise * (-1) ** n))
        for n, sample in enumerate(blank)
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        (Collective.ALL_REDUCE, Algorithm.RING),
        (Collective.ALL_REDUCE, Algorithm.HALVING_DOUBLING),
        (Collective.REDUCE, Algorithm.SCATTER_GATHER),
        (Collective.BROADCAST, Algorithm.BINOMIAL),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_algorithm_is_found(collective: Collective, algorithm: Algorithm, noise: float) -> None:
    truth = replace(cluster(), overrides=((collective, algorithm),))
    found = with_library(cluster(), samples(truth, collective, noise))
    assert found.overrides == ((collective, algorithm),)


def test_collectives_without_times_are_left_to_the_model() -> None:
    found = with_library(cluster(), samples(cluster(), Collective.ALL_GATHER))
    assert [collective for collective, _ in found.overrides] == [Collective.ALL_GATHER]
