"""On which devices of a topology the ranks of a schedule lie."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError, did_you_mean
from p2smt.units import counted, parse_count

_LIST = re.compile(r"\s*\[?\s*(\d{1,9}(\s*,\s*\d{1,9})*)\s*\]?\s*", re.ASCII)
_EXAMPLE = "write LEVEL=N, such as node=1 (a rank on each node), or the device of each: 0,8,16,24"


def devices_of(text: str | None, topology: Topology, ranks: int) -> tuple[int, ...]:
    """The device of each rank: those of a list, or so many on each entity of a level in turn.

    None: rank r is on device r.

    Raises:
        InputError: the text is neither, or the topology has no such devices.
    """
    if text is None:
        return _checked(f"{ranks} ranks", range(ranks), topology, ranks)
    given = f"--ranks-on {text[:60]!r}"
    if listed := _LIST.fullmatch(text):
        devices = [int(one) for one in listed[1].split(",")]
        return _checked(given, devices, topology, ranks)
    name, equals, count = (part.strip() for part in text.partition("="))
    if not equals:
        raise InputError(given, "does not say where ranks lie", _EXAMPLE)
    if name not in topology.names:
        known = f"levels are {', '.join(topology.names)}"
        raise InputError(given, "names no level", did_you_mean(name, topology.names) or known)
    each, under = parse_count(count, given), topology.devices_under(topology.names.index(name))
    if each > under:
        raise InputError(given, f"a {name} has {under} devices", f"give {under} or fewer")
    if each > ranks:
        rule = f"asks for {each} ranks on each {name}, and the schedule has {ranks}"
        remedy = f"give {name}={ranks} or fewer; which devices these are a list says, such as 0,8"
        raise InputError(given, rule, remedy)
    needed, there = -(-ranks // each), topology.devices // under
    if needed > there:
        rule = f"{ranks} ranks need {needed} of {name}, and {topology.name} has {there}"
        raise InputError(given, rule, "put more ranks on each, or give a larger topology")
    spread = [under * (rank // each) + rank % each for rank in range(ranks)]
    return _checked(given, spread, topology, ranks)


def _checked(given: str, devices: Sequence[int], topology: Topology, ranks: int) -> tuple[int, ...]:
    if len(devices) != ranks:
        raise InputError(given, f"the schedule has {ranks} ranks", "name a device for each")
    if max(devices) >= topology.devices:
        rule = f"topology {topology.name} has {topology.devices} devices"
        raise InputError(given, rule, "give a larger one, or other devices")
    if len(set(devices)) < len(devices):
        raise InputError(given, "two ranks lie on one device", "name each device once")
    return tuple(devices)


def where_words(topology: Topology, devices: Sequence[int]) -> str:
    """Where ranks lie: ``4 ranks on node 0 alone``, or ``1 rank on each of 4 nodes``."""
    name, under = topology.names[topology.node_level], topology.devices_under(topology.node_level)
    counts = Counter(device // under for device in devices)
    most, many = max(counts.values()), len(devices)
    if len(counts) == 1:
        return f"{counted(many, 'rank')} on {name} {min(counts)} alone"
    each = counted(most, "rank")
    least = "" if min(counts.values()) == most else f"up to {each}"
    return f"{least or each} on each of {len(counts)} {name}s"
