"""Reading a text of a node as the import command does, and levels in short."""

from __future__ import annotations

from p2smt.cluster.topology import Level
from p2smt.interop.clusters.facts import Facts
from p2smt.interop.clusters.nodes.node_facts import Told
from p2smt.interop.clusters.nodes.reduce import NOTHING_TOLD
from p2smt.interop.clusters.read import node_formats

Short = tuple[str, int, str, int, float, str]


def read(text: str, told: Told = NOTHING_TOLD) -> Facts:
    """What the format that recognises a text makes of it."""
    (kind, *_) = (one for one in node_formats(told) if one.recognises(text))
    return kind.read(text, "f")


def short(level: Level) -> Short:
    """Name, size, kind, ports, GB/s and fabric."""
    link = level.link
    rate = round(link.nominal_bytes_per_s / 1e9, 3)
    return level.name, level.size, link.kind.value, link.ports, rate, link.fabric


def levels(text: str, told: Told = NOTHING_TOLD) -> list[Short]:
    """The levels of a node."""
    found = read(text, told).inside
    assert found is not None
    return [short(level) for level in found.levels]


def inner(text: str, told: Told = NOTHING_TOLD) -> list[Short]:
    """The levels inside the node."""
    return levels(text, told)[1:]


def lost(text: str, told: Told = NOTHING_TOLD) -> str:
    """The sentences on what was lost or filled in."""
    return "\n".join(read(text, told).lost)
