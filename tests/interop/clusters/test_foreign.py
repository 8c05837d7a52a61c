"""Files that tell no cluster are told by what they are; Volcano's HyperNodes are read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from p2smt.errors import InputError
from p2smt.interop.clusters.combine import ImportOptions
from p2smt.interop.clusters.foreign import FOREIGN
from p2smt.interop.clusters.hypernodes import read_hypernodes
from p2smt.interop.clusters.read import facts_of
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


def test_what_is_none_of_them_is_told_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_text("{]\n", "utf-8")
    with pytest.raises(InputError, match=r"is none of: scontrol show topology, .*ibnetdiscover"):
        facts_of(str(path), ImportOptions())


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
