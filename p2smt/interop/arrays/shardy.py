"""Shardy's types as MLIR text: meshes and shardings.

``sdy.mesh @m = <["x"=2, "y"=4], device_ids=[..]>`` and ``#sdy.sharding<@m, [{"x":(1)2, "y"}, {}],
replicated={"z"}, unreduced={"w"}>``, after docs/sdy_dialect.md of openxla/shardy.  A dimension's
axes are major first.  A ``?`` (the compiler may shard it further) and a priority such as ``p1`` are
about propagation, not about where data lies: they are read over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from p2smt.errors import InputError
from p2smt.resharding.types import Layout, Mesh, SubAxis

_NAME = r"@(?P<name>[A-Za-z_][\w.$-]*|\"[^\"]*\")"
_MESH = re.compile(
    rf"sdy\.mesh\s+{_NAME}\s*=\s*(#sdy\.mesh)?<\[(?P<axes>[^\]]*)\]"
    r"(,\s*device_ids\s*=\s*\[(?P<ids>[\d,\s]*)\])?>"
)
_ID = re.compile(r"[0-9]{1,9}")
_AXIS = re.compile(r'"(?P<name>[^"]+)"\s*=\s*(?P<size>[0-9]{1,9})')
_PART = re.compile(r'"(?P<name>[^"]+)"(:\((?P<before>[0-9]{1,9})\)(?P<size>[0-9]{1,9}))?')
SHARDING = rf"<{_NAME}\s*,\s*\[(?P<dims>[^\]]*)\](?P<rest>(,\s*\w+\s*=\s*\{{[^}}]*\}})*)>"
"""The pattern of a sharding from its ``<`` on; groups name, dims, rest."""
_SHARDING = re.compile(rf"\s*(#sdy\.sharding)?{SHARDING}\s*")
_DIMENSION = re.compile(r"\{(?P<parts>[^{}]*)\}(p\d+)?")
_DIMENSIONS = re.compile(r"(\{[^{}]*\}(p\d+)?(\s*,\s*(?=\{)|\s*$))*")
_AXES_OF = re.compile(r"(?P<word>\w+)\s*=\s*\{(?P<parts>[^}]*)\}")
_MESH_FORM = 'write sdy.mesh @name = <["x"=2, "y"=4]>'
_FORM = 'write <@mesh, [{"x"}, {}]>'


def parse_shardy_mesh(text: str) -> tuple[str, Mesh]:
    """Name and mesh of a line ``sdy.mesh @name = <..>``.

    Raises:
        InputError: it is of another form, or a mesh without axes.
    """
    match = _MESH.fullmatch(text.strip())
    if match is None:
        raise InputError(f"mesh {text[:80]!r}", "is no sdy.mesh", _MESH_FORM)
    axes = [_axis(part, text) for part in _split(match["axes"])]
    ids = None if match["ids"] is None else [_device(part, text) for part in _split(match["ids"])]
    return match["name"], Mesh.of(axes, ids)


def _device(part: str, text: str) -> int:
    if _ID.fullmatch(part) is None:
        raise InputError(f"mesh {text[:80]!r}", f"{part[:40]!r} is no device", _MESH_FORM)
    return int(part)


def _axis(part: str, text: str) -> tuple[str, int]:
    match = _AXIS.fullmatch(part)
    if match is None:
        raise InputError(f"mesh {text[:80]!r}", f"{part[:40]!r} is no axis", _MESH_FORM)
    return match["name"], int(match["size"])


def parse_sharding(text: str, meshes: Mapping[str, Mesh]) -> tuple[str, Layout]:
    """Name of the mesh and layout of ``#sdy.sharding<@mesh, [..]>``, or of what stands from ``<``.

    Raises:
        InputError: it is of another form, or names a mesh or an axis that there is not.
    """
    match = _SHARDING.fullmatch(text)
    if match is None:
        raise InputError(f"sharding {text[:80]!r}", "is no sdy.sharding", _FORM)
    mesh = meshes.get(match["name"])
    if mesh is None:
        known = ", ".join(meshes) or "none"
        raise InputError(f"mesh @{match['name']}", f"is not among {known}", "define it before")
    dims = tuple(parse_axes(entry, mesh) for entry in _dimensions(match["dims"], text))
    further = {m["word"]: parse_axes(m["parts"], mesh) for m in _AXES_OF.finditer(match["rest"])}
    if unknown := sorted(set(further) - {"replicated", "unreduced"}):
        raise InputError(f"sharding {text[:80]!r}", f"{unknown[0]!r} is no part of one", _FORM)
    partial = tuple(sorted(further.get("unreduced", ())))
    # as if they sharded: a replicated axis is used nowhere else
    Layout((*dims, further.get("replicated", ())), partial).check(mesh)
    return match["name"], Layout(dims, partial)


def _dimensions(text: str, whole: str) -> list[str]:
    """What stands in the braces of each dimension."""
    if _DIMENSIONS.fullmatch(text.strip()) is None:
        raise InputError(f"sharding {whole[:80]!r}", "has an entry that is no {..}", _FORM)
    return [match["parts"] for match in _DIMENSION.finditer(text)]


def parse_axes(text: str, mesh: Mesh) -> tuple[SubAxis, ...]:
    """The axes and sub-axes of a list such as ``"x":(1)2, "y", ?``.

    Raises:
        InputError: one is of another form, or not in the mesh.
    """
    found = []
    for part in _split(text):
        match = _PART.fullmatch(part)
        if part == "?":
            continue
        if match is None:
            raise InputError(f"axes {text[:80]!r}", f"{part[:40]!r} is none", _FORM)
        axis = mesh.index(match["name"])
        whole = match["before"] is None
        before, size = (1, mesh.sizes[axis]) if whole else (match["before"], match["size"])
        found.append(SubAxis(axis, int(before), int(size)))
    return tuple(found)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
