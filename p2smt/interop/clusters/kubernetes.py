"""``kubectl get nodes -o json``: hosts by the labels that say where a node is.

Which keys those are differs by cloud.  ``PRESETS`` has them by name, outermost first; any others
can be given.  Topograph writes its own: docs/reference/node-labels.md of NVIDIA/topograph has them,
and those of AWS, Google and Oracle (what releases before 0.3 wrote, its docs/k8s.md of then);
CoreWeave's are in its documentation of Kueue, those of OKE's RDMA networks in
oracle-quickstart/oci-hpc-oke, Nebius's in docs.nebius.com (compute/clusters/gpu), Alibaba's
in its documentation of ACK Lingjun.  Other labels say which nodes one NVLink domain joins:
``RACKS``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2smt.cluster.hostlist import MAX_NAME
from p2smt.errors import InputError
from p2smt.files.yaml_text import load_yaml
from p2smt.interop.clusters.facts import (
    ClusterFormat,
    Facts,
    Holder,
    OutsideFacts,
    each_of,
    is_nowhere,
    outside_of,
    parsed,
)
from p2smt.interop.clusters.slurm import MAX_CHARACTERS

_AWS = "topology.k8s.aws/network-node-layer-"
_FABRIC = "fabric.topograph.run/tier-"
_NVIDIA = "network.topology.nvidia.com/"
_K8S = "network.topology.kubernetes.io/"
_EARLY = ("datacenter", "spine", "block")
_NEBIUS = "topology.nebius.com/"
_ALIBABA = "alibabacloud.com/"
_GCE = "cloud.google.com/gce-topology-"
_OCI = "oci.oraclecloud.com/"
_OCI_PARTS = ("hpc_island_id", "network_block_id", "local_block_id")
_COREWEAVE = ("fabric", "superpod", "leafgroup")
PRESETS: Mapping[str, tuple[str, ...]] = {
    "topograph": tuple(f"{_FABRIC}{tier}" for tier in range(5, -1, -1)),
    "topograph-old": tuple(f"{_NVIDIA}{tier}" for tier in ("core", "spine", "leaf")),
    "topograph-0.2": tuple(f"{_NVIDIA}{tier}" for tier in _EARLY),
    "topograph-0.1": tuple(f"{_K8S}{tier}" for tier in _EARLY),
    "aws": tuple(f"{_AWS}{layer}" for layer in (1, 2, 3, 4)),
    "gcp": (f"{_GCE}block", f"{_GCE}subblock"),
    "oci": tuple(f"{_OCI}rdma.{part}" for part in _OCI_PARTS),
    "oci-host": tuple(f"{_OCI}host.{part}" for part in (*_OCI_PARTS, "rack_id")),
    "coreweave": tuple(f"backend.coreweave.cloud/{part}" for part in _COREWEAVE),
    "coreweave-ib": tuple(f"ib.coreweave.cloud/{part}" for part in _COREWEAVE),
    "nebius": (f"{_NEBIUS}gpu-cluster-id", f"{_NEBIUS}tier-2", f"{_NEBIUS}tier-1"),
    "alibaba": (f"{_ALIBABA}point-of-delivery", f"{_ALIBABA}asw-id"),
}
"""Label keys by who writes them, outermost first; those that no node has are left out.

``oci`` means ``oci-host``, too: of names that begin alike that is taken which nodes have most of.
"""
RACKS = (
    *("nvidia.com/gpu.clique", "topology.k8s.aws/ultraserver-id", "ds.coreweave.com/nvlink.domain"),
    *("accelerator.topograph.run/domain", f"{_NVIDIA}accelerator", f"{_K8S}accelerator"),
    *(f"{_OCI}host.gpu_memory_cluster_id", f"{_OCI}host.gpu_memory_fabric_id"),
    *(f"{_NEBIUS}nvl-instance-group-id", f"{_NEBIUS}tier-0", f"{_GCE}subblock"),
)
"""Label keys of NVLink domains, the surest first; a subblock of Google's is one of A4X machines.

