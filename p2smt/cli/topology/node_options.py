"""Options on what files of nodes leave open."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from p2smt.interop.clusters.nodes.facts import Told

GpuOption = Annotated[
    str | None,
    typer.Option("--gpu", metavar="MODEL", help="The GPUs of a node, such as h100 or a100-pcie."),
]
NicOption = Annotated[
    str | None,
    typer.Option(
        "--nic",
        metavar="[Nx]RATE",
        help="Network card ports of a node, such as 8x400Gb/s; without a number, as the files say.",
    ),
]
FabricOption = Annotated[
    str | None,
    typer.Option("--nic-fabric", metavar="NAME", help="What they speak: infiniband, roce, .."),
]
_PORTS = re.compile(r"\s*([0-9]{1,5})\s*x\s*(.*)", re.S)


def told_of(gpu: str | None, nic: str | None, fabric: str | None) -> Told:
    """What the options say.

    Raises:
        InputError: one is malformed, or names what is not known.
    """
    from p2smt.cluster.link import NETWORK
    from p2smt.errors import InputError, did_you_mean
    from p2smt.interop.clusters.nodes.facts import MAX_CARDS, Told
    from p2smt.interop.clusters.nodes.models import gpu_model
    from p2smt.units import parse_bandwidth, parse_count

    if fabric is not None and fabric not in NETWORK:
        remedy = did_you_mean(fabric, NETWORK) or f"name one of {', '.join(NETWORK)}"
        raise InputError(f"--nic-fabric {fabric[:40]!r}", "is no network", remedy)
    counted = _PORTS.fullmatch(nic or "")
    rate = counted[2] if counted else nic
    ports = parse_count(counted[1], "--nic: ports", MAX_CARDS) if counted else None
    return Told(
        gpu_model(gpu).name if gpu is not None else "",
        ports,
        None if rate is None else parse_bandwidth(rate, "--nic"),
        fabric or "",
    )
