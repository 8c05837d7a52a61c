"""The fitted constants of presets and libraries: names, where they hold, what they stand for.

``constants.json`` has them by name, in seconds, bytes per second or as a part:

* ``efficiency LINK ALGORITHM``: the part of a link's nominal rate that is reached.  LINK is a
  fabric; what the devices are joined by follows where InfiniBand is not the same for all.
* ``call LIBRARY OPERATIONS``: what a call costs apart from its hops.
* ``across LIBRARY FABRIC``: what a call costs more that spans nodes which this fabric joins.
* ``on LIBRARY FABRIC``: what a call costs more on devices that this fabric joins.
* ``exchange LIBRARY``, ``handover LIBRARY``, ``member LIBRARY``: the library's ``exchange_rate``,
  ``handover_rate`` and ``switch_member``.
* ``times LIBRARY PLACE``: what steps cost, in units of the library's own (:mod:`.own_hops`); PLACE
  is ``inside`` a node or the ``network``.  ``times LIBRARY PLACE FAMILY``: of this family, in units
  of the others there.
* ``driver LIBRARY FABRIC``: what a driver adds to a step over another network than InfiniBand,
  twice with Simple where the library counts a flush.
* ``channel LIBRARY``: what one channel of a send carries.
* ``pace``: how many times as much a ring's step inside a node costs where the ring spans nodes.
* ``launch``: see :mod:`.launches`.

All versions of NCCL share theirs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from experiments.accuracy.fitting.own_hops import own_hops
from p2smt.cluster.library.model import ACROSS, INSIDE, Library, ProtocolRate
from p2smt.cluster.topology import CALL_NAMES, Topology

HERE = Path(__file__).resolve().parents[1]
CONSTANTS = HERE / "constants.json"
WITHOUT = HERE / "constants_without.json"
"""By the name of a table the constants that matter to it, fitted without it."""
Constants = Mapping[str, float]
NCCL, RCCL = ("nccl-2.12", "nccl-2.20", "nccl-2.30"), ("rccl",)
OPERATIONS = {
    "nccl": {
        "all-reduce": ("all-reduce",),
        "others": ("reduce-scatter", "all-gather", "reduce", "broadcast"),
        "p2p": ("all-to-all", "send"),
    },
    "rccl": {"all": CALL_NAMES},
}
"""What calls of a library are fitted together."""
ASSUMED = {"efa3": "efa2", "gvnic": "fastrak", "nvlink2": "nvlink3", "nvlink1": "nvlink3"}
"""Fabrics that no table measured, and the one whose constants they have instead."""
MEASURED_MOST = "infiniband"
"""The network whose constants hold where a link does not say its fabric."""
MOST_OF_A_NODE = 32
"""Devices up to which a node is one; of more it is a rack of several."""
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
    if fabric == "infiniband" and topology.levels[-1].full_size > MOST_OF_A_NODE:
        return "infiniband+nvl72"
    if fabric == "infiniband" and inner in ("xgmi", "nvlink2", "nvlink5"):
        return f"infiniband+{inner}"
    if fabric == "roce" and inner == "xgmi":
        return "roce+xgmi"
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
    every = {op: f"call {group} {one}" for one, ops in OPERATIONS[group].items() for op in ops}
    return {op: constants.get(every[op], was) for op, was in library.calls}


def fitted_across(library: Library, constants: Constants) -> dict[str, float]:
    """What a call costs more across nodes, by fabric; InfiniBand's holds where none is said."""
    known = _by_place(constants, f"across {group_of(library.name)}")
    return {ACROSS if fabric == MEASURED_MOST else fabric: s for fabric, s in known.items()}


def fitted_on(library: Library, constants: Constants) -> dict[str, float]:
    """What a call costs more by what joins the devices."""
    return _by_place(constants, f"on {group_of(library.name)}")


def fitted_hops(library: Library, constants: Constants) -> dict[tuple[str, str, str], float]:
    """Every hop of a library by place, family and protocol: its own, times what was fitted.

    Over another network than InfiniBand the driver's part adds to it, as in ``ncclTopoTuneModel``.
    """
    group = group_of(library.name)
    listed = {key[1:] for key, _ in library.hops}
    found = {
        (place, family, protocol): own_s * _times(constants, group, place, family)
        for (place, family, protocol), own_s in own_hops(group)
        if (family, protocol) in listed
    }
    across = {key[1:]: value for key, value in found.items() if key[0] == ACROSS}
    for fabric, driver_s in _by_place(constants, f"driver {group}").items():
        found |= {
            (fabric, *key): s + driver_s * _flushes(library, key[1]) for key, s in across.items()
        }
    return found


def _flushes(library: Library, protocol: str) -> int:
    """How often a driver's part counts in a step: twice with Simple, from NCCL 2.18 on."""
    formula = library.formula
    once = protocol != "simple" or (formula is not None and formula.driver_replaces)
    return 1 if once else 2


def _times(constants: Constants, group: str, place: str, family: str) -> float:
    where = ACROSS if place == ACROSS else INSIDE
    return constants[f"times {group} {where}"] * constants.get(
        f"times {group} {where} {family}", 1.0
    )


def _by_place(constants: Constants, start: str) -> dict[str, float]:
    """The constants whose names have one word after a start, by this word, and what is like one."""
    known = {
        key.removeprefix(f"{start} "): value
        for key, value in constants.items()
        if key.startswith(f"{start} ") and " " not in key.removeprefix(f"{start} ")
    }
    return known | {fabric: known[like] for fabric, like in ASSUMED.items() if like in known}


def fitted_protocols(
    library: Library, constants: Constants
) -> tuple[tuple[str, ProtocolRate], ...]:
    """A library's protocols; those of so many channels carry what the channels do."""
    rate = constants.get(f"channel {group_of(library.name)}")
    found = []
    for name, one in library.protocols:
        count = CHANNELS.get(name)
        if rate is not None and count is not None:
            caps = tuple((fabric, count * rate) for fabric, _ in one.caps)
            one = replace(one, caps=caps)
        found.append((name, one))
    return tuple(found)


def fitted_library(library: Library, constants: Constants, name: str) -> Library:
    """A library with these constants, under another name."""
    return replace(
        library,
        name=name,
        calls=tuple(fitted_calls(library, constants).items()),
        calls_across=tuple(fitted_across(library, constants).items()),
        hops=tuple(fitted_hops(library, constants).items()),
        protocols=fitted_protocols(library, constants),
        ring_pace=constants["pace"],
        calls_on=tuple(fitted_on(library, constants).items()),
        exchange_rate=constants.get(f"exchange {group_of(library.name)}", math.inf),
        handover_rate=constants.get(f"handover {group_of(library.name)}", math.inf),
        switch_member=constants.get(f"member {group_of(library.name)}", 0.0),
    )
