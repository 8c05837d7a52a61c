"""Pydantic at the border: one clear :class:`InputError` for what a model refuses."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from p2smt.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_RULES = {
    "string_type": ("must be text", "put it in quotes"),
    "int_type": ("must be a whole number", "write digits without quotes or unit"),
    "int_parsing_size": ("is too large", "give a smaller number"),
    "bool_type": ("must be true or false", "write true or false"),
    "list_type": ("must be a list", "write [..] or lines that start with a dash"),
    "dict_type": ("must be a mapping", "write lines like key: value"),
    "model_type": ("must be a mapping", "write lines like key: value"),
    "string_too_short": ("must not be empty", "give a text"),
}


class StrictModel(BaseModel):
    """A part of a file: no unknown keys, no coercion, not changed after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def validated(model: type[M], data: object, source: str) -> M:
    """``data`` as an instance of ``model``; ``source`` names the file in messages.

    Raises:
        InputError: one problem, unknown keys first (a misspelt key is also a missing one).
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        first = min(found, key=lambda detail: detail["type"] != "extra_forbidden")
        raise _input_error(model, first, source) from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", "flatten it") from None


def key_path(loc: Iterable[int | str]) -> str:
    """A key path for people: ``levels[0].link.bandwidth``; a key's own mark is dropped."""
    path = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc if part != "[key]"
    )
    return path.lstrip(".")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the known word nearest to ``word``, or an empty text."""
    near = difflib.get_close_matches(word[:60], list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _input_error(model: type[BaseModel], detail: ErrorDetails, source: str) -> InputError:
    loc, kind, value = detail["loc"], detail["type"], detail["input"]
    path = key_path(loc)
    where = f"{source}: {path[:200]}" if path else source
    match kind:
        case "extra_forbidden":
            return _unknown_key(model, loc, source)
        case "missing":
            return InputError(where, "this key is missing", _keys(_model_at(model, loc)))
        case "value_error" if isinstance(cause := detail.get("ctx", {}).get("error"), InputError):
            return InputError(f"{where}: {cause.given}", cause.rule, cause.remedy)
        case "enum":
            allowed = str(detail.get("ctx", {}).get("expected", ""))
            remedy = did_you_mean(
                str(value), allowed.replace("'", "").replace(" or ", ", ").split(", ")
            )
            return InputError(
                f"{where} {_shown(value)}", f"must be {allowed}", remedy or "pick one"
            )
    rule, remedy = _RULES.get(kind, (detail["msg"], "correct the value"))
    return InputError(f"{where} {_shown(value)}", rule, remedy)


def _unknown_key(model: type[BaseModel], loc: tuple[int | str, ...], source: str) -> InputError:
    owner, key = _model_at(model, loc), str(loc[-1])
    inside = key_path(loc[:-1])
    where = f"{source}: unknown key {key[:60]!r}" + (f" in {inside}" if inside else "")
    return InputError(where, _keys(owner), did_you_mean(key, owner.model_fields) or "remove it")


def _keys(model: type[BaseModel]) -> str:
    return f"the keys here are {', '.join(model.model_fields)}"


def _model_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel]:
    """The model that holds the key at ``loc``."""
    for part in loc[:-1]:
        field = model.model_fields.get(str(part))
        model = (_inner(field.annotation) if field else None) or model
    return model


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_inner(argument) for argument in get_args(annotation))
    return next((model for model in found if model), None)


def _shown(value: object) -> str:
    plain = isinstance(value, str | float | None) or (
        isinstance(value, int) and abs(value) < 10**18
    )
    shown = repr(value) if plain else f"({type(value).__name__})"
    return shown if len(shown) <= 62 else shown[:60] + ".."
