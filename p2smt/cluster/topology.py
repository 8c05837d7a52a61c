"""A cluster as a hierarchy of levels, outermost first.

A level has a size and the link by which each of its entities joins its siblings.  Devices
are numbered in hierarchy order: the outermost coordinate is the most significant.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import Enum

from p2smt.collectives.names import Collective
from p2smt.errors import InputError

ROOT = "root"
MAX_DEVICES = 2**20
MAX_LEVELS = 8
_NAME = r"[a-z][a-z0-9_-]{0,31}"
NAME_PATTERN = f"^{_NAME}$"
"""Names of levels, as JSON Schema says it (ECMA-262)."""
RESERVED = (ROOT, "in", "inside", "parallel", "master", "within", "across")
"""Words of programs and rules, which are no names of levels."""


class LinkKind(Enum):
    """How the siblings of a level are joined."""

    SWITCH = "switch"
    RING = "ring"
    TORUS = "torus"
    FULL_MESH = "full-mesh"


class Algorithm(Enum):
    """How a collective is carried out inside a group (data of the cost model)."""

    RING = "ring"
    TREE = "tree"
    HALVING_DOUBLING = "halving-doubling"
    DIRECT = "direct"
    ONE_SHOT = "one-shot"
    IN_SWITCH = "in-switch"
    BINOMIAL = "binomial"
    SCATTER_GATHER = "scatter-gather"


ANY_ALGORITHM: tuple[Algorithm, ...] = tuple(
    algorithm
    for algorithm in Algorithm
    if algorithm not in (Algorithm.BINOMIAL, Algorithm.SCATTER_GATHER)
)
"""What a library is taken to choose from, unless its topology says so; the others describe
libraries that use them whatever they cost."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One (latency, bandwidth) pair of a link: a protocol, or a piece of a measured fit.

    ``latency_s`` is paid per message, ``bandwidth_bytes_per_s`` is per port and direction.
    """

    name: str
    latency_s: float
    bandwidth_bytes_per_s: float

    def __post_init__(self) -> None:
        if not 0 <= self.latency_s < 1e6:
            raise InputError(
                f"latency {self.latency_s} s", "must be from 0 to 1e6 s", "check its unit"
            )
        if not 1 <= self.bandwidth_bytes_per_s < 1e18:
            raise InputError(
                f"bandwidth {self.bandwidth_bytes_per_s} B/s",
                "must be at least 1 B/s and below 1e18 B/s",
                "check its unit",
            )


@dataclass(frozen=True, slots=True)
class Link:
    """The link that joins an entity of a level to its siblings.

    ``pieces`` holds at least one (latency, bandwidth) pair; a step takes the protocol whose
    time is least.  ``ports`` links of that bandwidth leave each entity (a node's NICs), spread
    evenly over the devices under it.  ``device_bandwidth_bytes_per_s`` caps what one device
    sends over all links of the level; on a ring, torus or full mesh for sends, and for groups
    that span nothing outside it.  ``torus`` holds the dimensions of a torus.
    ``in_switch_members`` is the least group size for which the switch reduces (0: it does not).
    ``measured`` holds pieces that replace the link's own for one collective, as calibration finds
    them.
    """

    kind: LinkKind
    pieces: tuple[Piece, ...]
    ports: int = 1
    device_bandwidth_bytes_per_s: float | None = None
    torus: tuple[int, ...] = ()
    in_switch_members: int = 0
    measured: tuple[tuple[Collective, tuple[Piece, ...]], ...] = ()

    def __post_init__(self) -> None:
        if not self.pieces or any(not pieces for _, pieces in self.measured):
            raise InputError("a link without bandwidth", "needs at least one (latency, bandwidth)")
        if self.kind is not LinkKind.SWITCH and (self.ports != 1 or self.in_switch_members):
            raise InputError(
                f"a {self.kind.value} link with ports or in_switch_reduction",
                "only a switch link has them",
                "remove them, or make the link a switch",
            )
        if (self.kind is LinkKind.TORUS) != bool(self.torus) or any(d < 1 for d in self.torus):
            raise InputError(f"dims {list(self.torus)}", "a torus, and only a torus, has dims >= 1")
        if self.ports < 1:
            raise InputError(f"ports {self.ports}", "must be at least 1")
        draw = self.device_bandwidth_bytes_per_s
        if draw is not None and not 1 <= draw < 1e18:
            raise InputError(f"device bandwidth {draw} B/s", "must be from 1 to 1e18 B/s")
        if self.in_switch_members < 0 or self.in_switch_members == 1:
            raise InputError(
                f"in-switch reduction from {self.in_switch_members} members",
                "a reduction has at least 2 members",
                "give 2 or more, or 0 for none",
            )
        self._check_names()

    def _check_names(self) -> None:
        measured = [collective for collective, _ in self.measured]
        if len(set(measured)) != len(measured):
            raise InputError(
                f"measured {[c.value for c in measured]}",
                "a collective is named twice",
                "merge them",
            )
        for pieces in (self.pieces, *(pieces for _, pieces in self.measured)):
            names = [piece.name for piece in pieces]
            if len(set(names)) != len(names):
                raise InputError(f"protocols {names}", "a name is used twice", "rename one of them")

    def pieces_for(self, collective: Collective | None) -> tuple[Piece, ...]:
        """The pieces that time ``collective`` (None: plain transfers) on this link."""
        return dict(self.measured).get(collective, self.pieces) if collective else self.pieces

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """The largest bandwidth of a port in one direction, over all pieces."""
        every = [*self.pieces, *(p for _, pieces in self.measured for p in pieces)]
        return max(piece.bandwidth_bytes_per_s for piece in every)

    @property
    def latency_s(self) -> float:
        """The smallest latency of a message, over all pieces."""
        every = [*self.pieces, *(p for _, pieces in self.measured for p in pieces)]
        return min(piece.latency_s for piece in every)


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the hierarchy: ``size`` siblings under each entity of the level above."""

    name: str
    size: int
    link: Link

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
        if self.link.torus and math.prod(self.link.torus) != self.size:
            raise InputError(
                f"level {self.name} of size {self.size} with dims {list(self.link.torus)}",
                f"the dims of a torus must multiply to its size, not {math.prod(self.link.torus)}",
            )


@dataclass(frozen=True, slots=True)
class Topology:
    """A cluster: levels outermost first, and the algorithms its library can run.

    ``library`` names the one algorithm that the library always runs for a collective; for the
    others the fastest of ``algorithms`` is taken.
    """

    name: str
    levels: tuple[Level, ...]
    algorithms: tuple[Algorithm, ...] = ANY_ALGORITHM
    description: str = ""
    sources: tuple[str, ...] = ()
    library: tuple[tuple[Collective, Algorithm], ...] = ()

    def __post_init__(self) -> None:
        names = [level.name for level in self.levels]
        if not self.name:
            raise InputError("a topology without a name", "needs one", "give a short text")
        if not self.algorithms or len(set(self.algorithms)) != len(self.algorithms):
            shown = [algorithm.value for algorithm in self.algorithms]
            raise InputError(f"algorithms {shown}", "name at least one, each once", "edit the list")
        if len(dict(self.library)) != len(self.library):
            shown = [collective.value for collective, _ in self.library]
            raise InputError(f"library {shown}", "a collective is named twice", "keep one of them")
        if not 1 <= len(names) <= MAX_LEVELS:
            raise InputError(f"{len(names)} levels", f"a topology has 1 to {MAX_LEVELS} levels")
        if len(set(names)) != len(names):
            raise InputError(f"levels {names}", "a level name is used twice", "rename one of them")
        if self.devices > MAX_DEVICES:
            raise InputError(f"{self.devices} devices", f"at most {MAX_DEVICES} are supported")
        for j, level in enumerate(self.levels):
            under, ports = self.devices_under(j), level.link.ports
            if under % ports and ports % under:
                raise InputError(
                    f"level {level.name} with {ports} ports over {under} devices",
                    "ports must spread evenly: one number must divide the other",
                )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Level sizes, outermost first."""
        return tuple(level.size for level in self.levels)

    @property
    def names(self) -> tuple[str, ...]:
        """Level names, outermost first."""
        return tuple(level.name for level in self.levels)

    @property
    def known_algorithms(self) -> frozenset[Algorithm]:
        """Every algorithm that some collective may run by."""
        return frozenset(self.algorithms) | {algorithm for _, algorithm in self.library}

    def running(self, algorithms: tuple[Algorithm, ...]) -> Topology:
        """The same cluster with a library that runs every collective by one of these."""
        return replace(self, algorithms=algorithms, library=())

    @property
    def devices(self) -> int:
        """Number of devices: the product of the level sizes."""
        return math.prod(self.sizes)

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
        if first.link.torus:
            raise InputError(
                f"{self.name}:{size}",
                f"the outermost level {first.name} is a torus with fixed dims",
                "write a topology file with other dims",
            )
        return replace(self, levels=(replace(first, size=size), *self.levels[1:]))

    def with_bandwidth_factor(self, level: int, factor: float) -> Topology:
        """The same cluster with every bandwidth of one level multiplied by ``factor``.

        No bandwidth falls below one byte per second, the least that a link can have.
        """
        if not 0 < factor < math.inf:
            raise InputError(f"bandwidth factor {factor}", "must be positive and finite")
        old = self.levels[level]
        link = _scaled_link(old.link, factor)
        levels = list(self.levels)
        levels[level] = replace(old, link=link)
        return replace(self, levels=tuple(levels))


def _scaled_link(link: Link, factor: float) -> Link:
    def scale(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        return tuple(
            replace(p, bandwidth_bytes_per_s=max(1.0, p.bandwidth_bytes_per_s * factor))
            for p in pieces
        )

    draw = link.device_bandwidth_bytes_per_s
    return replace(
        link,
        pieces=scale(link.pieces),
        measured=tuple((c, scale(pieces)) for c, pieces in link.measured),
        device_bandwidth_bytes_per_s=None if draw is None else draw * factor,
    )
