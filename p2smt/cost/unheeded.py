"""What a topology says that does not count, or fits ill with the library that is to run on it."""

from __future__ import annotations

from p2smt.cluster.topology import Topology
from p2smt.cost.library.registry import library_of

_MAKERS = (("nvlink", "NVIDIA"), ("xgmi", "AMD"), ("ici", "Google"))
"""Whose devices have a fabric, by the start of its name; a network says nothing of them."""


def topology_notes(topology: Topology) -> tuple[str, ...]:
    """What is to be said, in words, beside every answer on a topology."""
    notes = (_foreign(topology), _without_library(topology))
    return tuple(note for note in notes if note)


def _foreign(topology: Topology) -> str:
    """That the library is one that another maker of devices has made for its own."""
    if not topology.library:
        return ""
    library, fabrics = library_of(topology.library), [lv.link.fabric for lv in topology.levels]
    makers = {maker for start, maker in _MAKERS for one in fabrics if one.startswith(start)}
    if not makers or library.vendor in makers or library.vendor not in dict(_MAKERS).values():
        return ""
    has = ", ".join(sorted({one for one in fabrics if one.startswith(tuple(dict(_MAKERS)))}))
    return (
        f"{library.name} is made for devices of {library.vendor}, and {topology.name} has {has} "
        f"({', '.join(sorted(makers))}): its choice and its costs there are of nothing that runs"
    )


def _without_library(topology: Topology) -> str:
    """That constants were fitted which only a library counts with."""
    links = [level.link for level in topology.levels]
    fitted = {
        "calls": bool(topology.calls),
        "hops": any(link.hops for link in links),
        "efficiency": topology.calibrated and any(link.efficiency for link in links),
    }
    names = [name for name, given in fitted.items() if given]
    if topology.library or not names:
        return ""
    return (
        f"{topology.name} has fitted {', '.join(names)}, which count under a library only: "
        "without one the links' own rates and latencies do"
    )
