"""Presets whose node is what was read: named, never put in its place."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.topology import Level, Topology
from p2smt.interop.clusters.facts import InsideFacts

_NEAR = 0.01
_EFFECTIVE = "paper-"  # presets of effective, not nominal rates


def presets_like(inside: InsideFacts) -> tuple[str, ...]:
    """The presets with such a node, sorted; by its inside alone where its network is not told."""
    return tuple(
        name
        for name in preset_names()
        if not name.startswith(_EFFECTIVE) and _alike(inside, load_topology(name))
    )


def likeness_note(inside: InsideFacts) -> str:
    """One line that names presets with such a node; empty if there is none."""
    names = presets_like(inside)
    if not names:
        return ""
    shown = " or ".join(names)
    named = names[0] if len(names) == 1 else "NAME"
    if not inside.link_known:
        return (
            f"the inside of a node looks like that of {shown}: --node {named} also has its network "
            "cards, and measured efficiencies"
        )
    return f"looks like {shown}: --node {named} also has measured efficiencies"


def _alike(inside: InsideFacts, preset: Topology) -> bool:
    node, own = preset.node_level, inside.levels
    if node < 0 or not _same(own[1:], preset.levels[node + 1 :]):
        return False
    if not inside.link_known:
        return True
    mine, theirs = own[0].link, preset.levels[node].link
    total = mine.ports * mine.nominal_bytes_per_s
    same = mine.fabric == theirs.fabric and mine.ports == theirs.ports
    return same and _close(total, theirs.ports * theirs.nominal_bytes_per_s)


def _same(own: Sequence[Level], other: Sequence[Level]) -> bool:
    return len(own) == len(other) and all(
        a.size == b.size
        and (a.link.kind, a.link.ports, a.link.fabric) == (b.link.kind, b.link.ports, b.link.fabric)
        and _close(a.link.nominal_bytes_per_s, b.link.nominal_bytes_per_s)
        for a, b in zip(own, other, strict=True)
    )


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _NEAR * other
