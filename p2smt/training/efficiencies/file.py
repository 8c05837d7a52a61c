"""Efficiencies as files: those that come with the package, and a user's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files

from p2smt.cluster.link import Device
from p2smt.errors import InputError, did_you_mean
from p2smt.files.validation import validated
from p2smt.files.yaml_text import dump_yaml, load_yaml, read_text
from p2smt.training.efficiencies.file_model import EfficiencyModel, LayerConstantsModel
from p2smt.training.efficiencies.frameworks import FOLDER, framework
from p2smt.training.efficiency import Efficiency, LayerConstants

_SUFFIX = ".yaml"
_NOT_EFFICIENCIES = ("frameworks", "hardware")
MEGATRON = ("megatron-core", "megatron")
BY_KINDS = ("megatron-bridge", "primus")
"""The frameworks of the default efficiency of mixtures and of low precision."""
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
        layers=None if read.layers is None else _layers(read.layers),
    )


def _layers(model: LayerConstantsModel) -> LayerConstants:
    """The constants that a file gives; others have their defaults."""
    given = {name: value for name, value in model.model_dump().items() if value is not None}
    return LayerConstants(**given | {"low": tuple(sorted(given["low"].items()))})


def find_efficiency(
    device: Device, frameworks: Sequence[str] = MEGATRON, kinds: bool = False
) -> Efficiency | None:
    """Of those that come with the package, that of the first of the frameworks on a device.

    ``kinds``: as in :func:`fitted_on`.
    """
    here = fitted_on(device, kinds)
    mine = (one for name in frameworks for one in here if one.framework.name == name)
    return next(mine, None)


def default_efficiency(device: Device, kinds: bool = False) -> Efficiency:
    """Megatron's on a device, by the device's name; ``kinds`` as in :func:`find_efficiency`.

    Of a device whose runs were not fitted by kinds of layers it is that of the device which is
    nearest: the same chip, or the one whose peak of 16 bits is nearest.

    Raises:
        InputError: no run of Megatron on such a device was fitted.
    """
    found = find_efficiency(device, BY_KINDS if kinds else MEGATRON, kinds)
    if found is not None:
        return found
    if kinds:
        return nearest_efficiency(device)
    rule = "has no efficiency that was fitted to measured runs"
    known = ", ".join(efficiency_names())
    raise InputError(f"device {device.name}", rule, f"name one: {known}, or a file")


def nearest_efficiency(device: Device) -> Efficiency:
    """That by kinds of layers of the likest device: the same chip, else the nearest peak."""
    known = [one for one in map(read_efficiency, efficiency_names()) if one.layers is not None]
    known = [one for one in known if one.framework.name in BY_KINDS]
    name, peak = device.name.lower(), device.peaks[0][1]

    def far(one: Efficiency) -> tuple[bool, float]:
        chip = CHIPS.get(name.partition("-")[0], name)
        mine = CHIPS.get(one.device, one.device)
        return (chip != mine, abs(PEAKS.get(one.device, peak) / peak - 1))

    return min(known, key=far)


CHIPS = {"gb200": "b200", "gb300": "b300", "h200": "h100", "h800": "h100"}
"""Devices with the same chip as another, for rates of products."""
PEAKS = {"h100": 989e12, "b200": 2250e12, "gb200": 2500e12, "gb300": 2500e12, "mi355x": 2517e12}
"""Flop/s in bf16 of the devices with efficiencies by kinds of layers."""


def unfitted_efficiency(device: Device) -> Efficiency:
    """What stands for an efficiency where memory alone is asked for: Megatron's at the peak.

    Memory rests on the framework's types alone; a time by it would be none that anything reaches.
    """
    frame = framework(MEGATRON[0])
    return Efficiency("none", device.name, frame, fraction=1.0, layer_s=0.0, runs=0, error=0.0)


def fitted_on(device: Device, kinds: bool = False) -> tuple[Efficiency, ...]:
    """Those that come with the package and were fitted on a device, by name.

    ``kinds``: those fitted by kinds of layers, for mixtures and low precision; else the others.
    """
    known = [read_efficiency(name) for name in efficiency_names()]
    here = (one for one in known if same_device(device.name, one.device))
    return tuple(one for one in here if (one.layers is not None) == kinds)


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
    if efficiency.layers is not None:
        data["layers"] = _layers_data(efficiency.layers)
    return dump_yaml(data | ({"sources": list(sources)} if sources else {}))


def _layers_data(layers: LayerConstants) -> dict[str, object]:
    """What differs from the defaults, and the core's rate."""
    usual = asdict(LayerConstants())
    rounded = {name: float(f"{part:.{DIGITS}g}") for name, part in layers.low}
    own = {name: value for name, value in asdict(layers).items() if name != "low"}
    numbers = {name: float(f"{value:.{DIGITS}g}") for name, value in own.items()}
    told = {name: one for name, one in numbers.items() if name == "core" or one != usual[name]}
    return told | ({"low": rounded} if rounded else {})
