"""What the models of a topology file cannot say by themselves, as JSON Schema."""

from __future__ import annotations

from typing import Any

from p2smt.cluster.link import EFFICIENCY_NAMES, MAX_EFFICIENCY
from p2smt.cluster.topology import LIBRARY_PATTERN, Algorithm
from p2smt.collectives.names import Collective
from p2smt.units import MAX_TEXT, TIME_PATTERN

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
PART_PATTERN = r"^[0-9]{1,20}(\.[0-9]{0,40})?([eE]-?[0-9]{1,3})?$"
"""A number with a point, as the reader of YAML passes it on."""
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
            "type": "object",
            "propertyNames": {"enum": [collective.value for collective in Collective]},
            "additionalProperties": {"enum": [algorithm.value for algorithm in Algorithm]},
            "description": "As in older files: overrides, without a library.",
        },
    ]
}
