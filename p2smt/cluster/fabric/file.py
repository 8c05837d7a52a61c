"""Fabrics by name: presets, regular families, YAML files.

A file describes one node, and how nodes of its kind are joined (all keys:
:mod:`p2smt.cluster.fabric.file_model`):

    name: two-pairs
    ranks: 2
    links:
      - {ranks: [0, 1], bandwidth: 50 GB/s}     # both ways; one_way: true makes it one
    network:                                    # does not block
      ports:
        - {ranks: [0, 1], bandwidth: 100 Gb/s}  # a card that both share, each way
    nodes: 2
    symmetries:                                 # where they take ranks 0, 1, ..; each is checked
      - [1, 0]                                  # of a node: done in each; or of all ranks

Bandwidths are rates, or all of them whole numbers without a unit.
"""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files

from p2smt.cluster.fabric.fabric import MAX_RANKS, Fabric
from p2smt.cluster.fabric.families import FAMILIES, family
from p2smt.cluster.fabric.file_model import FabricModel, build_wiring
from p2smt.cluster.fabric.levels import fabric_of_levels
from p2smt.cluster.fabric.wiring import WiredNodes, fabric_of
from p2smt.cluster.file import load_topology, preset_names
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.files.validation import validated
from p2smt.files.yaml_text import load_yaml, read_text
from p2smt.result import StopWatch
from p2smt.units import parse_count

_PRESETS = "p2smt.topologies.fabrics"
_SUFFIX = ".yaml"
_FILE_SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 2**20


def fabric_names() -> tuple[str, ...]:
    """The fabrics that come with the package, sorted."""
    names = (entry.name for entry in files(_PRESETS).iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def fabric_text(name: str) -> str:
    """The YAML text of a fabric that comes with the package, with its sources."""
    return files(_PRESETS).joinpath(name + _SUFFIX).read_text(encoding="utf-8")


def preset_wiring(name: str) -> WiredNodes:
    """The wiring of a fabric that comes with the package: one node of it."""
    return parse_wiring(fabric_text(name), f"fabric {name}")


def parse_wiring(text: str, source: str) -> WiredNodes:
    """The wiring in a YAML text; ``source`` names it in messages.

    Raises:
        InputError: the text is not safe YAML, a key is unknown, missing or has a bad value.
    """
    data = load_yaml(text, source, MAX_BYTES)
    return build_wiring(validated(FabricModel, data, source), source)


def load_fabric(spec: str, unit: Fraction | None = None, watch: StopWatch | None = None) -> Fabric:
    """The fabric that ``spec`` names; ``unit``: bytes per second of one unit of bandwidth.

    ``spec`` is a family (``ring:8``), a preset (``dgx1``: one node; ``dgx1:2``), a file, or a
    level preset (``azure-ndv4:2``), which becomes a fabric by the rule of
    :mod:`p2smt.cluster.fabric.levels`.

    Raises:
        InputError: no such fabric or file, or it is none.
        OutOfTimeError: the time of ``watch`` came.
    """
    regular = family(spec, watch)
    if regular is not None:
        return fabric_of(regular, unit, watch)
    name, colon, count = spec.rpartition(":")
    if not colon or os.path.isfile(spec):
        name, count = spec, ""
    nodes = parse_count(count, f"{spec[:100]!r}: nodes", MAX_RANKS) if count else None
    if name in fabric_names():
        return _of(preset_wiring(name), nodes, unit, watch)
    if name in preset_names():
        return replace(fabric_of_levels(load_topology(spec), unit, watch), name=spec)
    if name.endswith(_FILE_SUFFIXES):
        text = read_text(name, "fabric file", MAX_BYTES)
        return _of(parse_wiring(text, name[:100]), nodes, unit, watch)
    raise _unknown(name)


def _of(
    wiring: WiredNodes, nodes: int | None, unit: Fraction | None, watch: StopWatch | None
) -> Fabric:
    return fabric_of(wiring if nodes is None else replace(wiring, nodes=nodes), unit, watch)


def _unknown(name: str) -> InputError:
    known = (*fabric_names(), *preset_names(), *(form.partition(":")[0] for form in FAMILIES))
    rule = f"is no fabric: neither a preset nor {', '.join(FAMILIES)} nor a YAML file"
    return InputError(
        f"fabric {name[:60]!r}", rule, did_you_mean(name, known) or "see topology list"
    )
