"""``kubectl get nodes -o json``: hosts by the labels that say where a node is.

Which keys those are differs by cloud.  ``PRESETS`` has them by name, outermost first; any others
can be given.  Topograph writes its own: docs/reference/node-labels.md of NVIDIA/topograph has them,
and those of AWS, Google and Oracle; CoreWeave's are in its documentation of Kueue.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from p2smt.cluster.hostlist import MAX_NAME
from p2smt.cluster.link import Device
from p2smt.cluster.topology import Level
from p2smt.errors import InputError
from p2smt.files.json_text import loads

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


# What the files of a cluster tell, before it is levels: hosts, what holds them, what is inside.
# A reader of a format gives :class:`Facts`.  A file tells of the network outside the nodes
# (switches and hosts), of a node inside, or of all levels at once; several files combine, one for
# each part. ``lost`` are sentences for people: what a reader left out, and what it filled in.


MAX_BYTES = 128 * 1024 * 1024
"""The largest file that is read: what kubectl prints of 4,096 nodes has some 20 kB of each."""
TIERS = ("leaf", "spine", "core")
"""Levels of a tree of switches, from the nodes outwards; then tier4, tier5, .."""
BLOCK_TIERS = ("block",)
"""The level of Slurm's blocks."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A switch, or a block, rack or zone: what holds other holders, or hosts, by name.

    ``line`` says where the source names it (0: it does not have lines).
    """

    name: str
    holders: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class OutsideFacts:
    """What joins hosts, as a source tells it: not checked, so it need not be a tree.

    ``tiers`` are the names of the levels from the nodes outwards, for as many as they name; the
    others are tier4, tier5, and so on by their number.  ``loose`` are hosts that no holder has.
    """

    holders: tuple[Holder, ...]
    loose: tuple[str, ...] = ()
    tiers: tuple[str, ...] = TIERS


@dataclass(frozen=True, slots=True)
class InsideFacts:
    """A node: ``levels[0]`` is the level of nodes, of size 1, whose link is their network cards.

    The other levels lie inside it, outermost first.  ``link_known``: whether the source tells that
    link; without, it is a stand-in that ``--uplink`` must replace.  ``library``: what the source
    says runs on such nodes, or an empty text.  ``assumed``: what joins the devices is not told, but
    taken from what they are, so any other source of it goes before.  ``device``: what a device can
    do by itself, where the source names its model.
    """

    levels: tuple[Level, ...]
    link_known: bool = True
    library: str = ""
    assumed: bool = False
    device: Device | None = None

    def __post_init__(self) -> None:
        if not self.levels or self.levels[0].size != 1:
            raise InputError("the levels of a node", "begin with that of the node, of size 1")


@dataclass(frozen=True, slots=True)
class Facts:
    """What one file tells.  At least one of the three parts is there.

    ``source`` names the file in messages, ``whole`` are all levels of a cluster whose nodes have no
    names, outermost first.  ``devices``: how many each host has, where that is all that is told.
    """

    source: str
    outside: OutsideFacts | None = None
    inside: InsideFacts | None = None
    whole: tuple[Level, ...] = ()
    lost: tuple[str, ...] = ()
    devices: int | None = None

    def adding(self, *sentences: str) -> Facts:
        """The same with more sentences on what was left out or filled in."""
        return replace(self, lost=(*self.lost, *sentences))


@dataclass(frozen=True, slots=True)
class ClusterFormat:
    """A format that tells of clusters.

    name: what messages call it.
    recognises: whether a text looks like one, well formed or not; cheap, and never raises.
    read: a text and what messages call its file; InputError if it is malformed.
    """

    name: str
    recognises: Callable[[str], bool]
    read: Callable[[str, str], Facts]


# JSON that other tools print: lists of things, bounded, with where each stands.


MAX_ITEMS = 2**18
"""Of one list: nodes, or instances."""


MAX_PARTS = 2**23
"""Values of a text, which take some 100 bytes of memory each: kubectl prints one in 40 bytes."""


def parsed(text: str, source: str) -> Any:
    """The data of a JSON text.

    Raises:
        InputError: it is none, nested too deeply, or has too many parts.
    """
    if sum(map(text.count, ",[{")) > MAX_PARTS:
        rule = f"has more than {MAX_PARTS} parts"
        raise InputError(source, rule, "cut it down to names and labels (jq)")
    try:
        return loads(text)
    except ValueError as error:
        rule = f"is not JSON ({str(error)[:120]})"
        raise InputError(source, rule, "give the whole output") from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", "give the output as it is") from None


def each_of(data: Any, source: str, key: str) -> Iterator[tuple[Any, str]]:
    """The items of a list, or of the list under a key; with what messages call each.

    Raises:
        InputError: there is none, it is empty, or it is too long.
    """
    items = data.get(key) if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise InputError(source, f"has no list of {key}", "give the whole output of the command")
    if not 1 <= len(items) <= MAX_ITEMS:
        raise InputError(
            f"{source}: {len(items)} {key}", f"must be 1 to {MAX_ITEMS}", "list those of one job"
        )
    for number, item in enumerate(items):
        yield item, f"{source}: {key}[{number}]"


# Hosts with the names of what holds them, outermost first, as holders.
# Labels and physical locations say of each host where it is.  Names need to be unique only under
# what holds them: where two racks of different rooms have one name, that of the room goes before
# it.


Path = tuple[str, ...]


def outside_of(paths: Mapping[str, Path], loose: Sequence[str] = ()) -> OutsideFacts:
    """What holds these hosts; paths are of one length, which is at least 1."""
    inside: dict[Path, dict[Path, None]] = defaultdict(dict)
    hosts: dict[Path, list[str]] = defaultdict(list)
    for host, path in paths.items():
        hosts[path].append(host)
        for depth in range(1, len(path) + 1):
            inside[path[: depth - 1]][path[:depth]] = None
    every = [path for paths_under in inside.values() for path in paths_under]
    names = _names(every)
    holders = (
        Holder(
            names[path], tuple(names[child] for child in inside.get(path, ())), tuple(hosts[path])
        )
        for path in every
    )
    return OutsideFacts(tuple(holders), tuple(loose), TIERS)


def _names(every: Sequence[Path]) -> dict[Path, str]:
    """A name of each, as short as can be: the end of its path that no other has."""
    names = {path: path[-1] for path in every}
    for depth in range(2, max(map(len, every), default=0) + 1):
        several = Counter(names.values())
        for path, name in names.items():
            if several[name] > 1:
                names[path] = "/".join(path[-depth:])
    return names
