"""What the links of a test cluster carry: never more than their rate, and all that is sent.

How fast they are beside their rate depends on what else the machine does, so no test asks.
Where no cluster can be built, they are skipped, with the reason.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from experiments.testbed.bandwidth import Pair, level_rates, measure, measure_pairs
from experiments.testbed.network import CONGESTION_CONTROL, cluster, why_not
from experiments.testbed.spec import CORE, NetworkSpec, Node, regular
from tests.experiments.testbed.counters import (
    Interface,
    Sample,
    sample,
    shaper,
    too_fast,
    transfer,
)

pytestmark = pytest.mark.cluster

MBIT = 1e6 / 8
PAYLOAD_BYTES = 2**22


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    if reason := why_not():
        pytest.skip(reason)


def node_end(node: Node) -> Interface:
    return Interface(node.name, node.interface)


def switch_end(spec: NetworkSpec, node: Node) -> Interface:
    return Interface(spec.switch(node.rack), f"node{node.rank}")


def rack_ends(spec: NetworkSpec, rack: int) -> tuple[Interface, Interface]:
    """Of a rack's uplink: the end that sends to the core, and the one that sends to the rack."""
    return Interface(spec.switch(rack), "uplink"), Interface(spec.namespace(CORE), f"rack{rack}")


def assert_shaped(pairs: Sequence[Pair], through: Interface, bytes_per_s: float) -> None:
    """All that the pairs send goes out of one interface, together no faster than its rate."""
    samples: list[Sample] = []
    arrived = transfer(pairs, PAYLOAD_BYTES, lambda: samples.append(sample(through)))
    assert arrived == (PAYLOAD_BYTES,) * len(pairs)
    assert samples[-1].sent_bytes - samples[0].sent_bytes >= sum(arrived)
    assert too_fast(samples, bytes_per_s) == []


def test_every_end_of_a_link_has_a_shaper_of_its_own() -> None:
    """So the two directions of a link do not share its rate."""
    spec = regular(2, 200 * MBIT, racks=2, rack_bytes_per_s=100 * MBIT)
    with cluster(spec) as nodes:
        for node in nodes:
            for end in (node_end(node), switch_end(spec, node)):
                assert shaper(end) == ("tbf", 200 * MBIT)
        for end in (*rack_ends(spec, 0), *rack_ends(spec, 1)):
            assert shaper(end) == ("tbf", 100 * MBIT)


@pytest.mark.exhaustive
def test_the_uplinks_of_nodes_are_shaped_in_both_directions() -> None:
    spec = regular(3, 100 * MBIT)
    with cluster(spec) as (a, b, c):
        assert_shaped([(a, b)], node_end(a), 100 * MBIT)
        assert_shaped([(a, b)], switch_end(spec, b), 100 * MBIT)
        assert_shaped([(a, b), (a, c)], node_end(a), 100 * MBIT)  # out of one uplink
        assert_shaped([(a, c), (b, c)], switch_end(spec, c), 100 * MBIT)  # into one


_CONTROL = (
    "print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).decode().strip(chr(0)))"
)
_ACCEPTS = f"s = socket.create_server(('', 5401)); print(flush=True); s, _ = s.accept(); {_CONTROL}"
_CONNECTS = f"s = socket.create_connection((sys.argv[1], 5401)); {_CONTROL}"


def test_in_one_rack_both_ends_answer_congestion_as_the_cluster_says() -> None:
    """With BBR, nodes that send to each other at once would be slower than their links."""
    python = (sys.executable, "-I", "-S", "-c")
    with cluster(regular(2, 100 * MBIT)) as (a, b):
        accepts = (*b.prefix, *python, f"import socket; {_ACCEPTS}")
        with subprocess.Popen(accepts, stdout=subprocess.PIPE, text=True) as accepting:
            assert accepting.stdout is not None
            accepting.stdout.readline()
            connects = (*a.prefix, *python, f"import socket, sys; {_CONNECTS}", b.address)
            connected = subprocess.run(connects, capture_output=True, text=True, check=True).stdout
            assert (connected, accepting.stdout.read()) == (f"{CONGESTION_CONTROL}\n",) * 2


