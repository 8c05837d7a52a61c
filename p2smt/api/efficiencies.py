"""Which efficiency a run is predicted with, and what is to be known of that choice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from p2smt.cluster.topology import Topology
from p2smt.interop.trainers.option_table import find_trainer
from p2smt.interop.trainers.trainer import flex_notes
from p2smt.training.efficiencies.efficiency_files import (
    default_efficiency,
    find_efficiency,
    read_efficiency,
    same_device,
)
from p2smt.training.efficiency import Efficiency
from p2smt.training.measured.measured_runs import runs_beside
from p2smt.training.measured.prediction_errors import errors_by_run
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.known import Known, known

if TYPE_CHECKING:
    from p2smt.api.files import StrPath


def efficiency_of(
    topology: Topology,
    name_or_path: StrPath | None = None,
    launcher: str = "",
    kinds: bool = False,
) -> Efficiency:
    """An efficiency by its name or from a file; None: the default of the topology's device.

    That is one of the launcher's framework if there is one, else Megatron's, of the nearest device
    where none was fitted on this one; ``kinds``: one that was fitted by kinds of layers, for
    mixtures, hybrids and low precision.

    Raises:
        InputError: there is no such efficiency or launcher.
    """
    if name_or_path is not None:
        return read_efficiency(os.fspath(name_or_path))
    device = topology.known_device
    own = find_efficiency(device, find_trainer(launcher).frameworks, kinds) if launcher else None
    return own or default_efficiency(device, kinds)


def is_default(topology: Topology, efficiency: Efficiency, launcher: str = "") -> bool:
    """Whether an efficiency is one that is taken where none is named."""
    kinds = (False, True) if efficiency.layers is not None else (False,)
    return efficiency in [efficiency_of(topology, None, launcher, one) for one in kinds]


def efficiency_notes(
    topology: Topology, efficiency: Efficiency, launcher: str = ""
) -> tuple[str, ...]:
    """What keeps an efficiency from being that of the launcher on the topology's device."""
    notes, device = [], topology.known_device.name
    if not same_device(device, efficiency.device):
        fitted = f"efficiency {efficiency.name} is of {efficiency.device}"
        notes.append(f"{fitted}, and the devices here are {device}: times may be far off")
    return (*notes, *launcher_notes(topology, efficiency, launcher))


def launcher_notes(
    topology: Topology, efficiency: Efficiency, launcher: str = ""
) -> tuple[str, ...]:
    """That an efficiency is not of the launcher's framework."""
    trainer = find_trainer(launcher) if launcher else None
    if trainer is None or efficiency.framework.name in trainer.frameworks:
        return ()
    whose = f"times are those of {efficiency.framework.name}, not of {trainer.title}"
    none = find_efficiency(topology.known_device, trainer.frameworks) is None
    why = f", of which no runs on {topology.known_device.name} were fitted" if none else ""
    return (f"{whose}{why}: what overlaps may differ",)


def dispatcher_notes(found: RunEstimate) -> tuple[str, ...]:
    """What its dispatcher takes on the devices that is not everywhere."""
    return flex_notes(found.run.strategy) if found.topology.of_amd else ()


def known_of(found: RunEstimate) -> Known:
    """What the measured runs say of a run that the constants of its estimate were fitted to.

    Their errors say nothing of another device.
    """
    run, efficiency = found.run, found.efficiency
    here = same_device(found.topology.known_device.name, efficiency.device)
    errors = errors_by_run(efficiency) if here else {}
    beside = runs_beside(run, efficiency)
    return known(run.strategy, beside, errors, efficiency.device)
