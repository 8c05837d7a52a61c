"""Files that tell no cluster are told by what they are; Volcano's HyperNodes are read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions
from p2smt.interop.clusters.kubernetes import read_hypernodes
from p2smt.interop.clusters.read import FOREIGN, facts_of
from p2smt.interop.clusters.switch_tree import tree_of

KUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: default}
spec:
  levels:
  - nodeLabel: "cloud.google.com/gce-topology-block"
  - nodeLabel: example.com/rack
  - nodeLabel: cloud.google.com/gce-topology-host
  - nodeLabel: kubernetes.io/hostname
"""
JSON_KUEUE = json.dumps(
    {
        "apiVersion": "kueue.x-k8s.io/v1",
        "kind": "Topology",
        "spec": {"levels": [{"nodeLabel": "a/b"}]},
    }
)
FILES = {
    '<?xml version="1.0"?>\n<graphs version="1"></graphs>': "graph file of NCCL.*DUMP",
    KUEUE: r"a Kueue Topology, .*-o json prints, and --labels \S+-block,example.com/rack$",
    JSON_KUEUE: "Kueue .*--labels a/b$",
    "switches:\n  core:\n    switches:\n    - s\nblocks:\n- switch: s\n": "Topograph simulates",
    '{"logical-dims": ["8","2"]}': "ns-3, without rates; .*analytical backend",
    '{"scheduling-policy": "LIFO", "endpoint-delay": 10}': "system file of ASTRA-sim",
    "4 1 4\n3\n0 3 1 400Gbps 0.005ms 0\n": "physical topology of ns-3",
    '<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0"/>': "of hwloc.*topo -m",
    "| NVIDIA-SMI 550.54    Driver Version: 550.54 |\n": "list of GPUs; .*topo -m",
    "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n\nLegend:\n  OK = Status Ok\n": "peer access",
    "\tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n": "peer access",
    "GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n": "nvidia-smi nvlink",
    "HOPS TABLE:\n   0000:c1:00.0 0000:c6:00.0\n": "amd-smi topology.*--showtopo",
    "== ROCm System Management Interface ==\nGPU Temp\n": "rocm-smi prints.*--showtopo",
    '<algo name="ring" nchunksperloop="8"></algo>': "MSCCL XML.*p2smt verify",
    "CA: n0 mlx5_0:\n  0x0f 7 1[  ] ==( 4X 106.25 Gbps Active/  LinkUp)==> 7": "iblinkinfo.*ibnetd",
    "CA 'mlx5_0'\n\tCA type: MT4129\n": "one host .*--nic",
    "NAME   STATUS   ROLES    AGE   VERSION\nn0  Ready <none> 1d v1\n": "table of.*-o json",
    "Name:     n0\nRoles:    <none>\nLabels:   a=b\n": "kubectl describe.*-o json",
    "GPU 0: NVIDIA A40 (UUID: GPU-1)\nGPU 1: NVIDIA A40 (UUID: GPU-2)\n": "list of GPUs; .*topo -m",
    "P2P Connectivity Matrix\n     D\\D     0     1\n": "measured between GPUs.*topo -m",
    "3b:00.0 3D controller: NVIDIA Corporation GA100\n": "lspci.*topo -m",
    'Switch\t: 0x0002 ports 36 "MF0;sw1" base port 0 lid 4\n': "without cables.*ibnetdiscover",
    "SW   4 19 0x02 4x QDR - CA  13  1 0x05 ( 'sw1' - 'n1' )\n": "ibnetdiscover -p.*without opt",
    "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\nkind: List\n": "YAML of kubectl",
    "PARTITION AVAIL  TIMELIMIT  NODES\n": "sinfo prints.*scontrol show topology",
    "NodeName=n0 Arch=x86_64 CoresPerSocket=4\n": "lists nodes of Slurm",
    "ClusterName=c\nSlurmctldHost=h\n": "slurm.conf.*topology.conf",
    "name: t\nlevels:\n- name: gpu\n": "topology of p2smt already.*-t FILE",
    "h:1:1 [0] NCCL INFO Bootstrap\n": "log of NCCL",
    "n01 slots=8\nn02 slots=8\n": "names hosts.*--hosts FILE",
    "# nodes\nn[01-16]\n": "names hosts.*--hosts FILE",
    "n01:8\nn02:8\n": "names hosts.*--hosts FILE",
    "n01.cluster.local\nn02.cluster.local\n": "names hosts.*--hosts FILE",
}


