"""What is known of a price: a range that the measured time lies in, and what that rests on.

The file ``accuracy.yaml`` beside this one has, under the key ``blind``, how far off predictions
were of systems that were left out of the fit whole: rows of measured / predicted (quantiles of 10,
50 and 90 % of ``count`` cells) by system (:func:`system_name`), library, collective and class of
payloads, those with the system ``*`` of any other.  Studies write it, never hands:

    blind:
      - {system: "8 x nvlink4 switch 450 GB/s, efa2 400 GB/s", library: nccl-2.30, basis: fitted,
         collective: all-reduce, size_class: to 1 MiB, count: 12, low: 0.8, median: 1, high: 1.2}
      - {system: "*", library: "*", basis: assumed, collective: "*", size_class: to 1 MiB,
         count: 90, low: 0.6, median: 1, high: 1.6}

Under ``both`` it has of which two algorithms tables of a system have the first faster:

    both:
      - {system: "8 x nvlink4 switch 450 GB/s", library: nccl-2.30, collective: all-reduce,
         size_class: above, faster: tree, slower: ring}

A row of the system itself counts, else one of any system: of the library and the collective, of the
collective, of the library, of neither, the first that there is.  A calibrated topology has errors
of its own.  The range of a sum is the sum of the lows to the sum of the highs: the same constants
are wrong together, so that no part makes up for another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.topology import Level, Topology
from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray
from p2smt.units import format_bandwidth, format_bytes, format_time_range

ACCURACY_FILE = Path(__file__).with_name("accuracy.yaml")
BLIND = "blind"
"""The key under which rows say how far off prices are of systems that were left out."""
BOTH = "both"
"""The key under which rows say which of two algorithms tables have faster."""
ANY = "*"
SIZE_CLASSES = (
    ("below 64 KiB", 2**16),
    ("to 1 MiB", 2**20),
    ("to 64 MiB", 2**26),
    ("above", math.inf),
)
"""Classes of payloads by name, each with the bytes below which its payloads are."""

PIPELINED = "no table measures a pipelined collective"
TEXTBOOK = "no library runs here"
CHANGED = "the file has costs of its own"
PARTS = "the calibration measured whole nodes, not parts"
UNMEASURED = "the calibration has no errors of this library with these algorithms"
RESTRICTED = "tables are of the library's own choice"


class PriceBasis(Enum):
    """What a price rests on, the firmest first."""

    MEASURED = "measured here"  # a calibration of this very cluster
    FITTED = "fitted here"  # tables of this system are among those that the constants fit
    LIKE = "fitted on a like system"  # tables of other systems with the same fabrics are
    ASSUMED = "assumed"


FIRMEST_FIRST = tuple(PriceBasis)


@dataclass(frozen=True, slots=True)
class PriceRange:
    """A predicted time with the range that the measured one lies in, four times of five.

    ``why`` says in words why it rests on no more than its ``basis``; empty: nothing to say.
    """

    seconds: float
    low_s: float
    high_s: float
    basis: PriceBasis
    why: str = ""

    @property
    def known(self) -> str:
        """What it rests on."""
        return f"{self.basis.value}, {self.why}" if self.why else self.basis.value

    @property
    def text(self) -> str:
        """The range and what it rests on, for people: ``0.7 to 1.1 ms: fitted here``."""
        return f"{self.ends}: {self.known}"

    @property
    def ends(self) -> str:
        """The range alone, which holds the predicted time also as it is rounded."""
        return format_time_range(self.low_s, self.high_s, self.seconds)

    def times(self, factor: float) -> PriceRange:
        """So many executions."""
        ends = (self.seconds * factor, self.low_s * factor, self.high_s * factor)
        return PriceRange(*ends, self.basis, self.why)

    def clearly_below(self, other: PriceRange) -> bool:
        """Whether the difference exceeds both ranges: neither reaches the other's prediction.

        The same constants make both prices, so that ranges may overlap where this holds.
        """
        return self.high_s < other.seconds and self.seconds < other.low_s


def summed(parts: Sequence[PriceRange]) -> PriceRange | None:
    """The range of a sum, low with low and high with high; it is as firm as its weakest part.

    None: of nothing.
    """
    return _together(parts, sum, max(parts, key=_weakest)) if parts else None


def largest(parts: Sequence[PriceRange]) -> PriceRange | None:
    """The range of the largest of some times, on what that one rests."""
    return _together(parts, max, max(parts, key=lambda one: one.seconds)) if parts else None


def _weakest(one: PriceRange) -> tuple[int, float]:
    return FIRMEST_FIRST.index(one.basis), one.seconds


def _together(
    parts: Sequence[PriceRange], how: Callable[[Iterator[float]], float], rests: PriceRange
) -> PriceRange:
    ends = (how(one.seconds for one in parts), how(one.low_s for one in parts))
    return PriceRange(*ends, how(one.high_s for one in parts), rests.basis, rests.why)


@dataclass(frozen=True, slots=True)
class PricedStep:
    """What a price is of: an operation with a payload, the outermost level that its groups cross,
    and how many members they have in a node (0: all its devices)."""

    operation: str
    payload_bytes: int
    seconds: float
    level: int
    local: int


def price_range(topology: Topology, step: PricedStep) -> PriceRange:
    """The range of a price on a topology; the price itself lies in it, where a system is slower
    than all that is predicted for it, too."""
    basis, why, own = _basis(topology, step)
    low, high = own or _of_any(_rows(ACCURACY_FILE), topology.library_name, step)
    ends = (min(low, 1) * step.seconds, max(high, 1) * step.seconds)
    return PriceRange(step.seconds, *ends, basis, why)


def range_of_others(topology: Topology, step: PricedStep) -> PriceRange:
    """The range of what is none of the library's own collectives, such as a schedule.

    That of the library's collective for the same, which measured tables are of: it rests on no
    more than a like system.
    """
    found = price_range(topology, step)
    if found.basis is PriceBasis.ASSUMED:
        return found
    return replace(found, basis=PriceBasis.LIKE, why=RESTRICTED)


def measured_faster(topology: Topology, step: PricedStep, one: str, other: str) -> bool | None:
    """Whether tables of such a system have one algorithm faster than another; None: none has both.

    They are of the step's class of payloads, on as many nodes as somebody measured.
    """
    system = system_name(topology, step.level, step.local)
    place = (system, topology.library_name, step.operation, size_class(step.payload_bytes))
    both = _rows(ACCURACY_FILE).both
    return True if (*place, one, other) in both else False if (*place, other, one) in both else None


_Ends = tuple[float, float]
FEW_CELLS = 4
"""A row of fewer measurements says no more than that of any system, which it widens."""
_Found = tuple[PriceBasis, str, _Ends | None]


def _basis(topology: Topology, step: PricedStep) -> _Found:
    """What a price rests on, why on no more, and the errors of this system where there are some."""
    if topology.calibrated:
        own = _calibrated(topology, step)
        if isinstance(own, str):
            return PriceBasis.ASSUMED, own, None
        seen = "" if own.basis is Basis.LEFT_OUT else own.basis.value
        return PriceBasis.MEASURED, seen, own.ratios
    if not topology.library:
        return PriceBasis.ASSUMED, TEXTBOOK, None
    if topology.fitted:
        return PriceBasis.ASSUMED, CHANGED, None
    return _published(topology, step)


def _calibrated(topology: Topology, step: PricedStep) -> ErrorClass | str:
    """The error that the calibrated file has, or what was not measured."""
    if not topology.errors:
        return PARTS if any(level.whole for level in topology.levels) else UNMEASURED
    name = topology.names[step.level]
    mine = [one for level, one in topology.errors if level == name]
    if all(one.operation != step.operation for one in mine):
        return f"the calibration measured no {step.operation} over level {name}"
    found = next((one for one in mine if one.holds(step.operation, step.payload_bytes)), None)
    what = f"{step.operation} of {format_bytes(step.payload_bytes)}"
    return found or f"the calibration measured no {what} over level {name}"


def _published(topology: Topology, step: PricedStep) -> _Found:
    """What published tables say: of the system itself, or of others with its fabrics."""
    rows, system = _rows(ACCURACY_FILE), system_name(topology, step.level, step.local)
    library, size = topology.library_name, size_class(step.payload_bytes)
    own = rows.ends.get((system, library, step.operation, size))
    if own is not None and (system, library, step.operation, size) in rows.few:
        low, high = _of_any(rows, library, step)
        own = min(own[0], low), max(own[1], high)
    given = bool(topology.restricted or topology.best or topology.overrides)
    if own is not None:
        return (PriceBasis.LIKE, RESTRICTED, own) if given else (PriceBasis.FITTED, "", own)
    fabrics = {one.link.fabric for one in used_levels(topology, step.level)}
    if not system or not fabrics <= rows.fabrics.get(family(library), frozenset()):
        if family(library) not in rows.fabrics:
            return PriceBasis.ASSUMED, f"no table of {library or 'this library'}", None
        return PriceBasis.ASSUMED, "no table of this fabric", None
    return PriceBasis.LIKE, RESTRICTED if given else "", None


# The committed rows.


_Place = tuple[str, str, str, str]
_REMEDY = "write it anew with make accuracy"


@dataclass(frozen=True, slots=True)
class BlindRows:
    """Low and high of measured / predicted by (system, library, collective, class of payloads),
    which of these are of few cells, and the words of systems that have rows, the fabrics among
    them, by family of libraries.  ``both``: such places, each with the faster and the slower of two
    algorithms."""

    ends: Mapping[_Place, _Ends]
    few: frozenset[_Place]
    fabrics: Mapping[str, frozenset[str]]
    both: frozenset[tuple[str, ...]] = frozenset()


def family(library: str) -> str:
    """What versions of a library have in common: they share what was fitted."""
    return library.partition("-")[0]


def size_class(payload_bytes: float) -> str:
    """The class of a payload."""
    return next(name for name, below in SIZE_CLASSES if payload_bytes < below)


def _of_any(rows: BlindRows, library: str, step: PricedStep) -> _Ends:
    """The row of any system that is nearest; without one, what all rows lie in."""
    size = size_class(step.payload_bytes)
    for collective in (step.operation, ANY):
        for one in (library, ANY):
            if (found := rows.ends.get((ANY, one, collective, size))) is not None:
                return found
    return min(low for low, _ in rows.ends.values()), max(high for _, high in rows.ends.values())


@lru_cache(maxsize=8)
def _rows(path: Path) -> BlindRows:
    from p2smt.files.yaml_text import read_text  # YAML, which most commands do without

    return read_blind(read_text(str(path)), path.name)


def read_blind(text: str, source: str) -> BlindRows:
    """The rows in a YAML text.

    Raises:
        InputError: it has none, or one lacks a key, has another class of payloads, or a low that is
            not positive or above its high.
    """
    from p2smt.files.yaml_text import load_yaml

    data = load_yaml(text, source)
    rows = _list(data, BLIND)
    if not rows:
        rule = f"has no list of rows under {BLIND}"
        raise InputError(source, rule, "p2smt/cost/accuracy.py has an example")
    found = [_row(row, f"{source}, row {n}") for n, row in enumerate(rows, 1)]
    fabrics: dict[str, frozenset[str]] = {}
    for (system, library, _, _), _, _ in found:
        words = frozenset(system.replace(",", " ").split()) if system != ANY else frozenset()
        fabrics[family(library)] = fabrics.get(family(library), frozenset()) | words
    few = frozenset(place for place, count, _ in found if count < FEW_CELLS)
    both = frozenset(_both(row, source) for row in _list(data, BOTH))
    return BlindRows({place: ends for place, _, ends in found}, few, fabrics, both)


def _list(data: Any, key: str) -> list[Any]:
    rows = data.get(key) if isinstance(data, dict) else None
    return rows if isinstance(rows, list) else []


def _both(row: Any, source: str) -> tuple[str, ...]:
    keys = ("system", "library", "collective", "size_class", "faster", "slower")
    try:
        return tuple(str(row[key]) for key in keys)
    except (KeyError, TypeError):
        raise InputError(f"{source}, {BOTH}", f"a row needs {', '.join(keys)}", _REMEDY) from None


def _row(row: Any, source: str) -> tuple[_Place, int, _Ends]:
    try:
        count, low, high = int(row["count"]), float(row["low"]), float(row["high"])
        place = (row["system"], row["library"], row["collective"], row["size_class"])
    except (KeyError, TypeError, ValueError):
        rule = "needs system, library, collective, size_class, and the numbers count, low and high"
        raise InputError(source, rule, _REMEDY) from None
    if place[3] not in dict(SIZE_CLASSES) or not 0 < low <= high < math.inf:
        rule = "has no such class of payloads, or a low that is not positive or above its high"
        raise InputError(source, rule, _REMEDY)
    return place, count, (low, high)


# What published measurements are of: the hardware of a group of devices, as the model sees it.


def outermost_crossed(topology: Topology, groups: IntArray) -> int | None:
    """Index of the outermost level whose links some group uses; None: groups of one device.

    ``groups`` has the device ids of a group in each row.
    """
    for level in range(len(topology.levels)):
        entities = groups // topology.devices_under(level)
        if np.any(entities != entities[:, :1]):
            return level
    return None


def most_in_node(topology: Topology, groups: IntArray) -> int:
    """The largest number of members that a group has in one node."""
    nodes = np.sort(groups // topology.devices_under(topology.node_level), axis=1)
    first = np.ones(nodes.shape, dtype=bool)
    first[:, 1:] = nodes[:, 1:] != nodes[:, :-1]
    return int(np.bincount(np.cumsum(first)).max())


def system_name(topology: Topology, level: int, local: int = 0) -> str:
    """The hardware of groups that cross no level outside this one, such as

        8 x nvlink4 switch 450 GB/s, infiniband 400 GB/s

    How many devices a node has, and what joins them (the rate of one); then, of groups over
    several nodes, each network level that they cross, the innermost first (the rate of a node, or
    of what that level joins).  Groups of fewer members in a node (``local``; 0: all devices) are
    named apart, ``2 of 8 x ..``: they share its links and cards with others.  So are those on a
    node of which a part is used: its links are whole, its cards those that the part reaches.
    Empty: a link does not say its fabric, so nobody knows what it is.
    """
    node, used = topology.node_level, used_levels(topology, level)
    if any(not one.link.fabric for one in used):
        return ""
    inside = [one for one in topology.levels[node + 1 :] if one.size > 1]
    crossed = used[: len(used) - len(inside)]
    devices = math.prod(level.full_size for level in topology.levels[node + 1 :])
    local = local or math.prod(topology.sizes[node + 1 :])
    part = f"{local} of " if local < devices else ""
    wires = [one for one, below in zip_longest(inside, inside[1:]) if not one.groups_those(below)]
    links = " and ".join(f"{one.link.fabric} {one.link.kind.value} {_rate(one)}" for one in wires)
    networks = [f"{one.link.fabric} {_rate(one)}" for one in reversed(crossed)]
    return ", ".join((f"{part}{devices} x {links}" if inside else f"{devices} device", *networks))


def used_levels(topology: Topology, level: int) -> list[Level]:
    """The levels whose links groups use that cross no level outside this one, outermost first."""
    first = min(level, topology.node_level + 1)
    return [one for one in topology.levels[first:] if one.size > 1]


def _rate(level: Level) -> str:
    return format_bandwidth(level.link.ports * level.link.nominal_bytes_per_s)
