"""The mesh of a generated function has an axis for each digit; here are their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.arrays.frame import Frame
from p2smt.arrays.mesh import SubAxis
from p2smt.arrays.state import ArrayState


@dataclass(frozen=True, slots=True)
class DigitNames:
    """The name of each digit, and the texts that have them."""

    frame: Frame
    names: tuple[str, ...]

    @staticmethod
    def of(frame: Frame) -> DigitNames:
        """Whole axes keep their names; ``tp:(2)4`` is ``tp_2x4``."""
        taken = [axis.name for axis in frame.mesh.axes]
        found: list[str] = []
        for digit in frame.digits:
            name = _name(frame, digit)
            while digit.size != frame.mesh.axes[digit.axis].size and name in (*taken, *found):
                name += "_"
            found.append(name)
        return DigitNames(frame, tuple(found))

    def tuple_text(self, digits: Sequence[int]) -> str:
        """``('dp', 'tp')``, for the collectives of JAX."""
        inner = ", ".join(f'"{self.names[digit]}"' for digit in digits)
        return f"({inner},)" if len(digits) == 1 else f"({inner})"

    def spec(self, state: ArrayState) -> str:
        """The ``PartitionSpec`` of the global array; partial values are along a first dimension."""
        lists = ([state.partial] if state.partial else []) + list(state.dims)
        return f"P({', '.join(self.tuple_text(dim) if dim else 'None' for dim in lists)})"

    def all_text(self) -> str:
        """Every axis, in the mesh's order."""
        return self.tuple_text(range(len(self.names)))


def _name(frame: Frame, digit: SubAxis) -> str:
    axis = frame.mesh.axes[digit.axis]
    return axis.name if digit.size == axis.size else f"{axis.name}_{digit.before}x{digit.size}"