Then those of others whose last part is one of ``_RACK_WORDS``.
"""
_RACK_WORDS = re.compile(
    r"(?:.*[/._-])?(?:clique|ultraserver|gpu[._-]memory[._-](?:cluster|fabric)|(?:nvlink|nvl\d*|mnnvl|imex)[._-]?"
    r"(?:domain|group|rack|partition|clique))(?:[._-]?id)?",
    re.IGNORECASE,
)
MAX_KEYS = 6
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_SHOWN = 3
_PLACE = re.compile(
    r"topology|rack|switch|block|leaf|spine|zone|island|domain|fabric|superpod|pod[._-]id|tier|tor\b"
)
_HEAD = 64 * 1024
_KIND = re.compile(r"\"kind\"\s*:\s*\"(\w+)\"")
_TABLE = re.compile(r"NAME\s+STATUS\b[^\n]*\sLABELS[ \t]*\r?\n")


@dataclass(frozen=True, slots=True)
class KubeNode:
    """A node: its name, its labels, and how many GPUs it has (None: not said)."""

    name: str
    labels: Mapping[str, str]
    gpus: int | None

    def place(self, key: str) -> str:
        """The label of a key; empty where there is none, or one that says nothing."""
        found = self.labels.get(key, "").strip()
        return "" if is_nowhere(found) else found


def recognises_kubernetes(text: str) -> bool:
    """Whether a text looks like nodes in JSON, or a table of them with all their labels."""
    if _TABLE.match(text):
        return True
    kinds = set(_KIND.findall(text, 0, _HEAD))
    nodes = kinds <= {"List"} or not kinds.isdisjoint(("Node", "NodeList"))
    return nodes and text.lstrip()[:1] == "{" and '"metadata"' in text and '"labels"' in text


def read_kubernetes(text: str, source: str, keys: str | None = None) -> Facts:
    """The nodes of a cluster by where their labels say they are.

    ``keys``: a name of PRESETS, or label keys with commas between them, outermost first; None: the
    preset that the most nodes have labels of.

    Raises:
        InputError: no list of nodes, no node has the labels, or those with GPUs have unequal
            numbers of them.
    """
    nodes, lost = _with_gpus(_nodes(text, source), source)
    chosen, name = _keys(nodes, keys, source)
    used = [key for key in chosen if any(node.place(key) for node in nodes)]
    if twice := [one for one, count in Counter(node.name for node in nodes).items() if count > 1]:
        raise InputError(f"{source}: node {twice[0][:80]!r}", "is listed twice", "list each once")
    outside = _by_labels(nodes, used)
    if not outside.holders:
        rule = f"no node has all of the labels {', '.join(used)}"
        raise InputError(source, rule, "give those that each has: --labels KEY,KEY")
    lost.append(f"{source}: {name}, outermost first: {', '.join(used)}")
    rack = _rack_key(nodes, None if keys is None or keys in PRESETS else chosen)
    racks = _by_labels(nodes, [rack]).holders if rack else ()
    by = rack or f"give --labels KEY with what names a rack, as {RACKS[0]} does{_near(nodes)}"
    outside = replace(outside, racks=racks, racks_by=by)
    return Facts(source, outside, lost=tuple(lost), devices=nodes[0].gpus)


def _nodes(text: str, source: str) -> list[KubeNode]:
    if _TABLE.match(text):
        return [_in_table(line, f"{source}, line {n}") for n, line in _rows(text)]
    found = parsed(text, source)
    single = isinstance(found, dict) and found.get("kind") == "Node"
    return [_node(*each) for each in each_of([found] if single else found, source, "items")]


def _rows(text: str) -> list[tuple[int, str]]:
    """The lines under the heading of a table, with their numbers."""
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if n > 1 and line.strip()]


def _in_table(line: str, where: str) -> KubeNode:
    """A row of ``kubectl get nodes --show-labels``: its name first, its labels last."""
    name, *_, last = line.split()
    pairs = (pair.partition("=")[::2] for pair in last.split(",") if "=" in pair)
    return _node({"metadata": {"name": name, "labels": dict(pairs)}}, where)


def _by_labels(nodes: Sequence[KubeNode], keys: Sequence[str]) -> OutsideFacts:
    """Where labels of these keys, outermost first, say that nodes are; loose: one is missing."""
    paths = {node.name: tuple(node.place(key) for key in keys) for node in nodes}
    placed = {name: path for name, path in paths.items() if all(path)}
    return outside_of(placed, [name for name in paths if name not in placed])


def _rack_key(nodes: Sequence[KubeNode], given: Sequence[str] | None) -> str:
    """The key whose labels name racks: of those given the known one, or the innermost; or empty."""
    keys = dict.fromkeys(key for node in nodes for key in node.labels if _RACK_WORDS.fullmatch(key))
    known = (*RACKS, *keys)
    among = known if given is None else [key for key in known if key in given] or given[-1:]
    return next((key for key in among if _covered(nodes, [key])), "")


def _keys(nodes: Sequence[KubeNode], given: str | None, source: str) -> tuple[tuple[str, ...], str]:
    """The keys to take, and what they are called."""
    alike = [name for name in PRESETS if given is None or f"{name}-".startswith(f"{given}-")]
    if alike:
        best = max(alike, key=lambda name: _covered(nodes, PRESETS[name]))
        chosen = PRESETS[best], f"labels of {best}"
    else:
        keys = tuple(key.strip() for key in (given or "").split(","))
        if not all(keys) or len(keys) > MAX_KEYS or len(set(keys)) != len(keys):
            rule = f"1 to {MAX_KEYS} different label keys, outermost first"
            what = f"--labels {(given or '')[:80]!r}"
            raise InputError(what, rule, f"or one of {', '.join(PRESETS)}")
        chosen = keys, "labels"
    if given is None and not _covered(nodes, chosen[0]) and (rack := _rack_key(nodes, None)):
        chosen = (rack,), "labels of racks"
    if not _covered(nodes, chosen[0]):
        rule = f"no node has the labels {', '.join(chosen[0])}" if given else "no known labels"
        raise InputError(source, rule, f"give --labels KEY,KEY outermost first{_near(nodes)}")
    return chosen


def _covered(nodes: Sequence[KubeNode], keys: Sequence[str]) -> int:
    """How many labels of these keys there are."""
    return sum(bool(node.place(key)) for node in nodes for key in keys)


def _near(nodes: Sequence[KubeNode]) -> str:
    """Keys of labels that may be meant: those that more nodes have in common first."""
    keys = dict.fromkeys(key for node in nodes for key in node.labels if _PLACE.search(key))
    values = {key: {place for node in nodes if (place := node.place(key))} for key in keys}
    found = sorted(filter(values.get, keys), key=lambda key: len(values[key]))[:MAX_KEYS]
    return f"; they have {', '.join(found)}" if found else ""


def _with_gpus(nodes: list[KubeNode], source: str) -> tuple[list[KubeNode], list[str]]:
    """The nodes that have GPUs, if some have; and who is left out.

    Raises:
        InputError: they have unequal numbers of them.
    """
    some = [node for node in nodes if node.gpus]
    if not some:
        return nodes, []
    without = [node.name for node in nodes if not node.gpus]
    counts = Counter(node.gpus for node in some)
    if len(counts) > 1:
        usual = counts.most_common(1)[0][0]
        odd = next(node for node in some if node.gpus != usual)
        rule = f"has {odd.gpus} GPUs, and {counts[usual]} others have {usual}"
        remedy = "import a list of those that are alike (kubectl get nodes -l LABEL=VALUE)"
        raise InputError(f"{source}: node {odd.name[:80]}", rule, remedy)
    if not without:
        return some, []
    more = ", .." if len(without) > _SHOWN else ""
    names = ", ".join(name[:80] for name in without[:_SHOWN])
    return some, [f"{source}: nodes without GPUs are left out: {len(without)} ({names}{more})"]


def _node(item: Any, where: str) -> KubeNode:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(where, "has no name", "give what kubectl get nodes -o json prints")
    if len(name) > MAX_NAME:
        raise InputError(where, f"has a name longer than {MAX_NAME} characters", "rename it")
    labels = metadata.get("labels", {})
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise InputError(f"{where}: labels", "must be texts by key", "give the whole output")
    return KubeNode(name, labels, _gpus(item))


def _gpus(item: Mapping[str, Any]) -> int | None:
    status = item.get("status")
    capacity = status.get("capacity") if isinstance(status, dict) else None
    if not isinstance(capacity, dict):
        return None
    found = [str(capacity[key]) for key in _GPUS if key in capacity]
    return sum(int(text) for text in found if re.fullmatch(r"\d{1,4}", text))


# Volcano's HyperNodes: a tree of switches as objects of Kubernetes.
#
# As ``kubectl get hypernodes -o json`` or ``-o yaml`` prints them, or as documents of a YAML file.
# A HyperNode has members: nodes, or HyperNodes of the tier below, each by its exact name
# (topology.volcano.sh/v1alpha1, docs/design/hyperNode of volcano-sh/volcano).


_SIGN = re.compile(r"topology\.volcano\.sh/")
_HYPERNODE = re.compile(r"kind[\"']?: *[\"']?HyperNode")
_SPLIT = re.compile(r"^---[^\n]*$", re.MULTILINE)


def read_hypernodes(text: str, source: str) -> Facts:
    """The HyperNodes of a text, with the nodes that they have.

    Raises:
        InputError: it is malformed, or one names its members by a pattern or by labels.
    """
    holders = [_holder(data, where) for data, where in _objects(text, source)]
    if not holders:
        raise InputError(source, "has no HyperNode", "give kubectl get hypernodes -o json")
    return Facts(source, OutsideFacts(tuple(holders)))


def _objects(text: str, source: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The HyperNodes among the objects of all documents, with what messages call each."""
    number = 0
    for data in _documents(text, source):
        items = data.get("items") if isinstance(data, dict) else None
        for one in items if isinstance(items, list) else [data]:
            if isinstance(one, dict) and one.get("kind") == "HyperNode":
                number += 1
                yield one, f"{source}: HyperNode {number}"


