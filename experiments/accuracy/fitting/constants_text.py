"""Constants in the files where they hold: presets and libraries, whose other lines stay."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from experiments.accuracy.fitting.constants import (
    ASSUMED,
    EFFECTIVE,
    NCCL,
    RCCL,
    efficiencies,
    fitted_across,
    fitted_calls,
    fitted_hops,
    fitted_library,
    fitted_on,
    fitted_protocols,
    link_name,
)
from experiments.accuracy.systems import PRESETS, is_fitted, topology_of
from experiments.tables.tables import tables
from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import library_of
from p2smt.units import format_bandwidth

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "fitted by experiments/accuracy/fit_presets.py"
_FABRIC = re.compile(r"^( *)fabric: (\S+)")


def write_constants(constants: Mapping[str, float]) -> None:
    """Write every file anew."""
    for path, text in written(constants):
        path.write_text(text, encoding="utf-8")


def written(constants: Mapping[str, float]) -> Iterator[tuple[Path, str]]:
    """Every preset and library with the constants that hold for it."""
    for name in preset_names():
        path = ROOT / "topologies" / f"{name}.yaml"
        if name not in EFFECTIVE:
            yield path, preset_text(name, path.read_text(encoding="utf-8"), constants)
    for name in (*NCCL, *RCCL):
        path = ROOT / "p2smt/libraries" / f"{name}.yaml"
        yield path, library_text(library_of(name), path.read_text(encoding="utf-8"), constants)


def preset_text(name: str, text: str, constants: Mapping[str, float]) -> str:
    """A preset's text with the efficiency of each link under its fabric."""
    topology, level = load_topology(name), 0
    lines = []
    for line in text.splitlines():
        if re.match(r" *efficiency: .*# (measured|assumed)", line):
            continue
        lines.append(line)
        if found := _FABRIC.match(line):
            link = link_name(topology, level)
            level += 1
            if parts := efficiencies(constants, link):
                shown = ", ".join(f"{key}: {value:.3g}" for key, value in parts)
                lines.append(f"{found[1]}efficiency: {{{shown}}}  # {_origin(name, link)}")
    return "\n".join(lines) + "\n"


def _origin(preset: str, link: str) -> str:
    """Where a link's efficiency in a preset comes from: its own system's tables, or another's."""
    alike = ASSUMED.get(link, link)
    systems = _systems(alike)
    text = f"measured: {', '.join(systems)} of experiments/tables"
    if preset not in _presets(systems):
        text = f"assumed as that of {', '.join(_presets(systems))}, {text}"
    return text


def _systems(link: str) -> list[str]:
    return list(dict.fromkeys(one.system for one in tables().values() if _has(one.name, link)))


def _presets(systems: list[str]) -> list[str]:
    return list(dict.fromkeys(PRESETS[system].preset for system in systems))


def _has(name: str, link: str) -> bool:
    table = tables()[name]
    if not is_fitted(table):
        return False
    topology = topology_of(table)
    crossed = range(0 if topology.sizes[0] > 1 else 1, len(topology.levels))
    return link in {link_name(topology, j) for j in crossed}


def library_text(library: Library, text: str, constants: Mapping[str, float]) -> str:
    """A library's text with its calls, hops and channels."""
    calls = fitted_calls(library, constants)
    lines = [f"calls:  # {SOURCE}", *(f"  {name}: {_us(s)}" for name, s in calls.items())]
    text = _with_block(text, "calls", lines)
    across = fitted_across(library, constants)
    lines = [f"calls_across:  # {SOURCE}", *(f"  {name}: {_us(s)}" for name, s in across.items())]
    text = _with_block(text, "calls_across", lines)
    if on := fitted_on(library, constants):
        lines = [f"calls_on:  # {SOURCE}", *(f"  {name}: {_us(s)}" for name, s in on.items())]
        text = _with_block(text, "calls_on", lines)
    text = _with_block(text, "hops", [f"hops:  # {SOURCE}", *_hop_lines(library, constants)])
    for key, value in _single(library, constants):
        line = f"{key}: {value}  # {SOURCE}"
        text = re.sub(rf"^{key}: .*$", line, text, flags=re.MULTILINE)
    for name, one in fitted_protocols(library, constants):
        if name.startswith("simple-"):
            caps = ", ".join(f"{fabric}: {format_bandwidth(rate)}" for fabric, rate in one.caps)
            line = f"  {name}: {{efficiency: 1, caps: {{{caps}}}}}"
            text = re.sub(rf"^  {name}: .*$", line, text, flags=re.MULTILINE)
    return text


def _single(library: Library, constants: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """The constants of a library that are one number each."""
    found = fitted_library(library, constants, library.name)
    yield "ring_pace", f"{found.ring_pace:.3g}"
    if math.isfinite(found.exchange_rate):
        yield "exchange_rate", format_bandwidth(found.exchange_rate)
    if math.isfinite(found.handover_rate):
        yield "handover_rate", format_bandwidth(found.handover_rate)
    yield "switch_member", _us(found.switch_member)


def _hop_lines(library: Library, constants: Mapping[str, float]) -> Iterator[str]:
    hops = fitted_hops(library, constants)
    for place in dict.fromkeys(place for place, _, _ in hops):
        yield f"  {place}:"
        for family in dict.fromkeys(key[1] for key in hops if key[0] == place):
            found = {key[2]: s for key, s in hops.items() if key[:2] == (place, family)}
            yield f"    {family}: {{{', '.join(f'{name}: {_us(s)}' for name, s in found.items())}}}"


def _with_block(text: str, key: str, lines: list[str]) -> str:
    """The text with the lines from ``key:`` to the next blank one replaced."""
    start = text.index(f"\n{key}:") + 1
    return text[:start] + "\n".join(lines) + text[text.index("\n\n", start) :]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"
