"""Slurm's blocks as racks of NVL72, whose hosts are trays of 4 GPUs.

A rack is one NVLink domain, so a node of the model, and every tray of it is as near as any other.
The model's nodes are alike: where a job got 18 trays of one rack and 16 of another, 16 of each are
taken (``sbatch --segment=16`` asks for such), and the others are named as idle.  A regular
cluster comes of it, without names: which of its racks a group crosses matters, which trays it has
in them does not.  (Slurm's block topology is for such racks: topology.conf(5), BlockName.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from p2smt.cluster.nodes.hostlist import format_hostlist
from p2smt.cluster.nodes.trim import trimmed
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.interop.clusters.facts import BLOCK_TIERS, OutsideFacts
from p2smt.interop.clusters.levels import node_link, part_of
from p2smt.interop.clusters.tree import blocks_of
from p2smt.interop.clusters.uplinks import UplinkRates

RACK = "rack"
"""The level of presets whose entities are racks of trays."""
TRAY = 4
"""GPUs of a tray of GB200 and GB300 NVL72: 72 in 18 trays, as their presets have it."""
_SHOWN = 1000


def racks_of(
    facts: OutsideFacts,
    source: str,
    base: Topology,
    rates: UplinkRates,
    only: Sequence[str] | None = None,
) -> tuple[Topology, tuple[str, ...]]:
    """The racks that the blocks of a file are; and what was left out, and how a plan is exported.

    base: its first level is that of racks, of size 1.  ``only``: these hosts alone.

    Raises:
        InputError: the file has no blocks, one has more hosts than a rack has trays, the tree lacks
            a host of ``only``, a rate names another level, or no part of a rack is that large.
    """
    if facts.tiers != BLOCK_TIERS:
        rule = "does not tell which hosts are in one rack"
        remedy = "give Slurm's blocks, one for each rack: BlockName=b0 Nodes=n[01-18]"
        raise InputError(f"{source} with racks of trays", rule, remedy)
    rates.check((), RACK)
    tree, lost = blocks_of(facts, source)
    tree = tree if only is None else part_of(tree, only)
    racks: dict[str, list[str]] = {}
    for host, (block,) in zip(tree.hosts, tree.paths, strict=True):
        racks.setdefault(block, []).append(host)
    _check(racks, source, base)
    each = min(map(len, racks.values()))
    found = _regular(base, len(racks), each, rates)
    return found, (*lost, *_notes(racks, each, source))


def _check(racks: Mapping[str, Sequence[str]], source: str, base: Topology) -> None:
    most = base.devices // TRAY
    for block, hosts in racks.items():
        if len(hosts) > most:
            rule = f"a rack of {base.name[:40]} has {most}, of {TRAY} GPUs each"
            given = f"{source}: block {block[:80]!r} has {len(hosts)} hosts"
            raise InputError(given, rule, "make each rack a block of its own")


def _regular(base: Topology, racks: int, trays: int, rates: UplinkRates) -> Topology:
    """So many racks of so many trays."""
    rack, *inner = base.levels
    under = base.devices_under(1)
    if trays * TRAY % under:
        given = f"racks of {trays} trays"
        rule = f"level {inner[0].name} of {base.name[:40]} is made of {under} devices"
        raise InputError(given, rule, "name the hosts to take: --hosts FILE")
    levels = (replace(rack, size=racks, link=node_link(rack, rates)), *inner)
    part = trimmed(replace(base, levels=levels), {inner[0].name: trays * TRAY // under})
    # What a job did not get is not there: no device of its own idles.
    return replace(part, levels=tuple(replace(level, whole=0) for level in part.levels))


def _notes(racks: Mapping[str, Sequence[str]], each: int, source: str) -> list[str]:
    found = []
    if idle := [host for hosts in racks.values() for host in hosts[each:]]:
        found.append(
            f"{source}: racks are taken as alike, {each} hosts of each, the fewest that one has; "
            f"idle: {_listed(idle)}; --hosts FILE names others"
        )
    used = [host for hosts in racks.values() for host in hosts[:each]]
    found.append(
        f"{source}: blocks are racks, and their hosts trays of {TRAY} GPUs, which the topology "
        f"does not name: export plans with --devices-per-host {TRAY} --hosts {_listed(used)}"
    )
    return found


def _listed(hosts: Sequence[str]) -> str:
    text = format_hostlist(hosts)
    return text if len(text) <= _SHOWN else "FILE, which names them in the order of the blocks"
