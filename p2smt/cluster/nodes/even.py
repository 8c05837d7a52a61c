"""Whether a cluster of named hosts is as regular as a parallelism matrix needs it to be."""

from __future__ import annotations

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError


def check_even(topology: Topology) -> None:
    """Whether each switch has equally many hosts and a like uplink, as matrices have it.

    Raises:
        InputError: it is not so; names what places ranks there.
    """
    if topology.uneven:
        rule = "its hosts are not spread evenly under equal uplinks, so no matrix fits it"
        remedy = "p2smt solve (solve_on_hosts) and p2smt compare place ranks on its hosts"
        raise InputError(f"topology {topology.name}", rule, remedy)
