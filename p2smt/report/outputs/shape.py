"""What commands print with ``--json``: frozen dataclasses, each field with its meaning.

The keys are the fields in their order; one whose name is a word of Python has an underscore behind
it, which its key lacks.  ``p2smt schema`` describes an output from the same class: pydantic reads
the notes of :class:`Said`, which need no pydantic themselves, as commands start without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, dataclass_transform

if TYPE_CHECKING:
    from p2smt.cost.accuracy import PriceRange

VERSION = 1
"""Of outputs: goes up when a field changes its meaning or goes away."""

_VERSION = {
    "const": VERSION,
    "description": "Goes up when a field changes its meaning or goes away.",
    "type": "integer",
}
_DEFAULTS: dict[str, Any] = {
    "description": "Options taken from p2smt.toml or the environment; left out where none is.",
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "words": {
                "description": "As on the command line.",
                "type": "array",
                "items": {"type": "string"},
            },
            "source": {"description": "The file and its table, or the name.", "type": "string"},
        },
        "required": ["words", "source"],
        "additionalProperties": False,
    },
}
_KEYWORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "pattern": "pattern",
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a value means, and what it keeps to; of one that may be null, where it is not.

    Of a list the limits are those of the numbers in it, but for ``min_length``.
    """

    description: str = ""
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    pattern: str | None = None
    min_length: int | None = None

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        found: dict[str, Any] = dict(handler(core))
        self.add_to(found, handler)
        return found

    def add_to(self, found: dict[str, Any], handler: Any) -> None:
        """To the schema of a value."""
        del handler
        inner = next((one for one in found.get("anyOf", ()) if one != {"type": "null"}), found)
        if self.min_length is not None:
            inner["minItems"] = self.min_length
        while "items" in inner:
            inner = inner["items"]
        limits = {word: getattr(self, name) for name, word in _KEYWORDS.items()}
        inner.update({word: limit for word, limit in limits.items() if limit is not None})
        if self.description:
            found["description"] = self.description


class Noted:
    """Of a value of another package: what its fields mean; every one is there, and no other."""

    def __init__(self, **fields: Said | Noted) -> None:
        self.fields = fields

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The class in its place, as another place may note it otherwise."""
        found = handler.resolve_ref_schema(handler(source))
        return {key: value for key, value in found.items() if key != "ref"}

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        found: dict[str, Any] = handler(core)
        self.add_to(found, handler)
        return found

    def add_to(self, found: dict[str, Any], handler: Any) -> None:
        """To the schema of a value, or to the one that it names."""
        own = handler.resolve_ref_schema(found)
        for name, inner in own["properties"].items():
            inner.pop("default", None)
            if name in self.fields:
                self.fields[name].add_to(inner, handler)
        own |= {"required": list(own["properties"]), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class ShapedAs:
    """Of what has another shape in JSON: the class that says it, loaded by who describes it."""

    kind: Callable[[], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        del source
        return handler.generate_schema(self.kind())


def key_of(name: str) -> str:
    """The key of a field."""
    return name.removesuffix("_")


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutputPart:
    """A part of an output: every key is there but those with a default, and no other.

    Its subclasses are frozen dataclasses whose fields are given by name.  They are made to be
    printed: neither compared nor shown, so that no command pays for making these methods.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "alias_generator": key_of}

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)


class Output(OutputPart):
    """What a command prints with ``--json``: one object, which says its version first."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        found: dict[str, Any] = handler(core)
        own = handler.resolve_ref_schema(found)
        own["properties"] = {"schema_version": _VERSION, **own.get("properties", {})}
        own["properties"]["defaults"] = _DEFAULTS
        own["required"] = list(dict.fromkeys(("schema_version", *own.get("required", ()))))
        return found


class ErrorPart(OutputPart):
    """What was wrong."""

    given: Annotated[str, Said("What was given; empty where the rule says all.")]
    rule: Annotated[str, Said("The rule that it breaks, or what went wrong.")]
    remedy: Annotated[str, Said("What to do; may be empty.")]


class ErrorOutput(Output):
    """Instead of an answer; the exit code is not 0."""

    error: ErrorPart


def printed(output: Output) -> dict[str, Any]:
    """An output as JSON data."""
    return {"schema_version": VERSION, **json_of(output)}


def json_of(value: Any) -> Any:
    """Data as JSON has it: numbers that JSON lacks (infinities) are null, fractions texts.

    A field is left out where it has the default None.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | None) and not isinstance(value, Enum):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {key: json_of(inner) for key, inner in value.items()}
    if is_dataclass(value):
        found = ((key, getattr(value, name), only) for name, key, only in _keys(value.__class__))
        return {key: json_of(one) for key, one, only in found if not (only and one is None)}
    return [json_of(inner) for inner in value]


@cache
def _keys(kind: type) -> tuple[tuple[str, str, bool], ...]:
    """The fields of a class with their keys, and whether null leaves them out."""
    made = [one for one in fields(kind) if one.init]
    ours = issubclass(kind, OutputPart)
    return tuple((x.name, key_of(x.name), ours and x.default is not MISSING) for x in made)


# Numbers with their units, and texts of one form.

Seconds = Annotated[float, Said("Seconds.", ge=0)]
Bytes = Annotated[float, Said("Bytes; of a share of a payload, a fraction.", ge=0)]
PayloadBytes = Annotated[int, Said("Bytes, whole.", ge=0)]
Ratio = Annotated[float, Said("A ratio: 1 is equal.", ge=0)]
Gap = Annotated[float, Said("A relative difference: 0.05 is five per cent.", ge=0)]
Error = Annotated[float, Said("A relative error: 0.1 is ten per cent.", ge=0)]
Count = Annotated[int, Said("How many.", ge=0)]
Rank = Annotated[int, Said("A rank; ranks are numbered from 0.", ge=0)]
Chunk = Annotated[int, Said("A chunk of a buffer, numbered from 0.", ge=0)]
Nth = Annotated[int, Said("Its number; the first is 1.", ge=1)]
AtLeastOne = Annotated[int, Said(ge=1)]
RankMatrix = Sequence[Sequence[AtLeastOne]]
"""A parallelism matrix: a row per axis, an entry per level."""
FractionText = Annotated[str, Said(pattern=r"^[0-9]+(/[0-9]+)?$", description="A fraction.")]


# The range of a time, and what it rests on: two fields, the second of which has another name where
# ``basis`` is that of a proof.


RangeSeconds = Annotated[
    Sequence[Seconds] | None,
    Said("Low and high, in seconds: four of five measured times lie in it; null: no time."),
]
PriceBasisWord = Annotated[
    Literal["measured here", "fitted here", "fitted on a like system", "assumed"] | None,
    Said("What the time and its range rest on; null: no time."),
]


def range_data(
    one: PriceRange | None, basis: str = "basis", ends: str = "range_s"
) -> dict[str, Any]:
    """Both fields."""
    seconds = None if one is None else [one.low_s, one.high_s]
    return {ends: seconds, basis: None if one is None else one.basis.value}


# Files inside outputs: as data.


def _topology() -> Any:
    from p2smt.cluster.file_model import TopologyModel

    return TopologyModel


def _schedule() -> Any:
    from p2smt.schedules.language.file_model import FileModel

    return FileModel


def _plan() -> Any:
    from p2smt.plans.file_model import PlanModel

    return PlanModel


TopologyData = Annotated[Mapping[str, Any], ShapedAs(_topology)]
ScheduleData = Annotated[Mapping[str, Any], ShapedAs(_schedule)]
PlanData = Annotated[Mapping[str, Any], ShapedAs(_plan)]
