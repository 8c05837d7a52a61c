"""Results of the study: where they are, the header of a file, rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.testbed.written import about, results

HERE = Path(__file__).resolve().parent
PACKAGES = ("p2smt", "ortools", "numpy", "scipy")
DIGITS = 9
"""Significant digits of a time: far finer than any model, and the same on every machine."""


def header(seed: int) -> dict[str, Any]:
    """Of what is measured."""
    return about.header(seed, PACKAGES, HERE)


def computed_header(seed: int) -> dict[str, Any]:
    """Of what is computed."""
    return about.computed(seed, PACKAGES)


def rounded(value: float, digits: int = DIGITS) -> float:
    """A number with so many significant digits."""
    return results.rounded(value, digits)
