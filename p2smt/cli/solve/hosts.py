"""The hosts that a command places ranks on: --hosts, or those of the Slurm job around it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from p2smt.cli.output import note

if TYPE_CHECKING:
    from p2smt.cluster.topology import Topology

NODELIST = "SLURM_JOB_NODELIST"


def hosts_of(spec: str | None, topology: Topology) -> tuple[str, ...] | None:
    """The hosts of --hosts, else of $SLURM_JOB_NODELIST, else all that the topology names.

    None: its nodes have no names, and none are given.

    Raises:
        InputError: no host list, a host that the topology lacks, or one that is named twice.
    """
    from p2smt.cluster.allocation import allocated
    from p2smt.cluster.hostlist import hosts_named, parse_hostlist

    if spec is not None:
        found, source = hosts_named(spec), f"--hosts {spec[:60]!r}"
    elif topology.hosts is None:
        return None
    elif listed := os.environ.get(NODELIST):
        found, source = parse_hostlist(listed), f"${NODELIST}"
        note(f"the hosts are those of ${NODELIST} ({len(found)}); --hosts names others")
    else:
        return topology.hosts.names
    _check(spec, found, topology, source)
    allocated(topology, found)
    return found


def _check(spec: str | None, found: tuple[str, ...], topology: Topology, source: str) -> None:
    """Whether a single name may be a file that is not there; and whether each stands once."""
    from collections import Counter

    from p2smt.errors import InputError

    known = topology.hosts
    if known is not None and len(found) == 1 and found[0] == spec and spec not in known.names:
        rule = f"is neither a file nor a host of {topology.name}"
        raise InputError(source, rule, f"its hosts are {', '.join(known.names[:3])}, ..")
    if twice := [name for name, count in Counter(found).items() if count > 1]:
        rule = f"names {twice[0][:80]!r} twice"
        raise InputError(source, rule, "name each host once, whatever its ranks")
