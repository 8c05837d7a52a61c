"""The keys of a topology file that name nodes: ``hosts`` and ``switches``.

    levels:                               # outermost first, as large as the fullest
      - {name: leaf, size: 2, link: {kind: switch, bandwidth: 400 GB/s, ..}}
      - {name: node, size: 7, link: ..}
      - {name: gpu, size: 8, link: ..}
    switches:                             # of the outermost level
      - {name: leaf0, hosts: "n[01-05]"}
      - {name: leaf1, hosts: "n[06-12]", bandwidth: 200 GB/s}

``bandwidth`` is that of each port of a switch's uplink, where it is not its level's.  A switch of a
level further out has ``switches`` instead of ``hosts``.  Where no level lies outside the nodes,
``hosts`` stands beside ``levels``.  ``assumed: [leaf]`` says that nobody stated the bandwidth of
these levels, and ``left_out`` names hosts that are in no certain place.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from pydantic import BeforeValidator, Field, WithJsonSchema

from p2smt.cluster.hostlist import format_hostlist, parse_hostlist
from p2smt.cluster.hosts import Hosts, Uplink
from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.units import BANDWIDTH_PATTERN, MAX_TEXT, exact_bandwidth, parse_bandwidth

HostList = Annotated[str, Field(min_length=1)]
"""Names of hosts as :func:`~p2smt.cluster.hostlist.parse_hostlist` reads them."""


def _bandwidth(text: object) -> object:
    parse_bandwidth(text, "value")
    return text


Bandwidth = Annotated[
    str,
    BeforeValidator(_bandwidth),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": BANDWIDTH_PATTERN,
            "maxLength": MAX_TEXT,
            "description": "Such as 200 Gb/s or 25 GB/s, per port and direction.",
        }
    ),
]


class SwitchModel(StrictModel):
    """A switch: its hosts (a host list), or the switches under it."""

    name: Annotated[str, Field(min_length=1)]
    bandwidth: Bandwidth | None = None
    hosts: HostList | None = None
    switches: list[SwitchModel] = Field(default_factory=list)


class HostKeys(Protocol):
    """The keys of a topology file that are about hosts."""

    @property
    def hosts(self) -> str | None: ...
    @property
    def switches(self) -> Sequence[SwitchModel]: ...
    @property
    def assumed(self) -> Sequence[str]: ...
    @property
    def left_out(self) -> str | None: ...


def build_hosts(model: HostKeys, outer: Sequence[tuple[str, int]]) -> Hosts | None:
    """The hosts that a file names; ``outer``: name and size of each level down to the nodes'.

    Raises:
        InputError: hosts and switches are given, or neither beside the other keys, the switches are
            not as deep as the levels, or there are more of something than its level has places.
    """
    hosts, switches = model.hosts, model.switches
    if hosts is None and not switches:
        if model.assumed or model.left_out is not None:
            given = "assumed" if model.assumed else "left_out"
            raise InputError(given, "is for topologies that name hosts", "name them, or drop it")
        return None
    if (hosts is None) == (len(outer) == 1):
        rule = f"the topology has {len(outer) - 1} levels outside its nodes"
        remedy = "name the switches of the outermost" if len(outer) > 1 else "give hosts alone"
        raise InputError("hosts" if hosts else "switches", rule, remedy)
    found = _Found(outer, [[] for _ in outer[1:]])
    if hosts is not None:
        found.nodes(hosts, 0)
    found.entities(switches, (), 0)
    return Hosts(
        tuple(found.names),
        tuple(found.slots),
        tuple(map(tuple, found.filled())),
        tuple(sorted(found.uplinks, key=lambda one: (one.level, one.entity))),
        tuple(model.assumed),
        () if model.left_out is None else parse_hostlist(model.left_out),
    )


@dataclass(slots=True)
class _Found:
    """What was read so far; places are numbered as in the hull."""

    outer: Sequence[tuple[str, int]]
    named: list[list[tuple[int, str]]]
    names: list[str] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    uplinks: list[Uplink] = field(default_factory=list)

    def entities(self, models: Sequence[SwitchModel], path: tuple[int, ...], first: int) -> None:
        """Reads the switches under an entity; ``first`` is the number of its first child."""
        level = len(path)
        if models:
            self._fits(level, len(models))
        for number, model in enumerate(models, start=first):
            self.named[level].append((number, model.name))
            if model.bandwidth is not None:
                rate = parse_bandwidth(model.bandwidth)
                self.uplinks.append(Uplink(level, number, rate))
            self._under(model, (*path, number), level)

    def _under(self, model: SwitchModel, path: tuple[int, ...], level: int) -> None:
        innermost = level == len(self.outer) - 2
        if innermost != (model.hosts is not None) or innermost == bool(model.switches):
            what = "hosts" if innermost else "switches"
            rule = f"a {self.outer[level][0]} has {what} under it, and nothing else"
            raise InputError(f"switch {model.name[:80]!r}", rule, f"give {what}")
        first = path[-1] * self.outer[level + 1][1]
        if model.hosts is not None:
            self.nodes(model.hosts, first)
        self.entities(model.switches, path, first)

    def nodes(self, text: str, first: int) -> None:
        """Reads the hosts under a switch, whose first place is given."""
        names = parse_hostlist(text)
        self._fits(len(self.outer) - 1, len(names))
        self.names += names
        self.slots += range(first, first + len(names))

    def _fits(self, level: int, count: int) -> None:
        name, size = self.outer[level]
        if count > size:
            rule = f"level {name} has {size} places under each entity"
            raise InputError(f"{count} entities of level {name}", rule, "give it the largest size")

    def filled(self) -> Iterator[list[str]]:
        """The names of the entities of each level in the hull, empty where there is none."""
        for level, named in enumerate(self.named):
            count = math.prod(size for _, size in self.outer[: level + 1])
            names = [""] * count
            for number, name in named:
                names[number] = name
            yield names


def dump_hosts(hosts: Hosts, sizes: Sequence[int]) -> dict[str, object]:
    """What a file says of hosts, as plain data; ``sizes``: of the levels down to the nodes'."""
    found: dict[str, object] = {}
    if hosts.assumed:
        found["assumed"] = list(hosts.assumed)
    if hosts.left_out:
        found["left_out"] = format_hostlist(hosts.left_out)
    if hosts.switches:
        found["switches"] = list(_dumped(hosts, sizes, 0, range(sizes[0])))
    else:
        found["hosts"] = format_hostlist(hosts.names)
    return found


def _dumped(
    hosts: Hosts, sizes: Sequence[int], level: int, entities: range
) -> Iterator[dict[str, object]]:
    rates = {one.entity: one.bandwidth_bytes_per_s for one in hosts.uplinks if one.level == level}
    for entity in entities:
        name = hosts.switches[level][entity]
        if not name:
            continue
        found: dict[str, object] = {"name": name}
        if entity in rates:
            found["bandwidth"] = exact_bandwidth(rates[entity])
        size = sizes[level + 1]
        under = range(entity * size, (entity + 1) * size)
        if level == len(hosts.switches) - 1:
            found["hosts"] = format_hostlist(_named(hosts, under))
        else:
            found["switches"] = list(_dumped(hosts, sizes, level + 1, under))
        yield found


def _named(hosts: Hosts, slots: range) -> list[str]:
    """The names of the hosts at these places."""
    first = bisect_left(hosts.slots, slots.start)
    return list(hosts.names[first : bisect_left(hosts.slots, slots.stop)])
