"""The library that a topology file is taken to mean where it names none."""

from __future__ import annotations

import re

from p2smt.cluster.topology import NO_LIBRARY, Topology

_AMD, _TPU = re.compile(r"\bAMD\b|\bMI\d{3}"), re.compile(r"\bTPU\b")
_PROTOCOLS = ("simple", "ll", "ll128")


def default_library(topology: Topology) -> tuple[str, str]:
    """The name of a library (``none``: without one) for a file that names none, and why.

    By the fabrics of its links, then by its name and description: NCCL where nothing says more.
    """
    links = [level.link for level in topology.levels]
    pieces = {piece.name for link in links for piece in link.pieces}
    if any(link.measured for link in links) or not pieces <= set(_PROTOCOLS):
        return NO_LIBRARY, "its links were fitted without a library"
    fabrics = {link.fabric for link in links if link.fabric}
    words = f"{topology.name} {topology.description}"
    if fabrics & {"ici", "dcn"} or (not fabrics and _TPU.search(words)):
        return NO_LIBRARY, "of TPUs"
    if "xgmi" in fabrics or (not fabrics and _AMD.search(words)):
        return "rccl", "AMD"
    if fabrics and fabrics <= {"ethernet"}:
        return "gloo", "Ethernet only"
    if any(fabric.startswith("nvlink") for fabric in fabrics):
        return "nccl-2.20", "NVLink"
    return "nccl-2.20", "as nothing says more"
