"""ASTRA-sim network files: read, written, and read again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.hosts import Hosts, Uplink
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.errors import InputError
from p2smt.interop.clusters.astra_sim import Dimension, astra_sim_text, level_of, per_device
from p2smt.interop.clusters.read import dimensions_in, is_astra_sim, read_astra_sim
from tests.interop.clusters.nodes.reading import short

# The shape of a file in astra-sim's examples, with three dimensions.
TEXT = """# 2 x 8 x 4
topology: [ Ring, FullyConnected, Switch ]  # Ring, Switch, FullyConnected
npus_count: [ 2, 8, 4 ]
bandwidth: [ 200.0, 100.0, 50 ]  # GB/s
latency: [ 50.0, 500.0, 2e3 ]  # ns
"""


def test_dimensions_come_innermost_first() -> None:
    whole = read_astra_sim(TEXT, "f").whole
    assert [short(level) for level in whole] == [
        ("dim3", 4, "switch", 16, 50.0, ""),
        ("dim2", 8, "full-mesh", 1, 200.0, ""),  # shared by the two NPUs of a ring
        ("dim1", 2, "ring", 1, 200.0, ""),
    ]
    draws = [level.link.device_bandwidth_bytes_per_s for level in whole]
    assert draws == [None, 7 * 100e9, None]
    assert [level.link.latency_s for level in whole] == [2e-6, 5e-7, 5e-8]


def test_one_dimension() -> None:
    text = "topology: [Ring]\nnpus_count: [8]\nbandwidth: [50.0]\nlatency: [936.25]\n"
    (level,) = read_astra_sim(text, "f").whole
    assert short(level) == ("dim1", 8, "ring", 1, 50.0, "")
    assert level.link.latency_s == 936.25e-9


KINDS = st.sampled_from([LinkKind.RING, LinkKind.SWITCH, LinkKind.FULL_MESH])
DIMENSIONS = st.builds(
    Dimension,
    KINDS,
    st.integers(2, 9),
    st.integers(1, 10**6).map(lambda n: n * 1e6),
    st.integers(0, 10**6).map(lambda n: n / 1e9),
)


def topology_of(found: list[Dimension]) -> Topology:
    levels, under = [], 1
    for number, dimension in enumerate(found, 1):
        levels.append(level_of(dimension, f"dim{number}", under))
        under *= dimension.size
    return Topology("t", tuple(reversed(levels)))


@given(st.lists(DIMENSIONS, min_size=1, max_size=5))
def test_what_is_written_reads_the_same(found: list[Dimension]) -> None:
    made = astra_sim_text(topology_of(found))
    again = dimensions_in(made.text, "f")
    assert [(one.kind, one.size) for one in again] == [(one.kind, one.size) for one in found]
    for one, other in zip(again, found, strict=True):
        assert math.isclose(one.bandwidth_bytes_per_s, other.bandwidth_bytes_per_s, rel_tol=1e-9)
        assert math.isclose(one.latency_s, other.latency_s, rel_tol=1e-9)
    assert made.lost == tuple(line for line in made.lost if "its links are written as" in line)
    assert astra_sim_text(topology_of(again)).text == made.text


@pytest.mark.parametrize("name", preset_names())
def test_presets_keep_sizes_kinds_and_rates(name: str) -> None:
    preset = load_topology(name)
    again = read_astra_sim(astra_sim_text(preset).text, "f").whole
    assert math.prod(level.size for level in again) == preset.devices
    if any(level.link.torus for level in preset.levels):
        return
    under = preset.devices
    for own, other in zip(preset.levels, again, strict=True):
        under //= own.size
        assert (own.size, own.link.kind) == (other.size, other.link.kind)
        assert math.isclose(per_device(own.link, under), per_device(other.link, under))


def test_a_torus_is_written_as_rings() -> None:
    made = astra_sim_text(load_topology("tpu-v5p"))
    assert "topology: [ Ring, Ring, Ring, Switch ]\nnpus_count: [ 4, 4, 4, 2 ]" in made.text
    assert "level chip: its torus is written as 3 rings" in made.lost


def test_what_is_lost_is_named() -> None:
    lost = astra_sim_text(load_topology("gcp-a3-high")).lost
    assert lost == (
        "level node: its 4 ports are written as 12.5 GB/s for each of 8 devices",
        "level node: of its 3 protocols the one of most bandwidth is written",
        "level node: no efficiency, fabric (nominal rates are written)",
        "level gpu: of its 3 protocols the one of most bandwidth is written",
        "level gpu: no efficiency, in-switch reduction, fabric (nominal rates are written)",
        "the network file has no library nccl-2.30",
    )
    own = load_topology("azure-ndv2").levels[1].link  # both ways of a ring: nothing is lost
    assert own.device_bandwidth_bytes_per_s == own.nominal_bytes_per_s
    assert "no device_bandwidth" in " ".join(astra_sim_text(load_topology("azure-ndv2")).lost)


def switch(ports: int = 1, fabric: str = "") -> Link:
    return Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e9),), ports=ports, fabric=fabric)


def hosts(names: tuple[str, ...], slots: tuple[int, ...]) -> Topology:
    levels = (
        Level("leaf", 2, switch(2, "infiniband")),
        Level("node", 2, switch(1, "infiniband")),
        Level("gpu", 2, switch(1, "nvlink4")),
    )
    used = {slot // 2 for slot in slots}
    leaves = tuple(f"l{i}" if i in used else "" for i in range(2))
    return Topology("t", levels, hosts=Hosts(names, slots, (leaves,)))


def test_hosts_that_fill_the_levels_lose_their_names_only() -> None:
    made = astra_sim_text(hosts(("a", "b", "c", "d"), (0, 1, 2, 3)))
    assert "npus_count: [ 2, 2, 2 ]" in made.text
    assert any("names of hosts and switches are left out" in line for line in made.lost)


def test_unequal_switches_are_refused() -> None:
    with pytest.raises(InputError, match="has switches of unequal size or uplinks"):
        astra_sim_text(hosts(("a", "b", "c"), (0, 1, 2)))
    full = hosts(("a", "b", "c", "d"), (0, 1, 2, 3))
    assert full.hosts is not None
    uneven = Hosts(full.hosts.names, full.hosts.slots, full.hosts.switches, (Uplink(0, 1, 5e8),))
    with pytest.raises(InputError, match="unequal size or uplinks"):
        astra_sim_text(Topology("t", full.levels, hosts=uneven))


def test_levels_of_one_entity_are_no_dimension() -> None:
    made = astra_sim_text(load_topology("dgx-h100:1"))
    assert "npus_count: [ 8 ]" in made.text
    assert "level node has one entity, so no dimension" in made.lost
    with pytest.raises(InputError, match="has one device: no network joins it"):
        astra_sim_text(Topology("t", (Level("gpu", 1, switch()),)))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("Switch ]", "Mesh ]", "topology.2.: 'Mesh': must be one of Ring, Switch"),
        ("Ring,", "ring,", "topology.0.: 'ring': must be one of"),
        ("[ 2, 8, 4 ]", "[ 2, 8 ]", "npus_count 2, .* must have as many entries each"),
        ("[ 2, 8, 4 ]", "[ 1, 8, 4 ]", "npus_count.0.: '1': must be a whole number from 2"),
        ("[ 2, 8, 4 ]", "[ 2, 8.5, 4 ]", "npus_count.1.: '8.5': must be a whole number"),
        ("[ 2, 8, 4 ]", "[ 9999, 9999, 4 ]", "399920004 NPUs: at most 1048576"),
        ("200.0,", "0,", "bandwidth.0.: '0': must be a number of GB/s from 1e-09"),
        ("200.0,", "-1,", "must be a number of GB/s"),
        ("200.0,", ".inf,", "must be a number of GB/s"),
        ("200.0,", "1e99,", "must be a number of GB/s"),
        ("200.0,", "[1],", "must be a number of GB/s"),
        ("200.0,", "200 GB/s,", "must be a number of GB/s"),
        ("50.0,", "true,", "latency.0.: 'True': must be a number of ns"),
        ("latency: [ 50.0, 500.0, 2e3 ]", "", "latency: must be a list"),
        ("latency:", "latencies:", "key 'latencies': is none of a network file.*latency"),
        ("[ 2, 8, 4 ]", "12", "npus_count: must be a list"),
        ("[ 2, 8, 4 ]", "[]", "npus_count: must be a list"),
        ("[ 2, 8, 4 ]", "[ 2, 8, 4", "is not valid YAML"),
        ("[ 2, 8, 4 ]", "&a [ 2, 8, 4 ]", "anchors and aliases are refused"),
    ],
)
def test_malformed(old: str, new: str, what: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError, match=what) as caught:
        read_astra_sim(TEXT.replace(old, new, 1), "f")
    assert str(caught.value).startswith("f")


def test_recognised_by_its_keys() -> None:
    assert is_astra_sim(TEXT)
    assert not is_astra_sim("topology: tree\n")