@pytest.mark.exhaustive
def test_the_uplinks_of_racks_are_shared_by_their_nodes() -> None:
    spec = regular(2, 200 * MBIT, racks=2, rack_bytes_per_s=100 * MBIT)
    up, _ = rack_ends(spec, 0)
    _, down = rack_ends(spec, 1)
    with cluster(spec) as (a, b, c, d):
        assert [node.rack for node in (a, b, c, d)] == [0, 0, 1, 1]
        assert_shaped([(a, c)], up, 100 * MBIT)
        assert_shaped([(a, c), (b, d)], up, 100 * MBIT)
        assert_shaped([(a, d), (b, c)], down, 100 * MBIT)
        before = sample(up)
        assert_shaped([(a, b)], node_end(a), 200 * MBIT)
        assert sample(up).sent_bytes - before.sent_bytes < PAYLOAD_BYTES  # stays in the rack


@pytest.mark.exhaustive
def test_unequal_racks_share_an_uplink_each() -> None:
    """Three nodes, two, and one: siblings together pass their rack's uplink no faster than it."""
    rate = 50 * MBIT
    spec = NetworkSpec((3, 2, 1), rate, rate, ("n2", "n3", "n6", "n1", "n5", "n4"))
    with cluster(spec) as nodes:
        a, b, c, d, e, f = nodes
        assert [(node.host, node.rack) for node in nodes] == [
            *(("n2", 0), ("n3", 0), ("n6", 0)),
            *(("n1", 1), ("n5", 1), ("n4", 2)),
        ]
        ends = [end for rack in range(3) for end in rack_ends(spec, rack)]
        assert [shaper(end) for end in ends] == [("tbf", rate)] * 6
        assert_shaped([(a, d), (b, e), (c, f)], rack_ends(spec, 0)[0], rate)
        assert_shaped([(d, a), (e, b), (f, c)], rack_ends(spec, 0)[1], rate)
        assert_shaped([(d, a), (e, f)], rack_ends(spec, 1)[0], rate)
        assert_shaped([(a, f), (d, f)], rack_ends(spec, 2)[1], rate)
        before = sample(ends[0])
        assert_shaped([(a, b), (c, b)], switch_end(spec, b), rate)
        assert sample(ends[0]).sent_bytes - before.sent_bytes < PAYLOAD_BYTES  # stays in the rack


def test_measurements_name_every_level() -> None:
    spec = regular(2, 200 * MBIT, racks=2, rack_bytes_per_s=100 * MBIT)
    with cluster(spec) as nodes:
        flows = measure([(nodes[0], nodes[1])], 0.1)
        rates = level_rates(spec, nodes, flows, 0.1)
    assert [(flow.source, flow.target) for flow in flows] == [(nodes[0], nodes[1])]
    asked = [(rate.level, rate.asked_bytes_per_s) for rate in rates]
    assert asked == [("rack", 100 * MBIT), ("node", 200 * MBIT)]
    assert rates[1].reached_bytes_per_s == flows[0].bytes_per_s


def test_the_largest_rack_is_measured_against_all_others() -> None:
    """Three senders and two receivers, each at its rate: no more can be asked of the rack."""
    spec = NetworkSpec((3, 1, 1), 50 * MBIT, 120 * MBIT)
    with cluster(spec) as nodes:
        (rate,) = level_rates(spec, nodes, (), 0.1)
    assert (rate.level, rate.asked_bytes_per_s) == ("rack", 100 * MBIT)


def test_clusters_stand_side_by_side() -> None:
    with cluster(regular(2, 100 * MBIT)) as here, cluster(regular(2, 100 * MBIT)) as there:
        assert [n.address for n in here] == [n.address for n in there]
        assert {n.name for n in here}.isdisjoint(n.name for n in there)
        assert len(measure_pairs(here, 0.1)) == len(measure_pairs(there, 0.1)) == 1
