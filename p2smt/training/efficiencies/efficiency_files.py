"""Efficiencies as files: those that come with the package, and a user's own."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from types import MappingProxyType

from p2smt.cluster.link import Device
from p2smt.errors import InputError, did_you_mean
from p2smt.files.packaged import names_in, text_in
from p2smt.files.validation import validated
from p2smt.files.yaml_text import dump_yaml, load_yaml, read_text
from p2smt.training.efficiencies.file_model import EfficiencyModel, LayerConstantsModel
from p2smt.training.efficiencies.frameworks import FOLDER, framework
from p2smt.training.efficiency import Efficiency, LayerConstants

_NOT_EFFICIENCIES = ("frameworks", "hardware")
MEGATRON = ("megatron-core", "megatron")
"""The frameworks of the default efficiency: the first that was fitted on a device."""
BY_KINDS = ("megatron-bridge", "primus")
"""The frameworks of the default efficiency of mixtures and of low precision."""
DIGITS = 4


def efficiency_names() -> tuple[str, ...]:
    """The efficiencies that come with the package, sorted."""
    return tuple(name for name in names_in(FOLDER) if name not in _NOT_EFFICIENCIES)


@cache
def packaged_efficiencies() -> Mapping[str, Efficiency]:
    """Those by name, in this order; read once, as the default is the fittest of all."""
    texts = {name: text_in(FOLDER, name) for name in efficiency_names()}
    return MappingProxyType(
        {name: parse_efficiency(text, f"efficiency {name}") for name, text in texts.items()}
    )


def read_efficiency(name_or_file: str) -> Efficiency:
    """The efficiency of a name, or in a file.

    Raises:
        InputError: there is no such name or file, or the file has a bad value.
    """
    known = packaged_efficiencies()
    if name_or_file in known:
        return known[name_or_file]
    if name_or_file.endswith((".yaml", ".yml", ".json")) or os.path.exists(name_or_file):
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

    Of a device on which none was fitted it is that of the nearest one.
    """
    found = find_efficiency(device, BY_KINDS if kinds else MEGATRON, kinds)
    return found or nearest_efficiency(device, kinds)


def nearest_efficiency(device: Device, kinds: bool = False, without: str = "") -> Efficiency:
    """Megatron's of the likest device: the same, the same chip, else the nearest peak of 16 bits.

    Of one device, what was fitted to dense models alone comes first.  ``kinds``: only those fitted
    by kinds of layers.  ``without``: as if no run on that device were known.
    """
    known = [one for one in packaged_efficiencies().values() if one.device != without]
    fits = [one for one in known if one.layers is None and one.framework.name in MEGATRON]
    by_kinds = [one for one in known if one.layers and one.framework.name in BY_KINDS]
    peak = device.peaks[0][1]

    def far(one: Efficiency) -> tuple[bool, bool, float]:
        ratio = abs(math.log(PEAKS.get(one.device, peak) / peak))
        other = not same_device(device.name, one.device)
        return (other, not same_chip(device.name, one.device), ratio)

    return min(by_kinds if kinds else fits + by_kinds, key=far)


CHIPS = {"gb200": "b200", "gb300": "b300", "h200": "h100", "h800": "h100"}
"""Devices with the same chip as another, for rates of products."""
PEAKS = {
    "a100": 312e12,
    "h100": 989e12,
    "b200": 2250e12,
    "gb200": 2500e12,
    "gb300": 2500e12,
    "mi355x": 2517e12,
}
"""Flop/s in bf16 of the devices with efficiencies."""


def same_chip(name: str, family: str) -> bool:
    """Whether a device has the chip of a family, such as h200-141gb that of h100."""
    name = name.lower().partition("-")[0]
    return CHIPS.get(name, name) == CHIPS.get(family, family)


def fitted_on(device: Device, kinds: bool = False) -> tuple[Efficiency, ...]:
    """Those that come with the package and were fitted on a device, by name.

    ``kinds``: those fitted by kinds of layers, for mixtures and low precision; else the others.
    """
    known = packaged_efficiencies().values()
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
