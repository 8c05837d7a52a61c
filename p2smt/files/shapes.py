"""Dataclasses as the shape of files: the annotations of their fields say how a file writes them.

    Seconds = Annotated[float, ReadBy(parse_time)]

    @dataclass(frozen=True)
    class Wire:
        latency_s: Annotated[Seconds, FileKey("latency")]           # latency: 3 us
        rates: Annotated[tuple[tuple[str, float], ...], FileTable()]  # rates: {simple: 1.5}

:func:`~p2smt.files.validation.validated` reads what others wrote, by pydantic, and
:func:`reader_of` what is known to be right, without loading it.  A list is a tuple, an object a
dataclass, and an enum its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Reader = Callable[[Any], Any]
_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class FileKey:
    """The key of a field, where it is not its name."""

    name: str


@dataclass(frozen=True, slots=True)
class ReadBy:
    """Makes a value of that of a file, or raises InputError; null, or no key, is ``absent``.

    ``write`` makes of a value what a file has for it."""

    read: Reader
    absent: Any = _REQUIRED
    write: Callable[[Any], Any] = lambda value: value

    def value(self, data: Any) -> Any:
        """The value that a file says so."""
        return self.absent if data is None and self.absent is not _REQUIRED else self.read(data)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        own = core_schema.no_info_plain_validator_function(self.value)
        if self.absent is _REQUIRED:
            return own
        return core_schema.with_default_schema(own, default=self.absent)


@dataclass(frozen=True, slots=True)
class FileTable:
    """Pairs of a key and a value: a mapping.  Of keys that are tuples, mappings in each other."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        keys, value = _columns(source)
        found = handler.generate_schema(value)
        for key in reversed(keys):
            found = core_schema.dict_schema(handler.generate_schema(key), found)
        read = _table_reader([_as_it_is for _ in keys], _as_it_is)
        return core_schema.no_info_after_validator_function(read, found)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a number, or the length of a text or list, keeps to."""

    ge: float | None = None
    min_length: int | None = None
    max_length: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        found = inner = handler(source)
        while "schema" in inner:
            inner = inner["schema"]
        given = {name: getattr(self, name) for name in ("ge", "min_length", "max_length")}
        inner.update({name: limit for name, limit in given.items() if limit is not None})
        return found


@dataclass(frozen=True, slots=True)
class FileField:
    """A field of a dataclass, and what a file has for it."""

    name: str
    key: str
    hint: Any
    required: bool


def file_fields(kind: type) -> tuple[FileField, ...]:
    """The fields of a dataclass with their keys, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_file_field(one, hints[one.name]) for one in fields(kind) if one.init)


def _file_field(field: Any, hint: Any) -> FileField:
    marks = getattr(hint, "__metadata__", ())
    key = next((mark.name for mark in marks if isinstance(mark, FileKey)), field.name)
    optional = any(isinstance(m, ReadBy) and m.absent is not _REQUIRED for m in marks)
    required = field.default is MISSING and field.default_factory is MISSING and not optional
    return FileField(field.name, key, hint, required)


def reader_of(kind: type[T]) -> Callable[[Any], T]:
    """Reads a dataclass from data that are known to be right; null counts as left out."""
    shape = [(one.name, one.key, _reader(one.hint), _absent(one.hint)) for one in file_fields(kind)]

    def read(data: Mapping[str, Any]) -> T:
        found = {}
        for name, key, field, absent in shape:
            if (value := data.get(key)) is not None:
                found[name] = field(value)
            elif absent is not _REQUIRED:
                found[name] = absent
        return kind(**found)

    return read


def file_data(value: Any) -> dict[str, Any]:
    """What a file has for a dataclass: reading it back gives an equal one.

    What is as it would be without its key is left out.
    """
    kind = type(value)
    hints = {one.key: (one.name, one.hint) for one in file_fields(kind)}
    defaults = {one.name: one.default for one in fields(kind)}
    found = {}
    for key, (name, hint) in hints.items():
        said, absent = getattr(value, name), _absent(hint)
        if said != (defaults[name] if absent is _REQUIRED else absent):
            found[key] = _written(hint, said)
    return found


def _written(hint: Any, value: Any) -> Any:
    origin, marks = get_origin(hint), getattr(hint, "__metadata__", ())
    for mark in marks:
        if isinstance(mark, ReadBy):
            return mark.write(value)
        if isinstance(mark, FileTable):
            return _written_table(*_columns(hint.__origin__), value)
    if origin is Annotated:
        return _written(hint.__origin__, value)
    if isinstance(value, tuple):
        return [_written(get_args(hint)[0], one) for one in value]
    if is_dataclass(value):
        return file_data(value)
    return value.value if isinstance(value, Enum) else value


def _written_table(keys: Sequence[Any], inner: Any, rows: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in rows:
        *outer, last = [_written(None, one) for one in (key if len(keys) > 1 else (key,))]
        place = found
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = _written(inner, value)
    return found


def _absent(hint: Any) -> Any:
    marks = getattr(hint, "__metadata__", ())
    return next((mark.absent for mark in marks if isinstance(mark, ReadBy)), _REQUIRED)


def _reader(hint: Any) -> Reader:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _marked_reader(hint)
    if origin in (Union, UnionType):
        return _reader(next(part for part in parts if part is not NoneType))
    if origin is tuple:
        each = _reader(parts[0])
        return lambda values: tuple(map(each, values))
    if isinstance(hint, type) and is_dataclass(hint):
        return reader_of(hint)
    return hint if hint is float or _is_enum(hint) else _as_it_is


def _marked_reader(hint: Any) -> Reader:
    for mark in hint.__metadata__:
        if isinstance(mark, ReadBy):
            return mark.value
        if isinstance(mark, FileTable):
            keys, value = _columns(hint.__origin__)
            return _table_reader([_reader(key) for key in keys], _reader(value))
    return _reader(hint.__origin__)


def _columns(hint: Any) -> tuple[tuple[Any, ...], Any]:
    """The types of the keys of a table, the outermost first, and that of its values."""
    keys, value = get_args(get_args(hint)[0])
    return (get_args(keys) if get_origin(keys) is tuple else (keys,)), value


def _table_reader(keys: Sequence[Reader], value: Reader) -> Reader:
    def rows(data: Any, *outer: Any) -> Iterator[tuple[Any, Any]]:
        if len(outer) == len(keys):
            yield (outer if len(keys) > 1 else outer[0]), value(data)
            return
        for key, inner in data.items():
            yield from rows(inner, *outer, keys[len(outer)](key))

    return lambda data: tuple(rows(data))


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def _as_it_is(data: Any) -> Any:
    return data
