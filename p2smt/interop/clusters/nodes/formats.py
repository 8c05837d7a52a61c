"""The formats that tell what is inside a node."""

from __future__ import annotations

from collections.abc import Callable

from p2smt.errors import InputError
from p2smt.interop.clusters.facts import ClusterFormat, Facts
from p2smt.interop.clusters.nodes import nccl_xml, rank_headers, rocm_matrix, topo_matrix
from p2smt.interop.clusters.nodes.facts import NodeFacts, Told
from p2smt.interop.clusters.nodes.reduce import NOTHING_TOLD, facts_of_node

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
            rocm_matrix.NAME, rocm_matrix.is_rocm_matrix, reader(rocm_matrix.parse_rocm_matrix)
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
