"""Devices as topology files have them: keys as pydantic models, to and from values."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from p2smt.cluster.device import DTYPES, Device
from p2smt.cluster.error_model import Size
from p2smt.cluster.nodes.file_model import Bandwidth
from p2smt.files.validation import StrictModel
from p2smt.units import (
    FLOPS_PATTERN,
    MAX_TEXT,
    exact_bandwidth,
    exact_bytes,
    exact_flops,
    parse_bandwidth,
    parse_bytes,
    parse_flops,
)


def _flops(text: object) -> object:
    parse_flops(text, "value")
    return text


Flops = Annotated[
    str,
    BeforeValidator(_flops),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": FLOPS_PATTERN,
            "maxLength": MAX_TEXT,
            "description": "Such as 989 TFLOP/s, of dense matrix products.",
        }
    ),
]


class DeviceModel(StrictModel):
    """What a device can do by itself: peaks by data type, and its own memory."""

    name: Annotated[str, Field(min_length=1)]
    peak: Annotated[
        dict[str, Flops],
        Field(json_schema_extra={"minProperties": 1, "propertyNames": {"enum": [*DTYPES]}}),
    ]
    memory_bandwidth: Bandwidth
    memory: Size


def build_device(model: DeviceModel) -> Device:
    """The device that a file describes.

    Raises:
        InputError: no data type has a peak, or one has that none is known for.
    """
    return Device(
        model.name,
        tuple((dtype, parse_flops(text)) for dtype, text in model.peak.items()),
        parse_bandwidth(model.memory_bandwidth),
        parse_bytes(model.memory),
    )


def dump_device(device: Device) -> dict[str, object]:
    """A device as plain data; reading it back gives an equal one."""
    return {
        "name": device.name,
        "peak": {dtype: exact_flops(flops) for dtype, flops in device.peaks},
        "memory_bandwidth": exact_bandwidth(device.memory_bandwidth_bytes_per_s),
        "memory": exact_bytes(device.memory_bytes),
    }
