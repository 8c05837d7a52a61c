"""Values as text that Python reads, and back.

The text has short names; beside it stands where each comes from.  A value with no text of its own
(a function made on the spot, say) is written as its place among the constants of the test's module.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from types import ModuleType
from typing import Any

import numpy as np
from pydantic import BaseModel

from tests.strategies.draws import Draws, Shuffle


class UnwritableError(Exception):
    """A value that no text makes again."""


@dataclasses.dataclass
class Writer:
    """Writes values of a test; ``names``: the module of each name that the texts have."""

    home: ModuleType | None = None
    names: dict[str, str] = dataclasses.field(default_factory=dict)

    def text(self, value: object) -> str:
        """Python's text of a value.

        Raises:
            UnwritableError: it has none.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str, bytes, range, slice):
            return repr(value)
        if kind in (float, complex):
            return repr(value) if repr(value)[-3:] not in ("inf", "nan") else f'float("{value}")'
        if kind in _PLAIN:
            return _PLAIN[kind](self, value)
        for base, write in _BY_BASE:
            if isinstance(value, base):
                return write(self, value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._call(value, *value)
        if isinstance(value, type) or not (given := _attributes(value)):
            return self._named(value)
        return self._keywords(value, given)

    def _call(self, value: object, *arguments: object) -> str:
        return f"{self._named(type(value))}({', '.join(map(self.text, arguments))})"

    def _items(self, values: object) -> str:
        return ", ".join(map(self.text, values))  # type: ignore[call-overload]

    def _dataclass(self, value: object) -> str:
        fields = [f.name for f in dataclasses.fields(value) if f.init]  # type: ignore[arg-type]
        return self._keywords(value, {name: getattr(value, name) for name in fields})

    def _keywords(self, value: object, given: Mapping[str, object]) -> str:
        texts = ", ".join(f"{name}={self.text(one)}" for name, one in given.items())
        return f"{self._named(type(value))}({texts})"

    def _model(self, value: BaseModel) -> str:
        data = self.text(value.model_dump(by_alias=True, exclude_unset=True))
        return f"{self._named(type(value))}.model_validate({data})"

    def _partial(self, value: functools.partial[object]) -> str:
        given = [self._items((value.func, *value.args))]
        given += [f"{name}={self.text(one)}" for name, one in value.keywords.items()]
        return f"{self._import('partial', 'functools')}({', '.join(given)})"

    def _enum(self, value: enum.Enum) -> str:
        kind = self._named(type(value))
        return f"{kind}.{value.name}" if value in type(value) else f"{kind}({value.value!r})"

    def _array(self, value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
        self._import("array", "numpy")
        made = f"array({self.text(value.tolist())}, dtype={value.dtype.str!r})"
        return made if 0 not in value.shape else f"{made}.reshape({self.text(value.shape)})"

    def _named(self, value: object) -> str:
        """A class or function by its name, and anything by its place among the test's constants."""
        name, module = getattr(value, "__qualname__", ""), getattr(value, "__module__", "")
        if isinstance(name, str) and isinstance(module, str) and name and module:
            found: object = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is value:
                first, *inner = name.split(".")
                return ".".join([self._import(first, module), *inner])
        for place, held in _constants(self.home):
            if held is value:
                self._import(place.partition("[")[0], self.home.__name__)  # type: ignore[union-attr]
                return place
        raise UnwritableError(f"{type(value).__module__}.{type(value).__qualname__}: {value!r:.80}")

    def _import(self, name: str, module: str) -> str:
        """Under which name it is known here: its own, unless another module's has it."""
        if module != "builtins" and self.names.setdefault(name, module) != module:
            raise UnwritableError(f"{name} of {module} and of {self.names[name]}")
        return name


_PLAIN: dict[type, Callable[[Writer, Any], str]] = {
    list: lambda writer, value: f"[{writer._items(value)}]",
    tuple: lambda writer, value: f"({writer._items(value)}{',' if len(value) == 1 else ''})",
    set: lambda writer, value: f"set([{', '.join(sorted(map(writer.text, value)))}])",
    frozenset: lambda writer, value: f"frozenset([{', '.join(sorted(map(writer.text, value)))}])",
    dict: lambda writer, value: (
        "{" + ", ".join(f"{writer.text(k)}: {writer.text(v)}" for k, v in value.items()) + "}"
    ),
    bytearray: lambda _, value: repr(value),
    Draws: lambda writer, value: writer._call(value, *value.values),
    Shuffle: lambda writer, value: writer._call(value, value.number),
}
_BY_BASE: tuple[tuple[type, Callable[[Writer, Any], str]], ...] = (
    (enum.Enum, Writer._enum),
    (np.ndarray, Writer._array),
    (np.generic, lambda writer, value: writer._call(value, value.item())),
    (Fraction, lambda writer, value: writer._call(value, value.numerator, value.denominator)),
    (Decimal, lambda writer, value: writer._call(value, str(value))),
    (BaseModel, Writer._model),
    (functools.partial, Writer._partial),
    (PurePath, lambda writer, value: writer._call(value, str(value))),
)


def _attributes(value: object) -> dict[str, object]:
    """What its class is called with, where attributes of the same names hold all of it."""
    try:
        names = inspect.signature(type(value)).parameters
    except (TypeError, ValueError):
        return {}
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return held if len(held) == len(names) else {}


def _constants(home: ModuleType | None) -> Iterator[tuple[str, object]]:
    """The module's constants and what these hold, each with its place."""
    for name, value in vars(home).items() if home else ():
        yield name, value
        if isinstance(value, list | tuple):
            yield from ((f"{name}[{n}]", one) for n, one in enumerate(value))
        elif isinstance(value, dict):
            keys = (key for key in value if isinstance(key, str | int))
            yield from ((f"{name}[{key!r}]", value[key]) for key in keys)


def value_of(text: str, names: Mapping[str, str]) -> object:
    """The value of a text; ``names``: the module of each name in it."""
    known = {name: getattr(importlib.import_module(home), name) for name, home in names.items()}
    return eval(text, known)
