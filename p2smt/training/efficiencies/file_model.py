"""Files of frameworks and efficiencies as pydantic models."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from p2smt.cluster.error_model import DeviceModel
from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.plans.training.file_model import FrameworkBlock


def _number(value: object) -> object:
    """Numbers with a point come as text from YAML."""
    if isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            raise InputError(f"{value[:40]!r}", "must be a number", "write 0.62") from None
        if not math.isfinite(found):
            raise InputError(f"{value[:40]!r}", "must be a finite number", "write 0.62")
        return found
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_number)]
Part = Annotated[Number, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1, max_length=60)]


class FrameworkModel(FrameworkBlock):
    """A framework's facts, and how the groups of its published runs begin."""

    pp_hidden: Part
    attention: Annotated[Number, Field(gt=0, le=1)]
    layer_s: Annotated[Number, Field(ge=0)]
    groups: list[Name]


class FrameworksModel(StrictModel):
    """All frameworks that are known."""

    frameworks: list[FrameworkModel]


class LayerConstantsModel(StrictModel):
    """As :class:`~p2smt.training.efficiency.LayerConstants` has it, with its defaults."""

    core: Part | None = None
    low: dict[Literal["fp8", "fp4"], Part] = Field(default_factory=dict)
    memory: Part | None = None
    edge: Number | None = None
    quantised: Number | None = None
    state_bytes: Number | None = None
    hides: Part | None = None
    host_attention_s: Number | None = None
    host_mlp_s: Number | None = None
    host_mamba_s: Number | None = None
    host_experts_s: Number | None = None
    host_expert_s: Number | None = None
    dispatch: Part | None = None


class EfficiencyModel(StrictModel):
    """A constant with what it was fitted to."""

    name: Name
    device: Name
    framework: Name
    fraction: Number
    layer_s: Number
    runs: Annotated[int, Field(ge=0)]
    error: Annotated[Number, Field(ge=0)]
    layers: LayerConstantsModel | None = None
    sources: list[str] = Field(default_factory=list)


class RunHardwareModel(StrictModel):
    """What a name in files of runs stands for.

    ``framework``: that of runs which name none.  ``device``: where it is not the topology's own.
    ``use``: how many devices of each rack runs have.
    """

    name: Name
    topology: Name
    family: Name
    framework: Name
    device: DeviceModel | None = None
    use: Annotated[int, Field(ge=1)] | None = None


class RunHardwaresModel(StrictModel):
    """All names that are known."""

    hardware: list[RunHardwareModel]
