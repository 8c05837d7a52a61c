"""The shape of a redistribution's plan file: its keys as pydantic models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.arrays.array_type import Uneven
from p2smt.arrays.element import ElementType
from p2smt.arrays.mesh import MAX_DIMENSIONS
from p2smt.arrays.steps import StepKind
from p2smt.cluster.file_model import TopologyModel
from p2smt.files.validation import StrictModel
from p2smt.plans.file_model import AxisModel, Bytes, Count, DeviceNumber, Load, Seconds, StatusName

SCHEMA_VERSION = 1

Digit = Annotated[int, Field(ge=0, lt=2**31)]
Digits = list[Digit]
Devices = Annotated[list[DeviceNumber], Field(min_length=1)]
UnevenName = Annotated[Uneven, Field(strict=False)]
ElementName = Annotated[ElementType, Field(strict=False)]
StepName = Annotated[StepKind, Field(strict=False)]


class DigitModel(StrictModel):
    """A part of a mesh axis: ``size`` ways, below parts of ``before`` ways in all."""

    axis: str
    before: Count
    size: Count


class StateModel(StrictModel):
    """A layout on the digits, which are numbered from 0: per dimension those that shard it.

    ``order`` is 0 for the devices of the source, 1 for those of the destination where they stand
    in another order.
    """

    dims: Annotated[list[Digits], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    partial: Digits
    order: Annotated[int, Field(ge=0, le=1)]


class ArrayStepModel(StrictModel):
    """One step to the state ``after``; all ``groups`` (device ids) run it at the same time.

    Members are in the order of mesh positions.  Of a permute there are no groups, and
    ``sources[d]`` sends to device d.  ``payload_bytes`` is what the algorithm works on,
    ``step_bytes`` input, output and pack buffer on a device, and beside them the source if kept.
    """

    kind: StepName
    text: str
    after: StateModel
    groups: list[list[DeviceNumber]]
    sources: list[DeviceNumber]
    payload_bytes: Load
    step_bytes: Bytes
    seconds: Seconds
    algorithm: str
    protocol: str
    bottleneck: str | None
    load_bytes: Load


class MemoryModel(StrictModel):
    """A cap in bytes per device, of steps or of states; with the source kept alive, or not."""

    limit_bytes: Count
    of_steps: bool
    keep_source: bool


class ArraySearchModel(StrictModel):
    """How the plan was sought; ``time_limit_s`` null: without a limit."""

    solver: Annotated[str, Field(min_length=1)]
    time_limit_s: Seconds | None
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    workers: Annotated[int, Field(ge=1, lt=2**31)]


class RedistributionModel(StrictModel):
    """The plan of a redistribution.  Devices are numbered in hierarchy order of the topology.

    ``devices[p]`` is the device at mesh position p, and ``target_devices[p]`` the destination's.
    ``source`` and ``target`` are layouts such as ``S(dp),R;P(tp)``.  ``max_steps``: plans of at
    most so many steps were compared; null: of any length.  ``levels_only``: axes were cut at the
    factors of levels only.
    """

    schema_version: Literal[1]
    kind: Literal["redistribution"]
    topology: TopologyModel
    mesh: Annotated[list[AxisModel], Field(min_length=1)]
    devices: Devices
    target_devices: Devices
    shape: Annotated[list[Count], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    dtype: ElementName
    source: str
    target: str
    uneven: UnevenName
    digits: list[DigitModel]
    memory: MemoryModel
    max_steps: Count | None
    levels_only: bool
    limits: ArraySearchModel
    status: StatusName
    objective_s: Seconds
    bound_s: Seconds
    physical_bound_s: Seconds
    peak_bytes: Bytes
    peak_step_bytes: Bytes
    steps: list[ArrayStepModel]
