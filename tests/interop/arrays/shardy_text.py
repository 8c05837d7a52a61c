"""Meshes and layouts in Shardy's text, for what reads them."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.resharding.states import joined
from p2smt.resharding.types import Layout, Mesh, SubAxis


def shardy_mesh_text(name: str, mesh: Mesh) -> str:
    """The line of a mesh."""
    axes = ", ".join(f'"{axis.name}"={axis.size}' for axis in mesh.axes)
    ids = "" if mesh.in_order else f", device_ids=[{', '.join(map(str, mesh.devices))}]"
    return f"sdy.mesh @{name} = <[{axes}]{ids}>"


def sharding_text(name: str, layout: Layout, mesh: Mesh) -> str:
    """``#sdy.sharding<@name, ..>``; parts of an axis that follow each other are written as one."""
    dims = ", ".join(_braces(dim, mesh) for dim in layout.dims)
    unreduced = f", unreduced={_braces(sorted(layout.partial), mesh)}" if layout.partial else ""
    return f"#sdy.sharding<@{name}, [{dims}]{unreduced}>"


def _braces(parts: Sequence[SubAxis], mesh: Mesh) -> str:
    return "{" + ", ".join(_part_text(part, mesh) for part in joined(parts)) + "}"


def _part_text(part: SubAxis, mesh: Mesh) -> str:
    name, _, rest = part.text(mesh).partition(":")
    return f'"{name}":{rest}' if rest else f'"{name}"'
