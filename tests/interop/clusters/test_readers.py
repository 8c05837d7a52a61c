"""What each reader takes from its files, as facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions
from p2smt.interop.clusters.facts import Facts, Holder
from p2smt.interop.clusters.kubernetes import read_kubernetes
from p2smt.interop.clusters.physical_hosts import read_physical_hosts
from p2smt.interop.clusters.read import facts_of
from p2smt.interop.clusters.slurm import read_scontrol, read_slurm_conf, read_slurm_yaml
from p2smt.interop.clusters.switch_tree import HostTree, tree_of
from tests.interop.clusters.texts import (
    BLOCKS,
    DEEP,
    EVERY,
    GCLOUD,
    INSTANCES,
    KUBERNETES,
    SCONTROL,
    SCONTROL_BLOCKS,
    TREE,
    TWICE,
    YAML,
    aws,
    nodes_json,
)


def tree(facts: Facts) -> tuple[HostTree, tuple[str, ...]]:
    assert facts.outside is not None
    return tree_of(facts.outside, facts.source)


def paths(facts: Facts) -> dict[str, str]:
    found, _ = tree(facts)
    return dict(zip(found.hosts, map("/".join, found.paths), strict=True))


def test_topology_conf_has_switches() -> None:
    found = read_slurm_conf(TREE, "f")
    assert found.outside is not None
    assert found.outside.holders == (
        Holder("spine", ("leaf0", "leaf1"), (), 2),
        Holder("leaf0", (), ("n01", "n02", "n03", "n04", "n05"), 3),
        Holder("leaf1", (), ("n06", "n07", "n08", "n09", "n10", "n11", "n12"), 4),
    )
    assert found.outside.tiers[:2] == ("leaf", "spine")
    assert [line for line in found.lost if "LinkSpeed" in line]


def test_lines_go_on_after_a_backslash() -> None:
    whole = read_slurm_conf(TREE, "f")
    assert read_slurm_conf(TREE.replace(" Nodes=", " \\\nNodes="), "f").outside is not None
    broken = read_slurm_conf(TREE.replace(" Switches", "\\\n Switches"), "f")
    assert whole.outside is not None
    assert broken.outside is not None
    assert [h.name for h in broken.outside.holders] == [h.name for h in whole.outside.holders]


def test_blocks_are_a_level_and_their_sizes_are_not() -> None:
    found = read_slurm_conf(BLOCKS, "f")
    made, _ = tree(found)
    assert made.tiers == ("block",)
    assert paths(found)["srv1203"] == "rack12"
    assert any("3,6" in line and "no levels" in line for line in found.lost)


def test_topology_yaml_reads_the_default_and_says_so() -> None:
    found = read_slurm_yaml(YAML, "f")
    assert paths(found) == {
        "blue-0": "s0_0/s0_0_0",
        "blue-1": "s0_0/s0_0_0",
        "green-3": "s0_0/s0_0_0",
        "blue-2": "s0_0/s0_0_1",
        "blue-4": "s0_1-as-spine/s0_1",
        "blue-5": "s0_1-as-spine/s0_1",
        "blue-6": "s0_1-as-spine/s0_1",
    }
    assert any("is read, and not topology/block, cpu" in line for line in found.lost)
    lost = tree(found)[1]
    assert any("s0_2 hold no hosts" in line for line in lost)
    assert any("s0_1 have fewer switches" in line for line in lost)


def test_topology_yaml_reads_the_one_that_is_named() -> None:
    found = read_slurm_yaml(YAML, "f", "topology/block")
    assert paths(found) == {"blue-0": "", "blue-1": "", "blue-2": ""}
    with pytest.raises(InputError, match="'topology/bloc': is not in f; did you mean"):
        read_slurm_yaml(YAML, "f", "topology/bloc")
    with pytest.raises(InputError, match="is flat: it has no switches; give --topology-name"):
        read_slurm_yaml(YAML, "f", "cpu")


def test_scontrol_tells_the_same_as_the_file() -> None:
    assert paths(read_scontrol(SCONTROL, "f")) == paths(read_slurm_conf(TREE, "f"))
    found = read_scontrol(SCONTROL_BLOCKS, "f")
    assert paths(found)["10.140.93.120"] == "b1"
    assert any("aggregated blocks" in line for line in found.lost)


def test_labels_of_a_known_cloud_are_found() -> None:
    found = read_kubernetes(KUBERNETES, "f")
    assert found.devices == 8
    assert paths(found) == {
        "ip-1": "nn-a/nn-x",
        "ip-2": "nn-a/nn-x",
        "ip-3": "nn-a/nn-y",
        "ip-4": "nn-b/nn-z",
    }
    assert any("labels of aws" in line and "layer-3" in line for line in found.lost)
    assert any("nodes without GPUs are left out: 1 (cpu-1)" in line for line in found.lost)


def test_label_keys_can_be_given() -> None:
    text = nodes_json(*[(f"n{i}", {"room": f"r{i % 2}", "rack": f"k{i}"}, None) for i in range(4)])
    assert paths(read_kubernetes(text, "f", "room,rack"))["n3"] == "r1/k3"
    assert paths(read_kubernetes(text, "f", "room"))["n3"] == "r1"
    with pytest.raises(InputError, match=r"no known labels; give --labels .* they have rack"):
        read_kubernetes(text, "f")
    with pytest.raises(InputError, match=r"no node has the labels topology\.k8s\.aws"):
        read_kubernetes(text, "f", "aws")
    text = nodes_json(("n1", {"room": "a"}, None), ("n2", {"rack": "b"}, None))
    with pytest.raises(InputError, match="no node has all of the labels room, rack"):
        read_kubernetes(text, "f", "room,rack")


@pytest.mark.parametrize(
    ("labels", "path"),
    [
        ({"fabric.topograph.run/tier-0": "l", "fabric.topograph.run/tier-1": "s"}, "s/l"),
        ({"network.topology.nvidia.com/leaf": "l", "network.topology.nvidia.com/core": "c"}, "c/l"),
        ({"cloud.google.com/gce-topology-block": "b"}, "b"),
        ({"oci.oraclecloud.com/host.network_block_id": "b"}, "b"),
        ({"backend.coreweave.cloud/leafgroup": "g"}, "g"),
    ],
)
def test_presets_of_labels(labels: dict[str, str], path: str) -> None:
    other = {key: f"{value}2" for key, value in labels.items()}
    found = read_kubernetes(nodes_json(("n0", labels, "8"), ("n1", other, "8")), "f")
    assert paths(found)["n0"] == path


def test_a_node_without_a_label_is_left_out() -> None:
    odd = ("ip-9", {"topology.k8s.aws/network-node-layer-1": "nn-s"}, "8")
    nodes = (aws("ip-1", "s", "a", "x"), aws("ip-2", "s", "a", "y"), odd)
    made, lost = tree(read_kubernetes(nodes_json(*nodes), "f"))
    assert made.left_out == {"ip-9": ()}
    assert any("nothing says where ip-9 is" in line for line in lost)


def test_equal_names_under_others_are_told_apart() -> None:
    nodes = (aws("ip-1", "s", "a", "x"), aws("ip-2", "s", "b", "x"), aws("ip-3", "t", "a", "y"))
    found = paths(read_kubernetes(nodes_json(*nodes), "f"))
    assert found == {"ip-1": "s/s/a/a/x", "ip-2": "s/b/b/x", "ip-3": "t/t/a/y"}


def test_physical_hosts() -> None:
    found = read_physical_hosts(GCLOUD, "f")
    assert paths(found) == {
        "vm-0": "c1/c1/r1",
        "vm-1": "c1/c1/r1",
        "vm-2": "c1/r2",
        "vm-3": "c2/c2/r1",
    }
    assert tree(found)[0].left_out == {"login": ()}
    heading = "NAME  PHYSICAL_HOST\n"
    swapped = heading + "vm-0   /c1/r1/h1\nvm-1\t/c1/r2/h2\n"
    assert paths(read_physical_hosts(swapped, "f")) == {"vm-0": "r1", "vm-1": "r2"}


def test_physical_hosts_in_json() -> None:
    found = read_physical_hosts(INSTANCES, "f")
    assert paths(found) == {"a-0": "b1/b1/s1", "a-1": "b1/s2", "a-2": "b2/b2/s1"}
    assert tree(found)[0].left_out == {"a-3": ()}


@pytest.mark.parametrize("name", EVERY)
def test_formats_are_recognised(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(EVERY[name])
    found = facts_of(str(tmp_path / name), ImportOptions())
    assert found.source == name
    assert found.outside is not None


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (
            read_slurm_conf,
            TREE + "BlockName=b Nodes=n1",
            "line 5: has blocks, and switches stand in f, line 2",
        ),
        (
            read_slurm_conf,
            TREE + "Include other.conf",
            r"line 5: includes another file \('Include other.conf'\)",
        ),
        (read_slurm_conf, TREE + "RingName=r Nodes=n1", "line 5: begins with 'ringname'"),
        (read_slurm_conf, "SwitchName=s Nodes=n1 Speed=2", "line 1: has the key 'speed'"),
        (read_slurm_conf, "SwitchName=s SwitchName=t", "line 1: has SwitchName twice"),
        (read_slurm_conf, "SwitchName=s Nodes=n[1-", "line 1: host list 'n.1-': has a bracket"),
        (
            read_slurm_conf,
            "SwitchName=s Nodes=n[1-999999999]",
            "line 1: .* more than 1048576 hosts",
        ),
        (read_slurm_conf, "BlockSizes=4", "names no switch and no block"),
        (
            read_slurm_conf,
            TWICE + "\n".join(f"SwitchName=x{i} Nodes=n[1-400000]" for i in range(3)),
            "line 6: names more than 1048576 hosts and switches by here",
        ),
        (read_scontrol, SCONTROL + SCONTROL_BLOCKS, "line 4: has blocks beside switches"),
        (read_scontrol, SCONTROL[: SCONTROL.index(" Level=1")], "line 3: is cut off"),
        (
            read_scontrol,
            "error: No topology information available\n" + SCONTROL,
            "line 1: has 'error",
        ),
        (
            read_scontrol,
            "AggregatedBlock=b[0-1] BlockIndex=2 Nodes=a BlockSize=4",
            "no switch and no block",
        ),
        (read_slurm_yaml, "- topology: t\n  tree: {switches: 3}", "switches: must be a list"),
        (read_slurm_yaml, "- topology: t\n  tree: 3", "tree: must be a mapping"),
        (read_slurm_yaml, "- topology: t\n", "must have one of the keys tree and block"),
        (
            read_slurm_yaml,
            "- topology: t\n  flat: true\n  tree: {}",
            "must have one of the keys tree and block",
        ),
        (
            read_slurm_yaml,
            "- topology: t\n  tree: {switches: [{nodes: a}]}",
            "switch 1: has no name",
        ),
        (
            read_slurm_yaml,
            "- topology: t\n  tree: {switches: [{switch: s, nodes: [a]}]}",
            "nodes: must be text",
        ),
        (
            read_slurm_yaml,
            "- topology: t\n  block: {blocks: [3]}",
            "block 1: block: must be a mapping",
        ),
        (read_slurm_yaml, "topology: t", "must be a list"),
        (read_slurm_yaml, "[]", "has no topology in it"),
        (read_kubernetes, "{", "is not JSON"),
        (read_kubernetes, "[" * 100_000, "is nested too deeply"),
        (read_kubernetes, '{"items": 3}', "has no list of items"),
        (read_kubernetes, '{"items": []}', "0 items: must be 1 to"),
        (read_kubernetes, '{"items": [3]}', r"items\[0\]: has no name"),
        (read_kubernetes, '{"items": [{"metadata": {"name": "a b"}}]}', r"items\[0\]: has no name"),
        (
            read_kubernetes,
            '{"items": [{"metadata": {"name": "a", "labels": {"k": 3}}}]}',
            "labels: must be texts",
        ),
        (
            read_kubernetes,
            nodes_json(aws("n", "a", "b", "c"), aws("n", "a", "b", "c")),
            "'n': is listed twice",
        ),
        (
            read_kubernetes,
            nodes_json(aws("n", "a", "b", "c"), ("m", {}, "4")),
            "node m: has 4 GPUs, and 1 others have 8",
        ),
        (read_physical_hosts, "vm-0 /a/b/c /d/e/f", "line 1: is not a name and a physicalHost"),
        (read_physical_hosts, "a b /c/d/e", "line 1: is not a name and a physicalHost"),
        (read_physical_hosts, "a /b/c/d\na /b/c/e", "line 2: 'a': is named twice"),
        (read_physical_hosts, "a /b", "is a physicalHost of 1 parts"),
        (read_physical_hosts, "a " + "/b" * 9, "is a physicalHost of 9 parts"),
        (read_physical_hosts, "a /b/c/d\ne /f/g", "e: has fewer parts in its physicalHost than a"),
        (read_physical_hosts, "a\nb", "names no machine with a physicalHost"),
        (
            read_physical_hosts,
            '{"items": [{"name": "a", "resourceStatus": {"physicalHost": 3}}]}',
            "must be text",
        ),
        (read_physical_hosts, '[{"resourceStatus": {}}]', r"items\[0\]: has no name"),
    ],
)
def test_what_readers_refuse(read: object, text: str, message: str) -> None:
    assert callable(read)
    with pytest.raises(InputError, match=message):
        read(text, "f")


def test_deep_trees() -> None:
    found, lost = tree(read_slurm_conf(DEEP, "f"))
    assert found.tiers == ("core", "spine", "leaf")
    assert found.hosts == tuple(f"n{i}" for i in range(8))
    assert found.paths[5] == ("c0", "s1", "l2")
    assert lost == ("f: root is over everything: nothing leaves there, so that it is no level",)
