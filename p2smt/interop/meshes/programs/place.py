"""A rank's place in its group, as expressions over its coordinates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.interop.launchers.places import PlacedPlan
from p2smt.parallelism.placement import IntArray, Placement


@dataclass(frozen=True, slots=True)
class PlaceDigit:
    """A variable of the printed code: its name, its expression, and its value for each member."""

    name: str
    text: str
    values: IntArray


@dataclass(frozen=True, slots=True)
class PlaceDigits:
    """The coordinates of a rank along a request's axes, and their digits at each level."""

    coordinates: tuple[tuple[str, str], ...]
    digits: tuple[PlaceDigit, ...]

    def lines(self, used: Sequence[str]) -> list[str]:
        """Assignments of the variables that some expressions use."""
        words = set(re.findall(r"\w+", " ".join(used)))
        found = [digit for digit in self.digits if digit.name in words]
        words |= {word for digit in found for word in re.findall(r"\w+", digit.text)}
        lines = [f"{name} = {text}" for name, text in self.coordinates if name in words]
        return [*lines, *(f"{d.name} = {d.text}" for d in found if d.name != d.text)]


def coordinates_along(plan: PlacedPlan, axes: Sequence[int], ranks: IntArray) -> PlaceDigits:
    """The coordinates of ranks of the plan along axes (indices), of which no digits are known."""
    found = _coordinates(plan, axes)
    every = np.unravel_index(ranks, plan.problem.axis_sizes)
    digits = [
        PlaceDigit(name, name, np.asarray(every[i], dtype=np.int64))
        for i, (name, _) in zip(axes, found, strict=True)
    ]
    return PlaceDigits(found, tuple(digits))


def _coordinates(plan: PlacedPlan, axes: Sequence[int]) -> tuple[tuple[str, str], ...]:
    names, sizes = plan.problem.axis_names, plan.problem.axis_sizes
    found = []
    for i in axes:
        below, size = math.prod(sizes[i + 1 :]), sizes[i]
        text = f"rank // {below}" if below > 1 else "rank"
        outermost = all(other == 1 for other in sizes[:i])
        found.append((f"on_{names[i]}", text if outermost else f"{text} % {size}"))
    return tuple(found)


def digits_along(plan: PlacedPlan, placement: Placement, axes: Sequence[int]) -> PlaceDigits:
    """The digits of the axes (indices) of a parallelism matrix; members are in device order."""
    shape = [placement.matrix[i][j] for j in range(placement.width) for i in axes]
    values = np.unravel_index(np.arange(math.prod(shape)), shape)
    digits = []
    for at, (j, i) in enumerate((j, i) for j in range(placement.width) for i in axes):
        if shape[at] > 1:
            name, text = _digit(plan, placement, i, j)
            digits.append(PlaceDigit(name, text, np.asarray(values[at], dtype=np.int64)))
    return PlaceDigits(_coordinates(plan, axes), tuple(digits))


def _digit(plan: PlacedPlan, placement: Placement, axis: int, level: int) -> tuple[str, str]:
    """The name and the expression of an axis's digit at a level."""
    row = placement.matrix[axis]
    whole = f"on_{plan.problem.axis_names[axis]}"
    below = math.prod(row[level + 1 :])
    above = math.prod(row[:level])
    if below == 1 and above == 1:
        return whole, whole
    text = f"{whole} // {below}" if below > 1 else whole
    level_name = plan.problem.topology.names[level].replace("-", "_")
    return f"{whole}_at_{level_name}", text if above == 1 else f"{text} % {row[level]}"
