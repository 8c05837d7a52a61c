"""The keys of a ``config.json`` of Hugging Face; each wrong or missing one is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from p2smt.errors import InputError
from p2smt.plans.training.file_model import MAX_SIZE


@dataclass(frozen=True, slots=True)
class ConfigKeys:
    """The keys of a configuration; ``source`` names it in messages.

    A key may have several names, of which the first that is there counts; null is as good as none.
    """

    data: Mapping[str, Any]
    source: str

    def has(self, *names: str) -> bool:
        """Whether one of the names has a value other than null."""
        return any(self.data.get(name) is not None for name in names)

    def count(self, *names: str) -> int:
        """A whole number that must be there.

        Raises:
            InputError: it is missing, or no whole number from 1 up.
        """
        if not self.has(*names):
            given = f"{self.source}: {' or '.join(names)}"
            raise InputError(given, "this key is missing", "add it: the model's size rests on it")
        return self._whole(*self._found(*names))

    def optional(self, name: str, default: int, most: int = MAX_SIZE) -> int:
        """A whole number that need not be there.

        Raises:
            InputError: it is no whole number from 1 up.
        """
        return self._whole(name, self.data[name], most) if self.has(name) else default

    def whole(self, name: str, default: int) -> int:
        """As :meth:`optional`, where 0 is a value, too."""
        return 0 if self.data.get(name) == 0 else self.optional(name, default)

    def switch(self, name: str, default: bool) -> bool:
        """Whether true.

        Raises:
            InputError: it is neither true nor false.
        """
        found = self.data[name] if self.has(name) else default
        if not isinstance(found, bool):
            raise self.error(name, found, "must be true or false")
        return found

    def text(self, name: str) -> str:
        """A text; empty where there is none."""
        found = self.data.get(name)
        return found if isinstance(found, str) else ""

    def error(self, name: str, value: object, rule: str, remedy: str = "") -> InputError:
        """That a key's value breaks a rule."""
        shown = value if isinstance(value, str | int | float) else type(value).__name__
        return InputError(f"{self.source}: {name} {str(shown)[:60]!r}", rule, remedy)

    def _found(self, *names: str) -> tuple[str, Any]:
        return next((name, self.data[name]) for name in names if self.has(name))

    def _whole(self, name: str, value: Any, most: int = MAX_SIZE) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self.error(name, value, f"must be a whole number from 1 to {most}")
        return value

    def numbers(self, name: str) -> frozenset[int]:
        """Whole numbers from 0 up in a list; none where there is none.

        Raises:
            InputError: it is no list of these.
        """
        found = self.data[name] if self.has(name) else []
        if not isinstance(found, list) or not all(_counts(one) for one in found):
            raise self.error(name, found, "must be a list of whole numbers")
        return frozenset(found)

    def part(self, name: str) -> ConfigKeys:
        """The keys under a key.

        Raises:
            InputError: there is no mapping.
        """
        found = self.data.get(name)
        if not isinstance(found, dict):
            raise self.error(name, found, "must be a mapping", "give a whole config.json")
        return ConfigKeys(found, f"{self.source}: {name}")

    def entries(self, name: str, layers: int) -> list[Any]:
        """A list with an entry for each layer.

        Raises:
            InputError: it is none, or has another length.
        """
        found = self.data[name]
        if not isinstance(found, list):
            raise self.error(name, found, "must be a list")
        if len(found) != layers:
            rule = f"must have an entry for each of the {layers} layers"
            raise self.error(name, f"{len(found)} entries", rule)
        return found


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
