"""Files of a cluster, of any format and for any part of it, as one topology.

A format is a row of the table of :func:`formats`; the first that recognises a text reads it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from p2smt.cluster.file import MAX_BYTES as MAX_TOPOLOGY_BYTES
from p2smt.cluster.file import dump_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.yaml_text import MAX_PARTS, dump_yaml, parts_of, read_text
from p2smt.interop.clusters.astra_sim.read import ASTRA_SIM
from p2smt.interop.clusters.combine import ImportOptions, combined
from p2smt.interop.clusters.facts import MAX_BYTES, ClusterFormat, Facts
from p2smt.interop.clusters.kubernetes import read_kubernetes, recognises_kubernetes
from p2smt.interop.clusters.nodes.formats import node_formats
from p2smt.interop.clusters.physical_hosts import PHYSICAL_HOSTS
from p2smt.interop.clusters.slurm.conf import SLURM_CONF
from p2smt.interop.clusters.slurm.scontrol import SCONTROL
from p2smt.interop.clusters.slurm.topology_yaml import read_slurm_yaml, recognises_slurm_yaml

MAX_FILES = 16
_MARK = "\ufeff"  # some editors put it before UTF-8


def formats(options: ImportOptions) -> tuple[ClusterFormat, ...]:
    """The formats that are read, those that are told most surely first."""
    return (
        SCONTROL,
        SLURM_CONF,
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
    _check_written(parts_of(data), MAX_PARTS, "parts")  # before the text: it takes a while
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
    known = formats(options)
    for one in known:
        if one.recognises(text):
            return one.read(text, os.path.basename(path)[:100])
    rule = f"is none of: {', '.join(one.name for one in known)}"
    raise InputError(f"cluster file {path[:200]!r}", rule, "give one of them")
