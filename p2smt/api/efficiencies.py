"""Which efficiency a run is predicted with, and what is to be known of that choice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from p2smt.cluster.topology import Topology
from p2smt.interop.trainers.option_table import find_trainer
from p2smt.training.efficiencies.file import (
    default_efficiency,
    find_efficiency,
    read_efficiency,
    same_device,
)
from p2smt.training.efficiency import Efficiency

if TYPE_CHECKING:
    from p2smt.api.files import StrPath


def efficiency_of(
    topology: Topology,
    name_or_path: StrPath | None = None,
    launcher: str = "",
    kinds: bool = False,
) -> Efficiency:
    """An efficiency by its name or from a file; None: the default of the topology's device.

    That is one of the launcher's framework if there is one, else Megatron's; ``kinds``: one that
    was fitted by kinds of layers, for mixtures, hybrids and low precision.

    Raises:
        InputError: there is no such efficiency or launcher, or none was fitted on the device.
    """
    if name_or_path is not None:
        return read_efficiency(os.fspath(name_or_path))
    device = topology.known_device
    own = find_efficiency(device, find_trainer(launcher).frameworks, kinds) if launcher else None
    return own or default_efficiency(device, kinds)


def is_default(topology: Topology, efficiency: Efficiency, launcher: str = "") -> bool:
    """Whether an efficiency is the one that is taken where none is named."""
    device = topology.known_device
    kinds = efficiency.layers is not None
    if not kinds and find_efficiency(device) is None:
        return False
    return efficiency == efficiency_of(topology, None, launcher, kinds)


def efficiency_notes(
    topology: Topology, efficiency: Efficiency, launcher: str = ""
) -> tuple[str, ...]:
    """What keeps an efficiency from being that of the launcher on the topology's device."""
    notes, device = [], topology.known_device.name
    if not same_device(device, efficiency.device):
        fitted = f"efficiency {efficiency.name} is of {efficiency.device}"
        notes.append(f"{fitted}, and the devices here are {device}: times may be far off")
    trainer = find_trainer(launcher) if launcher else None
    if trainer is not None and efficiency.framework.name not in trainer.frameworks:
        whose = f"times are those of {efficiency.framework.name}, not of {trainer.title}"
        none = find_efficiency(topology.known_device, trainer.frameworks) is None
        why = f", of which no runs on {device} were fitted" if none else ""
        notes.append(f"{whose}{why}: what overlaps may differ")
    return tuple(notes)
