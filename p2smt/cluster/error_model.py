"""Errors of predictions as files have them: keys as pydantic models, to and from values."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from p2smt.cluster.error_class import MAX_ERROR, Basis, ErrorClass
from p2smt.cluster.file_schema import PART_PATTERN
from p2smt.collectives.names import CALL_NAMES
from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.units import MAX_TEXT, SIZE_PATTERN, exact_bytes, parse_bytes


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
