"""Two tiers of tests: what every change runs, and what ``make test-all`` adds to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

FEW, ALL = 8, 50
"""Examples of a hundred that the profiles of ``make test`` and ``make test-all`` take."""


def examples_of(many: int) -> int:
    """How many examples a property is tried on: ``many`` in the profile of all tests."""
    return max(min(many, 8), many * settings().max_examples // 100)


def but_the_first(*cases: Any) -> list[Any]:
    """Cases of which all but the first are exhaustive."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.exhaustive) for case in others)]
