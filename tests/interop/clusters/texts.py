"""Small files of clusters, in the forms of the tools that write them.

Each names its form's source; hosts and switches are made up, or a part of a published example.
"""

from __future__ import annotations

import json

# Form: topology.conf(5), slurm.schedmd.com/topology.conf.html.
TREE = """\
# two leaves
SwitchName=spine Switches=leaf[0-1]
switchname=leaf0 Nodes=n[01-05] LinkSpeed=100
SwitchName=leaf1 Nodes=n[06-11],n12 # a comment
"""

# Form: test1 of SchedMD/slurm's testsuite for topology/tree, three levels over the nodes.
DEEP = """\
SwitchName=root Switches=c[0-1]
SwitchName=c0 Switches=s[0-1]
SwitchName=c1 Switches=s2
SwitchName=s0 Switches=l0
SwitchName=s1 Switches=l1,l2
SwitchName=s2 Switches=l3
SwitchName=l0 Nodes=n[0-1]
SwitchName=l1 Nodes=n[2-4]
SwitchName=l2 Nodes=n5
SwitchName=l3 Nodes=n[6-7]
"""

# Form: testsuite/expect of SchedMD/slurm, several switches and a node under two of them.
TWICE = """\
SwitchName=s0 Nodes=a[1-3]
SwitchName=s1 Nodes=a[4-6],a3
SwitchName=s2 Nodes=b[1-2]
"""

# Form: testsuite of SchedMD/slurm and tests/ci of NVIDIA/topograph, topology/block.
BLOCKS = """\
# rack11=nvl-1-1
BlockName=rack11 Nodes=srv[1101-1104]
# rack12=nvl-1-2
BlockName=rack12 Nodes=srv[1201-1203]
BlockSizes=3,6
"""

# Form: topology.yaml(5) and cluster-toolkit's test_topology.py: empty switches, phantom blocks.
YAML = """\
---

- topology: topology/tree
  cluster_default: true
  tree:
    switches:
    - switch: s0
      children: s0_[0-2]
    - switch: s0_0
      children: s0_0_[0-1]
    - switch: s0_0_0
      nodes: blue-[0-1],green-3
    - switch: s0_0_1
      nodes: blue-2
    - switch: s0_1
      nodes: blue-[4-6]
    - switch: s0_2
- topology: topology/block
  cluster_default: false
  block:
    block_sizes: [18, 576]
    blocks:
    - block: b0
      nodes: blue-[0-2]
    - block: b1
      nodes: ''
- topology: cpu
  flat: true
"""

# Form: topology_p_topoinfo_print in src/plugins/topology/tree of SchedMD/slurm.
SCONTROL = """\
SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[01-05]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[06-12]
SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[01-12] Switches=leaf[0-1]
"""

# Form: the same in src/plugins/topology/block, of Slurm 24.11 and newer.
SCONTROL_BLOCKS = """\
BlockName=b0 BlockIndex=0 Nodes=10.140.71.103,10.140.88.115 BlockSize=2
BlockName=b1 BlockIndex=1 Nodes=10.140.79.152,10.140.93.120 BlockSize=2
AggregatedBlock=b[0-1] BlockIndex=2 Nodes=10.140.71.103,10.140.79.152 BlockSize=4
"""

# Form: sort_nodes.py of GoogleCloudPlatform/cluster-toolkit; older machines, /cluster/rack/host.
GCLOUD = """\
us-central1-a,/c1/r1/h1,vm-0
us-central1-a,/c1/r1/h2,vm-1
us-central1-a,/c1/r2/h3,vm-2
us-central1-a,/c2/r1/h4,vm-3
us-central1-a,,login
"""


def nodes_json(*nodes: tuple[str, dict[str, str], str | None]) -> str:
    """What ``kubectl get nodes -o json`` prints of nodes: name, labels, number of GPUs."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", **labels}},
            "status": {"capacity": {"cpu": "208", **({"nvidia.com/gpu": gpus} if gpus else {})}},
        }
        for name, labels, gpus in nodes
    ]
    return json.dumps({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}})


def instances_json(*machines: tuple[str, dict[str, object] | None]) -> str:
    """What ``gcloud compute instances list --format=json`` prints: name and resourceStatus."""
    return json.dumps([{"name": name, "resourceStatus": status} for name, status in machines])


def aws(name: str, spine: str, middle: str, leaf: str) -> tuple[str, dict[str, str], str]:
    """A node with AWS's labels (docs of Amazon EKS: from the farthest layer to the nearest)."""
    key = "topology.k8s.aws/network-node-layer-"
    return name, {f"{key}1": spine, f"{key}2": middle, f"{key}3": leaf}, "8"


KUBERNETES = nodes_json(
    aws("ip-1", "nn-s", "nn-a", "nn-x"),
    aws("ip-2", "nn-s", "nn-a", "nn-x"),
    aws("ip-3", "nn-s", "nn-a", "nn-y"),
    aws("ip-4", "nn-s", "nn-b", "nn-z"),
    ("cpu-1", {}, None),
)
INSTANCES = instances_json(
    ("a-0", {"physicalHost": "/k/b1/s1/h1"}),
    (
        "a-1",
        {"physicalHostTopology": {"cluster": "k", "block": "b1", "subblock": "s2", "host": "h"}},
    ),
    ("a-2", {"physicalHost": "/k/b2/s1/h3"}),
    ("a-3", {}),
)
EVERY = {
    "tree.conf": TREE,
    "deep.conf": DEEP,
    "twice.conf": TWICE,
    "blocks.conf": BLOCKS,
    "topology.yaml": YAML,
    "scontrol.txt": SCONTROL,
    "scontrol_blocks.txt": SCONTROL_BLOCKS,
    "gcloud.csv": GCLOUD,
    "instances.json": INSTANCES,
    "nodes.json": KUBERNETES,
}
"""A file of each form."""
