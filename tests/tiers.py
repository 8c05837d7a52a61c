"""Three tiers: what every change runs, what ``make test-all`` adds, and what evidence does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

FEW, ALL, MANY = 8, 20, 100
"""Examples of a hundred that ``make test``, ``make test-all`` and ``make evidence`` take."""


def examples_of(many: int) -> int:
    """How many examples a property is tried on: ``many`` in the profile of all tests."""
    return max(min(many, 8), many * settings().max_examples // 100)


def but_the_first(*cases: Any) -> list[Any]:
    """Cases of which all but the first are exhaustive."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.exhaustive) for case in others)]


def but_every(step: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of which all but every ``step``-th, the first among them, are evidence."""
    return [
        case if at % step == 0 else pytest.param(case, marks=pytest.mark.evidence)
        for at, case in enumerate(cases)
    ]
