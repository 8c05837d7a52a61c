"""The part of a cluster that a job got: some of its hosts, under what is left of its switches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from p2smt.cluster.hosts import Hosts, Uplink
from p2smt.cluster.link import MPI_ALGORITHMS
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError, did_you_mean


def as_known(names: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """The names as they are known: with a domain or without, where only one of both has it.

    Names that are not known so stay as they are.
    """
    short: dict[str, list[str]] = {}
    for host in known:
        short.setdefault(host.partition(".")[0], []).append(host)
    every = set(known)

    def found(name: str) -> str:
        bare, _, domain = name.partition(".")
        alike = [host for host in short.get(bare, ()) if not domain or host == bare]
        return alike[0] if name not in every and len(alike) == 1 else name

    return tuple(map(found, names))


def allocated(topology: Topology, names: Sequence[str], remedy: str = "") -> Topology:
    """The topology with these hosts alone, its levels as large as the fullest entity needs.

    Hosts keep the order that they have in the topology, whatever that of ``names``; switches
    without hosts go, levels stay, also those of one entity.  ``remedy``: what helps where one is
    lacking, if it is not known from the names.

    Raises:
        InputError: the topology names no hosts, lacks one, or one is given twice.
    """
    hosts = topology.hosts
    if hosts is None:
        rule = "names no hosts, so they cannot be found in it"
        remedy = "p2smt topology import makes one that does, or write hosts: in its file"
        raise InputError(f"topology {topology.name}", rule, remedy)
    place = dict(zip(hosts.names, hosts.slots, strict=True))
    for name in names:
        if name in hosts.left_out:
            rule = f"{topology.name} does not say where it is: it is under two switches, or none"
            raise InputError(f"host {name[:80]!r}", rule, "place it in that file, under one")
        if name not in place:
            alike = did_you_mean(name, hosts.names) or f"it has {', '.join(hosts.names[:3])}, .."
            rule = f"is not in {topology.name}"
            raise InputError(f"host {name[:80]!r}", rule, remedy or alike)
    chosen = Hosts(_in_order(names, place), tuple(sorted(place[name] for name in names)))
    return _fitted(topology, hosts, chosen)


def _in_order(names: Sequence[str], place: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(names, key=place.__getitem__))


def _fitted(topology: Topology, hosts: Hosts, chosen: Hosts) -> Topology:
    """The topology with the chosen hosts, moved to the first places of what holds them."""
    outer = topology.sizes[: topology.node_level + 1]
    paths = [_digits(slot, outer) for slot in chosen.slots]
    moved, sizes = _packed(paths, len(outer))
    slots = tuple(_number(path, sizes) for path in moved)
    switches, uplinks = [], []
    for j in range(len(outer)):
        entities = {
            _number(new[: j + 1], sizes): _number(old[: j + 1], outer)
            for old, new in zip(paths, moved, strict=True)
        }
        if j < len(hosts.switches):
            switches.append(_names(hosts.switches[j], entities, sizes[: j + 1]))
        rates = {u.entity: u.bandwidth_bytes_per_s for u in hosts.uplinks if u.level == j}
        uplinks += [Uplink(j, new, rates[old]) for new, old in entities.items() if old in rates]
    levels = [
        replace(level, size=size)
        for level, size in zip(topology.levels[: len(outer)], sizes, strict=True)
    ]
    found = replace(
        chosen, slots=slots, switches=tuple(switches), uplinks=tuple(uplinks), assumed=hosts.assumed
    )
    return replace(topology, levels=(*levels, *topology.levels[len(outer) :]), hosts=found)


def _digits(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return tuple(reversed(digits))


def _number(digits: Sequence[int], sizes: Sequence[int]) -> int:
    number = 0
    for digit, size in zip(digits, sizes, strict=False):
        number = number * size + digit
    return number


def _packed(paths: list[tuple[int, ...]], depth: int) -> tuple[list[tuple[int, ...]], list[int]]:
    """Ascending paths with the children of each entity numbered from 0, and the most of a level."""
    children: list[dict[tuple[int, ...], int]] = [{} for _ in range(depth)]
    count: Counter[tuple[int, ...]] = Counter()
    for path in paths:
        for j in range(depth):
            if path[: j + 1] not in children[j]:
                children[j][path[: j + 1]] = count[path[:j]]
                count[path[:j]] += 1
    moved = [tuple(children[j][path[: j + 1]] for j in range(depth)) for path in paths]
    return moved, [1 + max(of.values()) for of in children]


def _names(names: Sequence[str], entities: dict[int, int], sizes: Sequence[int]) -> tuple[str, ...]:
    found = [""] * math.prod(sizes)
    for new, old in entities.items():
        found[new] = names[old]
    return tuple(found)


# Whether a cluster of named hosts is as regular as a parallelism matrix needs it to be.


# Whether uplinks can be the bottleneck: where none can, every order of hosts is as fast.


def blocking_levels(topology: Topology) -> tuple[str, ...]:
    """The levels outside the nodes of which some uplink is slower than its nodes together.

    Counted are the nodes that are there by name; a topology without names has none.
    """
    hosts, depth = topology.hosts, topology.node_level
    if hosts is None:
        return ()
    node_rate = _rate(topology, depth)
    found = []
    for j, level in enumerate(topology.levels[:depth]):
        under = math.prod(topology.sizes[j + 1 : depth + 1])
        parts, rate = topology.uplink_parts(j), _rate(topology, j)
        counts = Counter(slot // under for slot in hosts.slots)
        if any(
            (1 if parts is None else parts[entity]) * rate < count * node_rate * (1 - 1e-9)
            for entity, count in counts.items()
        ):
            found.append(level.name)
    return tuple(found)


def _rate(topology: Topology, level: int) -> float:
    """What the uplink of an entity carries in one direction, at the best of its efficiencies."""
    link = topology.levels[level].link
    return link.ports * link.nominal_bytes_per_s * link.best_efficiency


def unstated_levels(topology: Topology) -> tuple[str, ...]:
    """The levels whose bandwidth nobody stated; where there are any no time means anything.

    A level of one entity carries nothing.
    """
    if topology.hosts is None:
        return ()
    sizes = dict(zip(topology.names, topology.sizes, strict=True))
    return tuple(name for name in topology.hosts.assumed if sizes[name] > 1)


def check_stated(topology: Topology, crossed: Collection[str] | None = None) -> None:
    """Whether times on a topology mean anything, of groups that cross these levels (None: all).

    Raises:
        InputError: nobody stated the bandwidth of some of them.
    """
    unstated = unstated_levels(topology)
    if names := [name for name in unstated if crossed is None or name in crossed]:
        remedy = f"give --uplink {names[-1]}=400GB/s or --oversubscription {names[-1]}=4"
        raise InputError(
            f"the bandwidth of {' and '.join(names)} uplinks in {topology.name}",
            "is not stated, so no time is told",
            f"{remedy} to topology import; solve --hosts and compare order hosts without it",
        )


def check_orders_priced(topology: Topology) -> None:
    """Whether every order of the hosts has a price by the library's own algorithms.

    Those of MPI have none for groups that lie unevenly over the switches above the nodes.

    Raises:
        InputError: the library is one of MPI, and there are several such switches.
    """
    if uneven_note(topology):
        rule = "does not price every order of hosts under several switches, so none is searched for"
        remedy = "order them under --library gloo or none, or take hosts of one switch"
        raise InputError(f"library {topology.library_name}", rule, remedy)


def uneven_note(topology: Topology) -> str:
    """What a library of MPI has no price for on this topology; empty: it has all."""
    library, outer = topology.library, topology.levels[: max(0, topology.node_level)]
    switches = [level.name for level in outer if level.size > 1]
    if library is None or not switches:
        return ""
    runs = (run.algorithm for _, runs in library.runs for run in runs)
    if all(algorithm not in MPI_ALGORITHMS for algorithm in runs):
        return ""
    where = " and ".join(switches)
    what = f"{library.name} has no price for groups that lie unevenly over {where}"
    return f"{what}: any such are priced by other algorithms, and orders of hosts are not searched"
