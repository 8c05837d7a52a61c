"""Pydantic at the border: one clear :class:`InputError` for what a model refuses."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from p2smt.errors import InputError, did_you_mean
from p2smt.files.shapes import FileField, file_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_core import ErrorDetails

M = TypeVar("M")

_RULES = {
    "string_type": ("must be text", "put it in quotes"),
    "int_type": ("must be a whole number", "write digits without quotes or unit"),
    "int_parsing_size": ("is too large", "give a smaller number"),
    "bool_type": ("must be true or false", "write true or false"),
    **dict.fromkeys(
        ("list_type", "tuple_type"),
        ("must be a list", "write [..] or lines that start with a dash"),
    ),
    "float_type": ("must be a number", "write it without quotes or unit"),
    "finite_number": ("must be a finite number", "give another"),
    "none_required": ("must be null", "write null"),
    "dict_type": ("must be a mapping", "write lines like key: value"),
    "string_too_short": ("must not be empty", "give a text"),
    "greater_than": ("must be more than {gt}", "give a larger number"),
    "greater_than_equal": ("must be at least {ge}", "give a larger number"),
    "less_than": ("must be less than {lt}", "give a smaller number"),
    "less_than_equal": ("must be at most {le}", "give a smaller number"),
    "too_short": ("must have at least {min_length}, and has {actual_length}", "give more"),
    "too_long": ("must have at most {max_length}", "give fewer"),
    "union_tag_not_found": ("lacks the key {discriminator}", "add it"),
}
"""What is wrong and the remedy, by pydantic's kind of error; {..}: what its context names so."""
_NO_MAPPING = ("model_type", "model_attributes_type", "dataclass_type")
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


class StrictModel(BaseModel):
    """A part of a file: no unknown keys, no coercion, not changed after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def validated(model: type[M], data: object, source: str) -> M:
    """``data`` as an instance of ``model``; ``source`` names the file in messages.

    ``model`` is a pydantic one, or a dataclass (:mod:`p2smt.files.shapes`).

    Raises:
        InputError: one problem, unknown keys first (a misspelt key is also a missing one).
    """
    if isinstance(data, dict):
        _check_versions(model, data, source)
    try:
        return _validate(model, data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        first = min(found, key=lambda detail: detail["type"] not in _UNKNOWN)
        raise _input_error(model, first, source) from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", "flatten it") from None


def _validate(model: type[M], data: object) -> M:
    found: M = (
        model.model_validate(data)
        if issubclass(model, BaseModel)
        else _validator(model).validate_python(data)
    )
    return found


def _validator(kind: type[Any]) -> SchemaValidator:
    """Of a dataclass, as strict as :class:`StrictModel`."""
    return SchemaValidator(_of_files(TypeAdapter(kind).core_schema))


def _of_files(schema: Any) -> Any:
    """A schema with dataclasses read from mappings with their keys, tuples from lists, and enums
    from texts; all else strictly."""
    if isinstance(schema, list):
        return [_of_files(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _of_files(value) for key, value in schema.items()}
    if schema.get("type") in ("tuple", "enum", "dataclass"):
        found["strict"] = False
    if schema.get("type") == "dataclass":
        found["config"] = {"strict": True, "extra_fields_behavior": "forbid"}
        keys = {one.name: one.key for one in file_fields(schema["cls"])}
        for field in found["schema"]["fields"]:
            field["validation_alias"] = keys[field["name"]]
    return found


def _fields(model: type[Any]) -> dict[str, FileField]:
    """The fields of a model by their keys."""
    if is_dataclass(model):
        return {one.key: one for one in file_fields(model)}
    return {
        name: FileField(name, name, field.annotation, field.is_required())
        for name, field in model.model_fields.items()
    }


def _check_versions(model: type[Any], data: dict[Any, Any], source: str) -> None:
    """Refuse ``true`` where a number is the only choice: to Python it is 1."""
    for name, field in _fields(model).items():
        if isinstance(data.get(name), bool) and get_origin(field.hint) is Literal:
            rule = f"must be {' or '.join(map(str, get_args(field.hint)))}"
            raise InputError(f"{source}: {name} {data[name]}", rule, "correct the value")


def key_path(loc: Iterable[int | str]) -> str:
    """A key path for people: ``levels[0].link.bandwidth``; a key's own mark is dropped."""
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc if part != "[key]"
    )
    return path.lstrip(".")


