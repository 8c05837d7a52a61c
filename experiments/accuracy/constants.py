"""The fitted constants of presets and libraries: names, where they hold, what they stand for.

``constants.json`` has them by name, in seconds, bytes per second or as a part:

* ``efficiency LINK ALGORITHM``: the part of a link's nominal rate that is reached.  LINK is a
  fabric; what the devices are joined by follows where InfiniBand is not the same for all.
* ``call LIBRARY OPERATIONS``: what a call costs apart from its hops.
* ``hop LIBRARY PLACE FAMILY PROTOCOL``: one step; PLACE is ``inside`` a node or the ``network``,
  which is InfiniBand.
* ``times LIBRARY FABRIC``: hops over another network are those of InfiniBand times this.
* ``channel LIBRARY``: what one channel of a send carries.

All versions of NCCL share theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from p2smt.cluster.topology import Topology
from p2smt.cost.library.model import Library, ProtocolRate

CONSTANTS = Path(__file__).with_name("constants.json")
WITHOUT = Path(__file__).with_name("constants_without.json")
"""By the name of a table the constants that matter to it, fitted without it."""
Constants = Mapping[str, float]
NCCL, RCCL = ("nccl-2.12", "nccl-2.20", "nccl-2.30"), ("rccl",)
OPERATIONS = {
    "all-reduce": ("all-reduce",),
    "others": ("reduce-scatter", "all-gather", "reduce", "broadcast"),
    "p2p": ("all-to-all", "send"),
}
"""What calls are fitted together."""
ASSUMED = {"efa3": "efa2", "gvnic": "fastrak", "nvlink2": "nvlink3", "nvlink1": "nvlink3"}
"""Fabrics that no table measured, and the one whose constants they have instead."""
CHANNELS = {"simple-1": 1, "simple-4": 4, "simple-8": 8, "simple-16": 16}
"""Protocols of a send that has so many channels."""
EFFECTIVE = ("paper-gcp-a100", "paper-gcp-v100", "tpu-v5p")
"""Presets that carry effective rates already, or run no library."""


def committed() -> dict[str, float]:
    """The constants as they were fitted."""
    found: dict[str, float] = json.loads(CONSTANTS.read_text(encoding="utf-8"))
    return found


def committed_without(table: str) -> dict[str, float]:
    """The constants as they would be if a table had not been published."""
    unseen: dict[str, dict[str, float]] = json.loads(WITHOUT.read_text(encoding="utf-8"))
    return {**committed(), **unseen[table]}


def group_of(library: str) -> str:
    """Whose constants a library has: NCCL's or RCCL's; empty: none."""
    return "nccl" if library in NCCL else "rccl" if library in RCCL else ""


def link_name(topology: Topology, level: int) -> str:
    """How constants name the link of a level."""
    fabric = topology.levels[level].link.fabric
    inner = topology.levels[-1].link.fabric
    if fabric == "infiniband" and inner in ("xgmi", "nvlink2", "nvlink5"):
        return f"infiniband+{inner}"
    return fabric


def efficiencies(constants: Constants, name: str) -> tuple[tuple[str, float], ...]:
    """The efficiencies of a link by algorithm, ``any`` first."""
    for link in (name, ASSUMED.get(name, name)):
        start = f"efficiency {link} "
        found = {key[len(start) :]: v for key, v in constants.items() if key.startswith(start)}
        if found:
            return tuple(sorted(found.items(), key=lambda item: (item[0] != "any", item[0])))
    return ()


def fitted_topology(topology: Topology, constants: Constants) -> Topology:
    """A preset whose links have these efficiencies."""
    levels = []
    for j, level in enumerate(topology.levels):
        found = efficiencies(constants, link_name(topology, j))
        levels.append(replace(level, link=replace(level.link, efficiency=found)))
    return replace(topology, levels=tuple(levels))


def fitted_calls(library: Library, constants: Constants) -> dict[str, float]:
    """What calls cost by operation."""
    group = group_of(library.name)
    every = {op: f"call {group} {one}" for one, ops in OPERATIONS.items() for op in ops}
    return {op: constants.get(every[op], was) for op, was in library.calls}


def fitted_hops(library: Library, constants: Constants) -> dict[tuple[str, str, str], float]:
    """Every hop of a library by place, family and protocol, those that were not fitted kept."""
    group = group_of(library.name)
    own = {key: was for key, was in library.hops if key[0] in ("inside", "pcie", "network")}
    found = {key: constants.get(f"hop {group} {' '.join(key)}", was) for key, was in own.items()}
    across = {key[1:]: value for key, value in found.items() if key[0] == "network"}
    for fabric, factor in _factors(group, constants):
        found |= {(fabric, *key): factor * value for key, value in across.items()}
    return found


def _factors(group: str, constants: Constants) -> Iterator[tuple[str, float]]:
    start = f"times {group} "
    known = {key[len(start) :]: v for key, v in constants.items() if key.startswith(start)}
    yield from known.items()
    yield from ((fabric, known[like]) for fabric, like in ASSUMED.items() if like in known)


def fitted_protocols(library: Library, constants: Constants) -> tuple[ProtocolRate, ...]:
    """A library's protocols; those of so many channels carry what the channels do."""
    rate = constants.get(f"channel {group_of(library.name)}")
    found = []
    for one in library.protocols:
        count = CHANNELS.get(one.name)
        if rate is not None and count is not None:
            caps = tuple((fabric, count * rate) for fabric, _ in one.caps)
            one = replace(one, caps=caps)
        found.append(one)
    return tuple(found)


def fitted_library(library: Library, constants: Constants, name: str) -> Library:
    """A library with these constants, under another name."""
    return replace(
        library,
        name=name,
        calls=tuple(fitted_calls(library, constants).items()),
        hops=tuple(fitted_hops(library, constants).items()),
        protocols=fitted_protocols(library, constants),
    )