@pytest.mark.parametrize(("text", "what"), FILES.items())
def test_each_is_told_by_what_it_is(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "f.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=what) as caught:
        facts_of(str(path), ImportOptions())
    assert "is none of" not in str(caught.value)


def test_every_kind_has_a_file_above() -> None:
    said = set()
    for text in FILES:
        said.add(next(what for sign, what, _ in FOREIGN if re.search(sign, text, re.MULTILINE)))
    assert said == {what for _, what, _ in FOREIGN}


def yaml_object(version: str, kind: str, spec: str = "") -> str:
    return f"---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: n}}\nspec:\n{spec}"


LEVELS = "  levels:\n  - {}: a/block\n  - {}: a/rack\n  - {}: kubernetes.io/hostname\n"
KOORDINATOR = "  networkTopologySpec:\n  - labelKey:\n    - a/block\n    topologyLayer: B\n"
UNKNOWN = {
    yaml_object("kai.scheduler/v1alpha1", "Topology", LEVELS.format(*["nodeLabel"] * 3)): (
        r"a Topology of Kubernetes \(kai.scheduler/v1alpha1\), which names keys of labels and no "
        r"nodes; .*get nodes -o json prints, and --labels a/block,a/rack$"
    ),
    yaml_object("grove.io/v1", "ClusterTopology", LEVELS.format(*["key"] * 3)): "a/block,a/rack$",
    yaml_object("x.sh/v1", "ClusterNetworkTopology", KOORDINATOR): "and --labels a/block$",
    yaml_object("v1", "Pod"): r"is a Pod of Kubernetes \(v1\); give what kubectl get nodes",
    '{"apiVersion": "v1", "items": [ ], "kind": "List"}': r"\(v1\) without objects; give",
    '{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"labels": {}}}]}': "a PodList",
    '<?xml version="1.0"?>\n<!-- a > b -->\n<cluster><n/></cluster>': "is XML of <cluster>, and",
    '{"foo": {"bar": 1}, "baz": 2}': "is JSON with the keys foo, bar, baz, and",
    "# c\nfoo: 1\nbar:\n- 2\n": "is YAML with the keys foo, bar, and",
    "host,rack,switch\nn1,r1,s1\n": "begins with 'host,rack,switch', and",
    "{]\n": r"begins with '\{\]', and",
    "": "is empty, and",
    "\n# nothing\n": "is empty, and",
    "\0\0\0": "is binary, and",
}


@pytest.mark.parametrize(("text", "what"), UNKNOWN.items())
def test_others_are_told_by_what_they_show(tmp_path: Path, text: str, what: str) -> None:
    """No list knows them; what is wanted instead is said by what it tells."""
    path = tmp_path / "f.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=what) as caught:
        facts_of(str(path), ImportOptions())
    said = str(caught.value)
    assert "Kubernetes" in said or ("what joins hosts" in said and "what is in a node" in said)


def hypernode(name: str, kind: str, *members: str, match: str = "exactMatch") -> str:
    return (
        f"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n  name: {name}\n"
        "spec:\n  tier: 1\n  members:\n"
        + "".join(
            f"  - type: {kind}\n    selector:\n      {match}:\n        name: {one}\n"
            for one in members
        )
    )


TREE = (
    hypernode("s0", "Node", "node-0", "node-1"),
    hypernode("s1", "Node", "node-2", "node-3"),
    hypernode("s4", "HyperNode", "s0", "s1"),
)


def test_hypernodes_are_switches(tmp_path: Path) -> None:
    """As documents of a file, a list in YAML, or in JSON."""
    import yaml

    objects = [yaml.safe_load(one) for one in TREE]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    for text in ("---\n# s\n" + "---\n".join(TREE), yaml.safe_dump(listed), json.dumps(listed)):
        path = tmp_path / "f"
        path.write_text(text, "utf-8")
        facts = facts_of(str(path), ImportOptions())
        assert facts.outside is not None
        tree, _ = tree_of(facts.outside, "f")
        assert tree.hosts == ("node-0", "node-1", "node-2", "node-3")
        assert tree.paths == (("s0",), ("s0",), ("s1",), ("s1",))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            hypernode("s", "Node", "n", match="regexMatch"),
            r"HyperNode 1 \(s\): names members",
        ),
        (hypernode("s", "Pod", "n"), "type is not Node or HyperNode"),
        (hypernode("s", "Node", "n").replace("name: s\n", "name: 3\n"), "has no name"),
        (hypernode("s", "Node"), "has no list of members"),
        (
            "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNodeList\nitems: []\n",
            "no HyperNode",
        ),
    ],
)
def test_hypernodes_that_name_no_nodes(text: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        read_hypernodes(text, "f")
