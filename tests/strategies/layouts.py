"""Hypothesis strategies for meshes and layouts of whole axes."""

from __future__ import annotations

from hypothesis import strategies as st

from p2smt.resharding.types import ArrayType, ElementType, Layout, Mesh, ReduceOp, SubAxis, Uneven

NAMES = ("dp", "tp", "pp", "cp")


@st.composite
def meshes(draw: st.DrawFn, shuffled: bool = False) -> Mesh:
    """One to four axes of at most four; devices in order, or not."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    mesh = Mesh.of(list(zip(NAMES, sizes, strict=False)))
    if shuffled:
        return Mesh(mesh.axes, tuple(draw(st.permutations(mesh.devices))))
    return mesh


@st.composite
def layouts(draw: st.DrawFn, mesh: Mesh, ops: tuple[ReduceOp, ...] = tuple(ReduceOp)) -> Layout:
    """Each axis replicates, is partial or shards one of at most three dimensions, in any order."""
    count = draw(st.integers(1, 3))
    lists: list[list[SubAxis]] = [[] for _ in range(count + 2)]
    for axis in draw(st.permutations(range(len(mesh.axes)))):
        lists[draw(st.integers(0, count + 1))].append(SubAxis(axis, 1, mesh.sizes[axis]))
    partial = tuple(sorted(lists[count]))
    op = draw(st.sampled_from(ops)) if partial else ReduceOp.SUM
    return Layout(tuple(map(tuple, lists[:count])), partial, op)


@st.composite
def array_types(draw: st.DrawFn, uneven: Uneven = Uneven.NESTED) -> ArrayType:
    """An even array of floats with such a layout, at most 768 wide in each dimension."""
    mesh = draw(meshes(shuffled=True))
    layout = draw(layouts(mesh))
    factors = [draw(st.integers(1, 3)) for _ in layout.dims]
    shape = tuple(factor * mesh.size for factor in factors)
    element = draw(st.sampled_from([e for e in ElementType if e.floating]))
    return ArrayType(mesh, shape, element, layout, uneven)
