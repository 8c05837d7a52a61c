"""``framework:key=value,..`` as options that are checked one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError, did_you_mean

MAX_DEVICES = 2**16
"""Of a layout: each is written out for every rule."""

_NO_RULES: Mapping[str, str] = {
    **dict.fromkeys(
        ("fp8", "quantization", "quant", "dtype"),
        "weights with scales have no rules here, and a type of elements is no part of a layout",
    ),
    **dict.fromkeys(("lora", "adapters"), "adapters (LoRA) have no rules here"),
    "mtp": "layers of multi-token prediction have no rules here",
    **dict.fromkeys(
        ("eplb", "redundant", "placement", "expert-placement", "round-robin"),
        "experts that a table places (or doubles) have no rules here",
    ),
    **dict.fromkeys(
        ("dp-attention", "enable-dp-attention"), "attention shared out by dp has no rules here"
    ),
}
"""Options that someone may well give, and why there are no rules for them."""


@dataclass(frozen=True, slots=True)
class WeightsText:
    """A layout as given: the framework's name and its options."""

    text: str
    framework: str
    values: Mapping[str, str]

    @staticmethod
    def parse(
        text: str, known: Sequence[str], passed: Mapping[str, Sequence[str]] | None = None
    ) -> WeightsText:
        """The options of ``framework:key=value,..``; ``known`` are those of the framework.

        ``passed``: options that leave weights where they are, with the values that do.

        Raises:
            InputError: an option is unknown, has no value, or is given twice.
        """
        framework, _, rest = text.partition(":")
        values: dict[str, str] = {}
        for part in (one.strip() for one in rest.split(",") if one.strip()):
            key, sign, value = (piece.strip() for piece in part.partition("="))
            if passed and key in passed and sign:
                _check_passed(text, key, value, passed[key])
                continue
            if key not in known:
                raise _unknown(text, key, known)
            if not sign or not value:
                rule = f"option {key} has no value"
                raise InputError(f"layout {text[:80]!r}", rule, f"write {key}=VALUE")
            if key in values:
                raise InputError(f"layout {text[:80]!r}", f"option {key} is given twice")
            values[key] = value
        return WeightsText(text, framework, values)

    def degree(self, name: str, default: int = 1) -> int:
        """A whole number from 1 up.

        Raises:
            InputError: it is none.
        """
        given = self.values.get(name)
        if given is None:
            return default
        if not given.isascii() or not given.isdigit() or not 1 <= int(given[:9]) <= MAX_DEVICES:
            raise self.error(f"{name}={given[:20]}", f"must be a whole number, 1 to {MAX_DEVICES}")
        return int(given)

    def error(self, given: str, rule: str, remedy: str = "") -> InputError:
        """That something of the text breaks a rule."""
        return InputError(f"layout {self.text[:80]!r}: {given}", rule, remedy)

    def divides(self, degree: int, size: int, what: str, name: str) -> None:
        """Raises InputError where a degree does not divide a size."""
        if size % degree:
            raise self.error(f"{name}={degree}", f"must divide {what}, {size}")


def _check_passed(text: str, key: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        rule = f"must be {', '.join(known[:-1])} or {known[-1]}, which leave weights where they are"
        remedy = "describe it by a layout.json"
        raise InputError(f"layout {text[:80]!r}: {key}={value[:30]}", rule, remedy)


def _unknown(text: str, key: str, known: Sequence[str]) -> InputError:
    given = f"layout {text[:80]!r}: option {key[:40]!r}"
    if key in _NO_RULES:
        return InputError(given, _NO_RULES[key], "describe it by a layout.json")
    rule = f"is unknown; known are {', '.join(known)}"
    return InputError(given, rule, did_you_mean(key, known))
