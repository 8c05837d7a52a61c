"""``kubectl get nodes -o json``: hosts by the labels that say where a node is.

Which keys those are differs by cloud.  ``PRESETS`` has them by name, outermost first; any others
can be given.  Topograph writes its own: docs/reference/node-labels.md of NVIDIA/topograph has them,
and those of AWS, Google and Oracle; CoreWeave's are in its documentation of Kueue.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2smt.cluster.hostlist import MAX_NAME
from p2smt.errors import InputError
from p2smt.interop.clusters.facts import (
    Facts,
    Path,
    each_of,
    outside_of,
    parsed,
)

_AWS = "topology.k8s.aws/network-node-layer-"
_FABRIC = "fabric.topograph.run/tier-"
_NVIDIA = "network.topology.nvidia.com/"
_GCE = "cloud.google.com/gce-topology-"
_OCI = "oci.oraclecloud.com/host."
_COREWEAVE = "backend.coreweave.cloud/"
PRESETS: Mapping[str, tuple[str, ...]] = {
    "topograph": tuple(f"{_FABRIC}{tier}" for tier in range(5, -1, -1)),
    "topograph-old": tuple(f"{_NVIDIA}{tier}" for tier in ("core", "spine", "leaf")),
    "aws": tuple(f"{_AWS}{layer}" for layer in (1, 2, 3, 4)),
    "gcp": (f"{_GCE}block", f"{_GCE}subblock"),
    "oci": (f"{_OCI}network_block_id", f"{_OCI}rack_id"),
    "coreweave": tuple(f"{_COREWEAVE}{part}" for part in ("fabric", "superpod", "leafgroup")),
}
"""Label keys by who writes them, outermost first; those that no node has are left out."""
MAX_KEYS = 6
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class KubeNode:
    """A node: its name, its labels, and how many GPUs it has (None: not said)."""

    name: str
    labels: Mapping[str, str]
    gpus: int | None


def recognises_kubernetes(text: str) -> bool:
    """Whether a text looks like a list of nodes in JSON."""
    return text.lstrip()[:1] == "{" and '"metadata"' in text and '"labels"' in text


def read_kubernetes(text: str, source: str, keys: str | None = None) -> Facts:
    """The nodes of a cluster by where their labels say they are.

    ``keys``: a name of PRESETS, or label keys with commas between them, outermost first; None: the
    preset that the most nodes have labels of.

    Raises:
        InputError: no list of nodes, no node has the labels, or those with GPUs have unequal
            numbers of them.
    """
    nodes = [_node(item, where) for item, where in each_of(parsed(text, source), source, "items")]
    nodes, lost = _with_gpus(nodes, source)
    chosen, name = _keys(nodes, keys, source)
    used = [key for key in chosen if any(node.labels.get(key) for node in nodes)]
    paths: dict[str, Path] = {}
    loose: list[str] = []
    for node in nodes:
        path = tuple(node.labels.get(key, "") for key in used)
        if node.name in paths or node.name in loose:
            raise InputError(
                f"{source}: node {node.name[:80]!r}", "is listed twice", "list each once"
            )
        if all(path):
            paths[node.name] = path
        else:
            loose.append(node.name)
    if not paths:
        rule = f"no node has all of the labels {', '.join(used)}"
        raise InputError(source, rule, "give those that each has: --labels KEY,KEY")
    lost.append(f"{source}: {name}, outermost first: {', '.join(used)}")
    return Facts(source, outside_of(paths, loose), lost=tuple(lost), devices=nodes[0].gpus)


def _keys(nodes: Sequence[KubeNode], given: str | None, source: str) -> tuple[tuple[str, ...], str]:
    """The keys to take, and what they are called."""
    if given is not None:
        keys = PRESETS.get(given) or tuple(key.strip() for key in given.split(","))
        if not all(keys) or len(keys) > MAX_KEYS or len(set(keys)) != len(keys):
            rule = f"1 to {MAX_KEYS} different label keys, outermost first"
            raise InputError(f"--labels {given[:80]!r}", rule, f"or one of {', '.join(PRESETS)}")
        chosen = keys, f"labels of {given}" if given in PRESETS else "labels"
    else:
        counts = {name: _covered(nodes, keys) for name, keys in PRESETS.items()}
        best = max(counts, key=lambda name: counts[name])
        chosen = PRESETS[best], f"labels of {best}"
    if not any(node.labels.get(key) for node in nodes for key in chosen[0]):
        rule = f"no node has the labels {', '.join(chosen[0])}" if given else "no known labels"
        raise InputError(source, rule, f"give --labels KEY,KEY outermost first{_near(nodes)}")
    return chosen


def _covered(nodes: Sequence[KubeNode], keys: Sequence[str]) -> int:
    """How many labels of these keys there are."""
    return sum(bool(node.labels.get(key)) for node in nodes for key in keys)


def _near(nodes: Sequence[KubeNode]) -> str:
    """Keys of labels that may be meant."""
    words = ("topology", "rack", "switch", "block", "leaf", "spine", "zone")
    counts = Counter(
        key for node in nodes for key in node.labels if any(word in key for word in words)
    )
    found = [key for key, _ in counts.most_common(4)]
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
