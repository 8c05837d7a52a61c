"""A test cluster on this machine: nodes are network namespaces, links are shaped veth pairs.

Every node and every switch is a namespace of its own; a switch is a bridge in it.  A link is a
veth pair whose two ends each send through a token bucket, so its rate holds in each direction.
Nothing lies in the machine's own network: names and addresses cannot collide with it, its
firewall does not see the traffic, and a cluster is gone when its namespaces are.  Nodes find each
other by name: a file for each below ``/etc/netns``, which ``ip netns exec`` puts in the place of
``/etc/hosts``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from pathlib import Path

from experiments.testbed.ownership import HOST_NAMES, held
from experiments.testbed.spec import CORE, PROBE, NetworkSpec, Node, nodes_of, regular
from experiments.testbed.stopping import stops_as_exceptions, stops_later
from experiments.testbed.system import Unavailable, call, check
from p2smt.errors import InputError

MTU_BYTES = 9000
"""Jumbo frames: headers then cost 0.8 % of the rate, not 4.4 %, and nominal rates are reached."""

CONGESTION_CONTROL = "reno"
"""How TCP answers congestion where one rack is all, whatever the machine's own is.

Every kernel has this one.  With BBR, which many machines have, nodes that send to each other at
once are slower than their links: acknowledgements wait behind data, and BBR takes that for a lack
of bandwidth.  Where a rack's link is narrower than what its nodes send, its switch drops packets,
which is worse for controls that go by loss: there the machine's own stays.
"""

BRIDGE = "bridge"
_PREFIX_BITS = 24


@contextmanager
def cluster(spec: NetworkSpec) -> Iterator[tuple[Node, ...]]:
    """A cluster as long as the block lasts; gives its nodes, rack by rack.

    At the end, by return, exception, Ctrl-C (pressed again and again, too), SIGTERM or SIGHUP,
    processes that still run in its nodes are killed and everything built is removed.  In a
    thread other than the main one, signals stay the caller's affair.

    Raises:
        Unavailable: this machine cannot build it (see :func:`why_not`).
        InputError: the name is taken.
    """
    check()
    with stops_as_exceptions(), held(spec.name):
        with stops_later():
            build(spec)
        yield nodes_of(spec)


def build(spec: NetworkSpec) -> None:
    """Build namespaces, bridges and links; :func:`cluster` calls it and removes them again."""
    _add_switch(spec.namespace(CORE))
    for rack in range(len(spec.racks) if spec.rack_bytes_per_s else 0):
        _add_switch(spec.switch(rack))
        ends = (spec.switch(rack), "uplink"), (spec.namespace(CORE), f"rack{rack}")
        _join(*ends, spec.rack_bytes_per_s or 0.0)
        for end in ends:
            _plug(*end)
    nodes = nodes_of(spec)
    for node in nodes:
        _add_node(spec, node)
    _name(nodes)


def _name(nodes: Sequence[Node]) -> None:
    """Let the nodes find each other by name, before the names that the machine knows."""
    own = "".join(f"{node.address} {node.host}\n" for node in nodes)
    with suppress(OSError):
        own += Path("/etc/hosts").read_text(encoding="utf-8", errors="replace")
    for node in nodes:
        folder = HOST_NAMES / node.name
        try:
            folder.mkdir(parents=True)
            (folder / "hosts").write_text(own, encoding="utf-8", errors="replace")
        except OSError as error:
            raise Unavailable(str(folder), f"cannot be written ({error.strerror})") from None


def _add_switch(namespace: str) -> None:
    _add_namespace(namespace)
    call("ip", "-n", namespace, "link", "add", BRIDGE, "type", "bridge")
    call("ip", "-n", namespace, "link", "set", BRIDGE, "up")


def _add_node(spec: NetworkSpec, node: Node) -> None:
    _add_namespace(node.name)
    port = spec.switch(node.rack), f"node{node.rank}"
    _join((node.name, node.interface), port, spec.uplink_bytes_per_s)
    _plug(*port)
    address = f"{node.address}/{_PREFIX_BITS}"
    call("ip", "-n", node.name, "address", "add", address, "dev", node.interface, "noprefixroute")
    control = ("congctl", CONGESTION_CONTROL) if len(spec.racks) == 1 else ()
    _add_route(node, *control)


def _add_route(node: Node, *control: str) -> None:
    """The way to all nodes; a route can name a congestion control where no sysctl may be set."""
    network = str(ip_network(f"{node.address}/{_PREFIX_BITS}", strict=False))
    way = ("dev", node.interface, "src", node.address, *control)
    call("ip", "-n", node.name, "route", "add", network, *way)


def _add_namespace(namespace: str) -> None:
    call("ip", "netns", "add", namespace)
    call("ip", "-n", namespace, "link", "set", "lo", "up")


def _plug(namespace: str, interface: str) -> None:
    call("ip", "-n", namespace, "link", "set", interface, "master", BRIDGE)


def _join(one: tuple[str, str], other: tuple[str, str], bytes_per_s: float) -> None:
    """A veth pair between two (namespace, interface), shaped at both ends."""
    mtu = ("mtu", str(MTU_BYTES))
    first = ("dev", one[1], *mtu, "netns", one[0])
    second = ("name", other[1], *mtu, "netns", other[0])
    call("ip", "link", "add", *first, "type", "veth", "peer", *second)
    for namespace, interface in (one, other):
        call("ip", "-n", namespace, "link", "set", interface, "up")
        _shape(namespace, interface, bytes_per_s)


def _shape(namespace: str, interface: str, bytes_per_s: float) -> None:
    # After a pause a burst passes unshaped: 1 ms of the rate, so that small messages are shaped
    # too, and a frame at the least.  The queue holds 100 ms, and a segment of 64 KiB at the least:
    # the shaper itself cuts segments that are larger than the burst.
    burst_bytes = max(16 * 2**10, round(bytes_per_s * 1e-3))
    queue_bytes = burst_bytes + max(128 * 2**10, round(bytes_per_s * 0.1))
    rate = ("rate", f"{round(bytes_per_s * 8)}bit")
    sizes = ("burst", str(burst_bytes), "limit", str(queue_bytes))
    call("tc", "-n", namespace, "qdisc", "add", "dev", interface, "root", "tbf", *rate, *sizes)


def why_not() -> str | None:
    """Why no cluster can be built here, in one line; None where it can be, which is tried."""
    try:
        check()
        spec = regular(nodes=2, uplink_bytes_per_s=1e6)
        with stops_as_exceptions(), held(spec.name), stops_later():
            _probe(spec)
    except Unavailable as refusal:
        return str(refusal)
    except OSError as error:
        return str(InputError(str(error.filename), f"cannot be written ({error.strerror})"))
    return None


def _probe(spec: NetworkSpec) -> None:
    """One of everything: a namespace, a bridge, a veth pair, a shaper."""
    namespace = spec.namespace(PROBE)
    _add_switch(namespace)
    _join((namespace, "one"), (namespace, "other"), spec.uplink_bytes_per_s)
    _plug(namespace, "one")
