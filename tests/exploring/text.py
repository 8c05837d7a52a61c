"""Values as text that Python reads, and back.

The text has short names; beside it stands where each comes from.  A value with no text of its own
(a function made on the spot, say) is written as its place among the constants of the test's module.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import PurePath
from types import ModuleType

import numpy as np

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
        return self._named(value)

    def _call(self, value: object, *arguments: object) -> str:
        return f"{self._named(type(value))}({', '.join(map(self.text, arguments))})"

    def _items(self, values: object) -> str:
        return ", ".join(map(self.text, values))  # type: ignore[call-overload]

    def _dataclass(self, value: object) -> str:
        fields = [f for f in dataclasses.fields(value) if f.init]  # type: ignore[arg-type]
        given = [f"{f.name}={self.text(getattr(value, f.name))}" for f in fields]
        return f"{self._named(type(value))}({', '.join(given)})"

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
                return (
                    self._import(place.split("[")[0], self.home.__name__)
                    + place[  # type: ignore[union-attr]
                        len(place.split("[")[0]) :
                    ]
                )
        raise UnwritableError(f"{type(value).__module__}.{type(value).__qualname__}: {value!r:.80}")

    def _import(self, name: str, module: str) -> str:
        """Under which name it is known here: its own, unless another module's has it."""
        if module != "builtins" and self.names.setdefault(name, module) != module:
            raise UnwritableError(f"{name} of {module} and of {self.names[name]}")
        return name


_PLAIN = {
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
    functools.partial: lambda writer, value: writer._partial(value),
}
_BY_BASE = (
    (enum.Enum, Writer._enum),
    (np.ndarray, Writer._array),
    (np.generic, lambda writer, value: writer._call(value, value.item())),
    (Fraction, lambda writer, value: writer._call(value, value.numerator, value.denominator)),
    (PurePath, lambda writer, value: writer._call(value, str(value))),
)


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
