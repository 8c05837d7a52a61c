"""``ibnetdiscover``: an InfiniBand network with every cable, the one source that tells uplinks.

A block for each switch, a line for each of its ports: what is at the other end, and width and rate
of the cable (ibnetdiscover(8), linux-rdma/rdma-core)::

    Switch  65 "S-2c5e"   # "MF0;leaf1:MQM9701/U1" enhanced port 0 lid 73 lmc 0
    [1]  "H-e09d"[1](e09d)   # "n01 mlx5_5" lid 647 4xNDR
    [35] "S-0026"[32]        # "MF0;spine2:MQM9701/U1" lid 236 4xNDR

Where each card of a host is on a leaf switch of its own (rails), the leaves that share hosts are
one holder, and what leaves it is the sum of their uplinks.  The same holds for switches above:
those that the same holders lead to are one.  What nothing leaves is over everything, and no holder.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from p2smt.errors import InputError
from p2smt.interop.clusters.facts import ClusterFormat, Facts, Holder, OutsideFacts, is_nowhere
from p2smt.interop.clusters.switch_tree import listed
from p2smt.units import format_bandwidth

_SIGN = re.compile(r'^Switch\s+\d+\s+"S-[0-9a-f]+"', re.MULTILINE)
_NODE = re.compile(r'(Switch|Ca|Rt)\s+\d+\s+"[SHR]-([0-9a-f]+)"\s*#?\s*(?:"([^"]*)")?')
_PORT = re.compile(
    r'\[(\d+)\](?:\([0-9a-f]+\))?\s*"([SHR])-([0-9a-f]+)"\[(\d+)\](?:\([0-9a-f]+\))?'
    r'\s*#?\s*(?:"([^"]*)")?.*?\b(\d{1,2})x([A-Z]+\d*)\s*$'
)
_CARD = r"(?:HCA-\d+|[a-z]\w*_\w+|ib\w*|rocep?\w*|hfi\w*)"
_HOST = re.compile(rf"([A-Za-z0-9][\w.:-]*) +{_CARD}|(?!MT\d|{_CARD}$)([A-Za-z][\w.:-]*\d[\w.:-]*)")
_SHARP = "Aggregation Node"
_LOCAL = "localhost"
_LANES = ("SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR")
GBITS_PER_LANE = dict(zip(_LANES, (2.5, 5, 10, 10, 14, 25, 50, 100, 200), strict=True))
"""Nominal rates of a lane in each direction, as they are named: 4xNDR are 400 Gb/s."""


@dataclass(slots=True)
class _Network:
    """Switches by number (GUID): names, cables to other switches in B/s, and ports of hosts.

    ``ports[host]`` are the switch and the rate of each of its ports; ``unnamed`` counts ports whose
    description names a card and no host.
    """

    names: dict[str, str] = field(default_factory=dict)
    cables: dict[frozenset[tuple[str, str]], float] = field(default_factory=dict)
    ports: dict[str, list[tuple[str, float]]] = field(default_factory=lambda: defaultdict(list))
    unnamed: int = 0

    def between(self) -> dict[str, dict[str, float]]:
        """The rate of all cables of a switch to each other one, together."""
        found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for ends, rate in self.cables.items():
            if len(ends) == 2:
                (one, _), (other, _) = sorted(ends)
                found[one][other] += rate
                found[other][one] += rate
        return found


@dataclass(frozen=True, slots=True)
class _Group:
    """Switches that are one holder, and the groups, or the hosts, under it."""

    switches: tuple[str, ...]
    under: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()


def read_ibnetdiscover(text: str, source: str) -> Facts:
    """The switches over hosts, with the rates of their uplinks.

    Raises:
        InputError: no port of a switch leads to a host that has a name, or a rate is not known.
    """
    network = _network(text, source)
    if not network.ports:
        rule = "names no host at a port of a switch"
        raise InputError(source, rule, "give all that ibnetdiscover prints")
    usual = _usual(network)
    tiers, rates = _tiers(network, _leaves(network, usual))
    holders = list(_holders(network, tiers, rates))
    lost = [f"{source}: {one}" for one in _said(network, usual, holders, len(tiers))]
    known = {holder.name: rate for holder, rate in holders if rate}
    each = usual * min(_rates(network, usual))
    outside = OutsideFacts(tuple(h for h, _ in holders), rates=known, node_bytes_per_s=each)
    return Facts(source, outside, lost=tuple(lost))


def _network(text: str, source: str) -> _Network:
    found = _Network()
    switch = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if node := _NODE.match(line):
            switch = node[2] if node[1] == "Switch" else ""
            if switch:
                found.names[switch] = node[3] or ""
        elif switch and (port := _PORT.match(line)):
            _add(found, switch, port, f"{source}, line {number}")
    return found


def _add(found: _Network, switch: str, port: re.Match[str], where: str) -> None:
    """A port of a switch, with what is at its other end."""
    own, kind, other, far, said, width, lane = port.groups()
    if lane not in GBITS_PER_LANE:
        known = ", ".join(GBITS_PER_LANE)
        raise InputError(f"{where}: {width}x{lane}", "is no known rate", f"it is one of {known}")
    rate = int(width) * GBITS_PER_LANE[lane] * 1e9 / 8
    if kind == "S":
        found.cables[frozenset({(switch, own), (other, far)})] = rate
        found.names.setdefault(other, said or "")
    elif kind == "H" and _SHARP not in (said or ""):
        host = _HOST.fullmatch((said or "").strip("' "))
        name = (host[1] or host[2]) if host else ""
        if is_nowhere(name) or name == _LOCAL:
            found.unnamed += 1
        else:
            found.ports[name].append((switch, rate))


def _usual(network: _Network) -> int:
    """How many ports most hosts have; others serve storage or management."""
    counts = Counter(len(ports) for ports in network.ports.values())
    return max(counts, key=lambda ports: (counts[ports], ports))


def _rates(network: _Network, usual: int) -> list[float]:
    """Of the ports of hosts that have as many as most."""
    return [rate for each in network.ports.values() if len(each) == usual for _, rate in each]


def _joined(sets: Iterable[Iterable[str]]) -> list[list[str]]:
    """The members of all sets, those together that sets join, in order of appearance."""
    home: dict[str, list[str]] = {}
    for members in sets:
        mine: list[str] = []
        for one in members:
            other = home.get(one, [one])
            if other is not mine:
                mine += other
                home.update(dict.fromkeys(other, mine))
    return list({id(group): group for group in home.values()}.values())


def _leaves(network: _Network, usual: int) -> list[_Group]:
    """Leaf switches, together where usual hosts have ports on several."""
    sets = (
        [switch for switch, _ in ports] for ports in network.ports.values() if len(ports) == usual
    )
    found = []
    for switches in _joined(sets):
        here = set(switches)
        hosts = (host for host, ports in network.ports.items() if any(s in here for s, _ in ports))
        found.append(_Group(tuple(switches), hosts=tuple(hosts)))
    return found


def _tiers(network: _Network, leaves: list[_Group]) -> tuple[list[list[_Group]], list[list[float]]]:
    """The groups of each tier from the leaves outwards, and what leaves each, in B/s."""
    between, seen = network.between(), set[str]()
    tiers, rates = [leaves], list[list[float]]()
    while True:
        seen |= {switch for group in tiers[-1] for switch in group.switches}
        cables = [
            [(t, rate) for s in group.switches for t, rate in between[s].items() if t not in seen]
            for group in tiers[-1]
        ]
        rates.append([sum(rate for _, rate in each) for each in cables])
        above = [{t for t, _ in each} for each in cables]
        if not any(above):
            return tiers, rates
        joined = _joined([t for t, _ in each] for each in cables)
        tiers.append(
            [
                _Group(tuple(one), tuple(i for i, over in enumerate(above) if over & {*one}))
                for one in joined
            ]
        )


def _holders(
    network: _Network, tiers: Sequence[Sequence[_Group]], rates: Sequence[Sequence[float]]
) -> Iterator[tuple[Holder, float]]:
    """Holders with what leaves them; one that is over everything is none."""
    names = _names(network)
    for level, groups in enumerate(tiers):
        for number, group in enumerate(groups):
            rate = rates[level][number]
            if level and not rate and len(groups) == 1:
                continue
            under = tuple(_name(tiers[level - 1][i], names) for i in group.under)
            yield Holder(_name(group, names), under, group.hosts), rate


def _name(group: _Group, names: dict[str, str]) -> str:
    more = f"+{len(group.switches) - 1}" if len(group.switches) > 1 else ""
    return names[group.switches[0]] + more


def _names(network: _Network) -> dict[str, str]:
    """A name of each switch, without its firmware's prefix and its type; else its number."""
    short = {
        guid: said.partition(";")[2].partition(":")[0].strip() if ";" in said else ""
        for guid, said in network.names.items()
    }
    several = Counter(short.values())
    found = {guid: name if name else f"S-{guid}" for guid, name in short.items()}
    return found | {g: f"{n}-{g[-6:]}" for g, n in short.items() if n and several[n] > 1}


def _said(
    network: _Network, usual: int, holders: Sequence[tuple[Holder, float]], tiers: int
) -> Iterator[str]:
    """Sentences on the ports of hosts, and on what the file does not tell."""
    ports = [format_bandwidth(rate) for rate in sorted(set(_rates(network, usual)))]
    yield f"most hosts have {usual} port{'s' if usual > 1 else ''} of {' to '.join(ports)} on it"
    if network.unnamed:
        yield f"{network.unnamed} ports of cards whose description names no host are left out"
    if few := [host for host, each in network.ports.items() if len(each) != usual]:
        yield f"hosts with another number of ports: {len(few)} ({listed(few)})"
    cut = [holder.name for holder, rate in holders if holder.hosts and not rate]
    if tiers > 1 and cut:
        yield f"no uplinks in the file, taken as those of all nodes under it: {listed(cut)}"


IBNETDISCOVER = ClusterFormat(
    "ibnetdiscover", lambda text: _SIGN.search(text) is not None, read_ibnetdiscover
)
