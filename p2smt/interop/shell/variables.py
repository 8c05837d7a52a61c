"""Variables of a script as far as they are known, and marks for what is not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

OPEN, SEPARATOR, CLOSE = "\ue000", "\ue001", "\ue002"
"""Characters for private use, between which the names stand that would tell what is missing."""
MARK = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")
Value = str | list[str]


def unknowns(words: Iterable[str]) -> tuple[str, ...]:
    """Names that would tell what is not known in some words, each once, in order."""
    found = (
        name for word in words for mark in MARK.findall(word) for name in mark.split(SEPARATOR)
    )
    return tuple(dict.fromkeys(found))


def unknown(names: Iterable[str]) -> str:
    """A mark in place of what is not known."""
    return f"{OPEN}{SEPARATOR.join(dict.fromkeys(names))}{CLOSE}"


class Missing(Exception):
    """Something is not known; ``names`` would tell it."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        super().__init__(self.names)


@dataclass(slots=True)
class ShellVariables:
    """Values by name; those of ``settings`` win over what a script assigns.

    ``arguments`` of the function or script that runs; ``defaults``: variables that the script
    leaves to its environment, with the values it gives them otherwise.
    """

    settings: Mapping[str, str]
    values: dict[str, Value] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)

    def is_set(self, name: str) -> bool:
        """Whether the script or the settings give it a value."""
        return name in self.settings or name in self.values

    def text(self, name: str) -> str:
        """The value of a variable, or a mark with its name."""
        if name in self.settings:
            return self.settings[name]
        if name == "#":
            return str(len(self.arguments))
        if name.isdigit() and 0 < int(name) <= len(self.arguments):
            return self.arguments[int(name) - 1]
        found = self.values.get(name)
        if isinstance(found, list):
            found = found[0] if found else ""
        return unknown([name]) if found is None else found

    def array(self, name: str) -> list[str]:
        """The words of an array, or of one value; a mark with its name."""
        if name in self.settings:
            return self.settings[name].split()
        found = self.values.get(name)
        if found is None:
            return [unknown([name])]
        return found if isinstance(found, list) else [found]

    def give(self, name: str, value: Value, *, adds: bool = False) -> None:
        """Assign, or add to what is there (``+=``)."""
        if name in self.settings:
            return
        if adds:
            if isinstance(value, str) and name not in self.values:
                self.defaults.setdefault(name, "")
            value = _added(self.values.get(name), value)
        self.values[name] = _asked_by(name, value)

    def copied(self) -> dict[str, Value]:
        """The values, to go back to."""
        return {name: list(v) if isinstance(v, list) else v for name, v in self.values.items()}


def _added(old: Value | None, value: Value) -> Value:
    """What ``+=`` makes of two values: longer text, or a longer array."""
    if isinstance(old, list) or isinstance(value, list):
        parts = [[part] if isinstance(part, str) else part for part in (old or [], value)]
        return [word for part in parts for word in part]
    return (old or "") + value


def _asked_by(name: str, value: Value) -> Value:
    """What a command prints is asked for by the variable that takes it."""
    if isinstance(value, str) and any("$(" in one for one in unknowns([value])):
        return unknown([name])
    return value


def merged(
    one: Mapping[str, Value], other: Mapping[str, Value], why: Sequence[str]
) -> dict[str, Value]:
    """What is known after one of two ways was gone, ``why`` would tell which."""
    names = dict.fromkeys([*one, *other])
    return {name: _merged(one.get(name), other.get(name), why) for name in names}


def _merged(one: Value | None, other: Value | None, why: Sequence[str]) -> Value:
    if one == other and one is not None:
        return one
    if isinstance(one, list) and isinstance(other, list):
        many = min(len(one), len(other))
        alike = one[:many] == other[:many]
        return [*(one[:many] if alike else []), unknown(why)]
    return unknown(why)
