"""Efficiencies as files: those that come with the package, and a user's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files

from p2smt.cluster.link import Device
from p2smt.errors import InputError, did_you_mean
from p2smt.files.validation import validated
from p2smt.files.yaml_text import dump_yaml, load_yaml, read_text
from p2smt.training.efficiencies.file_model import EfficiencyModel
from p2smt.training.efficiencies.frameworks import FOLDER, framework
from p2smt.training.efficiency import Efficiency

_SUFFIX = ".yaml"
_NOT_EFFICIENCIES = ("frameworks", "hardware")
MEGATRON = ("megatron-core", "megatron")
"""The frameworks of the default efficiency: the first that was fitted on a device."""
DIGITS = 4


def efficiency_names() -> tuple[str, ...]:
    """The efficiencies that come with the package, sorted."""
    names = (entry.name for entry in files(FOLDER).iterdir() if entry.name.endswith(_SUFFIX))
    stems = (name.removesuffix(_SUFFIX) for name in names)
    return tuple(sorted(stem for stem in stems if stem not in _NOT_EFFICIENCIES))


def read_efficiency(name_or_file: str) -> Efficiency:
    """The efficiency of a name, or in a file.

    Raises:
        InputError: there is no such name or file, or the file has a bad value.
    """
    known = efficiency_names()
    if name_or_file in known:
        entry = files(FOLDER).joinpath(name_or_file + _SUFFIX)
        return parse_efficiency(entry.read_text(encoding="utf-8"), f"efficiency {name_or_file}")
    if name_or_file.endswith((_SUFFIX, ".yml", ".json")) or os.path.exists(name_or_file):
        text = read_text(name_or_file, "efficiency file")
        return parse_efficiency(text, name_or_file[:200])
    remedy = did_you_mean(name_or_file, known) or f"known are {', '.join(known)}; or name a file"
    raise InputError(f"efficiency {name_or_file[:60]!r}", "is not known", remedy)


def parse_efficiency(text: str, source: str) -> Efficiency:
    """The efficiency in a YAML (or JSON) text.

    Raises:
        InputError: it is no such file, or has a bad value.
    """
    read = validated(EfficiencyModel, load_yaml(text, source), source)
    return Efficiency(
        name=read.name,
        device=read.device,
        framework=framework(read.framework),
        fraction=read.fraction,
        layer_s=read.layer_s,
        runs=read.runs,
        error=read.error,
    )


def find_efficiency(device: Device, frameworks: Sequence[str] = MEGATRON) -> Efficiency | None:
    """Of those that come with the package, that of the first of the frameworks on a device."""
    here = fitted_on(device)
    mine = (one for name in frameworks for one in here if one.framework.name == name)
    return next(mine, None)


def default_efficiency(device: Device) -> Efficiency:
    """Megatron's on a device, by the device's name.

    Raises:
        InputError: no run of Megatron on such a device was fitted.
    """
    found = find_efficiency(device)
    if found is not None:
        return found
    rule = "has no efficiency that was fitted to measured runs"
    known = ", ".join(efficiency_names())
    raise InputError(f"device {device.name}", rule, f"name one: {known}, or a file")


def unfitted_efficiency(device: Device) -> Efficiency:
    """What stands for an efficiency where memory alone is asked for: Megatron's at the peak.

    Memory rests on the framework's types alone; a time by it would be none that anything reaches.
    """
    frame = framework(MEGATRON[0])
    return Efficiency("none", device.name, frame, fraction=1.0, layer_s=0.0, runs=0, error=0.0)


def fitted_on(device: Device) -> tuple[Efficiency, ...]:
    """Those that come with the package and were fitted on a device, by name."""
    known = [read_efficiency(name) for name in efficiency_names()]
    return tuple(one for one in known if same_device(device.name, one.device))


def same_device(name: str, family: str) -> bool:
    """Whether a device, such as a100-80gb, is one of a family, such as a100."""
    name, family = name.lower(), family.lower()
    return name == family or name.startswith(family + "-")


def dump_efficiency(efficiency: Efficiency, sources: Sequence[str] = ()) -> str:
    """A YAML text that :func:`parse_efficiency` reads, numbers with four digits."""
    data: dict[str, object] = {
        "name": efficiency.name,
        "device": efficiency.device,
        "framework": efficiency.framework.name,
        "fraction": float(f"{efficiency.fraction:.{DIGITS}g}"),
        "layer_s": float(f"{efficiency.layer_s:.{DIGITS}g}"),
        "runs": efficiency.runs,
        "error": float(f"{efficiency.error:.{DIGITS}g}"),
    }
    return dump_yaml(data | ({"sources": list(sources)} if sources else {}))
