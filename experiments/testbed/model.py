"""The p2smt topology of a test cluster, with the rates that its links are shaped to."""

from __future__ import annotations

from itertools import accumulate

import yaml

from experiments.testbed.spec import NetworkSpec, nodes_of
from p2smt.cluster.file import dump_topology
from p2smt.cluster.file_model import SIMPLE
from p2smt.cluster.hosts import Hosts
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology

# Rough, and to be replaced by calibration on the machine: ranks of a node share the loopback, and
# the processors, with all other ranks.
LOOPBACK_BYTES_PER_S = 1e9
LOOPBACK_LATENCY_S = 50e-6
UPLINK_LATENCY_S = 100e-6

LIBRARY = "gloo"
ALGORITHMS = (Algorithm.RING, Algorithm.BINOMIAL, Algorithm.SCATTER_GATHER)
DESCRIPTION = (
    "Network namespaces on one machine. The rates of rack and node are nominal, as shaped; "
    "the gpu level (loopback) and all latencies are rough figures, to be calibrated."
)


def topology(spec: NetworkSpec, ranks_per_node: int) -> Topology:
    """Levels rack (where there are several), node and gpu; a gpu is a rank, a process of a node.

    Gloo runs on it.  Nodes have their names where they were given any, or where racks are unequal:
    then the levels are as large as the largest rack, and hosts say which places there are.

    Raises:
        InputError: ``ranks_per_node`` is below 1.
    """
    levels = [
        _network("node", max(spec.racks), spec.uplink_bytes_per_s),
        _level("gpu", ranks_per_node, LOOPBACK_BYTES_PER_S, LOOPBACK_LATENCY_S),
    ]
    if spec.rack_bytes_per_s is not None:
        levels.insert(0, _network("rack", len(spec.racks), spec.rack_bytes_per_s))
    return Topology(
        name="testbed",
        levels=tuple(levels),
        algorithms=ALGORITHMS,
        description=DESCRIPTION,
        library=library_of(LIBRARY),
        hosts=_hosts(spec) if spec.hosts or not spec.equal else None,
    )


def _hosts(spec: NetworkSpec) -> Hosts:
    """The nodes by name, each rack's from the first place of the rack."""
    nodes, most = nodes_of(spec), max(spec.racks)
    before = [0, *accumulate(spec.racks)]
    slots = tuple(node.rack * most + node.rank - before[node.rack] for node in nodes)
    racks = tuple(f"rack{rack}" for rack in range(len(spec.racks)))
    return Hosts(tuple(node.host for node in nodes), slots, (racks,) if len(racks) > 1 else ())


def _network(name: str, size: int, bytes_per_s: float) -> Level:
    return _level(name, size, bytes_per_s, UPLINK_LATENCY_S, "ethernet")


def _level(name: str, size: int, bytes_per_s: float, latency_s: float, fabric: str = "") -> Level:
    pieces = (Piece(SIMPLE, latency_s, bytes_per_s),)
    return Level(name, size, Link(LinkKind.SWITCH, pieces, fabric=fabric))


def topology_yaml(spec: NetworkSpec, ranks_per_node: int) -> str:
    """The same as the text of a topology file."""
    return yaml.safe_dump(dump_topology(topology(spec, ranks_per_node)), sort_keys=False, width=99)
