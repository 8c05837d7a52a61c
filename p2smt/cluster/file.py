"""Topologies as YAML files: reading them, and the presets that come with the package.

A file, levels outermost first (all keys: :mod:`p2smt.cluster.file_model`):

    name: two-nodes
    library: nccl-2.20            # what runs on it, or mine.yaml; none: the links' own rates
    levels:
      - name: node                # the link of a node: its network cards
        size: 2
        link: {kind: switch, ports: 8, bandwidth: 200 Gb/s, latency: 14 us}
      - name: gpu
        size: 8
        link:
          kind: switch
          protocols:              # instead of bandwidth and latency; see below
            - {name: simple, latency: 3.4 us, bandwidth: 300 GB/s}
            - {name: ll, latency: 0.6 us, bandwidth: 87.7 GB/s}

``bandwidth`` is per port and direction.  Without a library a step takes the fastest of a link's
``protocols``; a library has protocols of its own, and takes from the link its largest bandwidth.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from p2smt.cluster.file_model import (
    TopologyModel,
    build_topology,
    dump_topology,
    profiles_note,
    with_profile,
)
from p2smt.cluster.library.file import is_library_file, read_library
from p2smt.cluster.library.model import Library
from p2smt.cluster.library.registry import library_of
from p2smt.cluster.topology import MAX_DEVICES, NO_LIBRARY, Level, Piece, Topology
from p2smt.errors import InputError, did_you_mean
from p2smt.files.packaged import names_in, text_in
from p2smt.files.validation import validated
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.units import parse_count

__all__ = [
    "dump_topology",
    "load_noting",
    "load_topology",
    "parse_topology",
    "preset_names",
    "preset_text",
    "profiles",
    "topology_from_data",
]

_PRESETS = "p2smt.topologies"
_FILE_SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 8 * 1024 * 1024
"""Of a topology file: 65,536 hosts whose names follow no pattern need 4 MB."""
IMPORTED = "preset "
"""What stands before the name of a preset in the sources of a topology that has its nodes."""
FILLED_IN = "latencies: NCCL 2.30, src/graph/tuning.cc"
"""The source of latencies that no one stated: they need no word where they do not count."""
_Latencies = tuple[tuple[str, float], ...]


def topology_from_data(
    data: object, source: str, known: Callable[[str], Library] = library_of
) -> Topology:
    """The topology in plain data, as a plan file embeds it, with a ``known`` library.

    Raises:
        InputError: a key is unknown, missing or has a bad value.
    """
    return build_topology(validated(TopologyModel, data, source), source, known)


def parse_topology(text: str, source: str) -> Topology:
    """The topology in a YAML (or JSON) text; ``source`` names it in messages.

    Raises:
        InputError: the text is not safe YAML, or as for :func:`topology_from_data`.
    """
    return topology_from_data(load_yaml(text, source, MAX_BYTES), source)


@cache
def preset_names() -> tuple[str, ...]:
    """The presets that come with the package, sorted."""
    return names_in(_PRESETS)


def preset_text(name: str) -> str:
    """The YAML text of a preset, with its sources as comments.

    Raises:
        InputError: there is no preset of that name.
    """
    if name not in preset_names():
        raise _unknown(name)
    return text_in(_PRESETS, name)


def load_topology(spec: str) -> Topology:
    """The topology that ``spec`` names: ``preset``, ``preset:NODES``, ``file`` or ``file:NODES``.

    ``NODES`` is the size of the outermost level.  ``preset@PROFILE`` is the preset as one system
    was measured that differs from it.

    Raises:
        InputError: no such preset or file, a bad ``NODES``, or a bad file.
    """
    return load_noting(spec)[0]


def load_noting(spec: str, known: Callable[[str], Library] = library_of) -> tuple[Topology, str]:
    """As :func:`load_topology`; and a note, or an empty text.

    The note says which profiles a preset has that differ; which library is assumed where a file
    names none, or else what it says of links that does not count under its library, which is one
    that is ``known``.
    """
    name, colon, count = spec.rpartition(":")
    if not colon or os.path.isfile(spec):
        return _load(spec, known)
    nodes = parse_count(count, f"{spec[:100]!r}: size of the outermost level", MAX_DEVICES)
    found, note = _load(name, known)
    return found.with_outermost(nodes), note


def _load(name: str, known: Callable[[str], Library]) -> tuple[Topology, str]:
    preset, at, profile = name.partition("@")
    if preset in preset_names():
        return _preset(preset, profile if at else None)
    if name.endswith(_FILE_SUFFIXES) or os.sep in name or os.path.exists(name):
        return _with_library(_read(name), name, known)
    raise _unknown(name)


def _preset(name: str, profile: str | None) -> tuple[Topology, str]:
    """A preset, or a profile of it, with the note of those that differ from it."""
    model, source = _preset_model(name), f"preset {name}"
    if profile is None:
        return build_topology(model, source), profiles_note(model)
    return build_topology(with_profile(model, profile, source), source), ""


@cache
def _preset_model(name: str) -> TopologyModel:
    """What the file of a preset says; read once, as an import looks at every preset."""
    source = f"preset {name}"
    return validated(TopologyModel, load_yaml(preset_text(name), source, MAX_BYTES), source)


def profiles(preset: str) -> tuple[tuple[str, str, str], ...]:
    """The profiles of a preset: its name, such as ``mi300x@cx7``, what it is, how it differs."""
    found = _preset_model(preset).profiles.items()
    return tuple((f"{preset}@{name}", one.what, one.differs) for name, one in found)


def _read(path: str) -> object:
    """The data of a file, with the library itself in the place of its file."""
    data = load_yaml(read_text(path, "topology file", MAX_BYTES), path, MAX_BYTES)
    named = data.get("library") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(named, str) or not is_library_file(named):
        return data
    try:
        return data | {"library": read_library(os.path.join(os.path.dirname(path), named))}
    except InputError as error:
        given = f"{path}: library: {error.given}"
        raise InputError(given, error.rule, error.remedy) from None


def _with_library(
    data: object, source: str, known: Callable[[str], Library]
) -> tuple[Topology, str]:
    """The topology in a file's data, with a library by vendor where it names none.

    It may use the algorithms only that such a file lists, as older ones said what runs.
    """
    found = topology_from_data(data, source, known)
    if isinstance(data, dict) and data.get("library") is not None:
        return found, _unused_settings(found, source)
    library, why = default_library(found)
    what = "no library" if library == NO_LIBRARY else f"library {library}"
    note = f"{source[:200]} names no library: {what} is assumed ({why}); write library: NAME"
    if found.fitted_for_other(library):
        note += "; its calls and hops were fitted under another one and do not count"
    restricted = "algorithms" in data if isinstance(data, dict) else False
    return replace(found.under(library), restricted=restricted and library != NO_LIBRARY), note


def _unused_settings(topology: Topology, source: str) -> str:
    """That latencies of links do not count under a file's library, nor protocols.

    Where hops are given nobody will think so, and a calibrated file only keeps them, as does one
    that says what the preset of its name does: a copy of it.
    """
    if topology.library is None or topology.calibrated or FILLED_IN in topology.sources:
        return ""
    copied = _preset_pieces(topology.name)
    imported = _latencies_of(topology.sources)
    own = [
        level
        for level in topology.levels
        if copied.get(level.name) != level.link.pieces and _latencies(level) not in imported
    ]
    bare = [level for level in own if not level.link.hops]
    said = [lv for lv in bare if len(lv.link.pieces) > 1 or lv.link.latency_s > 0]
    if not said:
        return ""
    several = any(len(level.link.pieces) > 1 for level in said)
    return (
        f"{source[:200]}: latency {'and protocols ' if several else ''}of "
        f"{', '.join(level.name for level in said)}: do{'' if several else 'es'} not count under a "
        f"library; {topology.library_name} says what a hop costs, or hops: on the link"
    )


def _preset_pieces(name: str) -> dict[str, tuple[Piece, ...]]:
    """Latencies and bandwidths by level of the preset of that name; nothing if there is none."""
    if name not in preset_names():
        return {}
    return {level.name: level.link.pieces for level in load_topology(name).levels}


def _latencies_of(sources: Sequence[str]) -> list[_Latencies]:
    """Those of the presets that sources name: an imported topology has its nodes, and their links'
    latencies for those of switches."""
    named = [source.removeprefix(IMPORTED) for source in sources if source.startswith(IMPORTED)]
    known = [load_topology(name) for name in named if name in preset_names()]
    return [_latencies(level) for topology in known for level in topology.levels]


def _latencies(level: Level) -> _Latencies:
    return tuple((piece.name, piece.latency_s) for piece in level.link.pieces)


_BY_RULE = ("ring", "torus", "cube", "mesh")
"""Fabrics that :mod:`p2smt.fabric.fabric_file` makes of sizes."""


def _unknown(name: str) -> InputError:
    if name in (*_BY_RULE, *names_in(f"{_PRESETS}.fabrics")):
        rule = "is a fabric, of ranks and edges, and no topology of levels"
        return InputError(
            f"topology {name!r}",
            rule,
            "give it as synthesize --fabric; here levels are needed: a file (p2smt docs topology)",
        )
    presets = preset_names()
    known = (*presets, *(one for preset in presets for one, _, _ in profiles(preset)))
    remedy = did_you_mean(name, known) or f"the presets are {', '.join(presets)}"
    return InputError(f"topology {name[:100]!r}", "is neither a preset nor a YAML file", remedy)


# The library that a topology file is taken to mean where it names none.


_AMD, _TPU = re.compile(r"\bAMD\b|\bMI\d{3}"), re.compile(r"\bTPU\b")
_PROTOCOLS = ("simple", "ll", "ll128")


def default_library(topology: Topology) -> tuple[str, str]:
    """The name of a library (``none``: without one) for a file that names none, and why.

    By the fabrics of its links, then by its name and description: NCCL where nothing says more.
    """
    links = [level.link for level in topology.levels]
    pieces = {piece.name for link in links for piece in link.pieces}
    if any(link.measured for link in links) or not pieces <= set(_PROTOCOLS):
        return NO_LIBRARY, "its links were fitted without a library"
    fabrics = {link.fabric for link in links if link.fabric}
    words = f"{topology.name} {topology.description}"
    if fabrics & {"ici", "dcn"} or (not fabrics and _TPU.search(words)):
        return NO_LIBRARY, "of TPUs"
    if "xgmi" in fabrics or (not fabrics and _AMD.search(words)):
        return "rccl", "AMD"
    if fabrics and fabrics <= {"ethernet", "shm"}:
        return "gloo", "Ethernet only"
    if any(fabric.startswith("nvlink") for fabric in fabrics):
        return "nccl-2.20", "NVLink"
    return "nccl-2.20", "as nothing says more"
