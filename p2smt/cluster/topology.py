"""A cluster as a hierarchy of levels, outermost first.

A level has a size and the link by which each of its entities joins its siblings.  Devices
are numbered in hierarchy order: the outermost coordinate is the most significant.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from p2smt.cluster.error_class import ErrorClass
from p2smt.cluster.hosts import Hosts
from p2smt.cluster.library.model import LIBRARY_PATTERN, NO_LIBRARY, Library
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.link import ANY_ALGORITHM, CPUS, Algorithm, Device, Link, LinkKind, Piece
from p2smt.collectives.names import CALL_NAMES, Collective
from p2smt.display import Displayed
from p2smt.errors import InputError
from p2smt.files.plain import TEXT_OF

__all__ = [
    "ANY_ALGORITHM",
    "CALL_NAMES",
    "LIBRARY_PATTERN",
    "MAX_DEVICES",
    "MAX_LEVELS",
    "NAME_PATTERN",
    "NO_LIBRARY",
    "RESERVED",
    "ROOT",
    "Algorithm",
    "Level",
    "Link",
    "LinkKind",
    "Piece",
    "Topology",
]

ROOT = "root"
MAX_DEVICES = 2**20
MAX_LEVELS = 8
_NAME = r"[a-z][a-z0-9_-]{0,31}"
NAME_PATTERN = f"^{_NAME}$"
"""Names of levels, as JSON Schema says it (ECMA-262)."""
RESERVED = (ROOT, "in", "inside", "parallel", "master", "within", "across")
"""Words of programs and rules, which are no names of levels."""


def _library_name(library: Library | None) -> str:
    return "" if library is None else library.name


def _named(name: str) -> Library | None:
    """The library of a name; None: of an empty one."""
    if not name:
        return None
    _check_name(name)
    return library_of(name)


def _check_name(name: str) -> None:
    if not re.fullmatch(LIBRARY_PATTERN, name) or name == NO_LIBRARY:
        raise InputError(f"library {name[:80]!r}", "is no name of a library")


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the hierarchy: ``size`` siblings under each entity of the level above.

    ``whole``: how many there are where only the first ``size`` are used (0: all are).  ``groups``:
    a name for so many of them as one machine has, where these may become a level of their own.
    """

    name: str
    size: int
    link: Link
    whole: int = 0
    groups: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(_NAME, self.name) or self.name in RESERVED:
            raise InputError(
                f"level name {self.name[:40]!r}",
                f"must be lower-case letters, digits, - or _, and none of {sorted(RESERVED)}",
            )
        if not 1 <= self.size <= MAX_DEVICES:
            raise InputError(
                f"level {self.name} of size {self.size}", f"size must be 1 to {MAX_DEVICES}"
            )
        if self.whole and not self.size < self.whole <= MAX_DEVICES:
            given = f"level {self.name}: {self.size} used of {self.whole}"
            raise InputError(given, f"whole must be more than its size, up to {MAX_DEVICES}")
        if self.groups is not None and self.full_size % self.groups[1]:
            given = f"level {self.name}: groups of {self.groups[1]}"
            raise InputError(given, f"must divide its {self.full_size}")
        if self.link.torus and math.prod(self.link.torus) != self.size:
            raise InputError(
                f"level {self.name} of size {self.size} with dims {list(self.link.torus)}",
                f"the dims of a torus must multiply to its size, not {math.prod(self.link.torus)}",
            )

    @property
    def full_size(self) -> int:
        """How many siblings there are, used or not."""
        return self.whole or self.size

    def groups_those(self, below: Level | None) -> bool:
        """Whether it only groups the entities of the level below it, on the links of these."""
        if below is None or self.link.ports != below.link.ports * below.full_size:
            return False
        return replace(self.link, ports=below.link.ports) == below.link


