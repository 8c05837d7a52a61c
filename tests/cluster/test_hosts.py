"""Hosts under unequal switches: their files, the part of them that a job got, and their loads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.allocation import allocated
from p2smt.cluster.file import dump_topology, parse_topology, topology_from_data
from p2smt.cluster.hosts import Uplink
from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import single_time
from p2smt.errors import InputError

LINKS = """
name: uneven
library: none
levels:
  - {name: spine, size: 2, link: {kind: switch, bandwidth: 800 GB/s, latency: 1 us, fabric: roce}}
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 400 GB/s, latency: 1 us, fabric: roce}}
  - {name: node, size: 7, link: {kind: switch, ports: 2, bandwidth: 50 GB/s, latency: 1 us,
      fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 450 GB/s, latency: 1 us, fabric: nvlink4}}
"""
SWITCHES = """
switches:
  - name: s0
    switches:
      - {name: leaf0, hosts: "n[01-05]"}
      - {name: leaf1, hosts: "n[06-12]", bandwidth: 200 GB/s}
  - {name: s1, bandwidth: 100 GB/s, switches: [{name: leaf2, hosts: "m[1-4]"}]}
"""


def uneven() -> Topology:
    """Leaves of 5, 7 and 4 nodes of two GPUs; the second and the last have slower uplinks."""
    return parse_topology(LINKS + SWITCHES, "test")


def test_a_file_names_hosts_and_switches() -> None:
    found = uneven()
    assert found.hosts is not None
    assert (found.installed, found.devices, found.uneven) == (32, 56, True)
    assert found.hosts.switches == (("s0", "s1"), ("leaf0", "leaf1", "leaf2", ""))
    assert found.uplink_parts(1) == (1.0, 0.5, 1.0, 1.0)
    assert found.uplink_parts(2) is None
    assert [found.host_of(device) for device in (0, 9, 14, 28)] == ["n01", "n05", "n06", "m1"]
    assert len(found.places) == 32
    with pytest.raises(InputError, match="has no host"):
        found.host_of(10)
    assert topology_from_data(dump_topology(found), "again") == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts: n[1-3]", "levels outside its nodes"),
        ("switches: [{name: s0, hosts: n1}]", "has switches under it"),
        ("switches: [{name: s0, switches: [{name: l, hosts: 'n[1-8]'}]}]", "7 places"),
        ("switches: [{name: s0, switches: [{name: l, hosts: 'n1,n1'}]}]", "named twice"),
        (
            "switches: [{name: s, switches: [{name: l, hosts: n1}, {name: l, hosts: n2}]}]",
            "switch 'l'",
        ),
        ("switches: [{name: s0, switches: [{name: l, hosts: 'n[1-'}]}]", "does not close"),
    ],
)
def test_files_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_topology(LINKS + text, "test")


def test_uneven_levels_are_switches() -> None:
    text = LINKS.replace("400 GB/s", "400 GB/s").replace(
        "{name: leaf, size: 2, link: {kind: switch", "{name: leaf, size: 2, link: {kind: ring"
    )
    with pytest.raises(InputError, match="must be a switch"):
        parse_topology(text + SWITCHES, "test")


def test_an_allocation_keeps_what_holds_its_hosts() -> None:
    found = allocated(uneven(), ["m3", "n02", "n09", "n01"])
    assert found.hosts is not None
    assert found.sizes == (2, 2, 2, 2)
    assert found.hosts.names == ("n01", "n02", "n09", "m3")
    assert found.hosts.slots == (0, 1, 2, 4)
    assert found.hosts.switches == (("s0", "s1"), ("leaf0", "leaf1", "leaf2", ""))
    assert (found.uplink_parts(0), found.uplink_parts(1)) == ((1.0, 0.125), (1.0, 0.5, 1.0, 1.0))


@pytest.mark.parametrize(
    ("names", "message"), [(["n99"], "did you mean"), (["n01", "n01"], "twice"), ([], "0 hosts")]
)
def test_allocations_that_are_none(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        allocated(uneven(), names)


def test_hosts_need_names_to_be_found() -> None:
    text = LINKS.replace("size: 7", "size: 2")
    with pytest.raises(InputError, match="names no hosts"):
        allocated(parse_topology(text, "test"), ["n01"])


@given(st.lists(st.sampled_from(range(16)), min_size=2, max_size=6, unique=True))
def test_part_and_whole_cost_the_same(chosen: list[int]) -> None:
    """The same hosts in the same order take as long in their cluster as in the allocation."""
    whole = uneven()
    assert whole.hosts is not None
    names = [whole.hosts.names[i] for i in chosen]
    part = allocated(whole, names)
    assert part.hosts is not None
    times = []
    for topology in (whole, part):
        assert topology.hosts is not None
        slot = dict(zip(topology.hosts.names, topology.hosts.slots, strict=True))
        ranks = np.array([[2 * slot[name] + i for i in range(2)] for name in names])
        times.append(
            [
                single_time(topology, ranks, [0], kind, 2**24).seconds
                for kind in (RequestKind.ALL_REDUCE, RequestKind.ALL_TO_ALL, RequestKind.SEND)
            ]
        )
    assert times[0] == pytest.approx(times[1], rel=1e-12)


def test_a_file_says_what_is_assumed_and_who_is_left_out() -> None:
    found = parse_topology(LINKS + SWITCHES + "assumed: [leaf]\nleft_out: n[13-14]\n", "test")
    assert found.hosts is not None
    assert (found.hosts.assumed, found.hosts.left_out) == (("leaf",), ("n13", "n14"))
    assert topology_from_data(dump_topology(found), "again") == found
    part = allocated(found, ["n01", "n07"])
    assert part.hosts is not None
    assert (part.hosts.assumed, part.hosts.left_out) == (("leaf",), ())
    with pytest.raises(InputError, match="'n14': uneven does not say where it is"):
        allocated(found, ["n01", "n14"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SWITCHES + "assumed: [gpu]", "assumed: 'gpu': is none of the levels spine, leaf, node"),
        (SWITCHES + "left_out: n01", "'n01': is left out, and named as a host"),
        ("assumed: [leaf]", "assumed: is for topologies that name hosts"),
        ("left_out: n01", "left_out: is for topologies that name hosts"),
    ],
)
def test_what_is_assumed_and_left_out_is_checked(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_topology(LINKS + text, "test")


def test_nodes_have_equal_uplinks() -> None:
    found = uneven()
    assert found.hosts is not None
    with pytest.raises(InputError, match="no such entity"):
        replace(found, hosts=replace(found.hosts, uplinks=(Uplink(2, 0, 1e9),)))
