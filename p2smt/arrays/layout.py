"""How an array lies on a mesh: shard, replicate and partial, as frameworks write it.

A dimension has an ordered list of axes or sub-axes, major first; axes that no dimension has are
replicated; partial axes hold contributions that are still to be reduced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.arrays.element import ReduceOp
from p2smt.arrays.mesh import Mesh, SubAxis, check_sub_axis
from p2smt.errors import InputError


@dataclass(frozen=True, slots=True)
class Layout:
    """``dims[i]`` shards dimension i; ``partial`` axes are to be reduced by ``op``."""

    dims: tuple[tuple[SubAxis, ...], ...]
    partial: tuple[SubAxis, ...] = ()
    op: ReduceOp = ReduceOp.SUM

    def parts(self) -> Iterator[SubAxis]:
        """Every sub-axis that shards or is partial."""
        for dim in self.dims:
            yield from dim
        yield from self.partial

    def check(self, mesh: Mesh) -> None:
        """Raise InputError unless every part exists and is used once at most."""
        seen: list[SubAxis] = []
        for part in self.parts():
            check_sub_axis(mesh, part)
            for other in seen:
                if other.axis == part.axis and _overlap(other, part):
                    both = f"{other.text(mesh)} and {part.text(mesh)}"
                    rule = "an axis shards, or is partial, once at most"
                    raise InputError(both, rule, "drop one of them")
            seen.append(part)


def _overlap(one: SubAxis, other: SubAxis) -> bool:
    """Whether two parts of an axis share ways: each is an interval of the axis's factors."""
    return one.before < other.before * other.size and other.before < one.before * one.size
