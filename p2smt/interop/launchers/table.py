"""Ranks as a table: ``rank,host,local_rank``, and the hosts alone."""

from __future__ import annotations

import shlex

from p2smt.cluster.nodes.hostlist import format_hostlist
from p2smt.interop.exported import Exported
from p2smt.interop.launchers.places import PlacedPlan

HEADER = "rank,host,local_rank"


def write_csv(plan: PlacedPlan, _path: str) -> Exported:
    """A line for each rank, in their order."""
    means = "local_rank counts the devices of a host from 0: it is the one that the rank uses"
    lines = [f"{place.rank},{place.host},{place.local_rank}" for place in plan.places]
    return Exported("\n".join([HEADER, *lines]) + "\n", (means,))


def write_hostlist(plan: PlacedPlan, path: str) -> Exported:
    """The hosts by their first rank, in one line as Slurm writes them."""
    hosts = dict.fromkeys(place.host for place in plan.places)
    note = f"for salloc --nodelist=$(cat {shlex.quote(path)}): which hosts, as Slurm sorts them"
    return Exported(format_hostlist(tuple(hosts)) + "\n", (note,))
