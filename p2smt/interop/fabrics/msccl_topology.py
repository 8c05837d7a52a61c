"""Topologies of msccl-tools as JSON: ``links[target][source]`` and ``switches``.

A link is the number of chunks that it carries in a round, 0 where there is none.  A switch is a
list of sources, targets, bandwidth and name: what goes from any of these sources to any of these
targets shares its bandwidth, beside that of the link.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from p2smt.cluster.fabric.fabric import MAX_RANKS, Capacity, Fabric, FabricEdge
from p2smt.errors import InputError

TYPE = "topology"
_FIELDS = ("name", "links", "switches")


def is_msccl_topology(data: object) -> bool:
    """Whether JSON data says that it is such a topology."""
    return isinstance(data, dict) and data.get("msccl_type") == TYPE


def fabric_of_msccl(data: dict[str, Any], source: str) -> Fabric:
    """The fabric of a topology; its bandwidths have no unit.

    Raises:
        InputError: a field is missing or has another shape, or a bandwidth is not positive.
    """
    if missing := [name for name in _FIELDS if name not in data]:
        raise InputError(f"{source}: topology without {missing[0]}", f"needs {', '.join(_FIELDS)}")
    links = _links(data["links"], source)
    shared = list(_switches(data["switches"], len(links), source))
    capacities, edges = [], []
    for target, row in enumerate(links):
        for origin, rate in enumerate(row):
            if rate:
                loads = [n for n, (a, b, _) in enumerate(shared) if origin in a and target in b]
                capacities.append(Capacity(f"{origin}->{target}", Fraction(rate)))
                number = len(shared) + len(capacities) - 1
                edges.append(FabricEdge(origin, target, (*loads, number)))
    found = Fabric(
        str(data["name"])[:60],
        len(links),
        (*(capacity for _, _, capacity in shared), *capacities),
        tuple(sorted(edges)),
    )
    found.check_connected()
    return found


def _links(rows: object, source: str) -> list[list[int]]:
    """The matrix of links, checked."""
    if not isinstance(rows, list) or any(
        not isinstance(row, list) or len(row) != len(rows) for row in rows
    ):
        raise InputError(f"{source}: links", "must be a square matrix, a row for each target")
    if not 1 <= len(rows) <= MAX_RANKS:
        raise InputError(f"{source}: {len(rows)} ranks", f"a fabric has 1 to {MAX_RANKS}")
    for target, row in enumerate(rows):
        for origin, rate in enumerate(row):
            _check_rate(rate, 0, f"{source}: link from {origin} to {target}")
            if rate and origin == target:
                raise InputError(f"{source}: link from {origin} to itself", "must be 0")
    return rows


def _switches(
    switches: object, ranks: int, source: str
) -> Iterator[tuple[frozenset[int], frozenset[int], Capacity]]:
    """Sources, targets and capacity of each switch, checked."""
    if not isinstance(switches, list):
        raise InputError(f"{source}: switches", "must be a list")
    for n, switch in enumerate(switches):
        where = f"{source}: switch {n}"
        if not isinstance(switch, list) or len(switch) != 4:
            raise InputError(where, "must be [sources, targets, bandwidth, name]")
        origins, targets, rate, name = switch
        for ends in (origins, targets):
            known = range(ranks)
            if not isinstance(ends, list) or not all(type(e) is int and e in known for e in ends):
                raise InputError(where, f"must list ranks 0 to {ranks - 1} as sources and targets")
        _check_rate(rate, 1, where)
        yield frozenset(origins), frozenset(targets), Capacity(str(name)[:60], Fraction(rate))


def _check_rate(rate: object, least: int, where: str) -> None:
    if type(rate) is not int or not least <= rate <= 10**9:
        raise InputError(f"{where}: bandwidth {str(rate)[:40]}", f"must be whole, {least} or more")
