"""Hardware by the names that files of runs use: the topology of so many devices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files

from p2smt.cluster.device_model import build_device
from p2smt.cluster.file import load_topology
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.files.validation import validated
from p2smt.files.yaml_text import load_yaml
from p2smt.workload.efficiencies.file_model import RunHardwareModel, RunHardwaresModel
from p2smt.workload.efficiencies.frameworks import FOLDER

_FILE = "hardware.yaml"
_KEPT = 64


@dataclass(frozen=True, slots=True)
class NamedHardware:
    """A preset by name, the family of its devices, and the framework where a run names none."""

    name: str
    preset: str
    family: str
    framework: str


def named_hardware(name: str) -> NamedHardware:
    """What a name stands for.

    Raises:
        InputError: it is not known.
    """
    found = _found(name)
    return NamedHardware(found.name, found.topology, found.family, found.framework)


@lru_cache(_KEPT)
def topology_of(name: str, devices: int) -> Topology:
    """The topology of so many devices: whole nodes, or a part of one node.

    Raises:
        InputError: the name is not known, or the devices fill no whole nodes.
    """
    found = _found(name)
    topology = load_topology(f"{found.topology}:1")
    node = topology.devices
    if devices < node:
        inner = replace(topology.levels[-1], size=devices)
        topology = replace(topology, levels=(*topology.levels[:-1], inner))
    elif devices % node:
        rule = f"must be a multiple of {node}, as {found.topology} has in a node"
        raise InputError(f"{devices} devices of {name}", rule)
    else:
        topology = topology.with_outermost(devices // node)
    return (
        topology if found.device is None else replace(topology, device=build_device(found.device))
    )


def _found(name: str) -> RunHardwareModel:
    found = _known().get(name)
    if found is None:
        remedy = did_you_mean(name, _known()) or f"known are {', '.join(_known())}"
        raise InputError(f"hardware {name[:40]!r}", "is not known", remedy)
    return found


@cache
def _known() -> dict[str, RunHardwareModel]:
    text = files(FOLDER).joinpath(_FILE).read_text(encoding="utf-8")
    read = validated(RunHardwaresModel, load_yaml(text, _FILE), _FILE)
    return {found.name: found for found in read.hardware}
