"""Hosts and nodes as a topology: the hull, the uplinks, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.cluster.allocation import blocking_levels
from p2smt.cluster.file import dump_topology, load_topology, topology_from_data
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.kubernetes import Facts, InsideFacts, OutsideFacts
from p2smt.interop.clusters.levels import parse_uplinks
from p2smt.interop.clusters.read import read_physical_hosts
from p2smt.interop.clusters.slurm import read_slurm_conf
from tests.interop.clusters.texts import DEEP, GCLOUD, TREE, TWICE

RATE = 8 * 50e9
"""Of a node of dgx-h100, in B/s."""


def cluster(
    text: str = TREE,
    uplink: str = "",
    times: str = "",
    node: str | None = "dgx-h100",
    only: tuple[str, ...] | None = None,
) -> tuple[Topology, str]:
    """The topology of a topology.conf, and what is said of it."""
    return made(read_slurm_conf(text, "f.conf"), uplink, times, node, only)


def made(
    facts: Facts,
    uplink: str = "",
    times: str = "",
    node: str | None = "dgx-h100",
    only: tuple[str, ...] | None = None,
) -> tuple[Topology, str]:
    rates = parse_uplinks([uplink] if uplink else [], [times] if times else [])
    found, lost = combined([facts], ImportOptions(node=node, rates=rates, only=only))
    assert topology_from_data(dump_topology(found), "again") == found
    return found, "\n".join(lost)


def rates_of(topology: Topology, level: str) -> dict[str, float]:
    """The rate of the uplink of each switch of a level, in B/s."""
    j = topology.names.index(level)
    hosts = topology.hosts
    assert hosts is not None
    nominal = topology.levels[j].link.nominal_bytes_per_s
    parts = topology.uplink_parts(j) or [1.0] * len(hosts.switches[j])
    pairs = zip(hosts.switches[j], parts, strict=True)
    return {name: part * nominal for name, part in pairs if name}


def test_levels_are_as_large_as_the_fullest_switch() -> None:
    found, _ = cluster()
    assert (found.names, found.sizes) == (("leaf", "node", "gpu"), (2, 7, 8))
    assert (found.installed, found.devices) == (96, 112)
    assert found.hosts is not None
    assert found.hosts.switches == (("leaf0", "leaf1"),)
    assert found.host_of(0) == "n01"
    assert found.host_of(7 * 8) == "n06"
    assert found.name == "f"
    assert found.library_name == load_topology("dgx-h100").library_name


def test_deep_trees_have_a_level_for_each_depth() -> None:
    found, _ = cluster(DEEP, times="leaf=2,spine=4,core=8")
    assert (found.names, found.sizes) == (("core", "spine", "leaf", "node", "gpu"), (2, 2, 2, 3, 8))
    assert rates_of(found, "leaf") == {"l0": RATE, "l1": 1.5 * RATE, "l2": RATE / 2, "l3": RATE}
    assert rates_of(found, "spine") == {"s0": RATE / 2, "s1": RATE, "s2": RATE / 2}
    assert rates_of(found, "core") == {"c0": 6 * RATE / 8, "c1": 2 * RATE / 8}
    assert blocking_levels(found) == ("core", "spine", "leaf")


def test_an_uplink_is_that_of_each() -> None:
    found, lost = cluster(uplink="leaf=400GB/s")
    assert rates_of(found, "leaf") == {"leaf0": 400e9, "leaf1": 400e9}
    assert found.hosts is not None
    assert (found.hosts.uplinks, found.hosts.assumed) == ((), ())
    assert (found.levels[0].link.ports, found.levels[0].link.fabric) == (1, "infiniband")
    assert blocking_levels(found) == ("leaf",)
    assert "bandwidth" not in lost


def test_oversubscription_counts_installed_nodes() -> None:
    found, _ = cluster(times="leaf=4")
    assert rates_of(found, "leaf") == {"leaf0": 5 * RATE / 4, "leaf1": 7 * RATE / 4}
    assert found.uneven
    ratio, _ = cluster(times="leaf=4:1")
    assert ratio == found


def test_what_nobody_states_is_taken_as_non_blocking_and_marked() -> None:
    found, lost = cluster()
    assert rates_of(found, "leaf") == {"leaf0": 5 * RATE, "leaf1": 7 * RATE}
    assert found.hosts is not None
    assert found.hosts.assumed == ("leaf",)
    assert blocking_levels(found) == ()
    assert "no source states the bandwidth of leaf" in lost
    assert "--oversubscription leaf=4" in lost
    assert "Nobody stated the bandwidth of leaf" in found.description
    part, lost = cluster(DEEP, uplink="spine=1TB/s")
    assert part.hosts is not None
    assert part.hosts.assumed == ("core", "leaf")


def test_on_a_tree_that_does_not_block_every_order_is_optimal() -> None:
    said = "every order of the hosts is optimal in bandwidth"
    found, lost = cluster(times="leaf=1")
    assert said in lost
    assert found.hosts is not None
    assert found.hosts.assumed == ()
    assert said not in cluster(times="leaf=1.1")[1]
    assert said in cluster(uplink="leaf=2800GB/s")[1]
    assert said not in cluster(uplink="leaf=2799GB/s")[1]


def test_the_link_of_nodes_can_be_given() -> None:
    found, _ = cluster(uplink="node=200GB/s", times="leaf=2")
    assert found.levels[1].link.ports == 8
    assert found.levels[1].link.nominal_bytes_per_s == 25e9
    assert rates_of(found, "leaf") == {"leaf0": 500e9, "leaf1": 700e9}


def test_some_hosts_alone_keep_the_uplinks_of_all() -> None:
    only = ("n07", "n01", "n06")
    found, _ = cluster(times="leaf=4", only=only)
    assert found.sizes == (2, 2, 8)
    assert found.hosts is not None
    assert found.hosts.names == ("n01", "n06", "n07")
    assert rates_of(found, "leaf") == {"leaf0": 5 * RATE / 4, "leaf1": 7 * RATE / 4}
    with pytest.raises(InputError, match="'n99': is in none of the files; did you mean 'n09'"):
        cluster(only=("n99",))
    with pytest.raises(InputError, match="'a3': is under s0 and s1 in the files; place"):
        cluster(TWICE, only=("a1", "a3"))


def test_one_switch_is_no_level() -> None:
    found, lost = cluster("SwitchName=s Nodes=n[1-3]")
    assert (found.names, found.sizes) == (("node", "gpu"), (3, 8))
    assert "s is over everything" in lost
    assert "bandwidth" not in lost
    assert found.hosts is not None
    assert found.hosts.names == ("n1", "n2", "n3")


def test_a_topology_file_can_say_what_a_node_is() -> None:
    presets = load_topology("dgx1-v100")
    found, _ = cluster(node="dgx1-v100:4")
    assert found.names == ("leaf", "node", "half", "gpu")
    assert found.levels[2:] == presets.levels[1:]
    assert found.levels[0].link.efficiency == presets.levels[0].link.efficiency


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"uplink": "lead=1GB/s"}, "--uplink lead: the levels are leaf, node; did you mean 'leaf'"),
        ({"times": "lead=2"}, "--oversubscription lead: the levels are leaf, node; did you"),
        ({"times": "node=2"}, "oversubscription of node: is of switches"),
        ({"uplink": "leaf=1GB/s", "times": "leaf=2"}, "level 'leaf': has an uplink and an overs"),
        ({"uplink": "leaf=1GB/s,leaf=2GB/s"}, "--uplink 'leaf': is given twice"),
        ({"uplink": "leaf"}, "--uplink 'leaf': is LEVEL=VALUE"),
        ({"uplink": "leaf=4"}, "uplink of leaf '4': is not a non-negative decimal number"),
        ({"times": "leaf=0"}, "must be a number above 0"),
        ({"times": "leaf=-1"}, "must be a number above 0"),
        ({"times": "leaf=1e3"}, "must be a number above 0"),
        ({"node": "gb200-nvl72"}, "does not tell which hosts are in one rack"),
        ({"node": "nothing"}, "is neither a preset nor a YAML file"),
        ({"node": None}, "tells nothing of the inside of a node; give --node"),
    ],
)
def test_what_is_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        cluster(**arguments)  # type: ignore[arg-type]


def test_a_hull_that_is_too_large_is_refused_with_the_remedy() -> None:
    leaves = "\n".join(f"SwitchName=l{i} Nodes=h{i}" for i in range(2000))
    text = f"{leaves}\nSwitchName=big Nodes=n[1-2000]"
    with pytest.raises(InputError, match=r"2001 leaf x 2000 node as the fullest .* --hosts FILE"):
        cluster(text)
    assert cluster(text, only=("h1", "n7"))[0].sizes == (2, 1, 8)


def test_nodes_must_have_as_many_devices_as_hosts_say() -> None:
    facts = Facts("f", read_slurm_conf(TREE, "f").outside, devices=16)
    with pytest.raises(InputError, match="hosts of 16 devices: the node given has 8"):
        made(facts)
    assert made(facts, node="gcp-a2-highgpu-16g")[0].sizes == (2, 7, 16)


def test_a_list_of_hosts_says_which_are_taken() -> None:
    hosts = Facts("ran.txt", OutsideFacts((), ("n06", "n01", "n02")))
    options = ImportOptions(node="dgx-h100")
    found, lost = combined([read_slurm_conf(TREE, "f"), hosts], options)
    assert found.hosts is not None
    assert found.hosts.names == ("n01", "n02", "n06")
    assert "ran.txt: only its 3 hosts are taken" in lost
    alone, _ = combined([hosts], options)
    assert (alone.names, alone.sizes) == (("node", "gpu"), (3, 8))
    with pytest.raises(InputError, match=r"ran\.txt and ran\.txt: both tell of hosts"):
        combined([hosts, hosts], options)


def test_hosts_need_a_file_that_names_some() -> None:
    node = InsideFacts(load_topology("dgx-h100:1").levels)
    with pytest.raises(InputError, match="--hosts: the files name no hosts"):
        combined([Facts("f", inside=node)], ImportOptions(only=("n1",)))
    with pytest.raises(InputError, match="--node dgx-h100 beside f: both tell of the inside"):
        combined([Facts("f", inside=node)], ImportOptions(node="dgx-h100"))


def test_a_node_and_switches_come_together() -> None:
    inside = InsideFacts(load_topology("dgx1-v100:1").levels, library="nccl-2.12")
    tree = read_slurm_conf(TREE, "f")
    found, _ = combined([Facts("node.xml", inside=inside), tree], ImportOptions())
    assert found.names == ("leaf", "node", "half", "gpu")
    assert found.library_name == "nccl-2.12"
    unknown = replace(inside, link_known=False)
    with pytest.raises(InputError, match="do not tell how fast the network cards of a node are"):
        combined([Facts("node.xml", inside=unknown), tree], ImportOptions())
    rates = parse_uplinks(["node=25GB/s"], ["leaf=2"])
    found, _ = combined([Facts("node.xml", inside=unknown), tree], ImportOptions(rates=rates))
    assert found.levels[1].link.nominal_bytes_per_s == 25e9 / 4


def test_machines_without_a_location_are_left_out() -> None:
    found, _ = made(read_physical_hosts(GCLOUD, "f"))
    assert found.names == ("spine", "leaf", "node", "gpu")
    assert found.hosts is not None
    assert found.hosts.left_out == ("login",)


@given(
    st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=2, max_size=3),
    st.sampled_from([1.0, 2.0, 4.0]),
)
def test_uplinks_of_drawn_trees(spines: list[list[int]], times: float) -> None:
    """Against the drawn tree itself: who is where, how large the hull is, what uplinks carry."""
    lines: list[str] = []
    where: dict[str, tuple[str, str]] = {}
    for s, leaves in enumerate(spines):
        lines.append(f"SwitchName=s{s} Switches=s{s}l[0-{len(leaves) - 1}]")
        for leaf, nodes in enumerate(leaves):
            names = [f"n{s}-{leaf}-{i}" for i in range(nodes)]
            lines.append(f"SwitchName=s{s}l{leaf} Nodes={','.join(names)}")
            where |= dict.fromkeys(names, (f"s{s}", f"s{s}l{leaf}"))
    found, _ = cluster("\n".join(lines), times=f"leaf={times},spine={times}")
    hosts = found.hosts
    assert hosts is not None
    _, leaf_places, node_places, _ = found.sizes
    assert found.sizes[:3] == (
        len(spines), max(map(len, spines)), max(n for leaves in spines for n in leaves),
    )  # fmt: skip
    for name, slot in zip(hosts.names, hosts.slots, strict=True):
        leaf = slot // node_places
        assert where[name] == (hosts.switches[0][leaf // leaf_places], hosts.switches[1][leaf])
    assert rates_of(found, "leaf") == {
        f"s{s}l{leaf}": nodes * RATE / times
        for s, leaves in enumerate(spines)
        for leaf, nodes in enumerate(leaves)
    }
    assert rates_of(found, "spine") == {
        f"s{s}": sum(leaves) * RATE / times for s, leaves in enumerate(spines)
    }
    assert bool(blocking_levels(found)) == (times > 1)
