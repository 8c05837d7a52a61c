"""How well predictions under a library held on the systems that were measured, as data.

The file ``accuracy.yaml`` beside this one has, by library and system
(:func:`p2smt.cost.accuracy.system_name`), classes of payloads with the abs(predicted / measured -
1) that four of five published measurements keep to; it is written by the study that compares all of
them, never by hand:

    nccl-2.30:
      8 x nvlink4 switch 450 GB/s, efa2 400 GB/s:
        - {operation: all-reduce, least: 8 B, most: 64 KiB, error: 0.4, basis: left out}
        - {operation: all-reduce, least: 64 KiB, error: 0.2, basis: in sample}

There is no such class for all systems, nor one for all operations; how far off predictions were
where a system was left out of the fit is under the key ``blind``, in rows of measured / predicted
(quantiles of 10, 50 and 90 % of ``count`` cells), those with the system ``*`` for any other:

    blind:
      - {system: "*", library: "*", basis: assumed, collective: all-reduce, size_class: to 1 MiB,
         count: 20, low: 0.9, median: 1.1, high: 1.6}

The first class that holds a payload counts.  A gain that is smaller than the error says
nothing: whoever measures will not find it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from p2smt.cluster.error_class import Basis, ErrorClass
from p2smt.cluster.error_model import ErrorClassModel, error_class
from p2smt.cluster.topology import Level, Topology
from p2smt.errors import InputError
from p2smt.files.validation import validated
from p2smt.files.yaml_text import Plain, load_yaml, read_text
from p2smt.parallelism.placement import IntArray
from p2smt.units import format_bandwidth

ACCURACY_FILE = Path(__file__).with_name("accuracy.yaml")
BLIND = "blind"
"""The key beside the libraries under which rows say how far off prices are that nobody fitted."""
Classes = tuple[ErrorClass, ...]
Published = Mapping[str, Mapping[str, Classes]]
"""Classes by library and system."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """The error of a part of an answer, and its seconds, which weigh it."""

    seconds: float
    error: float
    basis: Basis


def error_of(
    classes: Sequence[ErrorClass], operation: str, payload_bytes: int
) -> ErrorClass | None:
    """The class of such a payload; None where nothing like it was measured."""
    return next((one for one in classes if one.holds(operation, payload_bytes)), None)


def error_over(parts: Sequence[Weighed]) -> tuple[float, Basis]:
    """The error of a sum of predictions: each part's, weighed by its share of the time.

    As if all parts were off to the same side.  Left out only if all of it was.
    """
    total = sum(one.seconds for one in parts)
    error = sum(one.seconds * one.error for one in parts) / total
    seen = any(one.basis is Basis.IN_SAMPLE for one in parts)
    return error, Basis.IN_SAMPLE if seen else Basis.LEFT_OUT


def published(library: str) -> Mapping[str, Classes]:
    """What is committed of a library's predictions, by system; empty: nothing is."""
    return _committed(ACCURACY_FILE, library) if library else {}


@lru_cache(maxsize=8)
def _committed(path: Path, library: str) -> Mapping[str, Classes]:
    libraries = _mapping(load_yaml(read_text(str(path)), path.name), path.name)
    return _systems(libraries[library], f"{path.name} {library}") if library in libraries else {}


def read_accuracies(text: str, source: str) -> Published:
    """The classes in a YAML text, by library and system.

    Raises:
        InputError: it breaks a rule of the format.
    """
    libraries = _mapping(load_yaml(text, source), source)
    return {
        name: _systems(data, f"{source} {name}")
        for name, data in libraries.items()
        if name != BLIND
    }


def _systems(data: Plain, source: str) -> dict[str, Classes]:
    systems = _mapping(data, source)
    return {name: _classes(rows, f"{source}, {name}") for name, rows in systems.items()}


def _mapping(data: Plain, source: str) -> dict[str, Plain]:
    if not isinstance(data, dict):
        rule = "is no mapping of libraries to systems, and of these to classes"
        raise InputError(source, rule, "p2smt/cost/accuracy.py has an example")
    return data


def _classes(rows: Plain, source: str) -> Classes:
    if not isinstance(rows, list):
        raise InputError(source, "is no list of classes", "write lines that start with a dash")
    found = [validated(ErrorClassModel, row, f"{source} [{n}]") for n, row in enumerate(rows)]
    return tuple(error_class(one) for one in found)


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
    runs = np.cumsum(np.diff(nodes, axis=1, prepend=-1) > 0, axis=1)
    return max(int(np.bincount(row).max()) for row in runs)


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
    node = topology.node_level
    inside = [one for one in topology.levels[node + 1 :] if one.size > 1]
    crossed = [one for one in topology.levels[level : node + 1] if one.size > 1]
    if any(not one.link.fabric for one in (*inside, *crossed)):
        return ""
    devices = math.prod(level.full_size for level in topology.levels[node + 1 :])
    local = local or math.prod(topology.sizes[node + 1 :])
    part = f"{local} of " if local < devices else ""
    links = " and ".join(f"{one.link.fabric} {one.link.kind.value} {_rate(one)}" for one in inside)
    networks = [f"{one.link.fabric} {_rate(one)}" for one in reversed(crossed)]
    return ", ".join((f"{part}{devices} x {links}" if inside else f"{devices} device", *networks))


def _rate(level: Level) -> str:
    return format_bandwidth(level.link.ports * level.link.nominal_bytes_per_s)
