"""What there is to say about lines of a file: equal texts together."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 4

Finding = tuple[str, int]
"""What there is to say, and about which line."""


def by_subject(findings: Iterable[Finding]) -> tuple[str, ...]:
    """One text per subject, with the first lines that it is about."""
    lines: dict[str, list[int]] = defaultdict(list)
    for text, line in findings:
        lines[text].append(line)
    return tuple(f"{_lines(where)}: {text}" for text, where in lines.items())


def _lines(found: list[int]) -> str:
    lines = sorted(set(found))
    shown = ", ".join(map(str, lines[:_SHOWN]))
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return f"line{'s' * (len(lines) > 1)} {shown}{more}"
