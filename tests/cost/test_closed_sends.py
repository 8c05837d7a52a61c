"""Sends along lines whose last rank sends to the first one, too: on matrices no more than others.

Every line of a matrix goes the same way, so that the way back loads no link more than the worst is;
lines in any order may go against each other, and then it does.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest

from p2smt.cluster.file import parse_topology, preset_names
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import single_time
from p2smt.errors import InputError
from p2smt.parallelism.matrices import matrices
from p2smt.parallelism.placement import IntArray, Placement
from tests.cli.tools import RACKS
from tests.tiers import but_the_first

TORUS = """
name: torus
library: none
algorithms: [ring]
levels:
  - {name: cube, size: 2, link: {kind: ring, bandwidth: 9 GB/s, latency: 5 us, fabric: roce}}
  - name: chip
    size: 12
    link: {kind: torus, dims: [3, 4], bandwidth: 50 GB/s, latency: 1 us, fabric: roce}
"""
MOST_DEVICES, MOST_MATRICES = 32, 12


def both(topology: Topology, ranks: IntArray, payload_bytes: int) -> tuple[float, float]:
    """Seconds of a send along the first axis: open, and closed."""
    found = (
        single_time(topology, ranks, [0], RequestKind.SEND, payload_bytes, closed=closed).seconds
        for closed in (False, True)
    )
    return next(found), next(found)


def held(topology: Topology) -> int:
    """Hold matrices of a topology; how many."""
    devices, tried = topology.devices, 0
    for stages in (n for n in range(2, 17) if devices % n == 0):
        for rows in matrices(topology.sizes, (stages, devices // stages))[:MOST_MATRICES]:
            ranks = Placement(tuple(map(tuple, rows.tolist()))).rank_tensor()
            chain, closed = both(topology, ranks, 1 << 22)
            assert closed == pytest.approx(chain, rel=1e-12), (topology.name, rows)
            tried += 1
    return tried


@pytest.mark.parametrize("preset", but_the_first(*sorted(preset_names())))
def test_on_matrices_the_way_back_costs_nothing(preset: str) -> None:
    import p2smt

    for count in ("", ":2", ":4"):
        try:
            topology = p2smt.load_topology(f"{preset}{count}")
        except InputError:  # some presets have a fixed size
            continue
        if topology.devices <= MOST_DEVICES:
            held(topology)


def test_on_matrices_of_a_torus() -> None:
    assert held(parse_topology(TORUS, "torus")) >= 10


def test_lines_that_go_against_each_other_share_no_uplink_unless_they_close() -> None:
    """Two hosts under one switch, two under another: each line there, one of them the other way."""
    topology = parse_topology(RACKS.replace(", bandwidth: 5 GB/s}", "}"), "racks")
    each = topology.devices_under(topology.node_level)
    hosts = [slot * each for slot in (topology.hosts.slots if topology.hosts else ())]
    left, right = hosts[:2], hosts[3:5]
    lines = [[left[0], right[0]], [right[1], left[1]]]
    chain, closed = both(topology, np.array(lines).T, 1 << 30)
    assert closed == pytest.approx(2 * chain, rel=1e-3)
    same = [[left[0], right[0]], [left[1], right[1]]]
    chain, closed = both(topology, np.array(same).T, 1 << 30)
    assert closed == chain


@pytest.mark.parametrize("places", list(product((0, 1, 3), repeat=3))[::2])
def test_the_load_of_an_uplink_is_a_count_of_messages(places: tuple[int, ...]) -> None:
    """Lines of three stages over hosts, each with its twin on the same hosts the other way."""
    if len(set(places)) < 3:
        return
    topology = parse_topology(RACKS.replace(", bandwidth: 5 GB/s}", "}"), "racks")
    each = topology.devices_under(topology.node_level)
    lines = [[p * each for p in places], [p * each + 1 for p in reversed(places)]]
    under = topology.devices_under(0)
    payload = 1 << 34
    for closed, seconds in zip(
        (False, True), both(topology, np.array(lines).T, payload), strict=True
    ):
        out, into = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
        for line in lines:
            ends = [*line, line[0]] if closed else line
            for a, b in pairwise(ends):
                for level, size in ((0, under), (1, each)):
                    if a // size != b // size:
                        out[level, a // size] += 1
                        into[level, b // size] += 1
        most = max((*out.values(), *into.values()))
        assert seconds == pytest.approx(most * payload / 10e9, rel=1e-3)
