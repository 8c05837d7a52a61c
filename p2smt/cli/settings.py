"""The values of ``--set NAME=VALUE``."""

from __future__ import annotations

from collections.abc import Sequence


def settings(texts: Sequence[str], example: str) -> dict[str, str]:
    """The text of each value by the name it is given to.

    Raises:
        InputError: a text without a value, or a name that is given two.
    """
    from p2smt.errors import InputError

    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"parameter {text[:40]!r}", "has no value", f"write it like {example}")
        if name in found:
            given = f"--set {name[:40]}={found[name][:40]!r} and {value[:40]!r}"
            raise InputError(given, "a parameter takes one value", "give it once")
        found[name] = value
    return found