def _input_error(model: type[Any], detail: ErrorDetails, source: str) -> InputError:
    loc, kind, value = detail["loc"], detail["type"], detail["input"]
    context = detail.get("ctx", {})
    path = key_path(loc)
    where = f"{source}: {path[:200]}" if path else source
    match kind:
        case _ if kind in _UNKNOWN:
            return _unknown_key(model, loc, source)
        case "missing":
            return InputError(where, "this key is missing", _keys(_model_at(model, loc)))
        case "value_error" if isinstance(cause := context.get("error"), InputError):
            return InputError(f"{where}: {cause.given}", cause.rule, cause.remedy)
        case "value_error":
            return InputError(where, str(context.get("error")), "correct it")
        case "enum" | "literal_error":
            rule, remedy = _choice(value, context["expected"])
        case "union_tag_invalid":
            where, value = f"{where}.{context['discriminator'].strip(chr(39))}", context["tag"]
            rule, remedy = _choice(value, context["expected_tags"])
        case _ if kind in _NO_MAPPING:
            rule, remedy = _mapping(_alternatives(model, loc))
        case _:
            rule, remedy = _RULES.get(kind, (detail["msg"], "correct the value"))
            rule = rule.format_map(context) if kind in _RULES else rule
    return InputError(f"{where} {_shown(value)}", rule, remedy)


def _choice(value: object, allowed: str) -> tuple[str, str]:
    """Rule and remedy for a value that is none of those allowed, which pydantic lists."""
    known = allowed.replace("'", "").replace(" or ", ", ").split(", ")
    return f"must be {allowed}", did_you_mean(str(value), known) or "pick one"


def _mapping(models: Sequence[type[Any]]) -> tuple[str, str]:
    """Rule and remedy for a value that is no mapping: the keys that all its models must have."""
    keys = [
        name
        for name, field in _fields(models[0]).items()
        if field.required and all(name in _fields(model) for model in models)
    ]
    rule = f"must be a mapping with {', '.join(keys)}" if keys else "must be a mapping"
    more = " and the keys of its kind" if len(models) > 1 else ""
    example = ", ".join(f'"{key}": ..' for key in keys) or "key: value"
    return rule + more, f"write {{{example}}}"


def _unknown_key(model: type[Any], loc: tuple[int | str, ...], source: str) -> InputError:
    owner, key = _model_at(model, loc), str(loc[-1])
    inside = key_path(loc[:-1])
    where = f"{source}: unknown key {key[:60]!r}" + (f" in {inside}" if inside else "")
    return InputError(
        where, _keys(owner), did_you_mean(key, _fields(owner)) or "use one of these, or remove it"
    )


def _keys(model: type[Any]) -> str:
    return f"the keys here are {', '.join(_fields(model))}"


def _model_at(model: type[Any], loc: tuple[int | str, ...]) -> type[Any]:
    """The model that holds the key at ``loc``."""
    for part in loc[:-1]:
        field = _fields(model).get(str(part))
        model = (_inner(field.hint) if field else None) or model
    return model


def _alternatives(model: type[Any], loc: tuple[int | str, ...]) -> list[type[Any]]:
    """The models of which the value at ``loc`` must be one: the whole itself without a key."""
    keys = tuple(part for part in loc if not isinstance(part, int))
    if not keys:
        return [model]
    field = _fields(_model_at(model, keys)).get(str(keys[-1]))
    return (_models(field.hint) if field else []) or [model]


def _inner(annotation: Any) -> type[Any] | None:
    return next(iter(_models(annotation)), None)


def _models(annotation: Any) -> list[type[Any]]:
    """The models that a type names."""
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or is_dataclass(annotation)
    ):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _shown(value: object) -> str:
    plain = isinstance(value, str | float | None) or (
        isinstance(value, int) and abs(value) < 10**18
    )
    shown = repr(value) if plain else f"({type(value).__name__})"
    return shown if len(shown) <= 62 else shown[:60] + ".."
