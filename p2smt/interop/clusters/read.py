"""Files of a cluster, of any format and for any part of it, as one topology.

A format is a row of the table of :func:`formats`; the first that recognises a text reads it.
``FOREIGN`` are files that are often given and tell no cluster, each with what to give instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial

from p2smt.cluster.file import MAX_BYTES as MAX_TOPOLOGY_BYTES
from p2smt.cluster.file import dump_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.text_kind import seems
from p2smt.files.yaml_text import MAX_PARTS as MAX_YAML_PARTS
from p2smt.files.yaml_text import dump_yaml, parts_of, read_text
from p2smt.interop.clusters.astra_sim import ASTRA_SIM
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.facts import MAX_BYTES, ClusterFormat, Facts
from p2smt.interop.clusters.ibnetdiscover import IBNETDISCOVER
from p2smt.interop.clusters.kubernetes import HYPERNODES, read_kubernetes, recognises_kubernetes
from p2smt.interop.clusters.nodes import nccl_xml, node_facts, rank_headers, topo_matrix
from p2smt.interop.clusters.nodes.node_facts import NodeFacts, Told
from p2smt.interop.clusters.nodes.reduce import NOTHING_TOLD, facts_of_node
from p2smt.interop.clusters.physical_hosts import PHYSICAL_HOSTS
from p2smt.interop.clusters.slurm import (
    SCONTROL,
    SLURM_CONF,
    read_slurm_yaml,
    recognises_slurm_yaml,
)

_HEAD = 256 * 1024
_LABEL_KEY = re.compile(
    r"(?:nodeLabel|labelKey|\bkey)[\"']?\s*:[\s\[\"'-]*([\w.-]{0,253}/?[\w./-]{1,253})"
)
_NODE_KEYS = ("hostname", "host", "host_id")
_ASTRA = "the network file of its analytical backend (topology, npus_count, bandwidth, latency)"
_ROCM = "what rocm-smi --showtopo prints"
P2P = r"^\s*GPU\d+\s+X\s+(?:OK|[CGT]?NS|DR)\b"
_MATRIX = "what nvidia-smi topo -m prints on a node"
_NODES = "what kubectl get nodes -o json prints"
_NCCL = "NCCL's topology of a node: NCCL_TOPO_FILE, or what a run writes to NCCL_TOPO_DUMP_FILE"
_CABLES = "what ibnetdiscover prints without options"
_SLURM = "what scontrol show topology prints, or Slurm's topology.conf"


FOREIGN: tuple[tuple[str, str, str], ...] = (
    (r"<graphs\b", "is a graph file of NCCL: rings and trees that it found", _NCCL),
    (
        r"kueue\.x-k8s\.io/[\s\S]{0,400}kind\"?: *\"?Topology\b"
        r"|kind\"?: *\"?Topology\b[\s\S]{0,400}kueue\.x-k8s\.io/",
        *("is a Kueue Topology, which names keys of labels and no nodes", _NODES),
    ),
    (
        r"^switches:[ \t]*\n(?:[ \t]*#[^\n]*\n)*  [\w.-]+:[ \t]*\n",
        *("is a model that Topograph simulates a cloud with", "the topology.conf that it writes"),
    ),
    (r"\"logical[-_]dims\"", "is the logical topology of ASTRA-sim's ns-3, without rates", _ASTRA),
    (r"\"(?:scheduling-policy|\w+-implementation)\"", "is a system file of ASTRA-sim", _ASTRA),
    (r"^\d+ \d+ \d+ [\d.]+[GMT]?bps ", "is a physical topology of ns-3, without hosts", _ASTRA),
    (
        r"<!DOCTYPE topology|<topology\b|^Machine \(\d+[GMT]B",
        "is a topology of hwloc (lstopo)",
        _MATRIX,
    ),
    (
        r"<nvidia_smi_log\b|NVIDIA-SMI \d|NVSMI LOG|^GPU \d+: .*\(UUID: GPU-[^\n]*\s*(?:GPU|\Z)",
        *("is nvidia-smi's list of GPUs", _MATRIX),
    ),
    (
        r"P2P Connectivity Matrix|^nvbandwidth Version",
        *("has bandwidths measured between GPUs, not links", _MATRIX),
    ),
    (
        r"^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.\d (?:\S+ )*(?:bridge|controller)",
        *("is what lspci prints", _MATRIX),
    ),
    (P2P, "is a matrix of peer access (nvidia-smi topo -p2p)", _MATRIX),
    (r"^\s*Link \d+: [\d.]+ GB/s", "is what nvidia-smi nvlink prints", _MATRIX),
    (r"^(?:LINK TYPE|ACCESS|HOPS|WEIGHT) TABLE", "is what amd-smi topology prints", _ROCM),
    (r"ROCm System Management Interface", "is what rocm-smi prints of each GPU", _ROCM),
    (r"<algo\b", "is a schedule (MSCCL XML)", "it to p2smt verify"),
    (r"==\( *\d+X", "is what iblinkinfo prints", _CABLES),
    (
        r"^(?:Switch|Ca)\s*: 0x[0-9a-f]+ ports",
        *("lists switches or cards without cables (ibswitches, ibhosts)", _CABLES),
    ),
    (r"^(?:SW|CA) +\d+ +\d+ 0x[0-9a-f]+ +\d+x", "is what ibnetdiscover -p prints", _CABLES),
    (r"^(?:CA '|Infiniband device ')", "tells the cards of one host (ibstat)", "them as --nic"),
    (r"^NAME +STATUS +ROLES", "is kubectl's table of nodes, without keys of labels", _NODES),
    (r"^Name: .*\n(?:Roles|Labels): ", "is what kubectl describe prints", _NODES),
    (r"^kind: (?:NodeList|List|Node)\b|^- apiVersion: v1$", "is YAML of kubectl", _NODES),
    (r"^PARTITION +AVAIL|^NODELIST\b", "is what sinfo prints", _SLURM),
    (r"^NodeName=", "lists nodes of Slurm, without switches", _SLURM),
    (r"^(?:ClusterName|SlurmctldHost)=", "is Slurm's slurm.conf", _SLURM),
    (r"^levels:", "is a topology of p2smt already", "it as -t FILE, or as --node FILE"),
    (r"NCCL INFO", "is a log of NCCL", _NCCL),
    (
        r"\A(?:[ \t]*(?:#[^\n]*)?\n)*[A-Za-z][\w.-]*(?:\d[\w.-]*|\[[\d,-]+\])"
        r"(?::\d+|[ \t]+(?:max_)?slots=\d+)*[ \t]*(?:\n|\Z)",
        "names hosts and nothing of what joins them",
        "it as --hosts FILE beside a file of switches",
    ),
)
"""A pattern that a text of a kind has, what it is, and what to give; the surest signs first."""


def check_foreign(text: str, given: str, *, sure: bool = False) -> None:
    """Refuse a file that is known to tell no cluster; ``sure``: by signs no other file has.

    Raises:
        InputError: it is such a file; says what it is and what to give.
    """
    head = text[:_HEAD]
    for sign, what, instead in FOREIGN:
        if (not sure or sign is P2P) and re.search(sign, head, re.MULTILINE):
            raise InputError(given, what, f"give {instead}{_keys(head, what)}")


def _keys(text: str, what: str) -> str:
    """The option that takes the keys of labels that a text names; empty if it is of none."""
    found = dict.fromkeys(_LABEL_KEY.findall(text))
    keys = [key for key in found if key.rpartition("/")[2].rpartition("-")[2] not in _NODE_KEYS]
    return f", and --labels {','.join(keys)}" if keys and "keys of labels and" in what else ""


# A text of which no pattern is known: by its kind in Kubernetes, or its own first words.


_KIND = re.compile(r"(?:^|[{,])\s*[\"']?kind[\"']?\s*:\s*[\"']?(\w{1,60})", re.MULTILINE)
_VERSION = re.compile(r"[\"']?apiVersion[\"']?\s*:\s*[\"']?([\w./-]{1,80})")
_EMPTY = re.compile(r"[\"']?items[\"']?\s*:\s*\[\s*\]")
_OF_NODES = "nvidia-smi topo -m, rocm-smi --showtopo or NCCL's topology XML"
_OF_HOSTS = "scontrol show topology, kubectl get nodes -o json or ibnetdiscover"


def unknown(text: str, given: str) -> InputError:
    """The error for a text of no known kind, which says what it seems to be, and what is wanted."""
    head = text[:_HEAD]
    kind, version = _KIND.search(head), _VERSION.search(head)
    if kind and version:
        named = _LABEL_KEY.search(head) and "Topology" in kind[1]
        keys = ", which names keys of labels and no nodes" if named else ""
        empty = " without objects" if _EMPTY.search(head) else ""
        what = f"is a {kind[1]} of Kubernetes ({version[1]}){empty}{keys}"
        return InputError(given, what, f"give {_NODES}{_keys(head, what)}")
    remedy = f"give what joins hosts ({_OF_HOSTS}) or what is in a node ({_OF_NODES})"
    return InputError(given, f"{seems(head)}, and tells no cluster that p2smt knows", remedy)


MAX_FILES = 16
_MARK = "\ufeff"  # some editors put it before UTF-8


def formats(options: ImportOptions) -> tuple[ClusterFormat, ...]:
    """The formats that are read, those that are told most surely first."""
    return (
        SCONTROL,
        SLURM_CONF,
        IBNETDISCOVER,
        HYPERNODES,
        PHYSICAL_HOSTS,
        ClusterFormat(
            "kubectl get nodes -o json",
            recognises_kubernetes,
            partial(read_kubernetes, keys=options.labels),
        ),
        ClusterFormat(
            "Slurm topology.yaml",
            recognises_slurm_yaml,
            partial(read_slurm_yaml, name=options.topology_name),
        ),
        ASTRA_SIM,
        *node_formats(options.told),
    )


def read_clusters(paths: Sequence[str], options: ImportOptions) -> tuple[Topology, tuple[str, ...]]:
    """The topology that files tell of together, and sentences on what was lost or filled in.

    Raises:
        InputError: a file is malformed or of no known format, or they do not tell of one cluster.
    """
    if not 1 <= len(paths) <= MAX_FILES:
        raise InputError(f"{len(paths)} files", f"give 1 to {MAX_FILES} files of a cluster")
    return combined([facts_of(path, options) for path in paths], options)


def import_text(topology: Topology) -> str:
    """The topology as the text of a file.

    Raises:
        InputError: the file would be larger than what is read.
    """
    data = dump_topology(topology)
    _check_written(parts_of(data), MAX_YAML_PARTS, "parts")  # before the text: it takes a while
    found = dump_yaml(data)
    _check_written(len(found.encode()), MAX_TOPOLOGY_BYTES, "bytes")
    return found


def _check_written(count: int, most: int, what: str) -> None:
    if count > most:
        rule = f"would not be read again: at most {most}"
        remedy = "name the hosts of your job alone: --hosts FILE"
        raise InputError(f"a topology file of {count} {what}", rule, remedy)


def facts_of(path: str, options: ImportOptions) -> Facts:
    """What one file tells.

    Raises:
        InputError: it cannot be read, is of no known format, or malformed.
    """
    text = read_text(path, "cluster file", MAX_BYTES).removeprefix(_MARK)
    known, given = formats(options), f"cluster file {path[:200]!r}"
    check_foreign(text, given, sure=True)
    for one in known:
        if one.recognises(text):
            return one.read(text, os.path.basename(path)[:100])
    check_foreign(text, given)
    raise unknown(text, given)


# The formats that tell what is inside a node.


MAX_CHARACTERS = 8 * 1024 * 1024


def node_formats(told: Told = NOTHING_TOLD) -> tuple[ClusterFormat, ...]:
    """The formats of nodes, as they are read with what is said beside the file."""

    def reader(parse: Callable[[str, str], NodeFacts]) -> Callable[[str, str], Facts]:
        return lambda text, source: facts_of_node(parse(_bounded(text, source), source), told)

    def ranks(text: str, source: str) -> Facts:
        return rank_headers.read_rank_headers(_bounded(text, source), source, told)

    return (
        ClusterFormat(nccl_xml.NAME, nccl_xml.is_nccl_xml, reader(nccl_xml.parse_nccl_xml)),
        ClusterFormat(
            node_facts.NAME, node_facts.is_rocm_matrix, reader(node_facts.parse_rocm_matrix)
        ),
        ClusterFormat(
            topo_matrix.NAME, topo_matrix.is_topo_matrix, reader(topo_matrix.parse_topo_matrix)
        ),
        ClusterFormat(rank_headers.NAME, rank_headers.is_rank_headers, ranks),
    )


def _bounded(text: str, source: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise InputError(source, f"is longer than {MAX_CHARACTERS} characters", "shorten it")
    return text
