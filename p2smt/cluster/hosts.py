"""Named nodes, and switches that hold unequal numbers of them.

The levels of a topology are regular: every entity has as many children as its level's size.  Nodes
come as a scheduler hands them out, five under one switch and seven under another.  Such a cluster
lies in a regular one, whose levels are as large as the fullest entity: its *hull*.  Where the hull
has a place that no host fills, no rank may lie; everything else (who shares which link) is found on
the hull as on any other topology.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

from p2smt.errors import InputError


@dataclass(frozen=True, slots=True)
class Uplink:
    """An uplink of a switch whose bandwidth is not its level's.

    ``level`` is the index of the level, ``entity`` the number of the switch in the hull,
    ``bandwidth_bytes_per_s`` that of each port in each direction.
    """

    level: int
    entity: int
    bandwidth_bytes_per_s: float

    def __post_init__(self) -> None:
        if not 1 <= self.bandwidth_bytes_per_s < math.inf:
            rule = "must be at least 1 B/s, and finite"
            raise InputError(f"uplink of {self.bandwidth_bytes_per_s} B/s", rule)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The nodes of a topology by name, and where each lies in its hull.

    ``names[i]`` is at ``slots[i]``, the number of a node in the hull (outermost coordinate most
    significant), ascending.  ``switches[j]`` are the names of the entities of level j, one for each
    in the hull, empty where it has no host; for every level outside that of the nodes.
    ``assumed`` names the levels whose bandwidth nobody stated: they are taken as non-blocking, so
    times say nothing of them.  ``left_out`` are hosts that the source of the topology names, but
    not in one certain place (under two switches, or none).
    """

    names: tuple[str, ...]
    slots: tuple[int, ...]
    switches: tuple[tuple[str, ...], ...] = ()
    uplinks: tuple[Uplink, ...] = ()
    assumed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.slots):
            raise InputError(f"{len(self.names)} hosts", "need one place each, and at least one")
        if twice := [name for name, count in Counter(self.names).items() if count > 1]:
            raise InputError(f"host {twice[0][:80]!r}", "is named twice", "name each host once")
        if list(self.slots) != sorted(set(self.slots)) or self.slots[0] < 0:
            raise InputError("places of hosts", "must ascend from 0")
        for names in self.switches:
            named = Counter(name for name in names if name)
            if twice := [name for name, count in named.items() if count > 1]:
                rule = "is named twice"
                raise InputError(f"switch {twice[0][:80]!r}", rule, "name each switch once")
        if len({(uplink.level, uplink.entity) for uplink in self.uplinks}) != len(self.uplinks):
            raise InputError("uplinks", "one is given twice", "keep one of them")
        if both := set(self.names).intersection(self.left_out):
            raise InputError(f"host {min(both)[:80]!r}", "is left out, and named as a host")

    def check(self, sizes: tuple[int, ...], node_level: int) -> None:
        """Whether they lie in the hull of these level sizes, which their fullest entities fill.

        Raises:
            InputError: they do not.
        """
        outer = sizes[: node_level + 1]
        if len(self.switches) != node_level:
            rule = f"the topology has {node_level} levels outside its nodes"
            raise InputError(f"hosts under {len(self.switches)} levels of switches", rule)
        if self.slots[-1] >= math.prod(outer):
            rule = f"the topology has {math.prod(outer)} places"
            raise InputError(f"a host at place {self.slots[-1]}", rule)
        for j, names in enumerate(self.switches):
            self._check_switches(names, outer, j)
        for uplink in self.uplinks:
            inside = 0 <= uplink.level < node_level  # nodes are all alike
            if not inside or not 0 <= uplink.entity < math.prod(outer[: uplink.level + 1]):
                raise InputError(f"uplink of entity {uplink.entity}", "there is no such entity")

    def _check_switches(self, names: tuple[str, ...], outer: tuple[int, ...], j: int) -> None:
        under = math.prod(outer[j + 1 :])
        used = {slot // under for slot in self.slots}
        if len(names) != math.prod(outer[: j + 1]):
            raise InputError(f"{len(names)} switches", f"must be {math.prod(outer[: j + 1])}")
        for entity, name in enumerate(names):
            if bool(name) != (entity in used):
                what = f"switch {name[:80]!r}" if name else "a switch without a name"
                raise InputError(what, "those with hosts, and only they, have names")

    def with_bandwidth_factor(self, level: int, factor: float) -> Hosts:
        """The same with the bandwidth of every uplink of one level multiplied."""
        uplinks = tuple(
            replace(one, bandwidth_bytes_per_s=max(1.0, one.bandwidth_bytes_per_s * factor))
            if one.level == level
            else one
            for one in self.uplinks
        )
        return replace(self, uplinks=uplinks)

    def at(self, slot: int) -> str:
        """The host at a place of the hull.

        Raises:
            InputError: no host is there.
        """
        try:
            return self.names[self.slots.index(slot)]
        except ValueError:
            raise InputError(f"place {slot}", "has no host") from None