def _documents(text: str, source: str) -> Iterator[Any]:
    if text.lstrip()[:1] in ("{", "["):
        yield parsed(text, source)
        return
    for part in _SPLIT.split(text):
        if any(line.strip() and not line.lstrip().startswith("#") for line in part.split("\n")):
            yield load_yaml(part, source, MAX_CHARACTERS)


def _holder(data: dict[str, Any], where: str) -> Holder:
    name = _inside(data, "metadata", "name")
    if not isinstance(name, str) or not name:
        raise InputError(where, "has no name", "give kubectl get hypernodes -o json")
    members = _inside(data, "spec", "members")
    if not isinstance(members, list):
        raise InputError(f"{where} ({name[:80]})", "has no list of members", "name its nodes")
    found: dict[str, list[str]] = {"Node": [], "HyperNode": []}
    for one in members:
        kind = one.get("type") if isinstance(one, dict) else None
        if kind not in found:
            rule = "has a member whose type is not Node or HyperNode"
            raise InputError(f"{where} ({name[:80]})", rule, "correct it")
        found[str(kind)].append(_member(one, f"{where} ({name[:80]})"))
    return Holder(name, tuple(found["HyperNode"]), tuple(found["Node"]))


def _member(data: dict[str, Any], where: str) -> str:
    name = _inside(data, "selector", "exactMatch", "name")
    if isinstance(name, str) and name:
        return name
    rule = "names members by a pattern or by labels (regexMatch, labelMatch), not one by one"
    remedy = "write them as exactMatch, or give kubectl get nodes -o json and --labels KEY,KEY"
    raise InputError(where, rule, remedy)


def _inside(data: Any, *keys: str) -> Any:
    """What lies under some keys of objects in objects; None where it is missing."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


HYPERNODES = ClusterFormat(
    "Volcano HyperNodes",
    lambda text: bool(_SIGN.search(text) and _HYPERNODE.search(text)),
    read_hypernodes,
)
