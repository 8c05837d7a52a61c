"""What ``scontrol show topology`` prints: a line per switch or block.

    SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=n[01-05]
    SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[01-12] Switches=leaf[0-1]

The nodes of a switch of switches are all that lie under it, so they are not read.  Blocks print
``BlockName=b0 BlockIndex=0 Nodes=n[01-04] BlockSize=4``, and aggregated ones ``AggregatedBlock=..``
(src/plugins/topology of SchedMD/slurm).
"""

from __future__ import annotations

import re

from p2smt.errors import InputError
from p2smt.interop.clusters.facts import (
    BLOCK_TIERS,
    TIERS,
    ClusterFormat,
    Facts,
    Holder,
    OutsideFacts,
)
from p2smt.interop.clusters.slurm.lines import HostNames, SlurmLine, lines_of

_SIGN = re.compile(
    r"^(SwitchName=\S+ Level=|BlockName=\S+ BlockIndex=|AggregatedBlock=)", re.MULTILINE
)
_KEYS = {
    "switchname": ("switchname", "level", "linkspeed", "nodes", "switches"),
    "blockname": ("blockname", "blockindex", "nodes", "blocksize"),
    "aggregatedblock": ("aggregatedblock", "blockindex", "nodes", "blocksize"),
}


def read_scontrol(text: str, source: str) -> Facts:
    """The switches or blocks that scontrol printed.

    Raises:
        InputError: a line that belongs to neither, both in one text, or a line that was cut off.
    """
    names = HostNames()
    holders: list[Holder] = []
    kinds: dict[str, str] = {}
    for line in lines_of(text, source):
        first = next(iter(line.words))
        if first not in _KEYS:
            rule = f"begins with {first[:40]!r}, not with SwitchName or BlockName"
            raise InputError(line.where, rule, "give what scontrol show topology prints alone")
        line.only(_KEYS[first])
        kinds.setdefault(first, line.where)
        if first != "aggregatedblock":
            holders.append(_holder(line, first, names))
    if "switchname" in kinds and len(kinds) > 1:
        other = next(where for kind, where in kinds.items() if kind != "switchname")
        raise InputError(other, "has blocks beside switches", "give one topology at a time")
    if not holders:
        raise InputError(source, "names no switch and no block", "give the whole output")
    lost = (
        (f"{source}: aggregated blocks are what Slurm plans with, and no levels",)
        if "aggregatedblock" in kinds
        else ()
    )
    tiers = TIERS if "switchname" in kinds else BLOCK_TIERS
    return Facts(source, OutsideFacts(tuple(holders), tiers=tiers), lost=lost)


def _holder(line: SlurmLine, first: str, names: HostNames) -> Holder:
    if "nodes" not in line.words and "switches" not in line.words and "level" not in line.words:
        raise InputError(line.where, "is cut off", "give the whole output of scontrol")
    switches = names.named(line.words.get("switches", ""), line.where)
    hosts = () if switches else names.named(line.words.get("nodes", ""), line.where)
    return Holder(line.words[first], switches, hosts, line.number)


SCONTROL = ClusterFormat(
    "scontrol show topology", lambda text: _SIGN.search(text) is not None, read_scontrol
)
