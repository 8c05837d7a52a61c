"""JAX's types: a ``Mesh`` and a ``PartitionSpec``, read and written without JAX.

An entry of a ``PartitionSpec`` is None, an axis, or a tuple of axes, major first; trailing
dimensions may be left out; ``unreduced`` axes hold sums that are still to be made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from p2smt.errors import InputError
from p2smt.resharding.types import Layout, Mesh, ReduceOp, SubAxis

Entry = None | str | tuple[str, ...]
"""What a ``PartitionSpec`` says of a dimension."""


class _JaxMesh(Protocol):
    """Of ``jax.sharding.Mesh`` what is read: names, and an array of devices with ids."""

    @property
    def axis_names(self) -> tuple[Any, ...]: ...

    @property
    def devices(self) -> Any: ...


def mesh_of_jax(mesh: _JaxMesh) -> Mesh:
    """The mesh of a ``jax.sharding.Mesh``; devices by their ids."""
    names = [str(name) for name in mesh.axis_names]
    sizes = [int(size) for size in mesh.devices.shape]
    return Mesh.of(list(zip(names, sizes, strict=True)), [int(one.id) for one in mesh.devices.flat])


def layout_of_partition_spec(spec: Iterable[object], mesh: Mesh, dims: int) -> Layout:
    """The layout of an array of ``dims`` dimensions that a ``PartitionSpec`` says.

    Raises:
        InputError: more entries than dimensions; an axis that the mesh has not, or named twice;
            an entry that is left to the compiler; or ``reduced`` axes, which are about gradients.
    """
    entries = list(getattr(spec, "partitions", spec))  # JAX's own are not iterated where unreduced
    if len(entries) > dims:
        rule = f"the array has {dims} dimensions"
        raise InputError(f"a PartitionSpec of {len(entries)} entries", rule)
    if getattr(spec, "reduced", None):
        rule = "says how a gradient lies, which no layout of this array does"
        raise InputError("reduced axes of a PartitionSpec", rule, "drop them")
    shards = [_axes(entry, mesh) for entry in entries]
    shards += [()] * (dims - len(shards))
    unreduced = sorted(_whole(str(name), mesh) for name in getattr(spec, "unreduced", None) or ())
    layout = Layout(tuple(shards), tuple(unreduced))
    layout.check(mesh)
    return layout


def _axes(entry: object, mesh: Mesh) -> tuple[SubAxis, ...]:
    if entry is None:
        return ()
    names = entry if isinstance(entry, tuple) else (entry,)
    if not all(isinstance(name, str) for name in names):
        rule = "is neither None, nor an axis, nor a tuple of axes"
        raise InputError(f"PartitionSpec entry {str(entry)[:40]}", rule, "say how it is sharded")
    return tuple(_whole(str(name), mesh) for name in names)


def _whole(name: str, mesh: Mesh) -> SubAxis:
    axis = mesh.index(name)
    return SubAxis(axis, 1, mesh.sizes[axis])


def partition_entries(layout: Layout, mesh: Mesh) -> tuple[Entry, ...]:
    """The entries: ``jax.sharding.PartitionSpec(*entries)``, one per dimension.

    Partial axes are :func:`unreduced_axes`, beside them.

    Raises:
        InputError: a part of an axis shards: a ``PartitionSpec`` has whole axes only.
    """
    found: list[Entry] = []
    for dim in layout.dims:
        names = tuple(_name(part, mesh) for part in dim)
        found.append(names if len(names) > 1 else names[0] if names else None)
    return tuple(found)


def unreduced_axes(layout: Layout, mesh: Mesh) -> frozenset[str]:
    """The partial axes: ``PartitionSpec(.., unreduced=axes)``, which are sums always.

    Raises:
        InputError: a part of an axis is partial, or the reduction is no sum.
    """
    if layout.partial and layout.op is not ReduceOp.SUM:
        given = f"partial values by {layout.op.value}"
        raise InputError(given, "unreduced axes of JAX are sums", "reduce them first")
    return frozenset(_name(part, mesh) for part in layout.partial)


def partition_text(layout: Layout, mesh: Mesh) -> str:
    """As Python code: ``PartitionSpec(('dp', 'tp'), None, unreduced={'pp'})``.

    Raises:
        InputError: as :func:`partition_entries` and :func:`unreduced_axes`.
    """
    parts = [repr(entry) for entry in partition_entries(layout, mesh)]
    axes = sorted(unreduced_axes(layout, mesh))
    if axes:
        parts.append(f"unreduced={{{', '.join(map(repr, axes))}}}")
    return f"PartitionSpec({', '.join(parts)})"


def _name(part: SubAxis, mesh: Mesh) -> str:
    if part.before != 1 or part.size != mesh.sizes[part.axis]:
        rule = "a PartitionSpec has whole axes only"
        raise InputError(f"sub-axis {part.text(mesh)}", rule, "make each part an axis of the mesh")
    return mesh.axes[part.axis].name
