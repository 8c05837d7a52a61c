"""Imported topologies as data."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.cluster.file import dump_topology
from p2smt.cluster.topology import Topology


def import_data(topology: Topology, lost: Sequence[str]) -> dict[str, object]:
    """A topology, and what was left out or filled in, as JSON data."""
    hosts = topology.hosts
    assumed = hosts.assumed if hosts else ()
    levels = [
        {
            "name": level.name,
            "size": level.size,
            "ports": level.link.ports,
            "bandwidth_bytes_per_s": level.link.nominal_bytes_per_s,
            "assumed": level.name in assumed,
        }
        for level in topology.levels
    ]
    return {
        "levels": levels,
        "hosts": list(hosts.names) if hosts else [],
        "left_out": list(hosts.left_out) if hosts else [],
        "lost": list(lost),
        "devices": topology.installed,
        "topology": dump_topology(topology),
    }
