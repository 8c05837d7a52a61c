"""A fabric by name or from a file of any kind that is known here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from p2smt.errors import InputError
from p2smt.fabric.fabric import MAX_RANKS, Capacity, Fabric, FabricEdge
from p2smt.fabric.fabric_file import MAX_BYTES, load_fabric
from p2smt.fabric.wiring import Switch, Wire, WiredNodes, fabric_of
from p2smt.files.json_text import read_json
from p2smt.files.yaml_text import read_text
from p2smt.result import StopWatch


def read_fabric(
    spec: str,
    *,
    unit: Fraction | None = None,
    link_bandwidth: Fraction | None = None,
    watch: StopWatch | None = None,
) -> Fabric:
    """The fabric that ``spec`` names: as :func:`p2smt.fabric.fabric_file.load_fabric`, or a file
    with a topology of msccl-tools (JSON) or what `nvidia-smi topo -m` printed.

    Args:
        spec: a name or a path.
        unit: bytes per second of one unit of bandwidth; None: the greatest common one.
        link_bandwidth: bytes per second of one NVLink each way, for `nvidia-smi topo -m`.
        watch: of its making, which takes seconds where ranks are a thousand.

    Raises:
        InputError: no such fabric or file, or it cannot be read.
        OutOfTimeError: the time of ``watch`` came.
    """
    if link_bandwidth is not None and not _is_other_text(spec):
        rule = "goes with what nvidia-smi topo -m printed: others say their bandwidths"
        raise InputError("--link-bandwidth", rule, "drop it")
    if not os.path.isfile(spec) or spec.endswith((".yaml", ".yml")):
        return load_fabric(spec, unit, watch)
    source = Path(spec).name[:60]
    if spec.endswith(".json"):
        data = read_json(spec, source, "see docs/fabrics.md", MAX_BYTES)
        if is_msccl_topology(data):
            if unit is not None:
                raise InputError("--unit", f"bandwidths of {source} have no unit", "drop it")
            return fabric_of_msccl(data, source)
        raise InputError(source, 'is no topology of msccl-tools ("msccl_type": "topology")')
    from p2smt.interop.clusters.nodes.topo_matrix import is_topo_matrix

    text = read_text(spec, "fabric file", MAX_BYTES)
    if not is_topo_matrix(text):
        rule = "is neither YAML, nor JSON of msccl-tools, nor what nvidia-smi topo -m prints"
        raise InputError(source, rule, "see docs/fabrics.md")
    return fabric_of(wiring_of_smi(text, link_bandwidth, source), unit)


def _is_other_text(spec: str) -> bool:
    """Whether it is a file that is neither YAML nor JSON by its name."""
    return os.path.isfile(spec) and not spec.endswith((".yaml", ".yml", ".json"))


# Topologies of msccl-tools as JSON: ``links[target][source]`` and ``switches``.
# A link is the number of chunks that it carries in a round, 0 where there is none.  A switch is a
# list of sources, targets, bandwidth and name: what goes from any of these sources to any of these
# targets shares its bandwidth, beside that of the link.


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


# The matrix that `nvidia-smi topo -m` prints, as a fabric of NVLinks.  The same number of links
# over all pairs is a switch: the links of a GPU lead there.  Different numbers are links between
# the pairs.  How fast one link is, the matrix does not say: it is asked for.


def wiring_of_smi(text: str, link_bandwidth: Fraction | None, source: str) -> WiredNodes:
    """The wiring of the GPUs by NVLink; ``link_bandwidth``: bytes per second of one, each way.

    Raises:
        InputError: the matrix is malformed, no NVLink is there, or nobody said how fast a link is.
    """
    from p2smt.interop.clusters.nodes.topo_matrix import parse_topo_matrix

    links = parse_topo_matrix(text, source).pairs
    if not any(map(any, links)):
        rule = "shows no NVLink (NV#) between GPUs"
        raise InputError(source, rule, "describe the links in a fabric file")
    if link_bandwidth is None:
        rule = "says how many NVLinks join two GPUs, not how fast one is"
        raise InputError(source, rule, "add --link-bandwidth, such as --link-bandwidth 25GB/s")
    ranks = len(links)
    numbers = {links[a][b] for a in range(ranks) for b in range(ranks) if a != b}
    if len(numbers) == 1 and ranks > 2:
        rate = numbers.pop() * link_bandwidth
        return WiredNodes(source, ranks, switches=(Switch("nvswitch", tuple(range(ranks)), rate),))
    wires = (
        Wire(a, b, links[a][b] * link_bandwidth)
        for a in range(ranks)
        for b in range(ranks)
        if links[a][b]
    )
    return WiredNodes(source, ranks, tuple(wires))
