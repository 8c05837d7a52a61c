"""What if one thing of a cluster were another: links twice as fast, other hosts, more memory.

A change is a text: ``leaf*2`` (every bandwidth of a level), ``leaf=3`` (entities of a level),
``hosts=30`` (nodes), ``memory=141GB`` (of a device).  A level's name wins over such a word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2smt.cluster.allocation import allocated
from p2smt.cluster.topology import Topology
from p2smt.cluster.trimmed import trimmed
from p2smt.errors import InputError
from p2smt.units import parse_bytes, parse_count

HOSTS, MEMORY, BATCH = "hosts", "memory", "batch"
KEYWORDS = (HOSTS, MEMORY, BATCH)
MAX_CHANGES = 8
"""As many as the first screen has room for."""
MAX_FACTOR = 10**6
_FACTOR = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_CHANGE = re.compile(r"\s*([^*=]*?)\s*([*=])\s*(.*?)\s*", re.DOTALL)
_EXAMPLES = {HOSTS: "hosts=30", MEMORY: "memory=141GB", BATCH: "batch=2048"}
_NEAR = 3
"""Numbers of hosts that are named where another one fills no whole switches."""


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """A change and the clusters that it may mean: several where it leaves open which hosts go.

    ``memory_bytes``: of a device, ``sequences``: of a batch, and ``hosts``: how many there are,
    where the change says these.
    """

    text: str
    topologies: tuple[Topology, ...]
    memory_bytes: int | None = None
    sequences: int | None = None
    hosts: int | None = None


def parse_changes(
    texts: Sequence[str],
    topology: Topology,
    words: Collection[str] = KEYWORDS,
    *,
    even: bool = True,
) -> tuple[ClusterChange, ...]:
    """The changes of texts such as ``leaf*2``; ``words`` are those that have a meaning to who asks.

    ``even``: so many hosts must fill every switch alike.

    Raises:
        InputError: one is none of this topology, is given twice, or there are too many.
    """
    if len(texts) > MAX_CHANGES:
        given = f"--what-if: {len(texts)} changes"
        raise InputError(given, f"at most {MAX_CHANGES} are answered at a time", "ask in two goes")
    for text in texts:
        if texts.count(text) > 1:
            raise InputError(f"--what-if {text[:60]!r}", "is given twice", "give it once")
    return tuple(parse_change(text, topology, words, even=even) for text in texts)


def parse_change(
    text: str, topology: Topology, words: Collection[str] = KEYWORDS, *, even: bool = True
) -> ClusterChange:
    """What a text changes; ``words`` and ``even`` as in :func:`parse_changes`.

    Raises:
        InputError: it names neither a level nor one of these, or its value cannot be.
    """
    parts = _CHANGE.fullmatch(text)
    name, sign, value = parts.groups() if parts else (text.strip(), "", "")
    given = f"--what-if {text[:60]!r}"
    match (name in topology.names, sign, name):
        case (True, "*", _):
            return ClusterChange(text, (_faster(topology, name, value, given),))
        case (True, "=", _):
            return ClusterChange(text, (_sized(topology, name, parse_count(value, given), given),))
        case (_, "=", "hosts") if HOSTS in words:
            count = parse_count(value, given)
            return ClusterChange(text, _hosts(topology, count, given, even), hosts=count)
        case (_, "=", "memory") if MEMORY in words:
            return _memory(text, topology, _positive_bytes(value, given))
        case (_, "=", "batch") if BATCH in words:
            return ClusterChange(text, (topology,), sequences=parse_count(value, given))
    raise _unknown(given, name, topology, words)


def first_listed(change: ClusterChange, topology: Topology, listed: Sequence[str]) -> ClusterChange:
    """A change to so many hosts of a job as one to the first of those listed; to more of them than
    are listed, with others behind."""
    if change.hosts is None or topology.hosts is None:
        return change
    others = (name for name in topology.hosts.names if name not in listed)
    return replace(change, topologies=(allocated(topology, [*listed, *others][: change.hosts]),))


def _unknown(given: str, name: str, topology: Topology, words: Collection[str]) -> InputError:
    """What may be changed, by its names."""
    first, levels = topology.names[0], ", ".join(topology.names)
    if name in topology.names:
        return InputError(given, "does not say what it changes", f"write {name}*2 or {name}=3")
    if name in words:
        return InputError(given, f"{name} takes a number", f"write it like {_EXAMPLES[name]}")
    others = f"; else {', '.join(_EXAMPLES[word] for word in words)}" if words else ""
    remedy = f"levels are {levels} (bandwidth: {first}*2, number: {first}=2){others}"
    return InputError(given, f"names no level of {topology.name[:60]}", remedy)


def _faster(topology: Topology, name: str, value: str, given: str) -> Topology:
    factor = float(value) if _FACTOR.fullmatch(value) else 0.0
    if not 1 / MAX_FACTOR <= factor <= MAX_FACTOR:
        raise InputError(given, "has no factor of a bandwidth", f"write it like {name}*2 or *0.5")
    return topology.with_bandwidth_factor(topology.names.index(name), factor)


def _sized(topology: Topology, name: str, size: int, given: str) -> Topology:
    """The topology with so many entities of a level: the first of each, or more outermost ones."""
    level = topology.names.index(name)
    if size <= topology.sizes[level]:
        return _trimmed(topology, name, size, given)
    if level:
        rule = f"a {topology.names[level - 1]} has {topology.sizes[level]} of them"
        raise InputError(given, rule, "only the outermost level can grow")
    return topology.with_outermost(size)


def _trimmed(topology: Topology, name: str, size: int, given: str) -> Topology:
    try:
        return trimmed(topology, {name: size})
    except InputError as error:
        raise InputError(given, error.rule, error.remedy) from None


def _positive_bytes(value: str, given: str) -> int:
    try:
        return parse_bytes(value, given)
    except InputError:
        rule = "must be more than 0 of a device, with a unit"
        raise InputError(given, rule, f"write it like {_EXAMPLES[MEMORY]}") from None


def _memory(text: str, topology: Topology, size_bytes: int) -> ClusterChange:
    device = replace(topology.known_device, memory_bytes=size_bytes)
    return ClusterChange(text, (replace(topology, device=device),), memory_bytes=size_bytes)


# So many hosts: of those that a topology names some, else as many nodes.


def _hosts(topology: Topology, count: int, given: str, even: bool) -> tuple[Topology, ...]:
    """The clusters of so many hosts in which every switch has equally many; else the whole."""
    named = topology.hosts
    if named is not None and count > len(named.names):
        rule = f"{topology.name[:60]} names {len(named.names)}"
        raise InputError(given, rule, "name more in its file")
    if not even:
        return (topology,)
    shapes = _shapes(topology.sizes[: topology.node_level + 1], count, grow=named is None)
    made = _grown if named is None else _first_hosts
    if found := tuple(made(topology, shape) for shape in shapes):
        return found
    rule = f"so many hosts do not fill the levels {', '.join(topology.names)} evenly"
    raise InputError(given, rule, f"give {_near(topology, count)}")


def _shapes(sizes: tuple[int, ...], count: int, *, grow: bool) -> Iterator[tuple[int, ...]]:
    """Numbers of entities of each level that come to so many nodes, each level as it is or less.

    The outermost may ``grow``; then it alone changes where that suffices.
    """
    inner = math.prod(sizes[1:])
    if grow and count % inner == 0:
        yield (count // inner, *sizes[1:])
        return
    yield from _factored(sizes, count)


def _factored(sizes: tuple[int, ...], count: int) -> Iterator[tuple[int, ...]]:
    if not sizes:
        if count == 1:
            yield ()
        return
    for size in range(min(sizes[0], count), 0, -1):
        if count % size == 0:
            yield from ((size, *rest) for rest in _factored(sizes[1:], count // size))


def _grown(topology: Topology, shape: tuple[int, ...]) -> Topology:
    if shape[0] > topology.sizes[0]:
        return topology.with_outermost(shape[0])
    return trimmed(topology, dict(zip(topology.names, shape, strict=False)))


def _first_hosts(topology: Topology, shape: tuple[int, ...]) -> Topology:
    """The part with the first so many entities of each: in a regular cluster all are alike."""
    hosts, sizes = topology.hosts, topology.sizes[: topology.node_level + 1]
    if hosts is None:
        return topology
    paths = np.unravel_index(hosts.slots, sizes)
    kept = np.all([path < most for path, most in zip(paths, shape, strict=True)], axis=0)
    return allocated(topology, [name for name, one in zip(hosts.names, kept, strict=True) if one])


def _near(topology: Topology, count: int) -> str:
    """Numbers of hosts nearby that do."""
    sizes, named = topology.sizes[: topology.node_level + 1], topology.hosts is not None
    most = len(topology.hosts.names) if topology.hosts else 2 * count + math.prod(sizes)
    able = [n for n in range(1, most + 1) if next(_shapes(sizes, n, grow=not named), None)]
    return " or ".join(map(str, sorted(sorted(able, key=lambda n: abs(n - count))[:_NEAR])))
