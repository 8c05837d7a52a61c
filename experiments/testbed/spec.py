"""What a test cluster is: racks of nodes and the rates of their uplinks, and how nodes are used."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from p2smt.cluster.hostlist import format_hostlist
from p2smt.errors import InputError
from p2smt.units import parse_bandwidth

INTERFACE = "eth0"
"""The interface of every node: for GLOO_SOCKET_IFNAME."""

MASTER_PORT = 29500
"""torch's usual port.  Each cluster is a network of its own, so two clusters can both use it."""

MAX_NODES = 64
SLOWEST_BYTES_PER_S, FASTEST_BYTES_PER_S = 1e6 / 8, 100e9 / 8

CORE, PROBE = "core", "probe"
_NAME = re.compile(r"[a-z0-9]{1,12}")
_TC_RATE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)bit\s*", re.ASCII)


def unique_name() -> str:
    """A name that no other cluster has."""
    return secrets.token_hex(4)


def parse_rate(text: str, what: str) -> float:
    """Bytes per second in ``200mbit`` (as tc writes it), ``200 Mb/s`` or ``25 MB/s``."""
    found = _TC_RATE.fullmatch(text)
    return parse_bandwidth(f"{found[1]} {found[2].upper()}bit/s" if found else text, what)


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """A cluster of racks that hold so many nodes each.

    ``uplink_bytes_per_s`` shapes the link of a node to its switch, ``rack_bytes_per_s`` that of
    a rack's switch to the core, both in each direction.  One rack has no uplink: its switch is
    the core.  ``hosts`` names the nodes, rack by rack; without names they are ``node0``, ``node1``
    and so on.  ``name`` is in the names of all its namespaces.

    Raises:
        InputError: a number or a name is out of range, or a rack rate is missing or too many.
    """

    racks: tuple[int, ...]
    uplink_bytes_per_s: float
    rack_bytes_per_s: float | None = None
    hosts: tuple[str, ...] = ()
    name: str = field(default_factory=unique_name)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            rule = "must be 1 to 12 lower-case letters and digits"
            raise InputError(f"cluster name {self.name[:40]!r}", rule, "leave it out for a new one")
        self._check_counts()
        self._check_hosts()
        _check_rate("uplink rate", self.uplink_bytes_per_s)
        if self.rack_bytes_per_s is not None:
            _check_rate("rack rate", self.rack_bytes_per_s)

    def _check_counts(self) -> None:
        count = len(self.racks)
        if count < 1 or min(self.racks) < 1 or not 2 <= self.size <= MAX_NODES:
            raise InputError(
                f"{count} racks of {self.nodes_text()} nodes",
                f"a cluster has 2 to {MAX_NODES} nodes in all",
                "change the number of nodes or racks",
            )
        if (count > 1) != (self.rack_bytes_per_s is not None):
            raise InputError(
                f"{count} racks {'without' if count > 1 else 'with'} a rack rate",
                "two or more racks, and only they, have a rate between them",
                "give the number of racks and the rack rate together",
            )

    def _check_hosts(self) -> None:
        if not self.hosts:
            return
        if len(self.hosts) != self.size:
            raise InputError(f"{len(self.hosts)} hosts", f"the cluster has {self.size} nodes")
        format_hostlist(self.hosts)
        if len(set(self.hosts)) != self.size:
            raise InputError(f"hosts {', '.join(self.hosts)}", "two have one name")

    @property
    def size(self) -> int:
        """Nodes in all."""
        return sum(self.racks)

    @property
    def equal(self) -> bool:
        """Whether all racks hold equally many nodes."""
        return len(set(self.racks)) <= 1

    def nodes_text(self) -> str:
        """Nodes of a rack: one number for equal racks, else such as ``3+2+1``."""
        return str(self.racks[0]) if self.equal else "+".join(map(str, self.racks))

    def rack_of(self, rank: int) -> int:
        """The rack of a node; nodes are numbered rack by rack."""
        return next(r for r, end in enumerate(accumulate(self.racks)) if rank < end)

    def host(self, rank: int) -> str:
        """The name of a node."""
        return self.hosts[rank] if self.hosts else f"node{rank}"

    def namespace(self, role: str) -> str:
        """The namespace of a node or switch, for instance of ``node0`` or ``core``."""
        return f"p2smt-{self.name}-{role}"

    def switch(self, rack: int) -> str:
        """The namespace of the switch that a rack's nodes are joined to."""
        return self.namespace(CORE if len(self.racks) == 1 else f"rack{rack}")


def regular(
    nodes: int,
    uplink_bytes_per_s: float,
    racks: int = 1,
    rack_bytes_per_s: float | None = None,
    name: str | None = None,
) -> NetworkSpec:
    """A cluster of ``racks`` racks of ``nodes`` nodes each."""
    called = unique_name() if name is None else name
    return NetworkSpec((nodes,) * racks, uplink_bytes_per_s, rack_bytes_per_s, name=called)


def _check_rate(what: str, bytes_per_s: float) -> None:
    if not SLOWEST_BYTES_PER_S <= bytes_per_s <= FASTEST_BYTES_PER_S:
        raise InputError(
            f"{what} {bytes_per_s * 8 / 1e6:g} Mbit/s",
            "must be from 1 Mbit/s to 100 Gbit/s",
            "write it like 200mbit",
        )


def owned(name: str) -> re.Pattern[str]:
    """Matches the namespaces of the cluster of this name, and no others."""
    return re.compile(rf"p2smt-{re.escape(name)}-({CORE}|{PROBE}|(rack|node)[0-9]+)")


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a built cluster, and how a process is started in it.

    Run ``[*prefix, *command]`` with ``variables`` added to the environment: they name the
    interface for Gloo, the rank and the name of the node, the number of nodes, and the address and
    port of node 0, for plain scripts and (``PET_..``) for torchrun.  ``host`` is what the node is
    called, ``name`` its namespace.
    """

    rank: int
    rack: int
    host: str
    name: str
    prefix: tuple[str, ...]
    interface: str
    address: str
    variables: Mapping[str, str] = field(hash=False)


def nodes_of(spec: NetworkSpec) -> tuple[Node, ...]:
    """The nodes of a cluster, rack by rack, as they are named and reached once it is built."""
    return tuple(_node(spec, rank) for rank in range(spec.size))


def _node(spec: NetworkSpec, rank: int) -> Node:
    namespace = spec.namespace(f"node{rank}")
    return Node(
        rank=rank,
        rack=spec.rack_of(rank),
        host=spec.host(rank),
        name=namespace,
        prefix=("ip", "netns", "exec", namespace),
        interface=INTERFACE,
        address=_address(rank),
        variables=_variables(spec, rank),
    )


def _address(rank: int) -> str:
    # No route joins a cluster to the machine, so the same subnet serves every cluster.
    return f"10.77.0.{rank + 1}"


def _variables(spec: NetworkSpec, rank: int) -> dict[str, str]:
    job = {
        "NNODES": str(spec.size),
        "NODE_RANK": str(rank),
        "MASTER_ADDR": _address(0),
        "MASTER_PORT": str(MASTER_PORT),
    }
    torchrun = {f"PET_{name}": value for name, value in job.items()}
    names = {"GLOO_SOCKET_IFNAME": INTERFACE, "NODE_NAME": spec.host(rank)}
    return names | job | torchrun
