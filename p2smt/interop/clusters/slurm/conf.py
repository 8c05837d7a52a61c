"""Slurm's topology.conf: a tree of switches, or blocks of nodes (topology.conf(5)).

SwitchName=spine Switches=leaf[0-1]
SwitchName=leaf0 Nodes=n[01-05]
SwitchName=leaf1 Nodes=n[06-12]
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
    r"^[ \t]*(?:(switchname|blockname|blocksizes)=|include[ \t]+\S)", re.IGNORECASE | re.MULTILINE
)
_SPEED = "LinkSpeed has units of the site's own, and is not used"


def blocks_lost(sizes: str) -> str:
    """What is said of the sizes of blocks that Slurm plans with."""
    return f"block sizes {sizes} are what Slurm plans with, not switches: they are no levels"


def read_slurm_conf(text: str, source: str) -> Facts:
    """The switches or blocks of a topology.conf.

    Raises:
        InputError: a line that belongs to neither, or both in one file.
    """
    names = HostNames()
    holders: list[Holder] = []
    lost: list[str] = []
    kinds: dict[str, str] = {}
    for line in lines_of(text, source):
        first = next(iter(line.words))
        if first == "blocksizes":
            line.only(("blocksizes",))
            lost.append(f"{source}: {blocks_lost(line.words['blocksizes'][:80])}")
            continue
        holders.append(_holder(line, first, names))
        kinds.setdefault(first, line.where)
        if "linkspeed" in line.words:
            lost.append(f"{source}: {_SPEED}")
    if len(kinds) > 1:
        rule = f"has blocks, and switches stand in {kinds['switchname']}"
        raise InputError(kinds["blockname"], rule, "keep the tree or the blocks")
    if not holders:
        raise InputError(source, "names no switch and no block", "give Slurm's topology.conf")
    tiers = BLOCK_TIERS if "blockname" in kinds else TIERS
    return Facts(source, OutsideFacts(tuple(holders), tiers=tiers), lost=tuple(dict.fromkeys(lost)))


def _holder(line: SlurmLine, first: str, names: HostNames) -> Holder:
    if first not in ("switchname", "blockname"):
        rule = f"begins with {first[:40]!r}, not with SwitchName, BlockName or BlockSizes"
        raise InputError(line.where, rule, "give a tree of switches or blocks, in one file")
    if first == "switchname":
        line.only(("switchname", "switches", "nodes", "linkspeed"))
    else:
        line.only(("blockname", "nodes"))
    switches = names.named(line.words.get("switches", ""), line.where)
    hosts = names.named(line.words.get("nodes", ""), line.where)
    return Holder(line.words[first], switches, hosts, line.number)


SLURM_CONF = ClusterFormat(
    "Slurm topology.conf", lambda text: _SIGN.search(text) is not None, read_slurm_conf
)
