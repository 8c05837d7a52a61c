"""Writes the table of presets into docs/topology.md.  Usage: python docs/presets.py"""

from __future__ import annotations

from pathlib import Path

from experiments.testbed.written.marked import filled
from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.topology import NO_LIBRARY, Level, Topology

PAGE = Path(__file__).parent / "topology.md"


def link(level: Level) -> str:
    """One level: its size, and ports and bandwidth of its link in one direction."""
    ports = f"{level.link.ports} x " if level.link.ports > 1 else ""
    rate = f"{level.link.bandwidth_bytes_per_s / 1e9:g} GB/s"
    fabric = f" ({level.link.fabric})" if level.link.fabric else ""
    return f"{level.name} {level.size}: {level.link.kind.value}, {ports}{rate}{fabric}"


def row(preset: Topology) -> str:
    """One line of the table."""
    cells = (
        f"`{preset.name}`",
        "<br>".join(link(level) for level in preset.levels),
        preset.library_name or NO_LIBRARY,
        preset.description.split(". ")[0].rstrip("."),
    )
    return f"| {' | '.join(cells)} |\n"


def table() -> str:
    """The table of all presets."""
    head = "| preset | levels | library | what |\n|---|---|---|---|\n"
    return head + "".join(row(load_topology(name)) for name in preset_names())


def page(text: str) -> str:
    """The page's text with the table of now."""
    return filled(text, "presets", table())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
