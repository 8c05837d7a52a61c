"""What a question fixes, and its rules, checked before anything is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from p2smt.errors import InputError
from p2smt.parallelism.placement import AxisRule, FixedEntry
from p2smt.workload.strategy import AXES, Recompute
from p2smt.workload.strategy_text import MAX_DEGREE


def check_value(name: str, value: object) -> None:
    """Raise InputError unless a searched field of a strategy may have a value."""
    given = f"fixed {name}={str(value)[:40]!r}"
    if name == "recompute":
        if not isinstance(value, Recompute):
            raise InputError(given, "must be a Recompute", "give Recompute.FULL, say")
    elif name == "sequence_parallel":
        if value not in (0, 1):
            raise InputError(given, "must be True or False")
    elif name == "zero":
        if not (_is_whole(value) and value in (0, 1, 2, 3)):
            raise InputError(given, "ZeRO has stages 0 to 3")
    else:
        check_degree(given, value)


def check_degree(given: str, value: object) -> None:
    """Raise InputError unless a value may be a degree, or the largest one."""
    if not (_is_whole(value) and 1 <= value <= MAX_DEGREE):  # type: ignore[operator]
        raise InputError(given, f"must be a whole number, at least 1 and at most {MAX_DEGREE}")


def check_rule(rule: AxisRule | FixedEntry, levels: int) -> None:
    """Raise InputError unless a rule is on an axis of strategies and on one of the levels."""
    for what, index, many in (("axis", rule.axis, len(AXES)), ("level", rule.level, levels)):
        if not (_is_whole(index) and 0 <= index < many):
            raise InputError(f"rule {rule}", f"its {what} must be an index from 0 to {many - 1}")
    if isinstance(rule, FixedEntry):
        check_degree(f"rule {rule}: value {rule.value}", rule.value)


def check_entries(
    rules: Sequence[AxisRule | FixedEntry], levels: Sequence[str], sizes: Mapping[str, Any]
) -> None:
    """Raise InputError if fixed entries contradict each other, or the fixed sizes of their axes."""
    entries: dict[str, dict[str, int]] = {}
    for rule in rules:
        if isinstance(rule, FixedEntry):
            axis, level = AXES[rule.axis], levels[rule.level]
            if entries.setdefault(axis, {}).setdefault(level, rule.value) != rule.value:
                given = f"fixed {axis}={level}:{rule.value}"
                told = f"{axis}={level}:{entries[axis][level]} is fixed, too"
                raise InputError(given, told, "keep one of them")
    for name, found in entries.items():
        size, product = sizes.get(name), prod(found.values())
        if size is None or (size == product if len(found) == len(levels) else size % product == 0):
            continue
        text = ",".join(f"{level}:{value}" for level, value in found.items())
        words = f"parts of an axis at its levels multiply to its size, and {name}={size} is fixed"
        raise InputError(f"fixed {name}={text}", words, "keep one of them, or let them agree")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
