"""Values of files and answers, taken with care; names, that may be replaced by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.report.page.story import MOST_COMMAND, clean, sentence

_REMEDY = "give the file as p2smt wrote it"
HIDDEN = "names are left out"


@dataclass(frozen=True, slots=True)
class Names:
    """Names as they are shown: as they are, or numbers of their own where ``anonymous``."""

    anonymous: bool = False
    _numbers: dict[str, str] = field(default_factory=dict)

    def host(self, name: str) -> str:
        """A host's."""
        return self._one(name, "host")

    def switch(self, level: str, name: str) -> str:
        """That of a switch of a level."""
        return self._one(name, level)

    def cluster(self, name: str) -> str:
        """A topology's."""
        return "a cluster" if self.anonymous else clean(name)

    def _one(self, name: str, kind: str) -> str:
        if not self.anonymous:
            return clean(name)
        count = sum(one.startswith(f"{kind} ") for one in self._numbers.values())
        return self._numbers.setdefault(f"{kind} {name}", f"{kind} {count + 1}")

    def commands(self, *commands: str | None) -> tuple[str, ...]:
        """Commands, which may have names of hosts and folders."""
        found = tuple(clean(one, MOST_COMMAND) for one in commands if one)
        return (f"# the command: {HIDDEN}",) if self.anonymous and found else found

    def sources(self, topology: Topology) -> tuple[str, ...]:
        """What a topology says of itself."""
        if self.anonymous:
            return ()
        told = [topology.description] if topology.description else []
        return tuple(sentence(one) for one in (*told, *topology.sources))

    def of(self, topology: Topology) -> Topology:
        """The cluster with names as they are shown."""
        hosts = topology.hosts
        if hosts is not None:
            named = (
                tuple(self.switch(topology.names[level], one) if one else "" for one in names)
                for level, names in enumerate(hosts.switches)
            )
            shown = tuple(self.host(one) for one in hosts.names)
            # Two long names may be cut to one: then hosts are told apart by numbers.
            if len(set(shown)) < len(shown):
                shown = tuple(f"{one} ({at})" for at, one in enumerate(shown, 1))
            switches = tuple(named)
            if any(len({*one} - {""}) < sum(map(bool, one)) for one in switches):
                switches = hosts.switches
            hosts = replace(hosts, names=shown, switches=switches, left_out=())
        return replace(topology, name=self.cluster(topology.name), hosts=hosts)


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of a file; ``what``: which, for messages."""

    data: Mapping[str, Any]
    what: str

    def number(self, key: str) -> float:
        """A number of zero or more."""
        found = self.data.get(key)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < 1e300:
            raise InputError(f"{self.what}: {key}", "is no number of zero or more", _REMEDY)
        return found

    def maybe(self, key: str) -> float | None:
        """The same where it is there, and not null."""
        return None if self.data.get(key) is None else self.number(key)

    def words(self, key: str) -> str:
        """A text; empty: there is none."""
        found = self.data.get(key)
        return found if isinstance(found, str) else ""

    def inside(self, key: str) -> Fields:
        """An object in it."""
        found = self.data.get(key)
        if not isinstance(found, dict):
            raise InputError(f"{self.what}: {key}", "is not there, or no object", _REMEDY)
        return Fields(found, f"{self.what}: {key}")

    def each(self, key: str) -> tuple[Fields, ...]:
        """The objects of a list; none: it is not there."""
        found = self.data.get(key) or []
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise InputError(f"{self.what}: {key}", "is no list of objects", _REMEDY)
        return tuple(Fields(one, f"{self.what}: {key}[{at}]") for at, one in enumerate(found))

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list; none: it is not there."""
        found = self.data.get(key)
        return tuple(one for one in found or () if isinstance(one, str))

    def numbers(self, key: str) -> dict[str, float]:
        """Numbers by their names."""
        inside = self.inside(key)
        return {str(name): inside.number(name) for name in inside.data}

    def ends(self, key: str) -> tuple[float, float] | None:
        """Two ends of a range; None: it is not there."""
        found = self.data.get(key)
        if not isinstance(found, list) or len(found) != 2:
            return None
        low, high = (Fields({"end": one}, f"{self.what}: {key}").number("end") for one in found)
        return low, high
