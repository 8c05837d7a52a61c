"""Files of a cluster, of any format and for any part of it, as one topology.

A format is a row of the table of :func:`formats`; the first that recognises a text reads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from p2smt.cluster.file import MAX_BYTES as MAX_TOPOLOGY_BYTES
from p2smt.cluster.file import dump_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.yaml_text import MAX_PARTS as MAX_YAML_PARTS
from p2smt.files.yaml_text import dump_yaml, parts_of, read_text
from p2smt.interop.clusters.astra_sim import ASTRA_SIM
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.facts import MAX_BYTES, ClusterFormat, Facts
from p2smt.interop.clusters.foreign import check_foreign, unknown
from p2smt.interop.clusters.hypernodes import HYPERNODES
from p2smt.interop.clusters.ibnetdiscover import IBNETDISCOVER
from p2smt.interop.clusters.kubernetes import read_kubernetes, recognises_kubernetes
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
