"""Frameworks that are known, by name and by the published runs that they trained."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from p2smt.cluster.error_model import build_device
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.cluster.trimmed import trimmed
from p2smt.errors import InputError, did_you_mean
from p2smt.files.validation import StrictModel, validated
from p2smt.files.yaml_text import load_yaml
from p2smt.training.efficiencies.file_model import (
    FrameworkModel,
    FrameworksModel,
    RunHardwareModel,
    RunHardwaresModel,
)
from p2smt.training.efficiency import Framework

FOLDER = "p2smt.training.efficiencies"
_FILE = "frameworks.yaml"


def framework_names() -> tuple[str, ...]:
    """Their names, sorted."""
    return tuple(sorted(_known()))


def framework(name: str) -> Framework:
    """What a framework overlaps.

    Raises:
        InputError: it is not known.
    """
    return Framework(**_found(name).model_dump(exclude={"layer_s", "groups"}))


def layer_seconds(name: str) -> float:
    """What launches of a layer's kernels take in a framework, forward and backward.

    Raises:
        InputError: the framework is not known.
    """
    return _found(name).layer_s


def framework_of_group(group: str) -> str:
    """The framework of a group of published runs; empty where that is not known."""
    for name, found in _known().items():
        if group.startswith(tuple(found.groups)):
            return name
    return ""


def _found(name: str) -> FrameworkModel:
    found = _known().get(name)
    if found is None:
        names = framework_names()
        remedy = did_you_mean(name, names) or f"known are {', '.join(names)}"
        raise InputError(f"framework {name[:40]!r}", "is not known", remedy)
    return found


def _known() -> dict[str, FrameworkModel]:
    read: FrameworksModel = _read(FrameworksModel, _FILE)
    return {found.name: found for found in read.frameworks}


@cache
def _read(kind: type[StrictModel], name: str) -> Any:
    """A file of this package."""
    text = files(FOLDER).joinpath(name).read_text(encoding="utf-8")
    return validated(kind, load_yaml(text, name), name)


# Hardware by the names that files of runs use: the topology of so many devices.


_HARDWARE_FILE = "hardware.yaml"
_KEPT = 64


def named_hardware(name: str) -> RunHardwareModel:
    """What a name stands for.

    Raises:
        InputError: it is not known.
    """
    found = _known_hardware().get(name)
    if found is None:
        remedy = (
            did_you_mean(name, _known_hardware()) or f"known are {', '.join(_known_hardware())}"
        )
        raise InputError(f"hardware {name[:40]!r}", "is not known", remedy)
    return found


@lru_cache(_KEPT)
def topology_of(name: str, devices: int) -> Topology:
    """The topology of so many devices: whole nodes, or a part of one node.

    Raises:
        InputError: the name is not known, or the devices fill no whole nodes.
    """
    found = named_hardware(name)
    topology = load_topology(f"{found.topology}:1")
    inner = topology.levels[-1].name
    if found.use is not None:
        topology = trimmed(topology, {inner: found.use})
    node = topology.devices
    if devices < node:
        topology = trimmed(topology, {inner: devices})
    elif devices % node:
        rule = f"must be a multiple of {node}, as {found.topology} has in a node"
        raise InputError(f"{devices} devices of {name}", rule)
    else:
        topology = topology.with_outermost(devices // node)
    return (
        topology if found.device is None else replace(topology, device=build_device(found.device))
    )


def _known_hardware() -> dict[str, RunHardwareModel]:
    read: RunHardwaresModel = _read(RunHardwaresModel, _HARDWARE_FILE)
    return {found.name: found for found in read.hardware}
