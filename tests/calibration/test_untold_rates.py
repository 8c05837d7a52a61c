"""Measured times that tell no rate, or one that only another algorithm can have had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.calibration.build import calibrate
from p2smt.calibration.samples import Sample, predicted_s
from p2smt.cluster.file import parse_topology
from p2smt.cluster.topology import NO_LIBRARY, Algorithm, Topology
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from p2smt.programs.program import Grouping

ALL = Grouping(0, 2)
TWO = parse_topology(
    """
name: two
library: nccl-2.12
levels:
  - name: node
    size: 2
    link: {kind: switch, ports: 2, bandwidth: 25 GB/s, latency: 14 us, fabric: infiniband}
  - name: gpu
    size: 8
    link: {kind: switch, bandwidth: 300 GB/s, latency: 3 us, fabric: nvlink3}
""",
    "two",
)
BARE = TWO.under(NO_LIBRARY)
SMALL = tuple(2**i for i in range(8, 14))
LARGE = tuple(2**i for i in range(20, 31))


def took(seconds: list[float], collective: Collective = Collective.ALL_REDUCE) -> list[Sample]:
    """Times of the smallest messages, each twice the one before."""
    return [Sample(collective, ALL, 2 ** (8 + i), s) for i, s in enumerate(seconds)]


@pytest.mark.parametrize(
    "seconds",
    [
        [34e-6, 34e-6, 34e-6, 31e-6, 30e-6],
        [30e-6] * 6,
        [30e-6, 31e-6, 30e-6, 31e-6, 30e-6, 32e-6, 31e-6, 31e-6],
        [34e-6, 12e-6, 12e-6, 11e-6, 12e-6],
    ],
)
@pytest.mark.parametrize("allow", [False, True])
def test_small_messages_tell_a_latency_and_no_rate(seconds: list[float], allow: bool) -> None:
    with pytest.raises(
        InputError, match=r"level node: messages of 256 B to .* take .* us whatever.* no bandwidth;"
    ):
        calibrate(BARE, took(seconds), allow_above_nominal=allow)


def test_small_messages_that_grow_with_size_are_fitted() -> None:
    slow = with_rate(BARE, 1e8)
    found = calibrate(BARE, ran(slow, Algorithm.RING, SMALL)).topology
    assert found.levels[0].link.bandwidth_bytes_per_s == pytest.approx(1e8, rel=0.01)


def test_small_messages_beside_larger_ones_are_fitted() -> None:
    """One table of small messages, another of large ones of another collective: one link."""
    slow = with_rate(BARE, 10e9)
    small = ran(slow, Algorithm.RING, SMALL, Collective.ALL_GATHER)
    found = calibrate(BARE, [*ran(slow, Algorithm.RING), *small]).topology
    assert found.levels[0].link.bandwidth_bytes_per_s == pytest.approx(10e9, rel=0.01)


def with_rate(topology: Topology, rate: float) -> Topology:
    """The topology with another rate between nodes, and a latency of 10 us there."""
    outer, inner = topology.levels
    pieces = (replace(outer.link.pieces[0], bandwidth_bytes_per_s=rate, latency_s=10e-6),)
    link = replace(outer.link, pieces=pieces)
    return replace(topology, levels=(replace(outer, link=link), inner))


def ran(
    topology: Topology,
    algorithm: Algorithm,
    sizes: tuple[int, ...] = LARGE,
    collective: Collective = Collective.ALL_REDUCE,
) -> list[Sample]:
    """A collective that ran by an algorithm, in the model's own times."""
    running = topology.running((algorithm,))
    plain = [Sample(collective, ALL, size, 1.0) for size in sizes]
    return [replace(s, seconds=predicted_s(running, s)) for s in plain]


@pytest.mark.parametrize("topology", [TWO, BARE], ids=["library", "bare"])
def test_a_rate_above_nominal_names_the_algorithm_that_explains_it(topology: Topology) -> None:
    """A tree sends 512 MiB of a GiB through each node's cards, a ring 960 MiB: faster than the
    cards for a ring are times that a tree can have had."""
    trees = ran(with_rate(topology, 22e9), Algorithm.TREE)
    with pytest.raises(InputError, match=r"above the link's nominal .*--algorithm tree would expl"):
        calibrate(topology, trees, (Algorithm.RING,))
    found = calibrate(topology, trees, (Algorithm.TREE,))
    assert found.topology.levels[0].link.bandwidth_bytes_per_s <= 25e9


@pytest.mark.parametrize("topology", [TWO, BARE], ids=["library", "bare"])
def test_a_rate_above_nominal_that_no_algorithm_explains_names_none(topology: Topology) -> None:
    fast = ran(with_rate(topology, 200e9), Algorithm.TREE)
    with pytest.raises(InputError, match=r"above the link's nominal 25 GB/s; check links"):
        calibrate(topology, fast, (Algorithm.RING,))
