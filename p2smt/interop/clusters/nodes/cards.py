"""The link of a node: its network cards.

Cards near to some GPU (by PCIe bridges only) count; where no card is, all of the nearest kind do.
Others serve storage and management, mostly, and are left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from p2smt.cluster.topology import Link, LinkKind, Piece
from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.facts import BusPath, CardPort, NodeFacts, Told
from p2smt.units import format_bandwidth

LATENCY_S = 14e-6
"""Of a step, as NCCL has it for rings over a network (src/graph/tuning.cc)."""
STAND_IN_BYTES_PER_S = 50e9
_FABRIC = "infiniband"


@dataclass(frozen=True, slots=True)
class NodeLink:
    """The link of a node; ``known``: whether its bandwidth is told, not a stand-in."""

    link: Link
    known: bool
    lost: tuple[str, ...]


def node_link(node: NodeFacts, told: Told) -> NodeLink:
    """The link that a node's network cards make.

    Raises:
        InputError: so many ports as told do not spread evenly over its GPUs.
    """
    lost: list[str] = []
    if told.nic_ports is None:
        kept = _kept(node, told, lost)
    else:
        _check_ports(node, told.nic_ports)
        kept = [CardPort("told", "told", told.nic_bytes_per_s)] * told.nic_ports
    rate = told.nic_bytes_per_s or _rate(kept, lost)
    fabric = told.nic_fabric or _fabric(kept, lost)
    pieces = (Piece("simple", LATENCY_S, rate or STAND_IN_BYTES_PER_S),)
    link = Link(LinkKind.SWITCH, pieces, ports=max(1, len(kept)), fabric=fabric)
    return NodeLink(link, rate is not None, tuple(lost))


def _kept(node: NodeFacts, told: Told, lost: list[str]) -> list[CardPort]:
    """The ports that the source tells of, and that count."""
    ports = _near_ports(node, lost)
    kept = _spread(ports, len(node.gpus), lost) if ports else []
    if not kept and told.nic_bytes_per_s:
        lost.append("network cards are not told: a node is given one port; --nic 8x400Gb/s has 8")
    elif not kept:
        lost.append("network cards are not told, so not what leaves the node; --nic 8x400Gb/s")
    elif any(port.bytes_per_s is None for port in kept) and not told.nic_bytes_per_s:
        what = "port is" if len(kept) == 1 else "ports is"
        lost.append(f"the rate of {len(kept)} network card {what} not told; --nic 400Gb/s")
    return kept


def _check_ports(node: NodeFacts, ports: int) -> None:
    gpus = len(node.gpus)
    if ports < 1 or not _even(ports, gpus):
        rule = f"must spread evenly over its {gpus} GPUs: one number must divide the other"
        raise InputError(f"{node.source}: {ports} network card ports", rule, "correct --nic")


def _near_ports(node: NodeFacts, lost: list[str]) -> list[CardPort]:
    """The ports that count."""
    count = len(node.gpus)
    nearest = []
    for j in range(count, count + len(node.ports)):
        ways = [node.near[i][j] for i in range(count)]
        nearest.append(min((near for near in ways if near is not None), default=BusPath.SYS))
    most = max(BusPath.PXB, min(nearest, default=BusPath.PXB))
    pairs = list(zip(node.ports, nearest, strict=True))
    if left := [port.name for port, near in pairs if near > most]:
        lost.append(f"network cards far from all GPUs are left out: {_named(left)}")
    return [port for port, near in pairs if near <= most]


def _spread(ports: list[CardPort], gpus: int, lost: list[str]) -> list[CardPort]:
    """As many of them as spread evenly over the GPUs: the fastest, where those do."""
    rates = [port.bytes_per_s or 0.0 for port in ports]
    fastest = [port for port, rate in zip(ports, rates, strict=True) if rate == max(rates)]
    if len(fastest) < len(ports) and _even(len(fastest), gpus):
        slower = [port.name for port in ports if port not in fastest]
        lost.append(f"slower network cards are left out: {_named(slower)}")
        return fastest
    most = next(n for n in range(len(ports), 0, -1) if _even(n, gpus))
    if most < len(ports):
        lost.append(
            f"{len(ports)} network card ports do not spread evenly over {gpus} GPUs: "
            f"{most} are counted"
        )
    return sorted(ports, key=lambda port: -(port.bytes_per_s or 0.0))[:most]


def _even(ports: int, gpus: int) -> bool:
    return ports % gpus == 0 or gpus % ports == 0


def _named(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", .." if len(names) > 4 else "")


def _rate(ports: list[CardPort], lost: list[str]) -> float | None:
    """The rate of each port; the least where they differ."""
    told = [port.bytes_per_s for port in ports]
    rates = [rate for rate in told if rate]
    if not rates or len(rates) < len(told):
        return None
    least = min(rates)
    if max(rates) > least:
        lost.append(
            f"network card ports have {format_bandwidth(least)} to "
            f"{format_bandwidth(max(rates))}: all are given the least"
        )
    shared = _pcie_share(ports)
    if shared is not None and shared < least:
        lost.append(
            f"ports of {format_bandwidth(least)} share a PCIe link: "
            f"{format_bandwidth(shared)} each is counted"
        )
        return shared
    return least


def _pcie_share(ports: list[CardPort]) -> float | None:
    """The least that a card's PCIe link leaves to each of its ports; None: not told."""
    cards = defaultdict(list)
    for port in ports:
        cards[port.card].append(port.pcie_bytes_per_s)
    shares = [rates[0] / len(rates) for rates in cards.values() if rates[0] is not None]
    return min(shares, default=None)


def _fabric(ports: list[CardPort], lost: list[str]) -> str:
    """What most of them speak; InfiniBand where nothing is told."""
    told = Counter(port.fabric for port in ports if port.fabric)
    if told:
        return told.most_common(1)[0][0]
    if ports:
        lost.append(
            "the network of its cards is not told: InfiniBand is assumed; --nic-fabric roce"
        )
    return _FABRIC
