"""Reads an ASTRA-sim network file."""

from __future__ import annotations

import math
import re

from p2smt.cluster.topology import MAX_DEVICES, MAX_LEVELS
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.files.yaml_text import Plain, load_yaml
from p2smt.interop.clusters.astra_sim.dimensions import KINDS, Dimension, level_of
from p2smt.interop.clusters.facts import ClusterFormat, Facts

_KEYS = ("topology", "npus_count", "bandwidth", "latency")
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?")
_HEAD = 64 * 1024


def is_astra_sim(text: str) -> bool:
    """Whether a text looks like one."""
    return bool(re.search(r"^[ \t]*[\"']?npus_count[\"']?[ \t]*:", text[:_HEAD], re.M))


def read_astra_sim(text: str, source: str) -> Facts:
    """The levels in a network file, named dim1 (the innermost), dim2, ..

    Raises:
        InputError: it is malformed, or of more levels or devices than a topology may have.
    """
    found = dimensions_in(text, source)
    levels, under = [], 1
    for number, dimension in enumerate(found, 1):
        levels.append(level_of(dimension, f"dim{number}", under))
        under *= dimension.size
    return Facts(source, whole=tuple(reversed(levels)))


def dimensions_in(text: str, source: str) -> list[Dimension]:
    """The dimensions of a network file, the innermost first."""
    lists = _lists(load_yaml(text, source), source)
    kinds, sizes, rates, latencies = (lists[key] for key in _KEYS)
    found = [
        Dimension(
            KINDS[_kind(kind, f"{source}: topology[{i}]")],
            _size(size, f"{source}: npus_count[{i}]"),
            _number(rate, f"{source}: bandwidth[{i}]", "GB/s", 1e-9, 1e9) * 1e9,
            _number(latency, f"{source}: latency[{i}]", "ns", 0, 1e15) / 1e9,
        )
        for i, (kind, size, rate, latency) in enumerate(
            zip(kinds, sizes, rates, latencies, strict=True)
        )
    ]
    devices = math.prod(dimension.size for dimension in found)
    if devices > MAX_DEVICES:
        raise InputError(f"{source}: {devices} NPUs", f"at most {MAX_DEVICES} are supported")
    return found


def _lists(data: Plain, source: str) -> dict[str, list[Plain]]:
    if not isinstance(data, dict):
        raise InputError(source, f"must be a mapping with {', '.join(_KEYS)}", "correct the file")
    for key in data:
        if key not in _KEYS:
            remedy = did_you_mean(key, _KEYS) or f"its keys are {', '.join(_KEYS)}"
            raise InputError(f"{source}: key {key[:40]!r}", "is none of a network file", remedy)
    found: dict[str, list[Plain]] = {}
    for key in _KEYS:
        value = data.get(key)
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_LEVELS:
            rule = f"must be a list with an entry for each of 1 to {MAX_LEVELS} dimensions"
            raise InputError(f"{source}: {key}", rule, f"write {key}: [ .. ]")
        found[key] = value
    counts = {key: len(value) for key, value in found.items()}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{key} {count}" for key, count in counts.items())
        raise InputError(f"{source}: {shown}", "must have as many entries each", "correct it")
    return found


def _kind(value: Plain, where: str) -> str:
    if not isinstance(value, str) or value not in KINDS:
        remedy = did_you_mean(str(value)[:40], tuple(KINDS)) or "pick one"
        rule = f"must be one of {', '.join(KINDS)}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule, remedy)
    return value


def _size(value: Plain, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 2 <= value <= MAX_DEVICES:
        rule = f"must be a whole number from 2 to {MAX_DEVICES}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule)
    return value


def _number(value: Plain, where: str, unit: str, low: float, high: float) -> float:
    """A number; those with a fraction come as text."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    found = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not low <= found <= high:
        rule = f"must be a number of {unit} from {low:g} to {high:g}"
        raise InputError(f"{where}: {str(value)[:40]!r}", rule, "check its unit")
    return found


ASTRA_SIM = ClusterFormat("ASTRA-sim network YAML", is_astra_sim, read_astra_sim)
