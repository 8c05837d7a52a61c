"""What files of topologies have in common with those of libraries and of accuracies: words, errors
of predictions and devices, as pydantic models, to and from values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from p2smt.cluster.error_class import MAX_ERROR, Basis, ErrorClass
from p2smt.cluster.hosts_file import Bandwidth
from p2smt.cluster.library.model import FILE_PATTERN, LIBRARY_PATTERN, Library
from p2smt.cluster.link import DTYPES, EFFICIENCY_NAMES, MAX_EFFICIENCY, Algorithm, Device
from p2smt.collectives.names import CALL_NAMES, Collective
from p2smt.errors import InputError
from p2smt.files.shapes import file_fields
from p2smt.files.validation import StrictModel
from p2smt.units import (
    FLOPS_PATTERN,
    MAX_TEXT,
    PART_PATTERN,
    SIZE_PATTERN,
    TIME_PATTERN,
    exact_bandwidth,
    exact_bytes,
    exact_flops,
    parse_bandwidth,
    parse_bytes,
    parse_flops,
    parse_time,
    part_of_rate,
)

# What the models of a topology file cannot say by themselves, as JSON Schema.


JsonDict = dict[str, Any]
_GIVEN: JsonDict = {"not": {"type": "null"}}
_ABSENT: JsonDict = {"type": "null"}
LINK_RULES: JsonDict = {
    "$comment": "Not said here: names of protocols differ; a torus's dims multiply to the level's "
    "size; ports spread evenly over the devices; a bandwidth is from 1 to 1e18 B/s, a latency "
    "below 1e6 s.",
    "allOf": [
        {
            "if": {"properties": {"kind": {"const": "torus"}}},
            "then": {"properties": {"dims": {"minItems": 1}}, "required": ["dims"]},
            "else": {"properties": {"dims": {"maxItems": 0}}},
        },
        {
            "if": {"properties": {"kind": {"const": "switch"}}},
            "else": {
                "properties": {
                    "ports": {"const": 1},
                    "in_switch_reduction": {
                        "anyOf": [_ABSENT, {"properties": {"min_members": {"const": 0}}}]
                    },
                }
            },
        },
        {
            "anyOf": [
                {
                    "properties": {"protocols": _GIVEN, "bandwidth": _ABSENT, "latency": _ABSENT},
                    "required": ["protocols"],
                },
                {
                    "properties": {"protocols": _ABSENT, "bandwidth": _GIVEN, "latency": _GIVEN},
                    "required": ["bandwidth", "latency"],
                },
            ]
        },
    ],
}
AT_LEAST_ONE: JsonDict = {"minItems": 1}
_PART: JsonDict = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_EFFICIENCY},
        {"type": "string", "pattern": PART_PATTERN},
    ]
}
EFFICIENCIES_SCHEMA: JsonDict = {
    "anyOf": [
        _PART,
        {
            "type": "object",
            "propertyNames": {"enum": [*EFFICIENCY_NAMES]},
            "additionalProperties": _PART,
        },
    ],
    "description": "Measured part of the nominal bandwidth, by what runs.",
}
_TIME: JsonDict = {"type": "string", "pattern": TIME_PATTERN, "maxLength": MAX_TEXT}
HOPS_SCHEMA: JsonDict = {
    "anyOf": [_TIME, {"type": "object", "additionalProperties": _TIME}],
    "description": "Measured latency of a step, by protocol.",
}
LIBRARY_SCHEMA: JsonDict = {
    "anyOf": [
        {"type": "null"},
        {
            "type": "string",
            "pattern": LIBRARY_PATTERN,
            "description": "Name of a communication library, such as nccl-2.20; none: without one.",
        },
        {
            "type": "string",
            "pattern": FILE_PATTERN,
            "description": "In a topology file: the file of a library, from its own folder on.",
        },
        {
            "type": "object",
            "properties": {one.key: {} for one in file_fields(Library)}
            | {"name": {"type": "string", "pattern": LIBRARY_PATTERN}},
            "required": [one.key for one in file_fields(Library) if one.required],
            "additionalProperties": False,
            "description": "The library itself, with the keys of its file.",
        },
        {
            "type": "object",
            "propertyNames": {"enum": [collective.value for collective in Collective]},
            "additionalProperties": {"enum": [algorithm.value for algorithm in Algorithm]},
            "description": "As in older files: overrides, without a library.",
        },
    ]
}


def _latency(text: object) -> object:
    parse_time(text, "value")
    return text


Latency = Annotated[
    str,
    BeforeValidator(_latency),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": TIME_PATTERN,
            "maxLength": MAX_TEXT,
            "description": "Such as 14 us.",
        }
    ),
]
AlgorithmName = Annotated[Algorithm, Field(strict=False)]
CollectiveName = Annotated[Collective, Field(strict=False)]


Fraction = Annotated[float, BeforeValidator(part_of_rate)]


def _size(text: object) -> object:
    parse_bytes(text, "value")
    return text


def _error(value: object) -> float:
    """A number with a point is text where it comes from YAML."""
    try:
        return float(str(value))
    except ValueError:
        given = f"value {str(value)[:40]!r}"
        raise InputError(given, "is no number", "0.25 is 25 per cent") from None


Size = Annotated[
    str,
    BeforeValidator(_size),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": SIZE_PATTERN,
            "maxLength": MAX_TEXT,
            "description": "Such as 64 KiB.",
        }
    ),
]
RelativeError = Annotated[
    float,
    BeforeValidator(_error),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": MAX_ERROR},
                {"type": "string", "pattern": PART_PATTERN},
            ],
            "description": "A relative error: 0.25 is 25 per cent.",
        }
    ),
]


class ErrorClassModel(StrictModel):
    """The relative error of an operation for payloads of ``least`` to ``most``.

    Without ``most`` it holds for any larger payload, too; ``basis`` says what it was found on.
    """

    operation: Annotated[str, Field(json_schema_extra={"enum": [*CALL_NAMES]})]
    least: Size
    most: Size | None = None
    error: RelativeError
    basis: Annotated[Basis, Field(strict=False)]


class LevelErrorModel(ErrorClassModel):
    """The error of groups that cross the level of this name, and none further out."""

    level: str


def error_class(model: ErrorClassModel) -> ErrorClass:
    """The class that a file describes.

    Raises:
        InputError: a number is out of range, or no operation has that name.
    """
    most = None if model.most is None else parse_bytes(model.most)
    least = parse_bytes(model.least)
    return ErrorClass(model.operation, model.error, model.basis, least, most)


def dump_error_class(one: ErrorClass) -> dict[str, object]:
    """A class as plain data; reading it back gives an equal one."""
    most = {} if one.most_bytes is None else {"most": exact_bytes(one.most_bytes)}
    sizes = {"least": exact_bytes(one.least_bytes), **most}
    return {"operation": one.operation, **sizes, "error": one.error, "basis": one.basis.value}


# Devices as topology files have them: keys as pydantic models, to and from values.


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
