"""Frozen values as JSON data, and back: by the fields and the annotations of their dataclasses.

A dataclass is an object of its fields, a set a sorted list, an enum its value; a float stays exact
(Python writes the shortest text that reads as the same one), an infinite one is a text, and so is a
fraction.  Reading makes only classes that an annotation names, each of which checks itself: nothing
in a file chooses what is run.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from p2smt.errors import InputError

T = TypeVar("T")
TEXT_OF = "text of"
"""Metadata of a field that is a text in JSON: what makes that text of its value.  Its class takes
the text for the value."""
_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[1-9][0-9]{0,999})?")


def to_plain(value: object) -> Any:
    """A value of dataclasses, enums, tuples, sets, mappings and scalars as JSON data.

    Raises:
        InputError: it holds something else, which JSON has no form for.
    """
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain_field(one, value) for one in fields(value) if one.init}
    if isinstance(value, frozenset):
        return sorted((to_plain(one) for one in value), key=repr)
    if isinstance(value, Mapping):
        return {str(key): to_plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(inner) for inner in value]
    raise InputError(f"a value of type {type(value).__name__}", "has no form in JSON")


def _plain_field(one: Field[Any], owner: object) -> Any:
    value = getattr(owner, one.name)
    return one.metadata[TEXT_OF](value) if TEXT_OF in one.metadata else to_plain(value)


def from_plain(kind: type[T], data: object) -> T:
    """The value that :func:`to_plain` wrote.

    Raises:
        InputError: the data is no value of this class; or what the class itself raises.
    """
    return _read(kind, data)  # type: ignore[no-any-return]


def _read(kind: Any, data: object) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), data)
    if origin is Literal and data in get_args(kind):
        return data
    if origin in (tuple, frozenset, Sequence) and isinstance(data, list):
        return _read_many(origin, get_args(kind), data)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _read_enum(kind, data)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(data, dict):
        return _read_fields(kind, data)
    if kind is float and data in ("inf", "-inf"):
        return float(str(data))
    if kind is float and isinstance(data, int | float) and not isinstance(data, bool):
        return float(data)
    if kind is Fraction and isinstance(data, str):
        return _read_fraction(data)
    if kind in (bool, int, str, type(None)) and type(data) is kind:
        return data
    raise _wrong(kind, data)


def _read_fraction(data: str) -> Fraction:
    """A fraction in the one way that :func:`to_plain` writes it."""
    if _FRACTION.fullmatch(data):
        numerator, _, denominator = data.partition("/")
        found = Fraction(int(numerator), int(denominator or "1"))
        if str(found) == data:
            return found
    raise _wrong(Fraction, data)


def _read_enum(kind: type[Enum], data: object) -> Enum:
    for one in kind:
        if one.value == data:
            return one
    raise _wrong(kind, data)


def _read_many(origin: Any, parts: tuple[Any, ...], data: list[object]) -> Any:
    if origin is frozenset:
        return frozenset(_read(parts[0], one) for one in data)
    if origin is Sequence or (len(parts) == 2 and parts[1] is ...):
        return tuple(_read(parts[0], one) for one in data)
    if len(parts) != len(data):
        raise InputError(f"{len(data)} values", f"must be {len(parts)}")
    return tuple(_read(part, one) for part, one in zip(parts, data, strict=True))


def _read_union(kinds: Sequence[Any], data: object) -> Any:
    """The first of the classes with these very fields, or the first kind that takes the data."""
    if isinstance(data, dict):
        for kind in kinds:
            if is_dataclass(kind) and {one.name for one in fields(kind) if one.init} == set(data):
                return _read(kind, data)
    for kind in kinds:
        try:
            return _read(kind, data)
        except InputError:
            continue
    raise _wrong(kinds, data)


def _read_fields(kind: type, data: Mapping[str, object]) -> Any:
    hints = _hints(kind)
    known = {one.name for one in fields(kind) if one.init}
    if unknown := set(data) - known:
        raise InputError(f"{sorted(unknown)[0][:40]!r}", f"is no field of {kind.__name__}")
    try:
        return kind(**{name: _read(hints[name], value) for name, value in data.items()})
    except TypeError as error:
        raise InputError(f"a {kind.__name__}", "lacks a field", str(error)[:80]) from None


@lru_cache(maxsize=256)
def _hints(kind: type) -> Mapping[str, Any]:
    texts = {one.name: str for one in fields(kind) if TEXT_OF in one.metadata}
    return get_type_hints(kind) | texts


def _wrong(kind: Any, data: object) -> InputError:
    name = getattr(kind, "__name__", str(kind))
    return InputError(f"{str(data)[:40]!r}", f"is no {name[:60]}")
