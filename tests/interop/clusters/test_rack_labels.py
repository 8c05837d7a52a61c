"""Racks by labels of Kubernetes and by physicalHost; and the label keys of each cloud."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.kubernetes import RACKS, read_kubernetes, recognises_kubernetes
from p2smt.interop.clusters.physical_hosts import read_physical_hosts

NONE: Mapping[str, str] = {}
AWS = "topology.k8s.aws/network-node-layer-"


def nodes(
    racks: dict[str, list[str]], key: str, gpus: int = 4, more: Mapping[str, str] = NONE
) -> str:
    """Nodes with a label that names their rack, as kubectl prints them."""
    return json.dumps(
        {
            "items": [
                {
                    "metadata": {"name": name, "labels": {key: rack} | dict(more)},
                    "status": {"capacity": {"nvidia.com/gpu": str(gpus)}},
                }
                for rack, names in racks.items()
                for name in names
            ]
        }
    )


def imported(text: str, labels: str | None = None) -> tuple[Topology, str]:
    facts = read_kubernetes(text, "f", labels)
    found, said = combined([facts], ImportOptions(node="gb200-nvl72", labels=labels))
    return found, "\n".join(said)


TWO = {"a.7": ["n0", "n2", "n4"], "b.7": ["n1", "n3"]}


@pytest.mark.parametrize("key", RACKS)
@pytest.mark.parametrize("beside", [{}, {f"{AWS}1": "s", f"{AWS}2": "t"}])
def test_each_key_of_racks(key: str, beside: dict[str, str]) -> None:
    found, said = imported(nodes(TWO, key, more=beside))
    assert [(level.name, level.size) for level in found.levels] == [("rack", 2), ("gpu", 8)]
    assert f"f: racks are by {key}, what is over them is left out" in said
    assert "--devices-per-host 4 --hosts n[0,2,1,3]" in said
    assert "idle: n4" in said


def test_labels_may_name_it() -> None:
    text = nodes(TWO, "example.com/rack", more={"example.com/room": "r"})
    found, said = imported(text, "example.com/room,example.com/rack")
    assert found.sizes == (2, 8)
    assert "racks are by example.com/rack" in said


def test_a_known_key_goes_before_the_innermost_that_is_named() -> None:
    text = nodes(TWO, "nvidia.com/gpu.clique", more={"example.com/leaf": "r"})
    found, said = imported(text, "nvidia.com/gpu.clique,example.com/leaf")
    assert found.sizes == (2, 8)
    assert "racks are by nvidia.com/gpu.clique" in said


def test_a_preset_of_labels_leaves_racks_to_their_keys() -> None:
    text = nodes(TWO, "nvidia.com/gpu.clique", more={f"{AWS}1": "s", f"{AWS}2": "t"})
    assert imported(text, "aws")[0].sizes == (2, 8)


def test_nodes_without_a_rack_are_left_out() -> None:
    """Without the label, or with one of a domain that never came up."""
    zeros = "00000000-0000-0000-0000-000000000000.0"
    found, said = imported(nodes(TWO | {"": ["m0"], zeros: ["m1", "m2"]}, RACKS[0]))
    assert found.sizes == (2, 8)
    assert "nothing says where 3 hosts are: they are left out (m0, m1, m2)" in said


def test_the_missing_key_is_said() -> None:
    text = nodes({"l": ["n0"]}, f"{AWS}1")
    with pytest.raises(
        InputError, match=r"which hosts are in one rack; give --labels KEY .*clique"
    ):
        imported(text)


def test_a_rack_has_at_most_its_trays_and_they_have_4_gpus() -> None:
    many = {"r": [f"n{i}" for i in range(19)]}
    with pytest.raises(InputError, match="block 'r' has 19 hosts: a rack of gb200-nvl72 has 18"):
        imported(nodes(many, RACKS[0]))
    with pytest.raises(InputError, match="hosts of 8 devices: a tray of gb200-nvl72 has 4"):
        imported(nodes(TWO, RACKS[0], gpus=8))


@pytest.mark.parametrize(
    "key",
    [
        *("example.com/nvlink-domain", "crusoe.ai/nvlink.domain", "a.b/nvl72-rack"),
        *("x/mnnvl-clique.id", "oci.oraclecloud.com/gpu_memory_fabric_id"),
    ],
)
def test_keys_of_others_that_say_what_they_are(key: str) -> None:
    found, said = imported(nodes(TWO, key))
    assert found.sizes == (2, 8)
    assert f"racks are by {key}" in said


@pytest.mark.parametrize("key", ["nvidia.com/nvlink.capable", "x/clique-size", "x/gpu-rack-unit"])
def test_keys_of_other_things_are_no_racks(key: str) -> None:
    with pytest.raises(InputError, match="no known labels"):
        imported(nodes(TWO, key))


def instance(number: int, nodes: str, block: str = "") -> dict[str, object]:
    """As aws ec2 describe-instance-topology prints one."""
    over = [f"nn-{one}" for one in nodes] or None
    found: dict[str, object] = {"InstanceId": f"i-{number}", "NetworkNodes": over}
    found |= {"InstanceType": "p5.48xlarge", "ZoneId": "usw2-az1"}
    return found | ({"CapacityBlockId": block} if block else {})


def test_instances_of_amazon_are_under_their_network_nodes() -> None:
    """The last one is not running: it has no place."""
    listed = [instance(i, f"a{i // 4}{i // 2 + 4}") for i in range(8)] + [instance(8, "")]
    facts = read_physical_hosts(json.dumps({"Instances": listed}), "f")
    found, said = combined([facts], ImportOptions(node="aws-p5"))
    assert [(one.name, one.size) for one in found.levels[:3]] == [
        ("spine", 2),
        ("leaf", 2),
        ("node", 2),
    ]
    assert "f: nothing says where i-8 is: it is left out" in said
    with pytest.raises(InputError, match="in one rack; give instances that have a CapacityBlockId"):
        combined([facts], ImportOptions(node="gb200-nvl72"))


def test_ultraservers_are_racks() -> None:
    listed = [instance(i, "ab", f"cb-{i % 2}") for i in range(5)]
    facts = read_physical_hosts(json.dumps({"Instances": listed}), "f")
    found, said = combined([facts], ImportOptions(node="gb200-nvl72"))
    assert found.sizes == (2, 8)
    assert any("racks are by CapacityBlockId" in one for one in said)


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"NetworkNodes": ["a"]}, "has no InstanceId"),
        ({"InstanceId": "i", "NetworkNodes": "a"}, "NetworkNodes: must be names"),
        ({"InstanceId": "i", "NetworkNodes": ["a/b"]}, "NetworkNodes: must be names"),
        ({"InstanceId": "i"}, "names no machine with a physicalHost or NetworkNodes"),
    ],
)
def test_instances_that_are_malformed(item: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        read_physical_hosts(json.dumps({"Instances": [item]}), "f")


def test_racks_by_physical_host() -> None:
    text = "".join(f"us-central1-a,/b/r{i // 2}/{i},n{i}\n" for i in range(4))
    found, said = combined([read_physical_hosts(text, "f")], ImportOptions(node="gb200-nvl72"))
    assert found.sizes == (2, 8)
    assert any("racks are by subblocks of physicalHost" in one for one in said)


@pytest.mark.parametrize("labels", [None, "oci"])
@pytest.mark.parametrize("family", ["rdma", "host"])
def test_both_generations_of_oracle(family: str, labels: str | None) -> None:
    prefix = f"oci.oraclecloud.com/{family}."
    text = json.dumps(
        {
            "items": [
                {
                    "metadata": {
                        "name": f"n{i}",
                        "labels": {
                            f"{prefix}hpc_island_id": "i",
                            f"{prefix}network_block_id": f"b{i // 4}",
                            f"{prefix}local_block_id": f"l{i // 2}",
                        },
                    }
                }
                for i in range(8)
            ]
        }
    )
    outside = read_kubernetes(text, "f", labels).outside
    assert outside is not None
    assert [holder.name for holder in outside.holders if holder.hosts] == ["l0", "l1", "l2", "l3"]


EARLY = ("datacenter", "spine", "block")


@pytest.mark.parametrize(
    ("prefix", "keys", "name"),
    [
        ("network.topology.nvidia.com/", EARLY, "topograph-0.2"),
        ("network.topology.kubernetes.io/", EARLY, "topograph-0.1"),
        ("network.topology.nvidia.com/", ("core", "spine", "leaf"), "topograph-old"),
        ("ib.coreweave.cloud/", ("fabric", "superpod", "leafgroup"), "coreweave-ib"),
        ("topology.nebius.com/", ("gpu-cluster-id", "tier-2", "tier-1"), "nebius"),
        ("alibabacloud.com/", ("x", "point-of-delivery", "asw-id"), "alibaba"),
    ],
)
def test_every_generation_and_cloud(prefix: str, keys: tuple[str, ...], name: str) -> None:
    """The innermost key is a level, which a preset that has the outer keys alone would drop."""
    placed = [(f"n{i}", ("c", f"s{i // 4}", f"l{i // 2}")) for i in range(8)]
    items = [
        {
            "metadata": {
                "name": n,
                "labels": {f"{prefix}{k}": v for k, v in zip(keys, at, strict=True)},
            }
        }
        for n, at in placed
    ]
    facts = read_kubernetes(json.dumps({"items": items}), "f")
    assert any(f"labels of {name}, outermost first" in one for one in facts.lost)
    found, _ = combined([facts], ImportOptions(node="dgx-h100"))
    assert [(one.name, one.size) for one in found.levels[:2]] == [("spine", 2), ("leaf", 2)]


def test_a_table_with_all_labels_is_read() -> None:
    rows = [
        f"n{i}   Ready   <none>   5d2h   v1.30.1   a=b,{AWS}1=s,{AWS}2=l{i // 2},c="
        for i in range(4)
    ]
    text = "NAME   STATUS   ROLES    AGE    VERSION   LABELS\n" + "\n".join(rows) + "\n"
    assert recognises_kubernetes(text)
    found, _ = combined([read_kubernetes(text, "f")], ImportOptions(node="aws-p5"))
    assert found.sizes == (2, 2, 8)
    with pytest.raises(InputError, match="line 2: has no name"):
        read_kubernetes(text.replace("n0  ", "n%  "), "f")


def test_one_node_and_lists_of_others() -> None:
    node = {"kind": "Node", "metadata": {"name": "n0", "labels": {f"{AWS}1": "s"}}}
    assert recognises_kubernetes(json.dumps(node))
    facts = read_kubernetes(json.dumps(node), "f")
    assert facts.outside is not None
    assert [one.hosts for one in facts.outside.holders] == [("n0",)]
    assert not recognises_kubernetes(
        json.dumps({"kind": "List", "items": [node | {"kind": "Pod"}]})
    )


def test_keys_that_may_be_meant() -> None:
    labels = {f"example.com/{word}": "x" for word in ("island", "network-block", "local-block")}
    text = json.dumps({"items": [{"metadata": {"name": "n", "labels": labels}}]})
    with pytest.raises(InputError, match=r"they have .*island.*network-block.*local-block"):
        read_kubernetes(text, "f")