@dataclass(frozen=True, slots=True, repr=False)
class Topology(Displayed):
    """A cluster: levels outermost first, the library that runs on it, and its algorithms.

    ``library`` chooses algorithm and protocol of each step and says what calls and hops cost; None:
    the fastest of ``algorithms`` by the links' own rates, the textbook's costs.  One that is known
    by its name may be given by it, as JSON data have it.  With a library, ``restricted`` says that
    it may use no others of its own than ``algorithms``, and ``best`` takes the cheapest way instead
    of its choice.
    ``overrides`` names the one algorithm that always runs a collective.  ``calls`` holds
    measured seconds per call by operation (``CALL_NAMES``), which replace the library's;
    ``call_factor`` multiplies the cost of every call, measured or not (no file has it: it is to see
    what an answer depends on).
    ``calibrated``: rates and latencies were fitted to measured times, by a calibration.
    ``errors``: how far off predictions of these were, by the name of the outermost level that the
    groups cross.
    ``hosts``: the nodes by name, where they are known.  They need not fill the levels, which are
    then the hull of a cluster (:mod:`p2smt.cluster.hosts`): ``devices`` counts its places,
    ``installed`` the devices that are there.
    ``device``: what a device can do by itself, where it is known; no time of a step depends on it.
    ``cpu``: whose processors the hosts have (one of ``CPUS``; empty: not said), by which libraries
    choose.
    """

    name: str
    levels: tuple[Level, ...]
    algorithms: tuple[Algorithm, ...] = ANY_ALGORITHM
    description: str = ""
    sources: tuple[str, ...] = ()
    overrides: tuple[tuple[Collective, Algorithm], ...] = ()
    library: Library | None = field(default=None, metadata={TEXT_OF: _library_name})
    best: bool = False
    restricted: bool = False
    calls: tuple[tuple[str, float], ...] = ()
    calibrated: bool = False
    call_factor: float = 1.0
    errors: tuple[tuple[str, ErrorClass], ...] = ()
    hosts: Hosts | None = None
    device: Device | None = field(default=None, hash=False)  # caches hold what it says nothing of
    cpu: str = ""

    def summary(self) -> str:
        """Its name and levels."""
        levels = ", ".join(f"{level.name} {level.size}" for level in self.levels)
        return f"{self.name!r}: {levels}"

    def __post_init__(self) -> None:
        if isinstance(self.library, str):
            object.__setattr__(self, "library", _named(self.library))
        names = [level.name for level in self.levels]
        if self.cpu and self.cpu not in CPUS:
            raise InputError(f"cpu {self.cpu[:40]!r}", f"must be one of {', '.join(CPUS)}")
        if not self.name:
            raise InputError("a topology without a name", "needs one", "give a short text")
        if not self.algorithms or len(set(self.algorithms)) != len(self.algorithms):
            shown = [algorithm.value for algorithm in self.algorithms]
            raise InputError(f"algorithms {shown}", "name at least one, each once", "edit the list")
        if len(dict(self.overrides)) != len(self.overrides):
            shown = [collective.value for collective, _ in self.overrides]
            raise InputError(
                f"overrides {shown}", "a collective is named twice", "keep one of them"
            )
        self._check_library()
        if not 1 <= len(names) <= MAX_LEVELS:
            raise InputError(f"{len(names)} levels", f"a topology has 1 to {MAX_LEVELS} levels")
        if len(set(names)) != len(names):
            raise InputError(f"levels {names}", "a level name is used twice", "rename one of them")
        if unknown := {name for name, _ in self.errors} - set(names):
            raise InputError(f"errors of {min(unknown)[:40]!r}", f"is none of the levels {names}")
        if self.devices > MAX_DEVICES:
            raise InputError(f"{self.devices} devices", f"at most {MAX_DEVICES} are supported")
        for j, level in enumerate(self.levels):
            under, ports = self.devices_under(j), level.link.ports
            if under % ports and ports % under:
                raise InputError(
                    f"level {level.name} with {ports} ports over {under} devices",
                    "ports must spread evenly: one number must divide the other",
                )
        if self.hosts is not None:
            self._check_hosts(self.hosts)

    def _check_hosts(self, hosts: Hosts) -> None:
        if self.node_level < 0:
            rule = "no link of the topology joins nodes"
            raise InputError(f"{len(hosts.names)} hosts", rule, "give a level a network as fabric")
        hosts.check(self.sizes, self.node_level)
        outer = self.levels[: self.node_level + 1]
        if unknown := set(hosts.assumed) - {level.name for level in outer}:
            rule = f"is none of the levels {', '.join(level.name for level in outer)}"
            raise InputError(f"assumed: {min(unknown)[:40]!r}", rule, "name those outside a node")
        rings = [level.name for level in outer if level.link.kind is not LinkKind.SWITCH]
        if self.uneven and rings:
            rule = "joins what need not be full or equal, so its link must be a switch"
            raise InputError(f"level {rings[0]}", rule)

    def _check_library(self) -> None:
        if self.library is not None:
            _check_name(self.library.name)
        if not 0 < self.call_factor < math.inf:
            raise InputError(f"call factor {self.call_factor}", "must be positive and finite")
        names = [name for name, _ in self.calls]
        if any(name not in CALL_NAMES for name in names) or len(set(names)) != len(names):
            rule = f"name each of {', '.join(CALL_NAMES)} at most once"
            raise InputError(f"calls {[name[:40] for name in names]}", rule)
        for name, seconds in self.calls:
            if not 0 <= seconds < 1e6:
                raise InputError(f"call {seconds} s of {name}", "must be from 0 to 1e6 s")

    @property
    def library_name(self) -> str:
        """The name of the library; empty: there is none."""
        return _library_name(self.library)

    @property
    def of_amd(self) -> bool:
        """Whether its devices are AMD's, by the fabric of a link."""
        return any(level.link.fabric == "xgmi" for level in self.levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Level sizes, outermost first."""
        return tuple(level.size for level in self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """Level names, outermost first."""
        return tuple(level.name for level in self.levels)

    @property
    def known_device(self) -> Device:
        """What a device can do.

        Raises:
            InputError: the topology does not say.
        """
        if self.device is None:
            rule = "does not say what a device can do: peak, memory and its bandwidth"
            raise InputError(f"topology {self.name[:60]}", rule, "add the key device to its file")
        return self.device

    @property
    def known_library(self) -> Library:
        """The library.

        Raises:
            InputError: the topology has none.
        """
        if self.library is None:
            rule = "has no library, and what is asked rests on one"
            raise InputError(f"topology {self.name[:60]}", rule, "name one")
        return self.library

    @property
    def known_algorithms(self) -> frozenset[Algorithm]:
        """Every algorithm that some collective may run by."""
        return frozenset(self.algorithms) | {algorithm for _, algorithm in self.overrides}

    def named_for(self, collective: Collective) -> tuple[Algorithm, ...] | None:
        """The algorithms that a collective is to run by, where they are named.

        None: any that the library has for it.
        """
        fixed = dict(self.overrides).get(collective)
        if fixed is not None:
            return (fixed,)
        return self.algorithms if self.restricted or not self.library else None

    def running(self, algorithms: tuple[Algorithm, ...]) -> Topology:
        """The same cluster where every collective runs by one of these, as far as they can."""
        return replace(self, algorithms=algorithms, overrides=(), restricted=True, errors=())

    def under(self, library: Library | str) -> Topology:
        """The same cluster with another library, or that of a name (``none``, empty: without one).

        Constants that were fitted under one library say nothing of another: calls and hops go, and
        efficiencies of operations where those are what a library of one algorithm each was fitted
        by (where it is not known, told by whose they are).  Efficiencies of algorithms, and
        else of all-to-all and send, stay, as presets' do.

        Raises:
            InputError: there is no library of that name.
        """
        new = library if isinstance(library, Library) else _named(library.removeprefix(NO_LIBRARY))
        name = _library_name(new)
        found = self._without_fitted() if self.fitted_for_other(name) else self
        errors = self.errors if name == self.library_name else ()
        return replace(found, library=new, errors=errors)

    def fitted_for_other(self, library: str) -> bool:
        """Whether this was calibrated under a library, and that is another one than this.

        No library (``none`` or empty) is none other: what was fitted stays, for it does not count.
        What was fitted under a library that is no longer named was under another one.
        """
        if not self.calibrated or library in ("", NO_LIBRARY, self.library_name):
            return False
        hops = any(level.link.hops for level in self.levels)
        return bool(self.library or self.calls or hops) or self._fitted_by_operation

    @property
    def _fitted_by_operation(self) -> bool:
        """Whether efficiencies or hops are those of collectives, not of what they run by.

        That is how they are fitted where a library has one algorithm for each operation.
        """
        links = [level.link for level in self.levels]
        parts = {name for link in links for name, _ in link.efficiency}
        hops = {name.rpartition("-")[0] for link in links for name, _ in link.hops}
        return not parts.isdisjoint(one.value for one in Collective) or not hops.isdisjoint(
            CALL_NAMES
        )

    def _without_fitted(self) -> Topology:
        by_operation = self.library is not None and self.library.fixed
        gone = CALL_NAMES if by_operation or self._fitted_by_operation else ()
        levels = []
        for level in self.levels:
            kept = [(name, part) for name, part in level.link.efficiency if name not in gone]
            link = replace(level.link, efficiency=tuple(kept), hops=())
            levels.append(replace(level, link=link))
        return replace(self, levels=tuple(levels), calls=())

    def cheapest(self) -> Topology:
        """The same cluster where the cheapest way runs, not the one that the library chooses."""
        return replace(self, best=True, errors=())

    def nominal(self) -> Topology:
        """The same hardware at its nominal rates, without a library and without measured costs."""
        levels = tuple(
            replace(level, link=replace(level.link, efficiency=(), hops=(), measured=()))
            for level in self.levels
        )
        return replace(
            self, levels=levels, library=None, best=False, calls=(), calibrated=False, errors=()
        )

    @property
    def fitted(self) -> bool:
        """Whether it has what only measured times tell, by a calibration or written by hand."""
        links = [level.link for level in self.levels]
        measured = any(link.measured or link.hops for link in links)
        return self.calibrated or bool(self.calls) or measured

    @property
    def node_level(self) -> int:
        """Index of the level whose entities are nodes: the innermost that a network joins.

        Levels further in are inside a node.  -1: all devices are in one node, as no link is a
        network.  Where no link says its fabric, the outermost of several levels is the network.
        """
        if not any(level.link.fabric for level in self.levels):
            return 0 if len(self.levels) > 1 else -1
        return max((j for j, level in enumerate(self.levels) if level.link.network), default=-1)

    @property
    def devices(self) -> int:
        """Number of devices: the product of the level sizes."""
        return math.prod(self.sizes)

    @property
    def installed(self) -> int:
        """Number of devices that are there: those of the hosts, where hosts are named."""
        if self.hosts is None:
            return self.devices
        return len(self.hosts.names) * self.devices_under(self.node_level)

    @property
    def uneven(self) -> bool:
        """Whether some place of the hull has no host, or uplinks of a level differ."""
        return self.hosts is not None and (
            bool(self.hosts.uplinks) or self.installed < self.devices
        )

    @property
    def places(self) -> frozenset[int]:
        """The devices that are there, by number: all, or those of the hosts."""
        if self.hosts is None:
            return frozenset(range(self.devices))
        each = self.devices_under(self.node_level)
        return frozenset(slot * each + i for slot in self.hosts.slots for i in range(each))

    def host_of(self, device: int) -> str:
        """The name of the host of a device.

        Raises:
            InputError: hosts have no names, or there is none at its place.
        """
        if self.hosts is None:
            raise InputError(f"topology {self.name}", "names no hosts")
        return self.hosts.at(device // self.devices_under(self.node_level))

    def uplink_parts(self, level: int) -> tuple[float, ...] | None:
        """The part of the level's bandwidth that each entity's uplink has; None: all alike."""
        own = [one for one in (self.hosts.uplinks if self.hosts else ()) if one.level == level]
        if not own:
            return None
        parts = [1.0] * math.prod(self.sizes[: level + 1])
        for uplink in own:
            nominal = self.levels[level].link.nominal_bytes_per_s
            parts[uplink.entity] = uplink.bandwidth_bytes_per_s / nominal
        return tuple(parts)

    def devices_under(self, level: int) -> int:
        """Number of devices under one entity of the level with this index."""
        return math.prod(self.sizes[level + 1 :])

    def coordinates(self, device: int) -> tuple[int, ...]:
        """A device's coordinates, outermost first (mixed radix over the level sizes)."""
        digits, rest = [], device
        for size in reversed(self.sizes):
            rest, digit = divmod(rest, size)
            digits.append(digit)
        if rest:
            raise InputError(f"device {device}", f"devices are numbered 0 to {self.devices - 1}")
        return tuple(reversed(digits))

    def with_outermost(self, size: int) -> Topology:
        """The same cluster with another number of outermost entities."""
        first = self.levels[0]
        if self.hosts is not None:
            rule = "the topology names its hosts, so their number is given"
            raise InputError(f"{self.name}:{size}", rule, "give --hosts instead")
        if first.link.torus:
            raise InputError(
                f"{self.name}:{size}",
                f"the outermost level {first.name} is a torus with fixed dims",
                "write a topology file with other dims",
            )
        return replace(self, levels=(replace(first, size=size), *self.levels[1:]))

    def with_call_factor(self, factor: float) -> Topology:
        """The same cluster with the cost of every call multiplied by ``factor``."""
        return replace(self, call_factor=factor * self.call_factor)

    def with_bandwidth_factor(self, level: int, factor: float) -> Topology:
        """The same cluster with every bandwidth of one level multiplied by ``factor``.

        No bandwidth falls below one byte per second, the least that a link can have.
        """
        if not 0 < factor < math.inf:
            raise InputError(f"bandwidth factor {factor}", "must be positive and finite")
        old = self.levels[level]
        levels = list(self.levels)
        levels[level] = replace(old, link=old.link.with_bandwidth_factor(factor))
        hosts = self.hosts and self.hosts.with_bandwidth_factor(level, factor)
        return replace(self, levels=tuple(levels), hosts=hosts)


def check_even(topology: Topology) -> None:
    """Whether each switch has equally many hosts and a like uplink, as matrices have it.

    Raises:
        InputError: it is not so; names what places ranks there.
    """
    if topology.uneven:
        rule = "its hosts are not spread evenly under equal uplinks, so no matrix fits it"
        remedy = "p2smt solve (solve_on_hosts) and p2smt compare place ranks on its hosts"
        raise InputError(f"topology {topology.name}", rule, remedy)
