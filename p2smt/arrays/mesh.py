"""A mesh of devices: named axes, which device stands where, and parts of axes.

Positions are numbered row-major over the axes, the first axis most significant, as in DTensor, JAX
and Shardy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.errors import InputError
from p2smt.parallelism.placement import IntArray, ParallelismAxis

MAX_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Mesh:
    """Axes, most significant first, and the device at each position.

    ``devices[p]`` is the device (rank) at mesh position p; ``Mesh.of`` numbers them in order.
    """

    axes: tuple[ParallelismAxis, ...]
    devices: tuple[int, ...]

    @staticmethod
    def of(axes: Sequence[tuple[str, int]], devices: Sequence[int] | None = None) -> Mesh:
        """The mesh of these (name, size) pairs; ``devices`` default to 0, 1, 2 and so on."""
        made = tuple(ParallelismAxis(name, size) for name, size in axes)
        count = math.prod(axis.size for axis in made)
        return Mesh(made, tuple(range(count)) if devices is None else tuple(devices))

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        twice = next((name for name, many in Counter(names).items() if many > 1), None)
        if not names:
            raise InputError("mesh", "needs at least one axis", "name one, such as dp=8")
        if twice is not None:
            raise InputError(f"mesh axis {twice}", "is given twice", "give each a name of its own")
        if len(self.devices) != self.size:
            raise InputError(
                f"{len(self.devices)} devices",
                f"the axes' product is {self.size}",
                "name one device for each mesh position",
            )
        if len(set(self.devices)) != self.size or min(self.devices) < 0:
            rule = "each position needs a device of its own, numbered from 0"
            raise InputError(f"devices {list(self.devices)[:20]}", rule)

    @property
    def size(self) -> int:
        """Number of positions."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def in_order(self) -> bool:
        """Whether position p has device p."""
        return self.devices == tuple(range(self.size))

    def index(self, name: str) -> int:
        """Index of the axis of that name.

        Raises:
            InputError: no axis has it.
        """
        names = [axis.name for axis in self.axes]
        if name not in names:
            raise InputError(
                f"axis {name[:40]!r}",
                f"is none of the mesh's {', '.join(names)}",
                "name one of these",
            )
        return names.index(name)

    def device_array(self) -> IntArray:
        """Device ids in an array whose shape is the axis sizes."""
        return np.array(self.devices, dtype=np.int64).reshape(self.sizes)


@dataclass(frozen=True, slots=True, order=True)
class SubAxis:
    """The part of an axis (by index) of ``size`` ways, below parts of ``before`` ways in all.

    Shardy writes ``axis:(before)size``; a whole axis has ``before`` 1 and the axis's size.
    """

    axis: int
    before: int
    size: int

    def text(self, mesh: Mesh) -> str:
        """``tp`` or ``tp:(2)4``."""
        axis = mesh.axes[self.axis]
        whole = self.before == 1 and self.size == axis.size
        return axis.name if whole else f"{axis.name}:({self.before}){self.size}"


def check_sub_axis(mesh: Mesh, part: SubAxis) -> None:
    """Raise InputError unless the part exists in its axis."""
    size = mesh.axes[part.axis].size
    if part.before < 1 or part.size < 1 or size % (part.before * part.size):
        name = mesh.axes[part.axis].name
        rule = f"axis {name} of {size} has no such part: the product must divide {size}"
        raise InputError(f"{name}:({part.before}){part.size}", rule, "choose another sub-axis")
