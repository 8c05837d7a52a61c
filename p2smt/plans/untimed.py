"""Data of answers without their times, where nobody stated the bandwidth of some level."""

from __future__ import annotations

from typing import Any

TIMES = frozenset(
    {
        *("objective_s", "bound_s", "physical_bound_s", "with_programs_s"),
        *("seconds", "single_collective_s"),
    }
)
"""Keys of plans, alternatives and orders whose values are seconds, or lists of them."""


def without_times(data: Any) -> Any:
    """The same with null for every time, also in what it holds; of a list for each of them."""
    if isinstance(data, dict):
        return {
            key: _null(one) if key in TIMES else without_times(one) for key, one in data.items()
        }
    return [without_times(one) for one in data] if isinstance(data, list | tuple) else data


def _null(value: Any) -> Any:
    return [None] * len(value) if isinstance(value, list | tuple) else None
