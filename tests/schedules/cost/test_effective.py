"""What a message takes under a library: constants by algorithm, and by operation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2smt.cluster.library.registry import library_of
from p2smt.cluster.link import Link, LinkKind
from p2smt.cluster.topology import Level, Piece, Topology
from p2smt.schedules.cost.links import device_rate, message_piece

LINK = Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e9),), fabric="ethernet")


def cluster(link: Link, library: str) -> Topology:
    return Topology("t", (Level("node", 4, link),), library=library_of(library))


def test_constants_that_gloo_has_by_operation_are_those_of_its_rings() -> None:
    """What an all-reduce reaches; not a reduce-scatter, which Gloo sends as a whole all-reduce."""
    parts = (("reduce-scatter", 0.3), ("all-reduce", 0.6))
    hops = (("reduce-scatter-simple", 9e-3), ("all-reduce-simple", 4e-3))
    found = message_piece(cluster(replace(LINK, efficiency=parts, hops=hops), "gloo"), 0, "simple")
    assert found.bandwidth_bytes_per_s == pytest.approx(0.6e9)
    assert found.latency_s == 4e-3


def test_a_library_that_chooses_has_constants_of_algorithms() -> None:
    link = replace(LINK, efficiency=(("any", 0.9), ("broadcast", 0.3)), hops=(("ring-ll", 7e-6),))
    topology = cluster(link, "nccl-2.20")
    assert message_piece(topology, 0, "simple").bandwidth_bytes_per_s == pytest.approx(0.9e9)
    assert message_piece(topology, 0, "LL").latency_s == 7e-6
    known = library_of("nccl-2.20").hop_s("ethernet", "ring", "simple", across=True)
    assert message_piece(topology, 0, "simple").latency_s == known


def test_what_a_device_sends_at_most_is_flags_too() -> None:
    link = replace(LINK, device_bandwidth_bytes_per_s=2e9, efficiency=(("any", 0.5),))
    topology = cluster(link, "nccl-2.20")
    assert device_rate(topology, 0, "simple") == pytest.approx(1e9)
    assert device_rate(topology, 0, "ll") == pytest.approx(0.5e9)
    assert device_rate(replace(topology, library=None), 0, "ll") == 2e9
    assert device_rate(cluster(LINK, "nccl-2.20"), 0, "ll") is None
